"""Models in Bedrock's invoke that complete a prompt: Titan, Llama, Mistral and older ones, each in its own form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from spanreel.exchange import Piece
from spanreel.model import Answer, Operation, Request
from spanreel.protocols.bedrock_invoke.packing import pack, read_data, unpack
from spanreel.protocols.completions import requests, stream
from spanreel.protocols.completions.answers import FORM, read_body, write_body
from spanreel.protocols.completions.forms import OPENAI, Form, form_for, form_of
from spanreel.protocols.residue import parse_object, write_json
from spanreel.protocols.sse import read_event

_PLACE: Final = "bedrock_invoke"


def read_request(body: bytes, operation: Operation) -> Request:
    """Read a request; ValueError where it is no object with a prompt."""
    return requests.read_request(parse_object(body, f"{_PLACE} request"), operation, _PLACE)


def write_request(request: Request) -> bytes:
    """Write a request."""
    return write_json(requests.write_request(request))


def read_response(body: bytes, status: int) -> Answer:
    """Read a plain answer."""
    wire = parse_object(body, f"{_PLACE} response")
    return replace(read_body(wire, form_of(wire) or OPENAI), status=status)


def write_response(answer: Answer) -> bytes:
    """Write a plain answer."""
    return write_json(write_body(answer))


def join(pieces: Sequence[Piece]) -> Answer:
    """Read a streamed body, whole or cut off; ValueError where it holds no frame at all."""
    lines = unpack(pieces)
    return stream.join(lines, _form_of(lines))


def split(answer: Answer) -> list[Piece]:
    """Write an answer as a stream: as its chunks say, where they still carry what it holds; else as Bedrock would."""
    return pack(stream.split(answer))


def as_asked(request: Request, answer: Answer) -> Answer:
    """An answer made for another request, in the form of the model that this one asks."""
    form = form_for(request.model, stream=request.stream)
    rest = {name: value for name, value in answer.provider_fields.items() if name != FORM}
    if form is OPENAI:
        return replace(answer, provider_fields=rest)
    return replace(answer, model=None, response_id=None, provider_fields={**rest, FORM: form.name})


def _form_of(lines: Sequence[Piece]) -> Form:
    """The form of the first line that has one."""
    told = (read_data(read_event(line.rstrip(b"\n"), 0)) for _, line in lines)
    return next((form for fields in told if fields and (form := form_of(fields)) is not None), OPENAI)
