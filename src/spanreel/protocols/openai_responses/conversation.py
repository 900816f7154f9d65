"""The input of OpenAI responses, a list of items, read into messages and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spanreel.model import Json, Message
from spanreel.protocols.media import read_own, write_own
from spanreel.protocols.openai_responses.items import (
    FORM,
    is_output,
    read_items,
    read_output,
    write_items,
    write_output,
)
from spanreel.protocols.openai_responses.parts import read_content, write_content
from spanreel.protocols.residue import keep, kept, overlay, residue, unexpected


def read_input(items: Sequence[Json], place: str) -> tuple[Message, ...]:
    """Read items into messages: what the assistant said, thought and called in a row is one of them.

    Raises:
        ValueError: an item is no object; says which, at ``place``.
    """
    messages: list[Message] = []
    assistant: list[Mapping[str, Json]] = []
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            raise unexpected(f"{place}/{index}", item, "an object")
        message = _read_other(item)
        if message is None:
            assistant.append(item)
            continue
        if assistant:
            messages.append({"role": "assistant", "parts": read_items(assistant)})
            assistant = []
        messages.append(message)
    if assistant:
        messages.append({"role": "assistant", "parts": read_items(assistant)})
    return tuple(messages)


def write_input(messages: Sequence[Message]) -> list[Json]:
    """Write messages as items."""
    items: list[Json] = []
    for message in messages:
        parts = [part for part in message.get("parts") or [] if isinstance(part, dict)]
        if message.get("role") == "assistant":
            items.extend(write_items(parts))
            continue
        answers = [part for part in parts if part.get("type") == "tool_call_response"]
        items.extend(write_output(part) for part in answers)
        if kept(message).get(FORM) == "item":
            items.extend(write_own(part) for part in parts)
        elif len(answers) < len(parts) or not parts:
            rest = [part for part in parts if part.get("type") != "tool_call_response"]
            items.append(_write_message(message, rest))
    return items


def _read_other(item: Mapping[str, Json]) -> Message | None:
    """The message in an item that is not the assistant's."""
    if is_output(item):
        return {"role": "tool", "parts": [read_output(item)]}
    if item.get("type") == "mcp_approval_response":
        return {"role": "user", "parts": [read_own(item)], "provider_fields": {FORM: "item"}}
    role = item.get("role")
    if not isinstance(role, str) or role == "assistant" or item.get("type", "message") != "message":
        return None
    content = item.get("content")
    parts: list[dict[str, Any]] = []
    form: dict[str, Json] = {}
    if isinstance(content, str):
        parts = [{"type": "text", "content": content}]
    elif isinstance(content, list):
        parts = [read_content(entry, role) for entry in content]
        form = {FORM: "list"} if len(parts) == 1 and parts[0]["type"] == "text" else {}
    message = keep({"role": "system" if role == "developer" else role, "parts": parts}, form)
    return keep(message, {**form, **residue(item, _write_message(message, parts))})


def _write_message(message: Message, parts: Sequence[dict[str, Json]]) -> dict[str, Json]:
    rest = kept(message)
    role = str(message.get("role"))
    content: Json = [write_content(part, role) for part in parts]
    if len(parts) == 1 and parts[0].get("type") == "text" and rest.get(FORM) != "list" and not kept(parts[0]):
        content = parts[0].get("content")
    if parts:
        rest = {key: value for key, value in rest.items() if key != "content"}
    return overlay({"role": role, "content": content}, rest)
