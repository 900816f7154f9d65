"""OpenAI responses, as OpenAI, Azure and some gateways speak them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from spanreel.model import Answer, Json, Message, Operation, Request
from spanreel.protocols.openai_errors import read_error, write_error
from spanreel.protocols.openai_responses.answers import read_body, write_body
from spanreel.protocols.openai_responses.conversation import read_input, write_input
from spanreel.protocols.openai_responses.parts import read_tool, write_tool
from spanreel.protocols.openai_responses.stream import join, split
from spanreel.protocols.recalling import Recalling
from spanreel.protocols.residue import kept, overlay, parse_object, residue, same, unexpected, write_json
from spanreel.protocols.sse import STREAM_TYPE

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

NAME = "openai_responses"
PROVIDER = "openai"
PATHS: Mapping[str, Operation] = {"/responses": Operation.CHAT}

FORMS: Final = "$forms"
"""In a request's ``provider_fields``: what stood in another form than we would write."""

_SETTINGS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_tokens": "max_output_tokens",
    "tool_choice": "tool_choice",
    "parallel_tool_calls": "parallel_tool_calls",
    "service_tier": "service_tier",
    "previous_response_id": "previous_response_id",
    "conversation_id": "conversation",
}
_INNER_SETTINGS = {"reasoning_effort": ("reasoning", "effort"), "response_format": ("text", "format")}
_ONE_OF = ("input", "prompt", "instructions", "previous_response_id", "conversation")


def read_request(body: bytes, operation: Operation) -> Request:
    """Read a request; ValueError where it asks for nothing, or its input is neither text nor a list of objects."""
    wire = parse_object(body, f"{NAME} request")
    if not any(key in wire for key in _ONE_OF):
        raise ValueError(f"{NAME} request: none of {', '.join(_ONE_OF)} is in it")
    entries, instructions, tools = wire.get("input"), wire.get("instructions"), wire.get("tools")
    settings, forms = _read_settings(wire)
    messages: tuple[Message, ...] = ()
    known: dict[str, Json] = {}
    if isinstance(entries, str):
        messages = ({"role": "user", "parts": [{"type": "text", "content": entries}]},)
        forms["input"] = "text"
    elif isinstance(entries, list):
        messages, exact = read_input(entries, f"{NAME} request: input")
        known = {"input": entries} if exact else {}
    elif entries is not None:
        raise unexpected(f"{NAME} request: input", entries, "text or a list")
    offered = [_recall_tool(entry) for entry in tools] if isinstance(tools, list) else []
    if all(exact for _, exact in offered):
        known["tools"] = tools
    request = Request(
        operation=operation,
        model=wire["model"] if isinstance(wire.get("model"), str) else None,
        messages=messages,
        instructions=({"type": "text", "content": instructions},) if isinstance(instructions, str) else (),
        tools=tuple(tool for tool, _ in offered),
        settings=settings,
        stream=wire.get("stream") is True,
        provider_fields={FORMS: forms} if forms else {},
    )
    rest = residue(wire, _write(request, known))
    return replace(request, provider_fields={**request.provider_fields, **rest})


_recall_tool: Final = Recalling(read_tool, lambda entry, tool: same(write_tool(tool), entry))


def write_request(request: Request) -> bytes:
    """Write a request."""
    return write_json(_write(request))


def read_response(body: bytes, status: int) -> Answer:
    """Read a plain answer, or a failure."""
    if status >= 400:
        return read_error(body, status)
    answer = read_body(parse_object(body, f"{NAME} response"))
    return answer if answer.status == status else replace(answer, status=status)


def write_response(answer: Answer) -> bytes:
    """Write a plain answer, or a failure."""
    return write_error(answer) if answer.status >= 400 else write_json(write_body(answer))


def _read_settings(wire: Mapping[str, Json]) -> tuple[dict[str, Json], dict[str, Json]]:
    settings = {setting: wire[field] for setting, field in _SETTINGS.items() if field in wire}
    forms: dict[str, Json] = {}
    for setting, (outer, inner) in _INNER_SETTINGS.items():
        if isinstance(wire.get(outer), dict) and inner in wire[outer]:
            settings[setting] = wire[outer][inner]
    conversation = settings.get("conversation_id")
    if isinstance(conversation, dict) and list(conversation) == ["id"]:
        settings["conversation_id"] = conversation["id"]
        forms["conversation_id"] = "object"
    return settings, forms


def _write(request: Request, known: Mapping[str, Json] = MappingProxyType({})) -> dict[str, Json]:
    """The request as JSON; ``known`` are its input and its tools where it is known how they are written."""
    forms = request.provider_fields.get(FORMS)
    forms = forms if isinstance(forms, dict) else {}
    wire: dict[str, Json] = {} if request.model is None else {"model": request.model}
    if request.instructions:
        wire["instructions"] = "\n\n".join(str(part.get("content")) for part in request.instructions)
    wire["input"] = known["input"] if "input" in known else _write_messages(request, forms)
    if request.tools:
        wire["tools"] = known["tools"] if "tools" in known else list(map(write_tool, request.tools))
    wire |= {field: request.settings[setting] for setting, field in _SETTINGS.items() if setting in request.settings}
    if "conversation" in wire and forms.get("conversation_id") == "object":
        wire["conversation"] = {"id": wire["conversation"]}
    for setting, (outer, inner) in _INNER_SETTINGS.items():
        if setting in request.settings:
            wire[outer] = {inner: request.settings[setting]}
    if request.stream:
        wire["stream"] = True
    # What was kept must not beat what has been put in since.
    carried = {
        "stream": request.stream,
        "tools": request.tools,
        "instructions": request.instructions,
        "input": request.messages,
    }
    return overlay(wire, {key: value for key, value in request.provider_fields.items() if not carried.get(key)})


def _write_messages(request: Request, forms: Mapping[str, Json]) -> Json:
    if forms.get("input") == "text" and len(request.messages) == 1:
        parts = request.messages[0].get("parts") or []
        if len(parts) == 1 and parts[0].get("type") == "text" and not kept(parts[0]):
            return parts[0].get("content")
    return write_input(request.messages)
