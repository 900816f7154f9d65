"""The input of OpenAI responses, a list of items, read into messages and written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spanreel.model import Json, Message
from spanreel.protocols.media import read_own, write_own
from spanreel.protocols.openai_responses.items import (
    FORM,
    FREE,
    is_output,
    read_items,
    read_output,
    write_items,
    write_output,
)
from spanreel.protocols.openai_responses.parts import read_content, write_content
from spanreel.protocols.recalling import Recalling
from spanreel.protocols.residue import keep, kept, objects, overlay, residue, same, unexpected


def read_input(items: list[Json], place: str) -> tuple[tuple[Message, ...], bool]:
    """Items as messages: what the assistant said, thought and called in a row is one; and whether all is written so.

    Raises:
        ValueError: an item is no object; says which, at ``place``.
    """
    read: list[tuple[Message, bool]] = []
    assistant: list[Json] = []
    for item in objects(items, place):
        if _is_assistants(item):
            assistant.append(item)
            continue
        if assistant:
            read.append(_recall_assistant(assistant))
            assistant = []
        read.append(_recall_other(item))
    if assistant:
        read.append(_recall_assistant(assistant))
    return tuple(message for message, _ in read), all(exact for _, exact in read)


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


def _is_assistants(item: Json) -> bool:
    """Whether an item is of what the assistant said, thought or called."""
    if not isinstance(item, dict) or is_output(item) or item.get("type") == "mcp_approval_response":
        return False
    role = item.get("role")
    return not isinstance(role, str) or role == "assistant" or item.get("type", "message") != "message"


def _read_other(item: Json) -> Message:
    """The message in an item that is not the assistant's."""
    if not isinstance(item, dict):
        raise unexpected("an item", item, "an object")
    if is_output(item):
        return {"role": "tool", "parts": [read_output(item)]}
    if item.get("type") == "mcp_approval_response":
        return {"role": "user", "parts": [read_own(item)], "provider_fields": {FORM: "item"}}
    role, content = item["role"], item.get("content")
    parts: list[dict[str, Any]] = []
    form: dict[str, Json] = {}
    if isinstance(content, str):
        parts = [{"type": "text", "content": content}]
    elif isinstance(content, list):
        parts = [read_content(entry, role) for entry in content]
        form = {FORM: "list"} if len(parts) == 1 and parts[0]["type"] == "text" else {}
    message = keep({"role": "system" if role == "developer" else role, "parts": parts}, form)
    return keep(message, {**form, **residue(item, _write_message(message, parts))})


_recall_other = Recalling(_read_other, lambda item, message: same(write_input([message]), [item]), FREE)
_recall_assistant = Recalling(
    lambda items: {"role": "assistant", "parts": read_items(items if isinstance(items, list) else [])},
    lambda items, message: same(write_input([message]), items),
)


def _write_message(message: Message, parts: Sequence[dict[str, Json]]) -> dict[str, Json]:
    rest = kept(message)
    role = str(message.get("role"))
    content: Json = [write_content(part, role) for part in parts]
    if len(parts) == 1 and parts[0].get("type") == "text" and rest.get(FORM) != "list" and not kept(parts[0]):
        content = parts[0].get("content")
    if parts:
        rest = {key: value for key, value in rest.items() if key != "content"}
    return overlay({"role": role, "content": content}, rest)
