"""Answers of Bedrock's Converse as JSON objects: message, stop reason, usage; and failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from spanreel.model import Answer, Error, Json, Message, Usage
from spanreel.protocols.bedrock.messages import read_message, write_message
from spanreel.protocols.openai_errors import describe_error
from spanreel.protocols.residue import overlay, read_count, residue

_READ_REASON: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_call",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
    "model_context_window_exceeded": "length",
    "malformed_model_output": "error",
    "malformed_tool_use": "error",
}
_WRITE_REASON: Final = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_call": "tool_use",
    "content_filter": "content_filtered",
}


def read_body(body: Mapping[str, Json]) -> Answer:
    """Read an answer; one without a message is an answer without messages."""
    output, reason = body.get("output"), read_reason(body.get("stopReason"))
    wire = output.get("message") if isinstance(output, dict) else None
    messages: tuple[Message, ...] = ()
    if isinstance(wire, dict) and wire.get("role") == "assistant" and _is_content(wire.get("content")):
        message = read_message(wire, "bedrock_converse response: message")
        if reason is not None:
            message["finish_reason"] = reason
        messages = (message,)
    failed = not messages and isinstance(body.get("message"), str)
    answer = Answer(
        messages=messages,
        usage=_read_usage(body.get("usage")),
        error=describe_error(body, 200) if failed or isinstance(body.get("error"), dict | str) else None,
    )
    return replace(answer, provider_fields=residue(body, write_body(answer)))


def write_body(answer: Answer) -> dict[str, Json]:
    """Write an answer."""
    message = next(iter(answer.messages), None)
    reason = message.get("finish_reason") if message is not None else None
    body: dict[str, Json] = {}
    if message is not None:
        body["output"] = {"message": write_message({**message, "role": "assistant"})}
        called = any(part.get("type") == "tool_call" for part in message.get("parts") or [])
        written = reason or ("tool_call" if called else "stop")
        body["stopReason"] = _WRITE_REASON.get(written, written)
    if answer.usage is not None:
        body["usage"] = _write_usage(answer.usage)
    rest = dict(answer.provider_fields)
    # What was kept must not beat what has been put in since.
    if message is not None and "stopReason" in rest and read_reason(rest["stopReason"]) != reason:
        del rest["stopReason"]
    return overlay(body, rest)


def read_reason(raw: Json) -> str | None:
    """Why the model stopped; what we have no word for keeps its own."""
    return _READ_REASON.get(raw, raw) if isinstance(raw, str) and raw else None


def write_failure(error: Error) -> dict[str, Json]:
    """The body of a failure."""
    return {"message": error.message}


def _is_content(content: Json) -> bool:
    return isinstance(content, list) and all(isinstance(block, dict) for block in content)


def _read_usage(usage: Json) -> Usage | None:
    """Token counts; the input is told here without what a cache read and wrote. Invoked models count these, too."""
    if not isinstance(usage, dict):
        return None
    fresh, output = read_count(usage.get("inputTokens")), read_count(usage.get("outputTokens"))
    cached, cache = (
        read_count(usage.get(f"{name}s", usage.get(f"{name}Count")))
        for name in ("cacheReadInputToken", "cacheWriteInputToken")
    )
    if (fresh, output, cached, cache) == (None, None, None, None):
        return None
    whole = None if fresh is None else fresh + (cached or 0) + (cache or 0)
    return Usage(whole, output, cache_read_tokens=cached, cache_write_tokens=cache)


def _write_usage(usage: Usage) -> dict[str, Json]:
    cached, cache = usage.cache_read_tokens, usage.cache_write_tokens
    fresh = (usage.input_tokens or 0) - (cached or 0) - (cache or 0)
    output = usage.output_tokens or 0
    written: dict[str, Json] = {
        "inputTokens": fresh,
        "outputTokens": output,
        "totalTokens": (usage.input_tokens or 0) + output,
    }
    if cached is not None:
        written["cacheReadInputTokens"] = cached
    if cache is not None:
        written["cacheWriteInputTokens"] = cache
    return written
