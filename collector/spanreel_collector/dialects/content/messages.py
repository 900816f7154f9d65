"""Messages inside values: of LangChain, Gemini, Haystack, and in OpenAI's and Anthropic's form."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from spanreel.model import Json, Message
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content import gemini, reprs, tokens
from spanreel_collector.dialects.content.blocks import attached, is_item, parts_of, read_item, tool_call

FACTS = "call"
"""What a message of a run's says of the model call that it came from, beside the message: for `answered` alone."""

_LISTS = ("messages", "contents", "replies", "tool_messages")
_HISTORY = "automatic_function_calling_history"
_WORDS = ("task", "prompt", "input", "query", "question", "user_input", "user_msg")
_ANSWERS = ("raw", "output", "answer", "content", "response")
_REASONS = ("finish_reason", "stop_reason")
_PAIRED = ("user", "human", "assistant", "ai", "system", "developer")


def read_messages(value: Json, *, facts: bool = False) -> tuple[Message, ...]:
    """The messages that a decoded value holds; none where it is of no form that is known. With facts: `FACTS`."""
    if isinstance(value, dict):
        found = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), None)
        if found is None:
            found = [value["new_message"]] if isinstance(value.get("new_message"), dict) else _inside(value)
        value = found
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list) and not _is_pair(value[0]):
        value = value[0]  # LangChain's batch of one
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict) and "update" in value[0]:
        updated = value[0]["update"]  # what LangGraph's node puts into the state, by a command
        value = updated.get("messages") if isinstance(updated, dict) else None
    items = value if isinstance(value, list) else []
    if items and all(map(_is_bare_call, items)):
        return (_asking(items),)
    read = [(item, message) for item in items if (message := read_message(item)) is not None]
    if not facts:
        return tuple(message for _, message in read)
    told = ((message, _facts(item)) for item, message in read)
    return tuple({**message, FACTS: found} if found else message for message, found in told)


def read_message(item: Json) -> Message | None:
    """One message, as a provider or a framework writes it; None where it is none that is known."""
    if isinstance(item, str):
        return _haystack(item) if item.startswith("ChatMessage(") else None
    if isinstance(item, list) and _is_pair(item):
        return _plain({"role": item[0], "content": item[1]})
    if not isinstance(item, dict):
        return None
    if item.get("") == "ChatMessage":
        return _haystack(item)
    for inside in ("data", "kwargs"):
        if isinstance(item.get(inside), dict) and ("type" in item or "lc" in item):
            return _plain({"role": _class_role(item.get("id")) or item.get("type"), **item[inside]})
    if is_item(item):
        return read_item(item)
    return gemini.read_message(item) if isinstance(item.get("parts"), list) else _plain(item)


def read_history(value: Json) -> tuple[Message, ...]:
    """The rounds that an SDK went through by itself inside one call: google-genai's automatic function calling."""
    history = value.get(_HISTORY) if isinstance(value, dict) else None
    return read_messages(history) if isinstance(history, list) else ()


def asked(value: Json) -> tuple[Message, ...]:
    """What a run was asked: the messages in its input, else the words under one of the usual names."""
    found = read_messages(value)
    if found or not isinstance(value, dict):
        return found
    system, words = values.text(value, "system"), values.text(value, *_WORDS)
    said = [("system", system), ("user", words)] if words else []
    return tuple({"role": role, "parts": parts_of(text)} for role, text in said if text)


def answered(value: Json) -> tuple[Message, ...]:
    """What a run came to: its messages since the user's last words; else the words of an answer."""
    if isinstance(value, dict) and isinstance(value.get("result"), dict) and "current_agent_name" in value["result"]:
        value = {"content": value["result"].get("response")}  # llama-index's workflow
    if isinstance(value, dict) and isinstance(value.get("content"), dict):
        message = read_message(value["content"])
        return (message,) if message is not None else ()
    found = read_messages(value, facts=True)
    if found:
        return found[rounds_from(found) :]
    words = values.text(value, *_ANSWERS) if isinstance(value, dict) else None
    return ({"role": "assistant", "parts": parts_of(words)},) if words else ()


