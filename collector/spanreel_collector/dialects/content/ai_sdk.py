"""Messages, tool calls and providers as the AI SDK writes them, and Mastra, which is built on it; versions 3 to 7."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

from spanreel import conventions as names
from spanreel.model import Error, Fidelity, Json, Message, Status
from spanreel.protocols import media
from spanreel_collector import json_text
from spanreel_collector.dialects import values
from spanreel_collector.span import RawSpan

_PROVIDERS = {
    "amazon-bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "azure-openai": "azure.ai.openai",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex": "gcp.vertex_ai",
    "xai": "x_ai",
}
"""The conventions' names of providers that the AI SDK names otherwise."""
_FAILED = ("error-text", "error-json", "execution-denied")
"""Kinds of a tool's output that say that it failed."""
_ENDED = ("ai.response.finishReason", "ai.finishReason", "ai.toolCall.result")
OTEL_SCOPE = "gen_ai"
"""The scope of `@ai-sdk/otel`, from version 7 on."""
_ENDED_OTEL = (names.RESPONSE_FINISH_REASONS, names.TOOL_CALL_RESULT)
_MODALITIES = ("image", "audio", "video")


def provider(name: str | None) -> str | None:
    """The provider by the conventions' name: the SDK puts the API behind a dot, as in ``openai.chat``."""
    first = (name or "").partition(".")[0]
    return _PROVIDERS.get(first, first) or None


def messages(value: Json) -> tuple[tuple[Message, ...], Fidelity]:
    """The messages of a prompt, as JSON text or decoded; of one that was cut off, those parts that are whole."""
    items, state = values.items_of(value, parts_depth=4, parts_key="content")
    read = tuple(_message(item) for item in items if isinstance(item, dict) and isinstance(item.get("role"), str))
    return read, Fidelity.ABSENT if not read else state


def prompt(value: Json) -> tuple[tuple[Message, ...], Fidelity]:
    """What a call of the SDK was asked: ``{"system", "prompt" | "messages"}``, a list of messages, or a text."""
    found, state = values.decode(value)
    if isinstance(found, str) and state is Fidelity.WHOLE:
        return ({"role": "user", "parts": parts(found)},) if found else (), Fidelity.WHOLE if found else Fidelity.ABSENT
    if isinstance(found, list) or str(value).lstrip().startswith("["):
        return messages(value)
    said = values.members(value)
    asked: list[Message] = []
    system = said.get("system")
    if isinstance(system, str) and system:
        asked.append({"role": "system", "parts": parts(system)})
    elif isinstance(system, dict | list):
        asked += messages(system if isinstance(system, list) else [system])[0]
    words = said.get("messages") if isinstance(said.get("messages"), list) else said.get("prompt")
    if isinstance(words, list):
        asked += messages(words)[0]
    elif isinstance(words, str) and words:
        asked.append({"role": "user", "parts": parts(words)})
    return tuple(asked), state if asked or state is not Fidelity.WHOLE else Fidelity.ABSENT


def parts(content: Json, *, of_assistant: bool = False) -> list[dict[str, Json]]:
    """The parts of a message's content: a text, or a list of typed parts.

    Results in the assistant's own message are those of tools that the provider ran.
    """
    if isinstance(content, str):
        return [{"type": "text", "content": content}] if content else []
    found = [_part(part, of_assistant) for part in content if part] if isinstance(content, list) else []
    return [part for part in found if part.get("type") != "text" or part.get("content")]


def calls(value: Json) -> tuple[list[dict[str, Json]], Fidelity]:
    """The tool calls of an answer, as parts; of a list that was cut off, those that are whole."""
    items, state = values.items_of(value, parts_depth=2)
    read = [_call(item) for item in items if isinstance(item, dict)]
    return [call for call in read if call.get("name")], state


def tool_choice(value: Json) -> Json:
    """The tool choice: a word, or the tool that must be called."""
    found, _ = values.decode(value)
    kind = found.get("type") if isinstance(found, dict) else None
    return kind if isinstance(kind, str) and kind != "tool" else found


def _message(item: dict[str, Any]) -> Message:
    role = values.role(item["role"])
    content = item.get("content")
    if content is None and isinstance(item.get("parts"), list):
        content = item["parts"]  # as the SDK's messages for user interfaces have it
    message: Message = {"role": role, "parts": parts(content, of_assistant=role == "assistant")}
    fields = _own_fields(item)
    return {**message, "provider_fields": fields} if fields else message


