"""Answers of Gemini as JSON objects: candidates, finish reasons, usage; and failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from spanreel.model import Answer, Error, Json, Message, Usage
from spanreel.protocols.gemini.parts import read_part, write_part
from spanreel.protocols.openai_errors import describe_error
from spanreel.protocols.residue import ABSENT, keep, kept, overlay, read_count, residue

_FILTERED: Final = ("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY")
_FAILED: Final = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "OTHER")
# Some servers write the enumeration's numbers.
_READ_REASON: Final[dict[str | int, str]] = {
    "STOP": "stop",
    1: "stop",
    "MAX_TOKENS": "length",
    2: "length",
    **dict.fromkeys(_FILTERED, "content_filter"),
    **dict.fromkeys(_FAILED, "error"),
}
_WRITE_REASON: Final = {
    "stop": "STOP",
    "tool_call": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "error": "OTHER",
}

_REFUSED: Final[Message] = {"role": "assistant", "parts": [], "finish_reason": "content_filter"}
"""What the model said to a prompt that it was not given."""


def read_body(body: Mapping[str, Json]) -> Answer:
    """Read a response; one whose candidates are no list of objects is an answer without messages."""
    identity, model = body.get("responseId"), body.get("modelVersion")
    answer = Answer(
        response_id=identity if isinstance(identity, str) else None,
        model=model if isinstance(model, str) else None,
        messages=_read_candidates(body.get("candidates")),
        usage=read_usage(body.get("usageMetadata")),
        error=describe_error(body, 200) if isinstance(body.get("error"), dict | str) else None,
    )
    answer = replace(answer, provider_fields=residue(body, write_body(answer)))
    refused = not answer.messages and _refuses_prompt(answer)
    return replace(answer, messages=(_REFUSED,)) if refused else answer


def write_body(answer: Answer) -> dict[str, Json]:
    """Write a response."""
    refused = _refuses_prompt(answer) and not any(message.get("parts") for message in answer.messages)
    messages = () if refused else answer.messages
    body: dict[str, Json] = {"candidates": [_write_candidate(message) for message in messages]}
    if answer.usage is not None:
        body["usageMetadata"] = _write_usage(answer.usage)
    if answer.model is not None:
        body["modelVersion"] = answer.model
    if answer.response_id is not None:
        body["responseId"] = answer.response_id
    rest = dict(answer.provider_fields)
    # What was kept must not beat what has been put in since.
    if messages:
        rest.pop("candidates", None)
    return overlay(body, rest)


def _refuses_prompt(answer: Answer) -> bool:
    """Whether the prompt was blocked: then there are no candidates, and the reason stands beside them."""
    feedback = answer.provider_fields.get("promptFeedback")
    return isinstance(feedback, dict) and bool(feedback.get("blockReason"))


def read_usage(usage: Json) -> Usage | None:
    """Token counts: what was thought belongs to the output, what tools of the provider's put in to the input.

    None where it says no count at all.
    """
    if not isinstance(usage, dict):
        return None
    thought = read_count(usage.get("thoughtsTokenCount"))
    counts = Usage(
        input_tokens=_sum(read_count(usage.get("promptTokenCount")), read_count(usage.get("toolUsePromptTokenCount"))),
        output_tokens=_sum(read_count(usage.get("candidatesTokenCount")), thought),
        cache_read_tokens=read_count(usage.get("cachedContentTokenCount")),
        reasoning_tokens=thought,
    )
    return counts if counts != Usage() else None


def write_failure(error: Error) -> dict[str, Json]:
    """The body of a failure."""
    return {"error": {"code": 500, "message": error.message, "status": error.type}}


def _read_candidates(candidates: Json) -> tuple[Message, ...]:
    if not isinstance(candidates, list) or not all(isinstance(candidate, dict) for candidate in candidates):
        return ()
    return tuple(map(_read_candidate, candidates))


def _read_candidate(wire: Mapping[str, Json]) -> Message:
    content = wire.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    message: Message = {
        "role": "assistant",
        "parts": [read_part(part) for part in parts] if isinstance(parts, list) else [],
    }
    reason = _read_reason(wire.get("finishReason"))
    if reason is not None:
        message["finish_reason"] = reason
    return keep(message, residue(wire, _write_candidate(message)))


def _write_candidate(message: Message) -> dict[str, Json]:
    parts = [write_part(part) for part in message.get("parts") or [] if isinstance(part, dict)]
    reason = message.get("finish_reason")
    candidate: dict[str, Json] = {"content": {"parts": parts, "role": "model"}}
    if reason is not None:
        candidate["finishReason"] = _WRITE_REASON.get(reason, str(reason).upper())
    rest = dict(kept(message))
    # What was kept must not beat what has been put in since.
    if "finishReason" in rest and _read_reason(rest["finishReason"]) != reason:
        del rest["finishReason"]
    if parts:
        rest = _with_content(rest)
    return overlay(candidate, rest)


def _read_reason(raw: Json) -> str | None:
    """Why the model stopped; None while it has not. What we have no word for keeps its own."""
    if not isinstance(raw, str | int) or isinstance(raw, bool) or raw == "":
        return None
    return _READ_REASON.get(raw) or str(raw).lower()


def _with_content(rest: dict[str, Json]) -> dict[str, Json]:
    """What was kept of a candidate, without its having had no content."""
    absent = rest.get(ABSENT)
    if isinstance(absent, list) and "content" in absent:
        rest = {**rest, ABSENT: [name for name in absent if name != "content"]}
    content = rest.get("content")
    if isinstance(content, dict):
        return {**rest, "content": {key: value for key, value in content.items() if key != "parts"}}
    return {key: value for key, value in rest.items() if key != "content"}


def _write_usage(usage: Usage) -> dict[str, Json]:
    thought = usage.reasoning_tokens
    counts: dict[str, Json] = {
        "promptTokenCount": usage.input_tokens or 0,
        "candidatesTokenCount": max(0, (usage.output_tokens or 0) - (thought or 0)),
        "totalTokenCount": (usage.input_tokens or 0) + (usage.output_tokens or 0),
    }
    if thought is not None:
        counts["thoughtsTokenCount"] = thought
    if usage.cache_read_tokens is not None:
        counts["cachedContentTokenCount"] = usage.cache_read_tokens
    return counts


def _sum(*counts: int | None) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
