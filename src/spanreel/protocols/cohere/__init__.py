"""Cohere's chat, second version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from spanreel.model import Answer, Json, Operation, Request
from spanreel.protocols.cohere.answers import read_body, write_body, write_failure
from spanreel.protocols.cohere.messages import read_message, write_messages
from spanreel.protocols.cohere.stream import join, split
from spanreel.protocols.function_tools import read_tool, write_tool
from spanreel.protocols.message_lists import recalling, write_conversation
from spanreel.protocols.openai_errors import read_error, write_error
from spanreel.protocols.residue import objects, overlay, parse_object, residue, unexpected, write_json
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

NAME = "cohere_chat"
PROVIDER = "cohere"
PATHS: Mapping[str, Operation] = {"/v2/chat": Operation.CHAT}

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
    "tool_choice": "tool_choice",
}


def read_request(body: bytes, operation: Operation) -> Request:
    """Read a request; ValueError where it is no object with a list of messages."""
    wire = parse_object(body, f"{NAME} request")
    entries, tools = wire.get("messages"), wire.get("tools")
    if not isinstance(entries, list):
        raise unexpected(f"{NAME} request: messages", entries, "a list")
    read = [_recall_message(entry) for entry in objects(entries, f"{NAME} request: messages")]
    request = Request(
        operation=operation,
        model=wire["model"] if isinstance(wire.get("model"), str) else None,
        messages=tuple(message for message, _ in read),
        tools=tuple(map(read_tool, tools)) if isinstance(tools, list) else (),
        settings={setting: wire[field] for setting, field in _SETTINGS.items() if field in wire},
        stream=wire.get("stream") is True,
    )
    known: dict[str, Json] = {"messages": entries} if all(exact for _, exact in read) else {}
    return replace(request, provider_fields=residue(wire, _write(request, known)))


_recall_message: Final = recalling(read_message, write_messages, NAME)


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


def _write(request: Request, known: Mapping[str, Json] = MappingProxyType({})) -> dict[str, Json]:
    """The request as JSON; ``known`` are its messages where it is known how they are written."""
    wire: dict[str, Json] = {} if request.model is None else {"model": request.model}
    wire["messages"] = known["messages"] if "messages" in known else write_conversation(request, write_messages)
    if request.tools:
        wire["tools"] = [write_tool(tool) for tool in request.tools]
    wire |= {field: request.settings[setting] for setting, field in _SETTINGS.items() if setting in request.settings}
    if request.stream:
        wire["stream"] = True
    # What was kept must not beat what has been put in since.
    carried = {"stream": request.stream, "tools": request.tools}
    return overlay(wire, {key: value for key, value in request.provider_fields.items() if not carried.get(key)})