def _part(part: Any, of_assistant: bool) -> dict[str, Json]:
    if isinstance(part, str):
        return {"type": "text", "content": part}
    if not isinstance(part, dict):
        return media.read_own(part)
    kind = part.get("type")
    read: dict[str, Json]
    if kind == "text" and isinstance(part.get("text"), str):
        read = {"type": "text", "content": part["text"]}
    elif kind == "reasoning" and isinstance(part.get("text"), str):
        read = {"type": "reasoning", "content": part["text"]}
        if isinstance(part.get("signature"), str):
            return {**read, "provider_fields": {"signature": part["signature"], **_own_fields(part)}}
    elif kind == "tool-call":
        read = _call(part)
    elif kind == "tool-result":
        read = _result(part, of_assistant)
    elif kind in ("image", "file"):
        return _media(part)
    else:
        return media.read_own(part)
    fields = _own_fields(part)
    return {**read, "provider_fields": {**read.get("provider_fields", {}), **fields}} if fields else read


def _call(part: dict[str, Any]) -> dict[str, Json]:
    # Version 4 says `args`; 5 says `input`, as text where the answer was not streamed.
    asked = values.arguments(next((part[key] for key in ("input", "args") if key in part), None))
    identity, name = values.text(part, "toolCallId"), values.text(part, "toolName")
    if part.get("providerExecuted") is True:
        return {"type": "server_tool_call", "id": identity, "name": name, "server_tool_call": asked}
    return {"type": "tool_call", "id": identity, "name": name, "arguments": asked}


def _result(part: dict[str, Any], of_assistant: bool) -> dict[str, Json]:
    output = part.get("output", part.get("result"))
    said = output.get("type") if isinstance(output, dict) else None
    if isinstance(output, dict) and isinstance(said, str) and ("value" in output or said in _FAILED):
        output = output.get("value", output.get("reason"))
    identity = values.text(part, "toolCallId")
    if of_assistant:
        return {"type": "server_tool_call_response", "id": identity, "server_tool_call_response": output}
    read: dict[str, Json] = {"type": "tool_call_response", "id": identity, "response": output}
    if said in _FAILED or part.get("isError") is True:
        return {**read, "provider_fields": {"is_error": True}}
    return read


def _media(part: dict[str, Any]) -> dict[str, Json]:
    mime_type = values.text(part, "mediaType", "mimeType") or ("image/*" if part["type"] == "image" else None)
    modality = (mime_type or "").partition("/")[0]
    content = part.get("image") if part["type"] == "image" else part.get("data", part.get("url"))
    kind = modality if modality in _MODALITIES else "document"
    if isinstance(content, dict):
        content = _bytes_as_base64(content) or content
    if not isinstance(content, str):
        return media.read_own(part)
    named: dict[str, Json] = {"name": part["filename"]} if isinstance(part.get("filename"), str) else {}
    if content.startswith(("http://", "https://", "data:")):
        read: dict[str, Json] = media.read_url(content, kind)
        return {**read, **({} if read["type"] == "blob" or mime_type is None else {"mime_type": mime_type}), **named}
    return {"type": "blob", "modality": kind, "mime_type": mime_type, "content": content, **named}


def _bytes_as_base64(numbered: dict[str, Any]) -> str | None:
    """An array of bytes, which up to version 4 becomes JSON by its indexes: ``{"0": 137, "1": 80, ...}``."""
    if not numbered or list(numbered) != [str(index) for index in range(len(numbered))]:
        return None
    try:
        return base64.b64encode(bytes(numbered.values())).decode()
    except (TypeError, ValueError):
        return None


def _own_fields(item: dict[str, Any]) -> dict[str, Json]:
    found = item.get("providerOptions", item.get("providerMetadata"))
    return json_text.plain(found) if isinstance(found, dict) else {}


def with_own_status(span: RawSpan) -> RawSpan:
    """The span as it ended itself: OpenInference's processor gives a failed span's status to all others of the trace.

    What failed itself has its exception, and nothing of how it ended.
    """
    if span.status != 2 or any(event.name == "exception" for event in span.events):
        return span
    told = _ENDED_OTEL if span.origin.scope == OTEL_SCOPE else _ENDED
    ended = any(key in span.attributes for key in told)
    return replace(span, status=0, status_message="") if ended else span


def status_of(span: RawSpan, error: Error | None, *told: object) -> Status:
    """How a run or model call of the SDK ended. What was broken off midway ends with nothing told of its answer."""
    return values.status_of(error) if error or span.dropped_attributes or any(told) else Status.UNFINISHED
