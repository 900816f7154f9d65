"""Bedrock's invoke: a body in the form of whoever made the model, behind a path with the model's name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from spanreel.exchange import Piece
from spanreel.model import Answer, Operation, Request
from spanreel.protocols.bedrock.answers import write_failure
from spanreel.protocols.bedrock_invoke import prompts
from spanreel.protocols.bedrock_invoke.families import (
    FAMILIES,
    Family,
    family_answering,
    family_asked,
    family_named,
    family_streaming,
)
from spanreel.protocols.bedrock_invoke.packing import STREAM_TYPE, read_events
from spanreel.protocols.completions.forms import PROMPTS
from spanreel.protocols.openai_errors import read_error, write_error
from spanreel.protocols.residue import parse_object
from spanreel.protocols.sse import read_object

__all__ = [
    "NAME",
    "PATHS",
    "PROVIDER",
    "STREAM_TYPE",
    "as_asked",
    "join",
    "read_request",
    "read_response",
    "split",
    "write_request",
    "write_response",
]

NAME = "bedrock_invoke"
PROVIDER = "aws.bedrock"
PATHS: Mapping[str, Operation] = {"/invoke": Operation.CHAT, "/invoke-with-response-stream": Operation.CHAT}

NEEDED: Final = ("messages", "message", *PROMPTS, "texts", "inputImage")
"""One of these stands in every request."""
FAMILY: Final = "$family"
"""In ``provider_fields`` of requests and answers: whose API it is, where it is not Anthropic's."""


def read_request(body: bytes, operation: Operation) -> Request:
    """Read a request; ValueError where it is no object, or says nothing that any model is asked."""
    family = family_asked(parse_object(body, f"{NAME} request"), operation)
    request = family.speech.read_request(body, operation)
    if family is FAMILIES[0]:
        return request
    return replace(request, provider_fields={**request.provider_fields, FAMILY: family.name})


def write_request(request: Request) -> bytes:
    """Write a request; what the path says of it is not in it."""
    return family_named(request.provider_fields.get(FAMILY)).speech.write_request(request)


def read_response(body: bytes, status: int) -> Answer:
    """Read a plain answer, or a failure."""
    if status >= 400:
        return read_error(body, status, write_failure)
    family = family_answering(parse_object(body, f"{NAME} response")) or FAMILIES[0]
    return _of(family, family.speech.read_response(body, status))


def write_response(answer: Answer) -> bytes:
    """Write a plain answer, or a failure."""
    if answer.status >= 400:
        return write_error(answer, write_failure)
    return family_named(answer.provider_fields.get(FAMILY)).speech.write_response(answer)


def join(pieces: Sequence[Piece]) -> Answer:
    """Read a streamed body, whole or cut off; ValueError where it holds no frame at all."""
    told = map(read_object, read_events(pieces))
    families = (family_streaming(fields) for fields in told if fields is not None)
    family = next((family for family in families if family is not None), FAMILIES[0])
    return _of(family, family.join(pieces))


def split(answer: Answer) -> list[Piece]:
    """Write an answer as a stream: as its chunks say, where they still carry what it holds; else as Bedrock would."""
    if answer.status >= 400:
        return [(0.0, write_response(answer))]
    return family_named(answer.provider_fields.get(FAMILY)).split(answer)


def as_asked(request: Request, answer: Answer) -> Answer:
    """An answer made for another request, or for none, in the form that this one is to be answered in."""
    family = family_named(request.provider_fields.get(FAMILY))
    if answer.status >= 400 or answer.chunks or answer.provider_fields.get(FAMILY) == _name(family):
        return answer
    rest = {name: value for name, value in answer.provider_fields.items() if name != FAMILY}
    answer = _of(family, replace(answer, provider_fields=rest))
    return prompts.as_asked(request, answer) if family.speech is prompts else answer


def _of(family: Family, answer: Answer) -> Answer:
    name = _name(family)
    return answer if name is None else replace(answer, provider_fields={**answer.provider_fields, FAMILY: name})


def _name(family: Family) -> str | None:
    return None if family is FAMILIES[0] else family.name
