"""Answers of OpenAI responses as JSON objects: output, status, usage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from spanreel.model import Answer, Json, Message
from spanreel.protocols.openai_errors import describe_error
from spanreel.protocols.openai_responses.items import FREE, read_items, write_items
from spanreel.protocols.openai_usage import read_usage, write_responses_usage
from spanreel.protocols.residue import overlay, residue
from spanreel.protocols.shaped import Shaped, said

_READ_INCOMPLETE = {"max_output_tokens": "length", "max_tokens": "length", "content_filter": "content_filter"}
_WRITE_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


def read_body(body: dict[str, Json]) -> Answer:
    """Read a response; one whose output is no list of objects is an answer without messages."""
    usage, tools = body.get("usage"), body.get("tools")
    counts = read_usage(usage)
    around = body.copy()
    apart: dict[str, Json] = {}
    # What it says of tokens is another in each answer, and the request's tools, which it repeats, are long.
    if isinstance(usage, dict) and counts is not None:
        around["usage"] = None
        apart["usage"] = residue(usage, write_responses_usage(counts))
    if isinstance(tools, list) and tools:
        around["tools"] = []
        apart["tools"] = tools
    answer = _recall_body(around)
    kept = {name: value for name, value in apart.items() if value}
    return replace(answer, usage=counts, provider_fields={**answer.provider_fields, **kept})


def _read_body(body: Mapping[str, Json]) -> Answer:
    identity, model, usage = body.get("id"), body.get("model"), body.get("usage")
    answer = Answer(
        response_id=identity if isinstance(identity, str) else None,
        model=model if isinstance(model, str) else None,
        messages=_read_output(body),
        usage=read_usage(usage),
        error=describe_error(body, 200) if isinstance(body.get("error"), dict | str) else None,
    )
    return replace(answer, provider_fields=residue(body, write_body(answer)))


_recall_body: Final = Shaped(
    _read_body,
    {**FREE, **said("created_at", "completed_at", "instructions", "previous_response_id", "prompt_cache_key")},
)


def write_body(answer: Answer) -> dict[str, Json]:
    """Write a response; what is not known is made up as far as the SDK insists on it."""
    reason = next(iter(answer.finish_reasons), None)
    incomplete = {"reason": _WRITE_INCOMPLETE[reason]} if reason in _WRITE_INCOMPLETE else None
    body: dict[str, Json] = {
        "id": answer.response_id or "spanreel-replayed",
        "object": "response",
        "created_at": 0,
        "status": "failed" if reason == "error" else "incomplete" if incomplete else "completed",
        "error": {"code": answer.error.type, "message": answer.error.message} if answer.error else None,
        "incomplete_details": incomplete,
        "instructions": None,
        "metadata": {},
        "model": answer.model or "unknown",
        "output": [item for message in answer.messages for item in write_items(message["parts"])],
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "usage": write_responses_usage(answer.usage) if answer.usage else None,
    }
    rest = dict(answer.provider_fields)
    # What was kept must not beat what has been put in since.
    if any(message["parts"] for message in answer.messages):
        rest.pop("output", None)
    return overlay(body, rest)


def _read_output(body: Mapping[str, Json]) -> tuple[Message, ...]:
    output = body.get("output")
    if not isinstance(output, list) or not all(isinstance(item, dict) for item in output):
        return ()
    message: Message = {"role": "assistant", "parts": read_items(output)}
    reason = _read_reason(body, message)
    if reason is not None:
        message["finish_reason"] = reason
    return (message,)


def _read_reason(body: Mapping[str, Json], message: Message) -> str | None:
    """Why the response ended; None while it has not, or for a status that is no end."""
    status, details = body.get("status"), body.get("incomplete_details")
    if status == "completed":
        return "tool_call" if any(part["type"] == "tool_call" for part in message["parts"]) else "stop"
    if status == "incomplete" and isinstance(details, dict) and isinstance(details.get("reason"), str):
        return _READ_INCOMPLETE.get(details["reason"], details["reason"])
    return "error" if status == "failed" else None
