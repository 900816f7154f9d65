"""Answers of Anthropic messages as JSON objects: content, stop reason, usage; and failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from spanreel.model import Answer, Error, Json, Message, Usage
from spanreel.protocols.anthropic.blocks import FREE, read_block, write_block
from spanreel.protocols.openai_errors import describe_error
from spanreel.protocols.residue import overlay, read_count, residue
from spanreel.protocols.shaped import Shaped

_READ_REASON: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_call",
    "refusal": "content_filter",
}
_WRITE_REASON: Final = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_call": "tool_use",
    "content_filter": "refusal",
}
_NO_TOKENS: Final = {"input_tokens": 0, "output_tokens": 0}
# What other providers, and scripts that know no provider, call the same failures.
_ERROR_TYPES: Final = {"rate_limit_exceeded": "rate_limit_error", "server_error": "api_error"}


def read_body(body: dict[str, Json]) -> Answer:
    """Read a message; one whose content is no list is an answer without messages."""
    usage = body.get("usage")
    counts = read_usage(usage)
    if not isinstance(usage, dict) or counts is None:
        return _recall_body(body)
    # What it says of tokens is another in each answer.
    answer = _recall_body({**body, "usage": _NO_TOKENS})
    said = residue(usage, write_usage(counts))
    return replace(
        answer,
        usage=counts,
        provider_fields={**answer.provider_fields, "usage": said} if said else answer.provider_fields,
    )


def _read_body(body: Mapping[str, Json]) -> Answer:
    identity, model, usage = body.get("id"), body.get("model"), body.get("usage")
    answer = Answer(
        response_id=identity if isinstance(identity, str) else None,
        model=model if isinstance(model, str) else None,
        messages=_read_messages(body),
        usage=read_usage(usage),
        error=describe_error(body, 200) if isinstance(body.get("error"), dict | str) else None,
    )
    return replace(answer, provider_fields=residue(body, write_body(answer)))


_recall_body: Final = Shaped(_read_body, FREE)


def write_body(answer: Answer) -> dict[str, Json]:
    """Write a message; what is not known is made up as far as the SDK insists on it."""
    parts = [part for message in answer.messages for part in message["parts"]]
    reason = next(iter(answer.finish_reasons), None)
    made_up = "tool_call" if any(part.get("type") == "tool_call" for part in parts) else "stop"
    written = reason or made_up
    body: dict[str, Json] = {
        "id": answer.response_id or "spanreel-replayed",
        "type": "message",
        "role": "assistant",
        "model": answer.model or "unknown",
        "content": [write_block(part) for part in parts],
        "stop_reason": _WRITE_REASON.get(written, written),
        "stop_sequence": None,
        "usage": write_usage(answer.usage or Usage()),
    }
    rest = dict(answer.provider_fields)
    # What was kept must not beat what has been put in since.
    if parts:
        rest.pop("content", None)
    if answer.messages and "stop_reason" in rest and read_reason(rest["stop_reason"]) != reason:
        del rest["stop_reason"]
    return overlay(body, rest)


def read_usage(usage: Json) -> Usage | None:
    """Token counts; Anthropic's ``input_tokens`` are without what the cache read and wrote, ours are with it.

    None where it says no count at all.
    """
    if not isinstance(usage, dict):
        return None
    given, read, wrote = (
        read_count(usage.get(name))
        for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    )
    details = usage.get("output_tokens_details")
    counts = Usage(
        input_tokens=None if given is None else given + (read or 0) + (wrote or 0),
        output_tokens=read_count(usage.get("output_tokens")),
        cache_read_tokens=read,
        cache_write_tokens=wrote,
        reasoning_tokens=read_count(details.get("thinking_tokens")) if isinstance(details, dict) else None,
    )
    return counts if counts != Usage() else None


def write_usage(usage: Usage) -> dict[str, Json]:
    """Token counts as Anthropic writes them; the cache's and the thinking's only where they are known."""
    cached = (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
    counts: dict[str, Json] = {
        "input_tokens": max(0, (usage.input_tokens or 0) - cached),
        "output_tokens": usage.output_tokens or 0,
    }
    if usage.cache_read_tokens is not None:
        counts["cache_read_input_tokens"] = usage.cache_read_tokens
    if usage.cache_write_tokens is not None:
        counts["cache_creation_input_tokens"] = usage.cache_write_tokens
    if usage.reasoning_tokens is not None:
        counts["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    return counts


def read_reason(raw: Json) -> str | None:
    """Why the model stopped; None while it has not. A pause, and all that we have no word for, keeps its own."""
    return _READ_REASON.get(raw, raw) if isinstance(raw, str) and raw else None


def write_failure(error: Error) -> dict[str, Json]:
    """The body of a failure."""
    kind = _ERROR_TYPES.get(error.type, error.type)
    return {"type": "error", "error": {"type": kind, "message": error.message}}


def _read_messages(body: Mapping[str, Json]) -> tuple[Message, ...]:
    content = body.get("content")
    if not isinstance(content, list):
        return ()
    message: Message = {"role": "assistant", "parts": [read_block(block) for block in content]}
    reason = read_reason(body.get("stop_reason"))
    if reason is not None:
        message["finish_reason"] = reason
    return (message,)
