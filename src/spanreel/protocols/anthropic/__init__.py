"""Anthropic messages, as Anthropic, Vertex and some gateways speak them; the beta paths are the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from spanreel.model import Answer, Json, Operation, Request
from spanreel.protocols.anthropic.answers import read_body, write_body, write_failure
from spanreel.protocols.anthropic.blocks import FREE
from spanreel.protocols.anthropic.messages import (
    FORM,
    read_content,
    read_message,
    read_tool,
    write_content,
    write_message,
    write_tool,
)
from spanreel.protocols.anthropic.stream import join, split
from spanreel.protocols.openai_errors import read_error, write_error
from spanreel.protocols.recalling import Recalling
from spanreel.protocols.residue import objects, overlay, parse_object, residue, same, unexpected, write_json
from spanreel.protocols.shaped import Shaped, said
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

NAME = "anthropic_messages"
PROVIDER = "anthropic"
PATHS: Mapping[str, Operation] = {"/v1/messages": Operation.CHAT}

SYSTEM: Final = "$system"
"""In a request's ``provider_fields``: ``list`` where instructions that are one text stood as a list of blocks."""

_SETTINGS: Final = (
    "temperature",
    "top_p",
    "top_k",
    "max_tokens",
    "stop_sequences",
    "tool_choice",
    "service_tier",
)
_INNER_SETTINGS: Final = {
    "reasoning_effort": ("output_config", "effort"),
    "response_format": ("output_config", "format"),
    "previous_response_id": ("thread", "previous_message_id"),
}


def read_request(body: bytes, operation: Operation) -> Request:
    """Read a request; ValueError where it is no object with a list of messages."""
    wire = parse_object(body, f"{NAME} request")
    entries, tools = wire.get("messages"), wire.get("tools")
    if not isinstance(entries, list):
        raise unexpected(f"{NAME} request: messages", entries, "a list")
    read = [_recall_message(entry) for entry in objects(entries, f"{NAME} request: messages")]
    offered = [_recall_tool(entry) for entry in tools] if isinstance(tools, list) else []
    request = Request(
        operation=operation,
        model=None,
        messages=tuple([message for message, _ in read]),
        tools=tuple([tool for tool, _ in offered]),
    )
    known: dict[str, Json] = {"messages": entries} if all(exact for _, exact in read) else {}
    if all(exact for _, exact in offered):
        known["tools"] = tools
    if len(known) < 2:
        return _read_rest(wire, request, known)
    around = {**wire, "messages": []}
    if offered:
        del around["tools"]
    return replace(_recall_rest(around), operation=operation, messages=request.messages, tools=request.tools)


def _read_rest(wire: dict[str, Json], request: Request, known: Mapping[str, Json]) -> Request:
    """The request with what is said beside its messages and tools; ``known`` are those that are written as they are."""
    instructions, form = read_content(wire.get("system"))
    forms: dict[str, Json] = {SYSTEM: form[FORM]} if form else {}
    request = replace(
        request,
        model=wire["model"] if isinstance(wire.get("model"), str) else None,
        instructions=tuple(instructions),
        settings=_read_settings(wire),
        stream=wire.get("stream") is True,
        provider_fields=forms,
    )
    return replace(request, provider_fields={**forms, **residue(wire, _write(request, known))})


_recall_message: Final = Recalling(
    lambda entry: read_message(entry, f"{NAME} request: a message"),
    lambda entry, message: same(write_message(message), entry),
    FREE,
)
_recall_rest: Final = Shaped(
    lambda wire: _read_rest(wire, Request(Operation.CHAT, None), {}), said("system", "text", "user_id")
)
_recall_tool: Final = Recalling(read_tool, lambda entry, tool: same(write_tool(tool), entry))


def write_request(request: Request) -> bytes:
    """Write a request."""
    return write_json(_write(request))


def read_response(body: bytes, status: int) -> Answer:
    """Read a plain answer, or a failure."""
    if status >= 400:
        return read_error(body, status, write_failure)
    answer = read_body(parse_object(body, f"{NAME} response"))
    return answer if answer.status == status else replace(answer, status=status)


def write_response(answer: Answer) -> bytes:
    """Write a plain answer, or a failure."""
    return write_error(answer, write_failure) if answer.status >= 400 else write_json(write_body(answer))


def _read_settings(wire: Mapping[str, Json]) -> dict[str, Json]:
    settings = {name: wire[name] for name in _SETTINGS if name in wire}
    for name, (outer, inner) in _INNER_SETTINGS.items():
        if isinstance(wire.get(outer), dict) and inner in wire[outer]:
            settings[name] = wire[outer][inner]
    return settings


def _write(request: Request, known: Mapping[str, Json] = MappingProxyType({})) -> dict[str, Json]:
    """The request as JSON; ``known`` are its messages and its tools where it is known how they are written."""
    wire: dict[str, Json] = {} if request.model is None else {"model": request.model}
    if request.instructions:
        forms = {FORM: request.provider_fields.get(SYSTEM)}
        wire["system"] = write_content(request.instructions, forms)
    wire["messages"] = known["messages"] if "messages" in known else list(map(write_message, request.messages))
    if request.tools:
        wire["tools"] = known["tools"] if "tools" in known else list(map(write_tool, request.tools))
    wire |= {name: request.settings[name] for name in _SETTINGS if name in request.settings}
    for name, (outer, inner) in _INNER_SETTINGS.items():
        if name in request.settings:
            wire.setdefault(outer, {})[inner] = request.settings[name]
    if request.stream:
        wire["stream"] = True
    # What was kept must not beat what has been put in since.
    carried = {"stream": request.stream, "tools": request.tools, "system": request.instructions}
    return overlay(wire, {key: value for key, value in request.provider_fields.items() if not carried.get(key)})
