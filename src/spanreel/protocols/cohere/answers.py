"""Answers of Cohere's chat, second version, as JSON objects: message, finish reason, usage; and failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from spanreel.model import Answer, Error, Json, Message, Usage
from spanreel.protocols.cohere.messages import read_message, write_messages
from spanreel.protocols.openai_errors import describe_error
from spanreel.protocols.residue import keep, kept, overlay, residue

_READ_REASON: Final = {
    "COMPLETE": "stop",
    "STOP_SEQUENCE": "stop",
    "MAX_TOKENS": "length",
    "TOOL_CALL": "tool_call",
    "ERROR_TOXIC": "content_filter",
    "ERROR": "error",
    "TIMEOUT": "error",
}
WRITE_REASON: Final = {
    "stop": "COMPLETE",
    "length": "MAX_TOKENS",
    "tool_call": "TOOL_CALL",
    "content_filter": "ERROR_TOXIC",
    "error": "ERROR",
}
"""Our reasons in Cohere's words."""


def read_body(body: Mapping[str, Json]) -> Answer:
    """Read an answer; one without a message is an answer without messages."""
    identity, wire = body.get("id"), body.get("message")
    messages: tuple[Message, ...] = ()
    if isinstance(wire, dict) and wire.get("role", "assistant") == "assistant":
        message = read_message({"role": "assistant", **wire}, "cohere response: message")
        reason = read_reason(body.get("finish_reason"))
        if reason is not None:
            message["finish_reason"] = reason
        if "role" not in wire:
            message = keep(message, {**kept(message), **residue(wire, write_messages(message)[0])})
        messages = (message,)
    answer = Answer(
        response_id=identity if isinstance(identity, str) else None,
        messages=messages,
        usage=read_usage(body.get("usage")),
        error=describe_error(body, 200) if isinstance(body.get("error"), dict | str) else None,
    )
    return replace(answer, provider_fields=residue(body, write_body(answer)))


def write_body(answer: Answer) -> dict[str, Json]:
    """Write an answer; what is not known is made up as far as the SDK insists on it."""
    message = next(iter(answer.messages), None)
    reason = message.get("finish_reason") if message is not None else None
    body: dict[str, Json] = {"id": answer.response_id or "spanreel-replayed"}
    if message is not None:
        body["message"] = write_messages({**message, "role": "assistant"})[0]
        parts = message.get("parts") or []
        made_up = "tool_call" if any(part.get("type") == "tool_call" for part in parts) else "stop"
        written = reason or made_up
        body["finish_reason"] = WRITE_REASON.get(written, written.upper())
    if answer.usage is not None:
        body["usage"] = write_usage(answer.usage)
    rest = dict(answer.provider_fields)
    # What was kept must not beat what has been put in since.
    if message is not None:
        rest.pop("message", None)
        if "finish_reason" in rest and read_reason(rest["finish_reason"]) != reason:
            del rest["finish_reason"]
    return overlay(body, rest)


def read_usage(usage: Json) -> Usage | None:
    """Token counts: those that the model saw, else those that are billed; None where it says no count at all."""
    if not isinstance(usage, dict):
        return None
    seen, billed = (usage[key] if isinstance(usage.get(key), dict) else {} for key in ("tokens", "billed_units"))
    counts = Usage(
        input_tokens=_count(seen.get("input_tokens"), billed.get("input_tokens")),
        output_tokens=_count(seen.get("output_tokens"), billed.get("output_tokens")),
        cache_read_tokens=_count(usage.get("cached_tokens")),
    )
    return counts if counts != Usage() else None


def read_reason(raw: Json) -> str | None:
    """Why the model stopped; None while it has not. What we have no word for keeps its own."""
    return _READ_REASON.get(raw) or raw.lower() if isinstance(raw, str) and raw else None


def write_failure(error: Error) -> dict[str, Json]:
    """The body of a failure."""
    return {"message": error.message}


def write_usage(usage: Usage) -> dict[str, Json]:
    """Token counts, seen and billed."""
    counts = {"input_tokens": usage.input_tokens or 0, "output_tokens": usage.output_tokens or 0}
    written: dict[str, Json] = {"billed_units": dict(counts), "tokens": counts}
    if usage.cache_read_tokens is not None:
        written["cached_tokens"] = usage.cache_read_tokens
    return written


def _count(*values: Json) -> int | None:
    for value in values:
        if isinstance(value, int | float) and not isinstance(value, bool) and value == int(value):
            return int(value)
    return None