def rounds_from(found: tuple[Message, ...]) -> int:
    """Where, after the user's last words, the model's rounds with its tools begin."""
    spoken = [number for number, message in enumerate(found) if message["role"] in ("user", "system")]
    return spoken[-1] + 1 if spoken else 0


def with_system(asked: tuple[Message, ...], state: tuple[Message, ...]) -> tuple[Message, ...]:
    """What was asked, with the instructions that a run's final state has before it."""
    before = state[: rounds_from(state)]
    instructed = tuple(message for message in before if message["role"] == "system")
    return before if asked and instructed and before == (*instructed, *asked) else asked


def weight(found: tuple[Message, ...]) -> int:
    """How much messages tell: the members of their parts that are filled."""
    parts: list[dict[str, Any]] = [part for message in found for part in message.get("parts") or ()]
    return sum(1 for part in parts for value in part.values() if value not in (None, "", [], {}))


def _is_pair(value: list[Any]) -> bool:
    """Whether this is a message as LangChain lets one be written: its role and its text."""
    return len(value) == 2 and isinstance(value[1], str) and value[0] in _PAIRED


def _inside(value: dict[str, Any]) -> Json:
    """The messages of the only component that a pipeline's data names."""
    inner = value.get("data") if isinstance(value.get("data"), dict) else value
    parts = [item for item in inner.values() if isinstance(item, dict)] if isinstance(inner, dict) else []
    found = [part[name] for part in parts for name in _LISTS if isinstance(part.get(name), list)]
    return found[0] if len(found) == 1 else None


def _class_role(path: Json) -> str | None:
    """The role that a LangChain class stands for; in JavaScript nothing else says it."""
    name = path[-1] if isinstance(path, list) and path else None
    return name.partition("Message")[0].lower() if isinstance(name, str) and "Message" in name else None


def _plain(item: dict[str, Any]) -> Message | None:
    """A message of OpenAI's form or of LangChain's, which says ``type`` for the role and ``args`` for arguments."""
    given = item.get("type") if item.get("role") in (None, "constructor") else item.get("role")
    if not isinstance(given, str):
        return None
    role = values.role(given.removesuffix("MessageChunk").lower())
    parts = _said_beside(item, parts_of(item.get("content", item.get("blocks")))) + attached(item)
    if role == "tool" and not any(part["type"] == "tool_call_response" for part in parts):
        text_only = all(part["type"] == "text" for part in parts)
        response: Json = "".join(str(part["content"]) for part in parts) if text_only else parts
        parts = [{"type": "tool_call_response", "id": values.text(item, "tool_call_id"), "response": response}]
    elif role == "user" and parts and all(part["type"] == "tool_call_response" for part in parts):
        role = "tool"  # as Anthropic has it
    calls = _calls(item)
    if calls:
        # LangChain repeats the blocks of Anthropic's that ask for tools.
        parts = [part for part in parts if part["type"] != "tool_call"] + calls
    message: Message = {"role": role, "parts": parts}
    facts = item.get("response_metadata", item.get("meta"))
    reason = values.text(item, *_REASONS) or (values.text(facts, *_REASONS) if isinstance(facts, dict) else None)
    extras = {"name": values.text(item, "name"), "finish_reason": reason}
    return {**message, **{key: value for key, value in extras.items() if value}}


def _said_beside(item: dict[str, Any], parts: list[dict[str, Json]]) -> list[dict[str, Json]]:
    """The parts of a content, with the thoughts before it and the refusal after it that stand beside it."""
    thought, refusal = values.text(item, "reasoning_content"), values.text(item, "refusal")
    if thought and all(part["type"] != "reasoning" for part in parts):
        parts = [{"type": "reasoning", "content": thought}, *parts]
    return [*parts, {"type": "refusal", "content": refusal}] if refusal else parts


