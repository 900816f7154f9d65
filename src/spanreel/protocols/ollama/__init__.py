"""Ollama's chat, as its own API speaks it; streamed where a request does not say otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from spanreel.model import Answer, Json, Operation, Request
from spanreel.protocols.function_tools import read_tool, write_tool
from spanreel.protocols.message_lists import recalling, write_conversation
from spanreel.protocols.ollama.messages import read_body, read_message, write_body, write_failure, write_messages
from spanreel.protocols.ollama.stream import join, split
from spanreel.protocols.openai_errors import read_error, write_error
from spanreel.protocols.residue import objects, overlay, parse_object, residue, unexpected, write_json

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

NAME = "ollama_chat"
PROVIDER = "ollama"
PATHS: Mapping[str, Operation] = {"/api/chat": Operation.CHAT}
STREAM_TYPE = "application/x-ndjson"

_OPTIONS: Final = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "max_tokens": "num_predict",
    "stop_sequences": "stop",
    "seed": "seed",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
}
_SETTINGS: Final = {"response_format": "format", "reasoning_effort": "think"}


def read_request(body: bytes, operation: Operation) -> Request:
    """Read a request; ValueError where it is no object with a list of messages."""
    wire = parse_object(body, f"{NAME} request")
    entries, tools, options = wire.get("messages"), wire.get("tools"), wire.get("options")
    if not isinstance(entries, list):
        raise unexpected(f"{NAME} request: messages", entries, "a list")
    read = [_recall_message(entry) for entry in objects(entries, f"{NAME} request: messages")]
    settings = {setting: wire[field] for setting, field in _SETTINGS.items() if field in wire}
    if isinstance(options, dict):
        settings |= {setting: options[field] for setting, field in _OPTIONS.items() if field in options}
    request = Request(
        operation=operation,
        model=wire["model"] if isinstance(wire.get("model"), str) else None,
        messages=tuple(message for message, _ in read),
        tools=tuple(map(read_tool, tools)) if isinstance(tools, list) else (),
        settings=settings,
        stream=wire.get("stream") is not False,
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
    options = {field: request.settings[setting] for setting, field in _OPTIONS.items() if setting in request.settings}
    if options:
        wire["options"] = options
    wire |= {field: request.settings[setting] for setting, field in _SETTINGS.items() if setting in request.settings}
    wire["stream"] = request.stream
    # What was kept must not beat what has been put in since.
    rest = {key: value for key, value in request.provider_fields.items() if not (key == "tools" and request.tools)}
    return overlay(wire, rest)
