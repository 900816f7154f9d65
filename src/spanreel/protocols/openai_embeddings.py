"""OpenAI embeddings and moderations: calls beside the conversation, never streamed.

What they answer (vectors, scores) is no message; it is kept as it came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from spanreel.exchange import Piece
from spanreel.model import Answer, Json, Message, Operation, Request
from spanreel.protocols.media import read_own, read_url, write_own, write_url
from spanreel.protocols.openai_errors import describe_error, read_error, write_error
from spanreel.protocols.openai_usage import read_usage
from spanreel.protocols.residue import keep, kept, overlay, parse_object, residue, unexpected, write_json
from spanreel.protocols.sse import STREAM_TYPE

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

NAME = "openai_embeddings"
PROVIDER = "openai"
PATHS: Mapping[str, Operation] = {"/embeddings": Operation.EMBEDDINGS, "/moderations": Operation.MODERATION}

FORMS: Final = "$forms"
"""In a request's ``provider_fields``: that the input was one text, or one list of tokens, and no list of inputs."""


def read_request(body: bytes, operation: Operation) -> Request:
    """Read a request into one message with a part an input; ValueError where it has no input."""
    wire = parse_object(body, f"{NAME} request")
    entries = wire.get("input")
    if not isinstance(entries, str | list):
        raise unexpected(f"{NAME} request: input", entries, "text or a list")
    one = isinstance(entries, str) or (bool(entries) and all(isinstance(entry, int) for entry in entries))
    settings: dict[str, Json] = {}
    if "dimensions" in wire:
        settings["dimensions"] = wire["dimensions"]
    if isinstance(wire.get("encoding_format"), str):
        settings["encoding_formats"] = [wire["encoding_format"]]
    request = Request(
        operation=operation,
        model=wire["model"] if isinstance(wire.get("model"), str) else None,
        messages=({"role": "user", "parts": [_read_input(entry) for entry in ([entries] if one else entries)]},),
        settings=settings,
        provider_fields={FORMS: {"input": "one"}} if one else {},
    )
    rest = residue(wire, _write(request))
    return replace(request, provider_fields={**request.provider_fields, **rest})


def write_request(request: Request) -> bytes:
    """Write a request."""
    return write_json(_write(request))


def read_response(body: bytes, status: int) -> Answer:
    """Read an answer, or a failure."""
    if status >= 400:
        return read_error(body, status)
    wire = parse_object(body, f"{NAME} response")
    usage = wire.get("usage")
    answer = Answer(
        response_id=wire["id"] if isinstance(wire.get("id"), str) else None,
        model=wire["model"] if isinstance(wire.get("model"), str) else None,
        usage=read_usage(usage),
        status=status,
        error=describe_error(wire, 200) if isinstance(wire.get("error"), dict | str) else None,
    )
    return replace(answer, provider_fields=residue(wire, _write_answer(answer)))


def write_response(answer: Answer) -> bytes:
    """Write an answer, or a failure."""
    return write_error(answer) if answer.status >= 400 else write_json(_write_answer(answer))


def join(pieces: Sequence[Piece]) -> Answer:
    """Read an answer that came in pieces."""
    return read_response(b"".join(piece for _, piece in pieces), 200)


def split(answer: Answer) -> list[Piece]:
    """The answer in one piece."""
    return [(0.0, write_response(answer))]


def _read_input(entry: Json) -> dict[str, Any]:
    """An input: a text, a list of tokens, or (moderations) an object with a text or an image."""
    if isinstance(entry, str):
        return {"type": "text", "content": entry}
    part: dict[str, Any] | None = None
    if isinstance(entry, dict) and entry.get("type") == "text" and isinstance(entry.get("text"), str):
        part = {"type": "text", "content": entry["text"], "provider_fields": {"type": "text"}}
    elif isinstance(entry, dict) and isinstance(entry.get("image_url"), dict):
        url = entry["image_url"].get("url")
        part = read_url(url, "image") if isinstance(url, str) else None
    if part is None:
        return read_own(entry)
    return keep(part, {**kept(part), **residue(entry, _write_input(part))})


def _write_input(part: dict[str, Json]) -> Json:
    if part.get("type") == "text" and not kept(part):
        return part.get("content")
    if part.get("type") == "text":
        return overlay({"type": "text", "text": part.get("content")}, kept(part))
    if part.get("type") in ("blob", "uri"):
        return overlay({"type": "image_url", "image_url": {"url": write_url(part)}}, kept(part))
    return write_own(part)


def _write(request: Request) -> dict[str, Json]:
    wire: dict[str, Json] = {} if request.model is None else {"model": request.model}
    messages: Sequence[Message] = request.messages
    entries = [_write_input(part) for message in messages for part in message.get("parts") or []]
    one = len(entries) == 1 and FORMS in request.provider_fields
    wire["input"] = entries[0] if one else entries
    if "dimensions" in request.settings:
        wire["dimensions"] = request.settings["dimensions"]
    formats = request.settings.get("encoding_formats")
    if isinstance(formats, list) and len(formats) == 1:
        wire["encoding_format"] = formats[0]
    return overlay(wire, request.provider_fields)


def _write_answer(answer: Answer) -> dict[str, Json]:
    body: dict[str, Json] = {"object": "list", "data": [], "model": answer.model or "unknown"}
    if answer.response_id is not None:
        body["id"] = answer.response_id
    if answer.usage is not None:
        tokens = answer.usage.input_tokens or 0
        body["usage"] = {"prompt_tokens": tokens, "total_tokens": tokens}
    return overlay(body, answer.provider_fields)
