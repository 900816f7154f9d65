"""Messages of LangChain read, in every form in which they may be given."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from spanreel.model import Json, Message


def read_input(asked: Any) -> tuple[Message, ...]:
    """The messages of a state, in every form in which they may be given; of any other input its JSON."""
    resume = getattr(asked, "resume", None)
    messages = asked if isinstance(asked, list) else messages_in(asked)
    if messages is not None and resume is None:
        return tuple(read_message(message) for message in listed(messages))
    value = asked if resume is None else resume
    if value is None:
        return ()
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)
    return (_message("user", {"content": text}),)


def messages_in(state: Any) -> Any:
    """What a state holds as messages, as it holds it; None where it has none."""
    return state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", None)


def listed(messages: Any) -> list[Any]:
    """Messages as a list; a single one may stand for itself."""
    return messages if isinstance(messages, list) else [messages]


_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "function": "tool", "remove": "system"}


def read_message(item: Any) -> Message:
    """A message given as an object, a dict, a pair or a text."""
    if isinstance(item, str):
        return _message("user", {"content": item})
    if isinstance(item, (list, tuple)):
        return _message(str(item[0]), {"content": item[-1]})
    fields = item if isinstance(item, Mapping) else getattr(item, "__dict__", {})
    return _message(str(fields.get("role") or fields.get("type") or "user"), fields)


def _message(role: str, fields: Mapping[str, Any]) -> Message:
    content, call_id = fields.get("content"), fields.get("tool_call_id")
    if call_id is not None:
        parts = [{"type": "tool_call_response", "id": call_id, "response": content}]
    else:
        parts = [_part(block) for block in listed(content) if block]
        calls = fields.get("tool_calls") or ()
        if calls:
            # Providers' blocks say the same calls again.
            parts = [part for part in parts if part["type"] not in ("tool_use", "tool_call", "function_call")]
        parts += [_call(call) for call in calls]
    return {"role": _ROLES.get(role, role), "parts": parts}


def _part(block: Any) -> dict[str, Json]:
    if isinstance(block, str) or not isinstance(block, Mapping):
        return {"type": "text", "content": str(block)}
    if block.get("type") == "text":
        return {"type": "text", "content": block.get("text")}
    return {"type": "block", **block}


def _call(call: Mapping[str, Any]) -> dict[str, Json]:
    asked = call.get("function") or call
    arguments = _decoded(asked["arguments"]) if "arguments" in asked else asked.get("args")
    return {"type": "tool_call", "id": call.get("id"), "name": asked.get("name"), "arguments": arguments}


def _decoded(arguments: Any) -> Json:
    try:
        return json.loads(arguments)
    except (TypeError, ValueError):
        return arguments
