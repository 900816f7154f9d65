"""Gemini's embeddings, one or a batch: calls beside the conversation, never streamed. The model is said by the path.

The vectors are no message; they are kept as they came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from spanreel.exchange import Piece
from spanreel.model import Answer, Json, Operation, Request, Usage
from spanreel.protocols.gemini.answers import write_failure
from spanreel.protocols.media import read_own, write_own
from spanreel.protocols.openai_errors import read_error, write_error
from spanreel.protocols.residue import keep, kept, objects, overlay, parse_object, residue, unexpected, write_json

__all__ = [
    "NAME",
    "PATHS",
    "PROVIDER",
    "STREAM_TYPE",
    "join",
    "read_request",
    "read_response",
    "split",
    "write_request",
    "write_response",
]

NAME = "gemini_embeddings"
PROVIDER = "gcp.gemini"
PATHS: Mapping[str, Operation] = {
    ":embedContent": Operation.EMBEDDINGS,
    ":batchEmbedContents": Operation.EMBEDDINGS,
}
STREAM_TYPE = "application/json"

FORMS: Final = "$forms"
"""In a request's ``provider_fields``: that one content was asked about, and no batch of them."""
_ONE: Final[Mapping[str, Json]] = {FORMS: {"content": "one"}}


def read_request(body: bytes, operation: Operation) -> Request:
    """Read a request into one message with a part a content; ValueError where it has none."""
    wire = parse_object(body, f"{NAME} request")
    batch = wire.get("requests")
    one = batch is None and isinstance(wire.get("content"), dict)
    if one:
        entries: list[Json] = [wire]
    elif isinstance(batch, list):
        entries = objects(batch, f"{NAME} request: requests")
    else:
        raise unexpected(f"{NAME} request: content or requests", batch, "a list")
    asked = [entry.get("outputDimensionality") for entry in entries]
    alike = bool(asked) and isinstance(asked[0], int) and asked.count(asked[0]) == len(asked)
    settings: dict[str, Json] = {"dimensions": asked[0]} if alike else {}
    parts = [_read_entry(entry, settings) for entry in entries]
    request = Request(operation, None, ({"role": "user", "parts": parts},), settings=settings)
    forms = dict(_ONE) if one else {}
    request = replace(request, provider_fields=forms)
    return request if one else replace(request, provider_fields=residue(wire, _write(request)))


def write_request(request: Request) -> bytes:
    """Write a request; what the path says of it is not in it."""
    return write_json(_write(request))


def read_response(body: bytes, status: int) -> Answer:
    """Read an answer, or a failure."""
    if status >= 400:
        return read_error(body, status, write_failure)
    wire = parse_object(body, f"{NAME} response")
    counted = wire.get("usageMetadata")
    count = counted.get("promptTokenCount") if isinstance(counted, dict) else None
    answer = Answer(
        usage=Usage(count) if isinstance(count, int) and not isinstance(count, bool) else None, status=status
    )
    return replace(answer, provider_fields=residue(wire, _write_answer(answer)))


def write_response(answer: Answer) -> bytes:
    """Write an answer, or a failure."""
    return write_error(answer, write_failure) if answer.status >= 400 else write_json(_write_answer(answer))


def join(pieces: Sequence[Piece]) -> Answer:
    """Read an answer that came in pieces."""
    return read_response(b"".join(piece for _, piece in pieces), 200)


def split(answer: Answer) -> list[Piece]:
    """The answer in one piece."""
    return [(0.0, write_response(answer))]


def _read_entry(entry: Mapping[str, Json], settings: Mapping[str, Json]) -> dict[str, Any]:
    """A content with what was asked of it; one that is not a single text is kept as it came."""
    match entry.get("content"):
        case {"parts": [{"text": str() as text}]}:
            part = {"type": "text", "content": text}
            return keep(part, residue(dict(entry), _write_entry(part, settings)))
    return read_own(dict(entry))


def _write_entry(part: Mapping[str, Json], settings: Mapping[str, Json]) -> Json:
    if part.get("type") != "text":
        return write_own(dict(part))
    asked = {"outputDimensionality": settings["dimensions"]} if "dimensions" in settings else {}
    return overlay({"content": {"parts": [{"text": part.get("content")}]}, **asked}, kept(part))


def _write(request: Request) -> dict[str, Json]:
    parts = [part for message in request.messages for part in message.get("parts") or []]
    entries = [_write_entry(part, request.settings) for part in parts]
    if len(entries) == 1 and FORMS in request.provider_fields and isinstance(entries[0], dict):
        return entries[0]
    return overlay({"requests": entries}, request.provider_fields)


def _write_answer(answer: Answer) -> dict[str, Json]:
    rest = dict(answer.provider_fields)
    body: dict[str, Json] = {}
    match rest.get("data"):  # vectors in the form of OpenAI's, of an answer that was made for any protocol
        case [{"object": "embedding", "embedding": _}, *_] as made if "embeddings" not in rest:
            vectors: list[Json] = [{"values": entry["embedding"]} for entry in made]
            body = {"embeddings": vectors}
            del rest["data"]
    if answer.usage is not None:
        body["usageMetadata"] = {"promptTokenCount": answer.usage.input_tokens or 0}
    return overlay(body, rest)
