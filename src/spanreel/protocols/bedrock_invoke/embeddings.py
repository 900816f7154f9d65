"""Embeddings in Bedrock's invoke, by Amazon's Titan and by Cohere: calls beside the conversation, never streamed.

The vectors are no message; they are kept as they came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from spanreel.exchange import Piece
from spanreel.model import Answer, Json, Operation, Request, Usage
from spanreel.protocols.residue import overlay, parse_object, residue, unexpected, write_json

_PLACE: Final = "bedrock_invoke embeddings"
TEXTS: Final = ("inputText", "texts")
LISTED: Final = "$listed"
"""In a request's ``provider_fields``: the texts stood in a list."""


def read_request(body: bytes, operation: Operation) -> Request:
    """Read a request into one message with a part a text; what else is embedded is kept as it came."""
    wire = parse_object(body, f"{_PLACE} request")
    listed = isinstance(wire.get("texts"), list)
    texts = wire["texts"] if listed else [wire["inputText"]] if isinstance(wire.get("inputText"), str) else []
    if not all(isinstance(text, str) for text in texts):
        raise unexpected(f"{_PLACE} request: texts", texts, "a list of texts")
    parts: list[dict[str, Any]] = [{"type": "text", "content": text} for text in texts]
    request = Request(
        operation,
        None,
        ({"role": "user", "parts": parts},) if parts else (),
        settings={"dimensions": wire["dimensions"]} if "dimensions" in wire else {},
        provider_fields={LISTED: True} if listed else {},
    )
    return replace(request, provider_fields={**request.provider_fields, **residue(wire, _write(request))})


def write_request(request: Request) -> bytes:
    """Write a request; what the path says of it is not in it."""
    return write_json(_write(request))


def read_response(body: bytes, status: int) -> Answer:
    """Read an answer."""
    wire = parse_object(body, f"{_PLACE} response")
    count = wire.get("inputTextTokenCount")
    answer = Answer(
        response_id=wire["id"] if isinstance(wire.get("id"), str) else None,
        usage=Usage(count) if isinstance(count, int) and not isinstance(count, bool) else None,
        status=status,
    )
    return replace(answer, provider_fields=residue(wire, _write_answer(answer)))


def write_response(answer: Answer) -> bytes:
    """Write an answer."""
    return write_json(_write_answer(answer))


def join(pieces: Sequence[Piece]) -> Answer:
    """Read an answer that came in pieces."""
    return read_response(b"".join(piece for _, piece in pieces), 200)


def split(answer: Answer) -> list[Piece]:
    """The answer in one piece."""
    return [(0.0, write_response(answer))]


def _write(request: Request) -> dict[str, Json]:
    rest: Mapping[str, Json] = request.provider_fields
    texts = [part.get("content") for message in request.messages for part in message.get("parts") or []]
    listed = rest.get(LISTED) is True
    wire: dict[str, Json] = {"texts": texts} if listed else {"inputText": texts[0]} if texts else {}
    if "dimensions" in request.settings:
        wire["dimensions"] = request.settings["dimensions"]
    return overlay(wire, rest)


def _write_answer(answer: Answer) -> dict[str, Json]:
    rest = dict(answer.provider_fields)
    body: dict[str, Json] = {} if answer.response_id is None else {"id": answer.response_id}
    match rest.get("data"):  # vectors in the form of OpenAI's, of an answer that was made for any protocol
        case [{"object": "embedding", "embedding": vector}, *_] if "embedding" not in rest and "embeddings" not in rest:
            body["embedding"] = vector
            del rest["data"]
    if answer.usage is not None:
        body["inputTextTokenCount"] = answer.usage.input_tokens or 0
    return overlay(body, rest)
