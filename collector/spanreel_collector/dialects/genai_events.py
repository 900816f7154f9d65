"""Content that the GenAI conventions put beside the span: logs and span events, of today and of v1.28 to v1.36."""

from __future__ import annotations

from typing import Any

from spanreel.conventions import INPUT_MESSAGES, OUTPUT_MESSAGES
from spanreel.model import Json, Message
from spanreel_collector.dialects import values
from spanreel_collector.span import Attributes, RawSpan

_DETAILS = "gen_ai.client.inference.operation.details"
_OLD_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_OLD_CHOICE = "gen_ai.choice"


def whole_attributes(span: RawSpan) -> Attributes:
    """The span's attributes, with what they lack taken from its events and log records."""
    if not span.events and not span.logs:
        return span.attributes
    beside: dict[str, Json] = {}
    inputs: list[Message] = []
    outputs: list[Message] = []
    for name, attributes, body in _records(span):
        if name == _DETAILS:
            beside.update(attributes)
        elif name in _OLD_ROLES:
            inputs.append(_old_message(_OLD_ROLES[name], body))
        elif name == _OLD_CHOICE:
            outputs.append(_old_choice(body))
    if inputs:
        beside.setdefault(INPUT_MESSAGES, inputs)
    if outputs:
        beside.setdefault(OUTPUT_MESSAGES, outputs)
    return {**beside, **{key: value for key, value in span.attributes.items() if value is not None}}


def _records(span: RawSpan) -> list[tuple[str, Attributes, dict[str, Any]]]:
    """Events, then logs by time: name, attributes, and the body that old events carry."""
    found: list[tuple[str, Attributes, dict[str, Any]]] = []
    for event in span.events:
        found.append((event.name, event.attributes, dict(event.attributes)))
    for log in sorted(span.logs, key=lambda log: log.time):
        body, _ = values.decode(log.body)
        found.append((log.event_name, log.attributes, body if isinstance(body, dict) else {"content": body}))
    return found


def _old_message(role: str, body: dict[str, Any]) -> Message:
    content = body.get("content")
    if role == "tool":
        identity = body.get("id") or body.get("tool_call_id")
        return {"role": role, "parts": [{"type": "tool_call_response", "id": identity, "response": content}]}
    parts: list[dict[str, Json]] = [{"type": "text", "content": content}] if isinstance(content, str) else []
    calls = body.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            arguments, _ = values.decode(function.get("arguments"))
            name = function.get("name")
            parts.append({"type": "tool_call", "id": call.get("id"), "name": name, "arguments": arguments})
    return {"role": role, "parts": parts}


def _old_choice(body: dict[str, Any]) -> Message:
    inner = body.get("message")
    message = _old_message("assistant", inner if isinstance(inner, dict) else body)
    reason = body.get("finish_reason")
    return {**message, "finish_reason": reason} if isinstance(reason, str) else message
