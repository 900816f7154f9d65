"""Anvia's messages, in each of the forms that stand on its spans."""

from __future__ import annotations

from typing import Any

from spanreel.model import Fidelity, Json, Message
from spanreel.protocols import media
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content import ai_sdk, losses
from spanreel_collector.span import Attributes


def read_messages(attributes: Attributes, key: str) -> tuple[tuple[Message, ...], Fidelity]:
    """A list of messages, one, or ``{"prompt", "history"}``; a bare text is the user's."""
    given = attributes.get(key)
    if given is None:
        return (), Fidelity.ABSENT
    found, state = values.decode(given)
    if state is Fidelity.TRUNCATED:
        found = values.items_of(given, parts_depth=4, parts_key="content")[0]
    if isinstance(found, dict) and ("prompt" in found or "history" in found or "messages" in found):
        history = found.get("history", found.get("messages"))
        found = [*(history if isinstance(history, list) else []), *([found["prompt"]] if "prompt" in found else [])]
    items = found if isinstance(found, list) else [found]
    read = tuple(message for item in items if (message := _message(item)) is not None)
    return read, losses.graver(state, losses.state(list(read))) if read else Fidelity.ABSENT


def _message(item: Any) -> Message | None:
    if isinstance(item, str):
        return {"role": "user", "parts": ai_sdk.parts(item)} if item else None
    if not isinstance(item, dict) or not isinstance(item.get("role"), str):
        return None
    return {"role": values.role(item["role"]), "parts": read_parts(item.get("content"))}


def read_parts(content: Json) -> list[dict[str, Json]]:
    """The parts of a message's content, a list of them or a text."""
    if not isinstance(content, list):
        return ai_sdk.parts(content) if isinstance(content, str) else []
    return [part for item in content if isinstance(item, dict | str) and item for part in _part(item)]


def _part(item: dict[str, Any] | str) -> list[dict[str, Json]]:
    if isinstance(item, str):
        return ai_sdk.parts(item)
    kind = item.get("type")
    if kind in ("tool_call", "tool-call"):
        function = item["function"] if isinstance(item.get("function"), dict) else item
        asked = next((function[key] for key in ("arguments", "input", "args") if key in function), None)
        name = values.text(function, "name", "toolName")
        return [{"type": "tool_call", "id": call_id_of(item), "name": name, "arguments": values.arguments(asked)}]
    if kind in ("tool_result", "tool-result"):
        return [{"type": "tool_call_response", "id": call_id_of(item), "response": _told(item)}]
    if kind == "reasoning" and isinstance(item.get("text"), str):
        return [{"type": "reasoning", "content": item["text"], **_thoughts(item)}]
    if kind in ("image", "document") and isinstance(item.get("source"), dict):
        return [_media(item)]
    return ai_sdk.parts([item])


def call_id_of(item: dict[str, Any]) -> str | None:
    """The id of a request for a tool call that the answer to it names."""
    return values.text(item, "callId", "toolCallId", "id")


def _told(item: dict[str, Any]) -> Json:
    """A tool's result as the model was told it: texts of content joined, else as it stands."""
    content = next((item[key] for key in ("content", "output", "result") if key in item), None)
    if isinstance(content, list) and content and all(_is_text(part) for part in content):
        return values.decode("\n".join(part["text"] for part in content))[0]
    return content


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)


def _thoughts(item: dict[str, Any]) -> dict[str, Json]:
    kept = {key: item[key] for key in ("id", "content") if item.get(key) is not None}
    return {"provider_fields": kept} if kept else {}


def _media(item: dict[str, Any]) -> dict[str, Json]:
    source, kind = item["source"], "image" if item["type"] == "image" else "document"
    if isinstance(source.get("url"), str):
        return media.read_url(source["url"], kind)
    if isinstance(source.get("data"), str):
        return {"type": "blob", "modality": kind, "mime_type": source.get("mediaType"), "content": source["data"]}
    return {"type": "text", "content": source["text"]} if isinstance(source.get("text"), str) else media.read_own(item)
