"""Attribute values as dialects meet them: typed look-ups, JSON in strings, messages, failures; with their fidelity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from spanreel.model import Error, ErrorCategory, Fidelity, Json, Message, Status, ToolDefinition, Usage
from spanreel_collector import json_text
from spanreel_collector.span import Attributes, RawSpan

_ROLES = {"model": "assistant", "ai": "assistant", "human": "user", "developer": "system"}
_PARAMETERS = ("input_schema", "inputSchema", "parameters_json_schema")
"""What Anthropic, the AI SDK and Google call a tool's parameters."""
MOST_WRITTEN = 3
"""How often a value is taken to have been written as JSON text, one inside the other."""
_CONTENT = {
    "text": "content",
    "reasoning": "content",
    "blob": "content",
    "uri": "uri",
    "file": "file_id",
    "tool_call_response": "response",
}
"""Where the types of parts have their content, which a writer leaves out that captures none."""


def marks(states: Mapping[str, Fidelity]) -> dict[str, Fidelity]:
    """The states worth keeping: those of the fields that are not whole."""
    return {field: state for field, state in states.items() if state is not Fidelity.WHOLE}


def text(attributes: Attributes, *keys: str) -> str | None:
    """The first of these attributes that holds text."""
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, str) and value:
            return value
    return None


def number(attributes: Attributes, *keys: str) -> int | float | None:
    """The first of these attributes that holds a number."""
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return value
    return None


def integer(attributes: Attributes, *keys: str) -> int | None:
    """The first of these attributes that holds a whole number, as a number or as text."""
    for key in keys:
        value = attributes.get(key)
        if value is None:
            continue
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
            return int(value)
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def texts(attributes: Attributes, key: str) -> list[str]:
    """The texts of an attribute that holds a list of them, or such a list as JSON, or one text."""
    value, _ = decode(attributes.get(key))
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def decode(value: Json) -> tuple[Json, Fidelity]:
    """A value that may be JSON text: what it holds, and whether it is whole. Text that is no JSON is itself."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[", '"')):
        return json_text.plain(value), Fidelity.WHOLE
    try:
        return json_text.parse(value), Fidelity.WHOLE
    except ValueError as error:
        return value, Fidelity.TRUNCATED if json_text.is_cut(error) else Fidelity.WHOLE


def decoded(attributes: Attributes, key: str) -> Json:
    """What an attribute that may be JSON text holds."""
    return decode(attributes.get(key))[0]


def members(value: Json) -> dict[str, Json]:
    """The members of an object; of one that was cut off, those that are whole."""
    found, state = decode(value)
    if state is Fidelity.TRUNCATED:
        try:
            found, _ = json_text.parse_prefix(value)
        except ValueError:
            return {}
    found = _unwrapped(found)
    return found if isinstance(found, dict) else {}


def _unwrapped(value: Json) -> Json:
    """A list or an object that was written as text more than once; only for what must be one of these."""
    for _ in range(MOST_WRITTEN - 1):
        if not isinstance(value, str) or not value.lstrip().startswith(("{", "[", '"')):
            break
        try:
            value = json_text.parse(value)
        except ValueError:
            break
    return value


def role(name: str) -> str:
    """The role of a message by the conventions' names."""
    return _ROLES.get(name, name)


def arguments(value: Json) -> Json:
    """Arguments of a tool call, which some writers encode twice."""
    found, _ = decode(value)
    again = _unwrapped(found)
    return again if isinstance(again, dict) else found


def unwrap_result(text: str) -> Json:
    """A tool's result as a message tells it, out of the AI SDK's ``{"type": "text", "value"}``."""
    found, _ = decode(text)
    if isinstance(found, dict) and set(found) == {"type", "value"} and found["type"] in ("text", "json"):
        return found["value"]
    return text