def _calls(item: dict[str, Any]) -> list[dict[str, Json]]:
    """What a message asks of tools; LangChain's older ones have it where OpenAI's own fields are kept."""
    calls, extra = item.get("tool_calls"), item.get("additional_kwargs")
    if not calls and isinstance(extra, dict):
        calls = extra.get("tool_calls")
    found = []
    for call in calls if isinstance(calls, list) else []:
        if isinstance(call, dict):
            function = call["function"] if isinstance(call.get("function"), dict) else call
            arguments = values.arguments(function.get("args", function.get("arguments")))
            found.append(tool_call(values.text(call, "id"), reprs.unquoted(values.text(function, "name")), arguments))
    function = item.get("function_call")
    if isinstance(function, dict) and not found:
        found.append(tool_call(None, values.text(function, "name"), values.arguments(function.get("arguments"))))
    return found


def _is_bare_call(item: Json) -> bool:
    """Whether this is a call of a tool in OpenAI's form, without a message around it."""
    function = item.get("function") if isinstance(item, dict) and "role" not in item else None
    return isinstance(function, dict) and isinstance(function.get("name"), str) and "arguments" in function


def _asking(calls: list[Any]) -> Message:
    """The message that such calls were taken out of: CrewAI tells nothing else of an answer that asks for tools."""
    return {"role": "assistant", "parts": list(_calls({"tool_calls": calls}))}


def _facts(item: Json) -> dict[str, Json]:
    """What LangChain and Haystack keep with an answer: who gave it, and the tokens."""
    if isinstance(item, str):
        shown = _shown(item) if item.startswith("ChatMessage(") else None
        meta = shown.get("_meta") if isinstance(shown, dict) else None
        usage = meta.get("usage") if isinstance(meta, dict) else None
    else:
        inner = item.get("kwargs") or item.get("data") or item if isinstance(item, dict) else {}
        meta = inner.get("response_metadata", inner.get("meta")) if isinstance(inner, dict) else None
        usage = inner.get("usage_metadata") if isinstance(inner, dict) else None
        usage = usage or (meta.get("usage") if isinstance(meta, dict) else None)
    if not isinstance(meta, dict):
        return {}
    counts = tokens.read(usage)
    told = {
        "model": values.text(meta, "model_name", "model"),
        "response_id": values.text(meta, "id"),
        "usage": {field.name: getattr(counts, field.name) for field in fields(counts)} if counts else None,
    }
    return {name: value for name, value in told.items() if value is not None}


def _shown(text: str) -> Json:
    try:
        return reprs.parse(text)
    except ValueError:
        return None


def _haystack(item: Json) -> Message | None:
    shown = _shown(item) if isinstance(item, str) else item
    contents = shown.get("_content") if isinstance(shown, dict) else None
    if not isinstance(contents, list) or not isinstance(shown.get("_role"), str):
        return None
    parts: list[dict[str, Json]] = []
    for content in (content for content in contents if isinstance(content, dict)):
        if content.get("") == "TextContent":
            parts.append({"type": "text", "content": content.get("text")})
        elif content.get("") == "ToolCall":
            name = values.text(content, "tool_name")
            parts.append(tool_call(values.text(content, "id"), name, content.get("arguments")))
        elif content.get("") == "ToolCallResult":
            origin = content["origin"] if isinstance(content.get("origin"), dict) else {}
            identity = values.text(origin, "id")
            parts.append({"type": "tool_call_response", "id": identity, "response": content.get("result")})
        else:
            parts.append({"type": "other", "value": content})
    message: Message = {"role": values.role(shown["_role"]), "parts": parts}
    meta = shown.get("_meta")
    reason = values.text(meta, "finish_reason") if isinstance(meta, dict) else None
    return {**message, "finish_reason": reason} if reason else message
