"""AutoGen's chat messages, as they pass between the agents of a team: in the conventions' form, with what each cost."""

from __future__ import annotations

from typing import Any

from spanreel import conventions as names
from spanreel.model import Json, Message
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content import blocks
from spanreel_collector.dialects.content import messages as content

_OWN_WORDS = ("ToolCallSummaryMessage", "HandoffMessage", "StopMessage")
"""What an agent says without asking a model."""
_CHAT = ("TextMessage", "MultiModalMessage", "StructuredMessage", *_OWN_WORDS)


def read_input(told: list[Json]) -> tuple[Message, ...]:
    """What an agent or a team was told, by the user and by other agents: all of it is the user's to the model."""
    return tuple(
        {"role": "user", "parts": _parts(item), "name": name}
        if (name := values.text(item, "source")) not in (None, "user")
        else {"role": "user", "parts": _parts(item)}
        for item in told
        if isinstance(item, dict) and _is_chat(item)
    )


def read_rounds(told: list[Json]) -> tuple[Message, ...]:
    """What an agent and its tools said in one turn, with the facts of the model call that each word came from.

    An agent's own words, which no model said, come with None for facts.
    """
    found: list[Message] = []
    thought: list[dict[str, Json]] = []
    for item in (item for item in told if isinstance(item, dict)):
        kind = item.get("type")
        if kind == "ThoughtEvent":
            thought += _parts(item)
        elif kind == "ToolCallRequestEvent":
            found.append({"role": "assistant", "parts": [*thought, *_calls(item)], content.FACTS: _facts(item)})
            thought = []
        elif kind == "ToolCallExecutionEvent":
            found.append({"role": "tool", "parts": _answers(item)})
        elif _is_chat(item):
            facts = None if kind in _OWN_WORDS else _facts(item)
            found.append({"role": "assistant", "parts": _parts(item), content.FACTS: facts})
    return tuple(found)


def read_tool_call(told: Json, identity: str | None) -> dict[str, Json]:
    """The arguments and the result of the call of this id, under the conventions' names."""
    found: dict[str, Json] = {}
    for item in told if isinstance(told, list) and identity else []:
        kind = item.get("type") if isinstance(item, dict) else None
        for call in _list(item) if kind == "ToolCallRequestEvent" else []:
            if call.get("id") == identity and "arguments" in call:
                found[names.TOOL_CALL_ARGUMENTS] = call["arguments"]
        for answer in _list(item) if kind == "ToolCallExecutionEvent" else []:
            if answer.get("call_id") == identity and "content" in answer:
                found[names.TOOL_CALL_RESULT] = answer["content"]
    return found


def _is_chat(item: dict[str, Any]) -> bool:
    """Whether it is a message and not an event: of one of AutoGen's own types, or of the user's."""
    kind = item.get("type")
    return kind in _CHAT or (isinstance(kind, str) and not kind.endswith("Event") and "content" in item)


def _parts(item: dict[str, Any]) -> list[dict[str, Json]]:
    said = item.get("content")
    if isinstance(said, dict):
        return [{"type": "data", "content": said}]
    return [_part(one) for one in said] if isinstance(said, list) else blocks.parts_of(said)


def _part(one: Json) -> dict[str, Json]:
    if isinstance(one, str):
        return {"type": "text", "content": one}
    data = values.text(one, "data") if isinstance(one, dict) else None
    if data is None:
        return {"type": "other", "value": one}
    return {"type": "blob", "modality": "image", "mime_type": "image/png", "content": data}


def _calls(item: dict[str, Any]) -> list[dict[str, Json]]:
    return [
        {
            "type": "tool_call",
            "id": values.text(call, "id"),
            "name": values.text(call, "name"),
            "arguments": values.arguments(call.get("arguments")),
        }
        for call in _list(item)
    ]


def _answers(item: dict[str, Any]) -> list[dict[str, Json]]:
    return [
        {"type": "tool_call_response", "id": values.text(answer, "call_id"), "response": answer.get("content")}
        for answer in _list(item)
    ]


def _list(item: dict[str, Any]) -> list[dict[str, Any]]:
    given = item.get("content")
    return [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []


def _facts(item: dict[str, Any]) -> dict[str, Json]:
    usage = item["models_usage"] if isinstance(item.get("models_usage"), dict) else {}
    counts = {
        "input_tokens": values.integer(usage, "prompt_tokens"),
        "output_tokens": values.integer(usage, "completion_tokens"),
    }
    return {"usage": counts} if any(count is not None for count in counts.values()) else {"usage": None}