def whole_usage(usage: Usage) -> Usage:
    """The usage with cached tokens in the input: where the cache gave more than all, the writer left them out."""
    cached = (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
    if usage.input_tokens is not None and cached > usage.input_tokens:
        return replace(usage, input_tokens=usage.input_tokens + cached)
    return usage


def failure(span: RawSpan, category: ErrorCategory) -> Error | None:
    """How the span failed, by its status, ``error.type`` and exception event; None where it did not."""
    kind = text(span.attributes, "error.type")
    if span.status != 2 and kind is None:
        return None
    message = span.status_message or None
    for event in span.events:
        if event.name == "exception":
            kind = kind or text(event.attributes, "exception.type")
            message = message or text(event.attributes, "exception.message")
    kind = kind or "error"
    if kind.rsplit(".", 1)[-1] in ("CancelledError", "cancelled"):
        category = ErrorCategory.CANCELLED
    elif "timeout" in kind.lower():
        category = ErrorCategory.TIMEOUT
    # OpenInference's status repeats the exception's name.
    return Error(category, kind, message and message.removeprefix(f"{kind.rsplit('.', 1)[-1]}: "))


def status_of(error: Error | None) -> Status:
    """How a call ended that failed so."""
    if error is None:
        return Status.OK
    return Status.CANCELLED if error.category is ErrorCategory.CANCELLED else Status.ERROR


def messages(value: Json) -> tuple[tuple[Message, ...], Fidelity]:
    """The messages of a messages attribute; of one that was cut off, those parts that are whole."""
    items, fidelity = items_of(value, parts_depth=4)
    read = tuple(message for item in items if (message := _message(item)) is not None)
    return read, captured(read, fidelity)


def captured(read: Iterable[Message], fidelity: Fidelity) -> Fidelity:
    """The fidelity of messages whose content may have been left out, all of it or some, by the writer's settings."""
    content = [says for message in read for part in message["parts"] if (says := _content_of(part)) is not None]
    if not content or fidelity is not Fidelity.WHOLE:
        return fidelity if any(message["parts"] for message in read) else Fidelity.ABSENT
    missing = content.count(False)
    return Fidelity.WHOLE if not missing else Fidelity.ABSENT if missing == len(content) else Fidelity.REDACTED


def parts(value: Json) -> tuple[tuple[dict[str, Json], ...], Fidelity]:
    """The parts of an attribute that holds parts without a role."""
    items, fidelity = items_of(value, parts_depth=2)
    read = tuple(_part(item) for item in items if isinstance(item, dict) and item)
    return read, Fidelity.ABSENT if not read else fidelity


def tools(value: Json) -> tuple[tuple[ToolDefinition, ...], Fidelity]:
    """The tool definitions of an attribute, in one form whatever the nesting."""
    items, fidelity = items_of(value, parts_depth=2)
    read = tuple(tool_definition(item) for item in items if isinstance(item, dict) and item)
    return read, Fidelity.ABSENT if not read else fidelity


def tool_definition(item: dict[str, Any]) -> ToolDefinition:
    """A tool definition in one form, whichever provider's it came in."""
    inner = item.get("function")
    flat = (
        {**{key: value for key, value in item.items() if key != "function"}, **inner}
        if isinstance(inner, dict)
        else item
    )
    read = {key: value for key, value in flat.items() if value is not None}
    for other in _PARAMETERS:
        if other in read and "parameters" not in read:
            read["parameters"] = read.pop(other)
    read.setdefault("type", "function")
    return read


def items_of(value: Json, parts_depth: int, parts_key: str = "parts") -> tuple[list[Any], Fidelity]:
    """The list that an attribute holds; of cut text, without the part that the cut went through.

    Parts begin ``parts_depth`` brackets deep: at 2 they are the items, at 4 what the items have under ``parts_key``.
    """
    if isinstance(value, list):
        return json_text.plain(value), Fidelity.WHOLE
    if not isinstance(value, str):
        return [], Fidelity.ABSENT
    try:
        found = _unwrapped(json_text.parse(value))
        return (found, Fidelity.WHOLE) if isinstance(found, list) else ([], Fidelity.ABSENT)
    except ValueError as error:
        if not json_text.is_cut(error):
            return [], Fidelity.ABSENT
    try:
        found, depth = json_text.parse_prefix(value)
    except ValueError:
        return [], Fidelity.TRUNCATED
    if not isinstance(found, list) or not found:
        return [], Fidelity.TRUNCATED
    _drop_cut(found, depth, parts_depth, parts_key)
    return found, Fidelity.TRUNCATED


def _drop_cut(items: list[Any], depth: int, parts_depth: int, parts_key: str) -> None:
    """Take the part away that a cut went through: the last one, where its own bracket was still open."""
    if depth < parts_depth:
        return
    last = items[-1]
    if parts_depth == 2 or not isinstance(last, dict) or not isinstance(last.get(parts_key), list):
        items.pop()
    elif last[parts_key]:
        last[parts_key].pop()


def _content_of(part: Mapping[str, Json]) -> bool | None:
    """Whether the part's content was captured; None of parts that may have none."""
    key = _CONTENT.get(part["type"])
    if part["type"] == "tool_call":
        # Called with nothing, or not captured: only what stands beside it tells.
        return True if "arguments" in part else None
    return None if key is None else key in part


def _message(item: Any) -> Message | None:
    if not isinstance(item, dict) or not isinstance(item.get("role"), str):
        return None
    message: Message = {"role": role(item["role"]), "parts": _message_parts(item)}
    if message["parts"] and all(part["type"] == "tool_call_response" for part in message["parts"]):
        message["role"] = "tool"  # which Anthropic's form and pydantic-ai's give to the user
    if message["role"] != item["role"]:
        message["provider_fields"] = {"role": item["role"]}
    for key in ("name", "finish_reason"):
        if isinstance(item.get(key), str) and item[key]:
            message[key] = item[key]
    return message


def _message_parts(item: dict[str, Any]) -> list[dict[str, Json]]:
    given = item.get("parts")
    if isinstance(given, list):
        return [_part(part) for part in given if isinstance(part, dict) and part]
    content = item.get("content")
    return [{"type": "text", "content": content}] if isinstance(content, str) else []


def _part(part: dict[str, Any]) -> dict[str, Json]:
    read = dict(part)
    if not isinstance(read.get("type"), str):
        read["type"] = "text" if isinstance(read.get("content"), str) else "unknown"
    if read["type"] == "tool_call" and isinstance(read.get("arguments"), str):
        read["arguments"], _ = decode(read["arguments"])
    if read["type"] == "tool_call_response" and "result" in read:
        # The schema says `response`; the specification's old example and pydantic-ai say `result`.
        result = read.pop("result")
        if read.get("response") is None:
            read["response"] = result
    if read["type"] == "thinking":
        # As pydantic-ai and providers themselves say for `reasoning`.
        content = read.pop("thinking", None)
        read = {"type": "reasoning", **{key: value for key, value in read.items() if key not in ("type", "signature")}}
        if content is not None:
            read["content"] = content
        if part.get("signature") is not None:
            read["provider_fields"] = {"signature": part["signature"]}
    return read
