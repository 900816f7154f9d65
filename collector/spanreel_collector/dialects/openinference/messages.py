"""Messages in indexed attributes: ``llm.input_messages.<i>.message.…``, whatever indexes and members are missing.

An attribute without a value is not there.
"""

from __future__ import annotations

from dataclasses import replace

from spanreel.model import Answer, Fidelity, Json, Message
from spanreel.protocols import media
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content import reprs
from spanreel_collector.dialects.content.decoding import plain_text
from spanreel_collector.dialects.content.indexed import Tree, is_tree, listed, nested
from spanreel_collector.span import Attributes

REDACTED = "__REDACTED__"

_ROLES = {"tool-call": "assistant", "tool-response": "user"}
"""Roles of smolagents, which sends these to the model under the names on the right."""
_STRAY = "message.tool_calls"
_SIGNED = ("signature", "encrypted_content", "data", "id")


def read(attributes: Attributes, prefix: str, cut_at: int | None = None) -> tuple[tuple[Message, ...], Fidelity]:
    """The messages under a prefix, and how they came; texts of just ``cut_at`` characters were cut off."""
    found = tuple(_message(item["message"]) for item in nested(attributes, prefix) if is_tree(item.get("message")))
    if not found:
        return (), Fidelity.ABSENT
    texts = [text for message in found for text in _texts(message["parts"])]
    if cut_at is not None and (any(len(text) == cut_at for text in texts) or any(map(_is_hollow, found))):
        return found, Fidelity.TRUNCATED
    return found, Fidelity.REDACTED if REDACTED in texts else Fidelity.WHOLE


def with_strays(attributes: Attributes, answer: Answer | None) -> tuple[Answer | None, tuple[Message, ...]]:
    """The answer, and the round before it, by the calls that google-genai's instrumentation puts under no message.

    They are those of the answer, where it says nothing; where it says something, the SDK had them answered before.
    """
    calls = [_call(item["tool_call"]) for item in nested(attributes, _STRAY) if is_tree(item.get("tool_call"))]
    asked = [call for call in calls if call["name"]]
    last = answer.messages[-1] if answer and answer.messages else None
    if not asked or answer is None or last is None or any(part["type"] == "tool_call" for part in last["parts"]):
        return answer, ()
    if not last["parts"]:
        return replace(answer, messages=(*answer.messages[:-1], {**last, "parts": asked})), ()
    told: list[dict[str, Json]] = [{"type": "tool_call_response", "id": call["id"]} for call in asked]
    return answer, ({"role": "assistant", "parts": asked}, {"role": "tool", "parts": told})


