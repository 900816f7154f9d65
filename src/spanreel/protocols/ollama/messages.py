"""Messages of Ollama's chat, read and written; and answers, whose message stands among what was counted."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from spanreel.media_types import media_type
from spanreel.model import Answer, Error, Json, Message, Usage
from spanreel.protocols.message_lists import write_apart
from spanreel.protocols.openai_errors import describe_error
from spanreel.protocols.residue import keep, kept, overlay, read_count, residue, unexpected

_ROLES: Final = ("system", "user", "assistant", "tool")
_READ_REASON: Final = {"stop": "stop", "length": "length"}


def read_message(wire: Json, place: str) -> Message:
    """Read one message; ``place`` names it in the ValueError raised where it is no object."""
    if not isinstance(wire, dict):
        raise unexpected(place, wire, "an object")
    role = wire.get("role")
    if role == "tool":
        identity = {"id": wire["tool_call_id"]} if isinstance(wire.get("tool_call_id"), str) else {}
        parts = [{"type": "tool_call_response", **identity, "response": wire.get("content")}]
    else:
        parts = _read_parts(wire)
    message: Message = {"role": role if isinstance(role, str) and role in _ROLES else "user", "parts": parts}
    return keep(message, residue(wire, write_messages(message)[0]))


def write_messages(message: Message) -> list[dict[str, Json]]:
    """Write one message: as several where it holds several answers of tools, which are a message each here."""
    return write_apart(message, _write_tool_answer, write_message)


def write_message(message: Message, parts: list[dict[str, Json]]) -> dict[str, Json]:
    """Write a message of these parts: its texts as one."""
    wire: dict[str, Json] = {"role": message.get("role"), "content": _text(parts, "text", "refusal")}
    if any(part.get("type") == "reasoning" for part in parts):
        wire["thinking"] = _text(parts, "reasoning")
    images = [part.get("content") for part in parts if part.get("type") == "blob"]
    if images:
        wire["images"] = images
    calls = [_write_call(part) for part in parts if part.get("type") == "tool_call"]
    if calls:
        wire["tool_calls"] = calls
    return overlay(wire, kept(message))


def read_body(body: Mapping[str, Json]) -> Answer:
    """Read an answer; one without a message is an answer without messages."""
    model, raw, wire = body.get("model"), body.get("done_reason"), body.get("message")
    messages: tuple[Message, ...] = ()
    if isinstance(wire, dict):
        message = read_message(wire, "ollama response: message")
        message = {"role": "assistant", **{key: value for key, value in message.items() if key != "role"}}
        if isinstance(raw, str) and raw:
            message["finish_reason"] = _READ_REASON.get(raw, raw)
        rest = residue(wire, _write_answer(message, {}))
        messages = (keep({key: value for key, value in message.items() if key != "provider_fields"}, rest),)
    answer = Answer(
        model=model if isinstance(model, str) else None,
        messages=messages,
        usage=_read_usage(body),
        error=describe_error(body, 200) if isinstance(body.get("error"), dict | str) else None,
    )
    return replace(answer, provider_fields=residue(body, write_body(answer)))


def write_body(answer: Answer) -> dict[str, Json]:
    """Write an answer; the SDK insists on a message only."""
    message = next(iter(answer.messages), None)
    reason = message.get("finish_reason") if message is not None else None
    body: dict[str, Json] = {"model": answer.model or "unknown", "created_at": "1970-01-01T00:00:00Z"}
    if message is not None:
        body["message"] = _write_answer(message, kept(message))
    body["done"] = True
    body["done_reason"] = "stop" if reason in (None, "tool_call") else reason
    if answer.usage is not None:
        body["prompt_eval_count"] = answer.usage.input_tokens or 0
        body["eval_count"] = answer.usage.output_tokens or 0
    rest = dict(answer.provider_fields)
    # What was kept must not beat what has been put in since.
    if message is not None:
        rest.pop("message", None)
    return overlay(body, rest)


def write_failure(error: Error) -> dict[str, Json]:
    """The body of a failure."""
    return {"error": error.message}


def _write_answer(message: Message, rest: Mapping[str, Json]) -> dict[str, Json]:
    parts = [part for part in message.get("parts") or [] if isinstance(part, dict)]
    return overlay(write_message({"role": "assistant"}, parts), rest)


def _read_parts(wire: Mapping[str, Json]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    if isinstance(wire.get("thinking"), str) and wire["thinking"]:
        parts.append({"type": "reasoning", "content": wire["thinking"]})
    if isinstance(wire.get("content"), str) and wire["content"]:
        parts.append({"type": "text", "content": wire["content"]})
    images, calls = wire.get("images"), wire.get("tool_calls")
    if isinstance(images, list) and all(isinstance(image, str) for image in images):
        parts += [
            {"type": "blob", "modality": "image", "mime_type": _media_type(image), "content": image} for image in images
        ]
    if isinstance(calls, list) and all(isinstance(call, dict) for call in calls):
        parts += map(_read_call, calls)
    return parts


def _read_call(wire: Mapping[str, Json]) -> dict[str, Any]:
    function = wire.get("function")
    function = function if isinstance(function, dict) else {}
    identity = {"id": wire["id"]} if isinstance(wire.get("id"), str) else {}
    part = {"type": "tool_call", **identity, "name": function.get("name"), "arguments": function.get("arguments")}
    return keep(part, residue(wire, _write_call(part)))


def _write_call(part: Mapping[str, Json]) -> dict[str, Json]:
    identity = {} if part.get("id") is None else {"id": part["id"]}
    function = {"name": part.get("name"), "arguments": part.get("arguments")}
    return overlay({**identity, "function": function}, kept(part))


def _write_tool_answer(part: Mapping[str, Json], message: Message) -> dict[str, Json]:
    response = part.get("response")
    identity = {} if part.get("id") is None else {"tool_call_id": part["id"]}
    return overlay({"role": "tool", "content": response, **identity}, kept(message))


def _text(parts: list[dict[str, Json]], *kinds: str) -> str:
    return "".join(str(part.get("content") or "") for part in parts if part.get("type") in kinds)


def _media_type(image: str) -> str:
    """What kind of image the first bytes say that it is."""
    try:
        return media_type(base64.b64decode(image[:64] + "=" * (-len(image[:64]) % 4)))
    except ValueError:
        return "image/*"


def _read_usage(body: Mapping[str, Json]) -> Usage | None:
    counts = Usage(read_count(body.get("prompt_eval_count")), read_count(body.get("eval_count")))
    return counts if counts != Usage() else None
