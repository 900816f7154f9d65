"""Content that the GenAI conventions put beside the span: logs and span events, of today and of v1.26 to v1.36."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spanreel.conventions import INPUT_MESSAGES, OUTPUT_MESSAGES
from spanreel.model import Json, Message
from spanreel.protocols import media
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content import bedrock, blocks, gemini
from spanreel_collector.dialects.content import messages as content
from spanreel_collector.span import Attributes, RawSpan

_DETAILS = "gen_ai.client.inference.operation.details"
_OLD_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_OLD_CHOICE = "gen_ai.choice"
_OLDEST = {"gen_ai.content.prompt": "gen_ai.prompt", "gen_ai.content.completion": "gen_ai.completion"}
"""Events of v1.26 and v1.27, and the attribute that holds their messages."""
_BODY = "gen_ai.event.content"
"""Where .NET's libraries put an event's body, as JSON."""
_INDEXES = ("gen_ai.message.index", "CHAT_MESSAGE_INDEX")
_MODALITIES = {"image-url": "image", "audio-url": "audio", "video-url": "video", "document-url": "document"}


def whole_attributes(span: RawSpan) -> Attributes:
    """The span's attributes, with what they lack taken from its events and log records."""
    if not span.events and not span.logs:
        return span.attributes
    found = dict(details(span))
    inputs, outputs = read_records((name, body) for name, _, body in _records(span))
    if inputs:
        found.setdefault(INPUT_MESSAGES, inputs)
    if outputs:
        found.setdefault(OUTPUT_MESSAGES, outputs)
    return found


def details(span: RawSpan) -> Attributes:
    """The span's attributes, with those that stand on its events and log records of today, one or all on each."""
    beside: dict[str, Json] = {}
    for name, attributes, _ in _records(span):
        if name == _DETAILS:
            beside.update(attributes)
    return {**beside, **{key: value for key, value in span.attributes.items() if value is not None}}


def read_records(told: Iterable[tuple[str, dict[str, Any]]]) -> tuple[list[Message], list[Message]]:
    """The messages that old events tell of, by name and body: those sent to the model, and its choices."""
    inputs: list[Message] = []
    outputs: list[Message] = []
    for name, body in told:
        if name in _OLD_ROLES:
            message = _old_message(_OLD_ROLES[name], body)
            if not _is_told(message, inputs):
                inputs.append(message)
        elif name == _OLD_CHOICE:
            outputs.append(_old_choice(body))
        elif name in _OLDEST:
            found = content.read_messages(values.decode(body.get(_OLDEST[name]))[0])
            (inputs if name == "gen_ai.content.prompt" else outputs).extend(found)
    return inputs, outputs


def _is_told(message: Message, before: list[Message]) -> bool:
    """Whether these are the tools' answers that stand before: botocore's users repeat them."""
    if message["role"] != "tool" or not any(part.get("id") for part in message["parts"]):
        return False
    told = [part.get("id") for one in before if one["role"] == "tool" for part in one["parts"]]
    return all(part.get("id") in told for part in message["parts"])


def _records(span: RawSpan) -> list[tuple[str, Attributes, dict[str, Any]]]:
    """Events by number, then logs by time and number: name, attributes, and the body that old events carry."""
    found: list[tuple[str, Attributes, dict[str, Any]]] = []
    for event in sorted(span.events, key=lambda event: values.integer(event.attributes, *_INDEXES) or 0):
        body, _ = values.decode(event.attributes.get(_BODY))
        found.append((event.name, event.attributes, body if isinstance(body, dict) else dict(event.attributes)))
    for log in sorted(span.logs, key=lambda log: (log.time, values.integer(log.attributes, *_INDEXES) or 0)):
        body, _ = values.decode(log.body)
        found.append((log.event_name, log.attributes, body if isinstance(body, dict) else {"content": body}))
    return found


def _old_message(role: str, body: dict[str, Any]) -> Message:
    if gemini.is_content(body.get("content")):
        # Google's libraries call whatever a request holds the user's; the content says its role.
        message = gemini.read_message({**body["content"], "role": body["content"].get("role") or role})
        return {**message, "role": role} if role == "system" else message
    name = {"name": body["name"]} if role != "tool" and isinstance(body.get("name"), str) else {}
    if role == "tool":
        part: dict[str, Json] = {"type": "tool_call_response", "id": body.get("id") or body.get("tool_call_id")}
        told = {"response": bedrock.read_result(body["content"])} if "content" in body else {}
        return {"role": role, "parts": [{**part, **told}]}
    parts = _parts(body.get("content"))
    if parts and all(part["type"] == "tool_call_response" for part in parts):
        return {"role": "tool", "parts": parts}
    calls, named = body.get("tool_calls"), [part["id"] for part in parts if part["type"] == "tool_call" and part["id"]]
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and call.get("id") not in named:
            given = {"arguments": values.arguments(function["arguments"])} if "arguments" in function else {}
            parts.append({"type": "tool_call", "id": call.get("id"), "name": function.get("name"), **given})
    return {"role": role, "parts": parts, **name}


def _old_choice(body: dict[str, Any]) -> Message:
    inner, _ = values.decode(body.get("message"))
    inner = inner if _is_message(inner) else body.get("message")
    said = inner if isinstance(inner, dict) else {**body, "content": body.get("content", inner)}
    # v1.28 put the calls beside the message.
    message = _old_message("assistant", {"tool_calls": body.get("tool_calls"), **said})
    message["role"] = "assistant"
    reason = body.get("finish_reason")
    return {**message, "finish_reason": reason} if isinstance(reason, str) else message


def _is_message(said: Json) -> bool:
    return isinstance(said, dict) and not {"role", "content", "tool_calls", "parts"}.isdisjoint(said)


def _parts(said: Json) -> list[dict[str, Json]]:
    """The parts of an old event's content: text, typed blocks, or parts that say their kind."""
    if (
        isinstance(said, list)
        and said
        and bedrock.is_blocks(said)
        and not any({"type", "kind"} & set(block) for block in said)
    ):
        return bedrock.read_parts(said)
    parts: list[dict[str, Json]] = []
    for item in said if isinstance(said, list) else [said]:
        if isinstance(item, dict) and isinstance(item.get("kind"), str):
            parts.append(_part_of_kind(item["kind"], item))
        elif isinstance(item, dict | str):
            parts += blocks.parts_of([item] if isinstance(item, dict) or item else [])
    return parts


def _part_of_kind(kind: str, item: dict[str, Any]) -> dict[str, Json]:
    """A part in pydantic-ai's words; without content where none was captured."""
    if kind in ("text", "thinking"):
        text = item.get("text", item.get("content"))
        part: dict[str, Json] = {"type": "text" if kind == "text" else "reasoning"}
        return {**part, "content": text} if isinstance(text, str) else part
    if kind in _MODALITIES:
        modality = _MODALITIES[kind]
        url = item.get("url")
        return media.read_url(url, modality) if isinstance(url, str) else {"type": "uri", "modality": modality}
    if kind == "binary":
        mime_type = str(item.get("media_type") or "")
        part = {"type": "blob", "modality": mime_type.partition("/")[0], "mime_type": mime_type}
        return {**part, "content": item["binary_content"]} if "binary_content" in item else part
    return {"type": kind, **{key: value for key, value in item.items() if key != "kind"}}