def with_failures(found: tuple[Message, ...], shown: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages, with what a provider's own form of them alone says of tools' answers: which were failures."""
    told = {
        part.get("id"): part["provider_fields"]
        for message in shown
        for part in message["parts"]
        if part.get("type") == "tool_call_response" and isinstance(part.get("provider_fields"), dict)
    }
    if not told:
        return found
    return tuple({**message, "parts": [_with_fields(part, told) for part in message["parts"]]} for message in found)


def _with_fields(part: dict[str, Json], told: dict[Json, dict[str, Json]]) -> dict[str, Json]:
    fields = told.get(part.get("id")) if part.get("type") == "tool_call_response" else None
    return {"provider_fields": fields, **part} if fields is not None else part


def is_complete(attributes: Attributes, prefix: str) -> bool:
    """Whether no message is missing at the front, and each has a role: what a limit of attributes takes first."""
    first = nested(attributes, f"{prefix}")
    return f"{prefix}.0.message.role" in attributes and all(
        is_tree(item.get("message")) and "role" in item["message"] for item in first
    )


def lost(attributes: Attributes, key: str) -> Fidelity:
    """How it is with a value that holds nothing to read: taken out, or never there."""
    return Fidelity.REDACTED if attributes.get(key) == REDACTED else Fidelity.ABSENT


def plain(attributes: Attributes, key: str, role: str) -> tuple[Message, ...]:
    """The message of a value that is a text and nothing else, as spans that were written by hand have it."""
    told = values.text(attributes, key)
    found = None if told == REDACTED else plain_text(told)
    return ({"role": role, "parts": [{"type": "text", "content": found}]},) if found is not None else ()


def _message(message: Tree) -> Message:
    role = message.get("role")
    role = role if isinstance(role, str) else "assistant" if "tool_calls" in message else "user"
    known = values.role(_ROLES.get(role, role))
    if known == "user" and values.text(message, "tool_call_id"):
        known = "tool"  # as Anthropic has it
    read: Message = {"role": known, "parts": _tool_answer(message) if known == "tool" else _parts(message)}
    if known != role:
        read["provider_fields"] = {"role": role}
    if isinstance(message.get("name"), str) and message["name"]:
        read["name"] = message["name"]
    return read


def _tool_answer(message: Tree) -> list[dict[str, Json]]:
    parts = [part for part in _parts(message) if part["type"] != "tool_call"]
    texts = [part.get("content") for part in parts]
    text_only = all(part["type"] == "text" for part in parts)
    response = values.unwrap_result("".join(map(str, texts))) if text_only else parts
    # BeeAI has the id with the message's content.
    beside = [one["message"] for one in listed(message.get("contents")) if is_tree(one.get("message"))]
    named = (identity for one in (message, *beside) if (identity := values.text(one, "tool_call_id")))
    answer: dict[str, Json] = {"type": "tool_call_response", "id": next(named, None)}
    return [{**answer, "response": response} if parts else answer]


def _parts(message: Tree) -> list[dict[str, Json]]:
    contents = listed(message.get("contents"))
    parts = [part for block in contents if (part := _part(block)) is not None]
    content = message.get("content")
    if not any(part["type"] == "text" for part in parts):
        # What has both repeats its text.
        lines = listed(content, leaves=True) if isinstance(content, dict | list) else [content]
        parts = [{"type": "text", "content": line} for line in lines if isinstance(line, str) and line] + parts
    calls = [_call(call) for call in _asked(message.get("tool_calls"))]
    if isinstance(message.get("function_call_name"), str):
        arguments = values.arguments(message.get("function_call_arguments_json"))
        calls.append({"type": "tool_call", "id": None, "name": message["function_call_name"], "arguments": arguments})
    for call in calls:
        if call.get("name") and not any(_same_call(call, part) for part in parts):
            parts.append(call)
    return parts


def _asked(told: Json) -> list[Tree]:
    """The calls of a message's; by hand they are written without the name around each, and a lone one without index."""
    items = [told] if is_tree(told) and is_tree(told.get("function")) else listed(told)
    found = (item["tool_call"] if is_tree(item.get("tool_call")) else item for item in items)
    return [call for call in found if is_tree(call.get("function"))]


def _same_call(one: dict[str, Json], other: dict[str, Json]) -> bool:
    if other["type"] != "tool_call":
        return False
    return one["id"] == other["id"] if one["id"] or other["id"] else one == other


def _part(block: Tree) -> dict[str, Json] | None:
    """A content block; None where the block only says its type: its content stands elsewhere, or was left out."""
    content = block.get("message_content")
    content = content if is_tree(content) else {}
    kind = content.get("type")
    if is_tree(block.get("tool_call")):
        return _call(block["tool_call"])
    image, audio = content.get("image"), content.get("audio")
    if is_tree(image) and is_tree(image.get("image")) and isinstance(image["image"].get("url"), str):
        return media.read_url(image["image"]["url"], "image")
    if is_tree(audio):
        return _audio(audio)
    if kind == "reasoning":
        signed = {key: content[key] for key in _SIGNED if key in content}
        part: dict[str, Json] = {"type": "reasoning", "content": content.get("text") or ""}
        return {**part, "provider_fields": signed} if signed else part
    if isinstance(content.get("text"), str) and kind in ("text", None):
        return {"type": "text", "content": content["text"]}
    return media.read_own(dict(content)) if set(content) - {"type"} else None


def _audio(audio: Tree) -> dict[str, Json] | None:
    inner = audio["audio"] if is_tree(audio.get("audio")) else audio
    if isinstance(inner.get("url"), str):
        part = media.read_url(inner["url"], "audio")
        return part if part["type"] == "blob" else {**part, "mime_type": inner.get("mime_type")}
    transcript = inner.get("transcript")
    return {"type": "text", "content": transcript} if isinstance(transcript, str) else None


def _call(call: Tree) -> dict[str, Json]:
    function = call["function"] if is_tree(call.get("function")) else {}
    part: dict[str, Json] = {
        "type": "tool_call",
        "id": values.text(call, "id"),
        "name": reprs.unquoted(values.text(function, "name")),
        # Of a call without any, OpenAI's and the Agents SDK's instrumentations leave the empty object out.
        "arguments": values.arguments(function.get("arguments", {})),
    }
    signature = values.text(call, "reasoning_signature")
    return {**part, "provider_fields": {"reasoning_signature": signature}} if signature else part


def _is_hollow(message: Message) -> bool:
    """Whether nothing is told but whose message it was: its content stood in a value that was cut off."""
    return not any(set(part) - {"type", "id"} for part in message["parts"])


def _texts(parts: list[dict[str, Json]]) -> list[str]:
    """Every text of these parts, arguments as the JSON that they came as where they could not be read."""
    candidates = [part.get(key) for part in parts for key in ("content", "response", "arguments")]
    return [text for text in candidates if isinstance(text, str)]
