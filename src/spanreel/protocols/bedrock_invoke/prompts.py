"""Models in Bedrock's invoke that complete a prompt: Titan, Llama, Mistral and older ones, each in its own form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from spanreel.exchange import Piece
from spanreel.model import Answer, Operation, Request
from spanreel.protocols.bedrock_invoke.packing import pack, read_events, unpack
from spanreel.protocols.completions import requests, stream
from spanreel.protocols.completions.answers import FORM, read_body, write_body
from spanreel.protocols.completions.forms import OPENAI, form_for, form_of
from spanreel.protocols.residue import parse_object, write_json
from spanreel.protocols.sse import read_object

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
    forms = (form_of(fields) for event in read_events(pieces) if (fields := read_object(event)))
    return stream.join(unpack(pieces), next((form for form in forms if form is not None), OPENAI))


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
