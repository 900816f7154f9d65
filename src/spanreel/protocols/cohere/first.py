"""Cohere's chat, first version: one message, and before it a history; streamed as an object a line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from spanreel.model import Answer, Json, Message, Operation, Request, ToolDefinition
from spanreel.protocols.cohere.answers import write_failure
from spanreel.protocols.cohere.first_answers import join, read_body, read_call, split, write_body, write_call
from spanreel.protocols.media import read_own, write_own
from spanreel.protocols.openai_errors import read_error, write_error
from spanreel.protocols.residue import keep, kept, objects, overlay, parse_object, residue, unexpected, write_json

__all__ = [
    "NAME",
    "PATHS",
    "PROVIDER",
    "STREAM_TYPE",
    "join",
    "read_request",
    "read_response",
    "split",
    "write_request",
    "write_response",
]

NAME = "cohere_chat_v1"
PROVIDER = "cohere"
PATHS: Mapping[str, Operation] = {"/v1/chat": Operation.CHAT}
STREAM_TYPE = "application/stream+json"

_SETTINGS: Final = {
    "temperature": "temperature",
    "top_p": "p",
    "top_k": "k",
    "max_tokens": "max_tokens",
    "stop_sequences": "stop_sequences",
    "seed": "seed",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "response_format": "response_format",
}
_ROLES: Final = {"user": "USER", "assistant": "CHATBOT", "system": "SYSTEM", "tool": "TOOL"}
_READ_ROLES: Final = {wire: role for role, wire in _ROLES.items()}


def read_request(body: bytes, operation: Operation) -> Request:
    """Read a request; ValueError where it is no object with a message."""
    wire = parse_object(body, f"{NAME} request")
    said, history, results, preamble, tools = (
        wire.get(name) for name in ("message", "chat_history", "tool_results", "preamble", "tools")
    )
    if not isinstance(said, str):
        raise unexpected(f"{NAME} request: message", said, "text")
    entries = objects(history, f"{NAME} request: chat_history") if isinstance(history, list) else []
    messages = [_read_entry(entry) for entry in entries]
    answered = isinstance(results, list) and all(isinstance(result, dict) for result in results) and bool(results)
    if said or not answered:
        messages.append({"role": "user", "parts": [{"type": "text", "content": said}]})
    if answered:
        messages.append({"role": "tool", "parts": [_read_result(result) for result in results or ()]})
    request = Request(
        operation=operation,
        model=wire["model"] if isinstance(wire.get("model"), str) else None,
        messages=tuple(messages),
        instructions=({"type": "text", "content": preamble},) if isinstance(preamble, str) else (),
        tools=tuple(map(_read_tool, tools)) if isinstance(tools, list) else (),
        settings={setting: wire[field] for setting, field in _SETTINGS.items() if field in wire},
        stream=wire.get("stream") is True,
    )
    return replace(request, provider_fields=residue(wire, _write(request)))


def write_request(request: Request) -> bytes:
    """Write a request."""
    return write_json(_write(request))


def read_response(body: bytes, status: int) -> Answer:
    """Read a plain answer, or a failure."""
    if status >= 400:
        return read_error(body, status, write_failure)
    return replace(read_body(parse_object(body, f"{NAME} response")), status=status)


def write_response(answer: Answer) -> bytes:
    """Write a plain answer, or a failure."""
    return write_error(answer, write_failure) if answer.status >= 400 else write_json(write_body(answer))


def _write(request: Request) -> dict[str, Json]:
    wire: dict[str, Json] = {} if request.model is None else {"model": request.model}
    messages = list(request.messages)
    results = messages.pop() if messages and messages[-1].get("role") == "tool" else None
    asked = messages.pop() if messages and messages[-1].get("role") == "user" else None
    wire["message"] = _text(asked) if asked is not None else ""
    if messages:
        wire["chat_history"] = [_write_entry(message) for message in messages]
    if results is not None:
        wire["tool_results"] = [_write_result(part) for part in results.get("parts") or []]
    if request.instructions:
        wire["preamble"] = _text({"parts": list(request.instructions)})
    if request.tools:
        wire["tools"] = [_write_tool(tool) for tool in request.tools]
    wire |= {field: request.settings[setting] for setting, field in _SETTINGS.items() if setting in request.settings}
    if request.stream:
        wire["stream"] = True
    # What was kept must not beat what has been put in since.
    carried = {"stream": request.stream, "tools": request.tools}
    return overlay(wire, {key: value for key, value in request.provider_fields.items() if not carried.get(key)})


def _read_entry(wire: Json) -> Message:
    """An entry of the history."""
    assert isinstance(wire, dict)
    role = _READ_ROLES.get(str(wire.get("role")).upper(), "user")
    text, calls, results = wire.get("message"), wire.get("tool_calls"), wire.get("tool_results")
    parts: list[dict[str, Any]] = []
    if isinstance(text, str) and text:
        parts.append({"type": "text", "content": text})
    if isinstance(calls, list) and all(isinstance(call, dict) for call in calls):
        parts += map(read_call, calls)
    if isinstance(results, list) and all(isinstance(result, dict) for result in results):
        parts += map(_read_result, results)
    message: Message = {"role": role, "parts": parts}
    return keep(message, residue(wire, _write_entry(message)))


def _write_entry(message: Message) -> dict[str, Json]:
    parts = message.get("parts") or []
    wire: dict[str, Json] = {"role": _ROLES.get(str(message.get("role")), "USER")}
    if any(part.get("type") in ("text", "refusal") for part in parts):
        wire["message"] = _text(message)
    calls = [write_call(part) for part in parts if part.get("type") == "tool_call"]
    results = [_write_result(part) for part in parts if part.get("type") == "tool_call_response"]
    if calls:
        wire["tool_calls"] = calls
    if results:
        wire["tool_results"] = results
    return overlay(wire, kept(message))


def _text(message: Mapping[str, Any]) -> str:
    parts = message.get("parts") or []
    return "".join(str(part.get("content") or "") for part in parts if part.get("type") in ("text", "refusal"))


def _read_result(wire: Mapping[str, Json]) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "tool_call_response", "response": wire.get("outputs")}
    return keep(part, residue(wire, _write_result(part)))


def _write_result(part: Mapping[str, Json]) -> dict[str, Json]:
    response = part.get("response")
    listed = response is None or (isinstance(response, list) and all(isinstance(one, dict) for one in response))
    return overlay({"call": {}, "outputs": response if listed else [{"result": response}]}, kept(part))


def _read_tool(wire: Json) -> ToolDefinition:
    if not isinstance(wire, dict) or not isinstance(wire.get("name"), str):
        return read_own(wire)
    tool: ToolDefinition = {"type": "function", "name": wire["name"]}
    if wire.get("description") is not None:
        tool["description"] = wire["description"]
    if isinstance(wire.get("parameter_definitions"), dict):
        tool["parameters"] = {"type": "object", "properties": wire["parameter_definitions"]}
    written = _write_tool(tool)
    assert isinstance(written, dict)
    return keep(tool, residue(wire, written))


def _write_tool(tool: ToolDefinition) -> Json:
    if tool.get("type") != "function":
        return write_own(tool)
    wire: dict[str, Json] = {key: tool[key] for key in ("name", "description") if key in tool}
    parameters: Any = tool.get("parameters") or MappingProxyType({})
    if isinstance(parameters.get("properties"), dict):
        wire["parameter_definitions"] = parameters["properties"]
    return overlay(wire, kept(tool))
