"""Ollama's embeddings, as its own API speaks them: calls beside the conversation, never streamed.

The vectors are no message; they are kept as they came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from spanreel.exchange import Piece
from spanreel.model import Answer, Json, Operation, Request, Usage
from spanreel.protocols.media import read_own, write_own
from spanreel.protocols.ollama.messages import write_failure
from spanreel.protocols.openai_errors import read_error, write_error
from spanreel.protocols.residue import overlay, parse_object, residue, unexpected, write_json

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

NAME = "ollama_embeddings"
PROVIDER = "ollama"
PATHS: Mapping[str, Operation] = {"/api/embed": Operation.EMBEDDINGS}
STREAM_TYPE = "application/x-ndjson"

FORMS: Final = "$forms"
"""In a request's ``provider_fields``: that the input was one text, and no list of them."""


def read_request(body: bytes, operation: Operation) -> Request:
    """Read a request into one message with a part an input; ValueError where it has no input."""
    wire = parse_object(body, f"{NAME} request")
    entries = wire.get("input")
    if not isinstance(entries, str | list):
        raise unexpected(f"{NAME} request: input", entries, "text or a list")
    forms: dict[str, Json] = {FORMS: {"input": "one"}} if isinstance(entries, str) else {}
    inputs = [entries] if isinstance(entries, str) else entries
    request = Request(
        operation=operation,
        model=wire["model"] if isinstance(wire.get("model"), str) else None,
        messages=({"role": "user", "parts": [_read_input(entry) for entry in inputs]},),
        settings={"dimensions": wire["dimensions"]} if "dimensions" in wire else {},
        provider_fields=forms,
    )
    return replace(request, provider_fields={**forms, **residue(wire, _write(request))})


def write_request(request: Request) -> bytes:
    """Write a request."""
    return write_json(_write(request))


def read_response(body: bytes, status: int) -> Answer:
    """Read an answer, or a failure."""
    if status >= 400:
        return read_error(body, status, write_failure)
    wire = parse_object(body, f"{NAME} response")
    count = wire.get("prompt_eval_count")
    answer = Answer(
        model=wire["model"] if isinstance(wire.get("model"), str) else None,
        usage=Usage(count) if isinstance(count, int) and not isinstance(count, bool) else None,
        status=status,
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


def _read_input(entry: Json) -> dict[str, Json]:
    return {"type": "text", "content": entry} if isinstance(entry, str) else read_own(entry)


def _write(request: Request) -> dict[str, Json]:
    wire: dict[str, Json] = {} if request.model is None else {"model": request.model}
    parts = [part for message in request.messages for part in message.get("parts") or []]
    entries = [part.get("content") if part.get("type") == "text" else write_own(part) for part in parts]
    wire["input"] = entries[0] if len(entries) == 1 and FORMS in request.provider_fields else entries
    if "dimensions" in request.settings:
        wire["dimensions"] = request.settings["dimensions"]
    return overlay(wire, request.provider_fields)


def _write_answer(answer: Answer) -> dict[str, Json]:
    rest = dict(answer.provider_fields)
    body: dict[str, Json] = {"model": answer.model or "unknown"}
    match rest.get("data"):  # vectors in the form of OpenAI's, of an answer that was made for any protocol
        case [{"object": "embedding", "embedding": _}, *_] as made if "embeddings" not in rest:
            body["embeddings"] = [entry["embedding"] for entry in made]
            del rest["data"]
    if answer.usage is not None:
        body["prompt_eval_count"] = answer.usage.input_tokens or 0
    return overlay(body, rest)
