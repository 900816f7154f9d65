"""Bedrock's Converse. Model and streaming are said by the path; a stream is in Amazon's event stream encoding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from spanreel.model import Answer, Json, Operation, Request
from spanreel.protocols.bedrock.answers import read_body, write_body, write_failure
from spanreel.protocols.bedrock.messages import (
    read_block,
    read_message,
    read_tool,
    write_block,
    write_message,
    write_tool,
)
from spanreel.protocols.bedrock.stream import join, split
from spanreel.protocols.openai_errors import read_error, write_error
from spanreel.protocols.recalling import Recalling
from spanreel.protocols.residue import objects, overlay, parse_object, residue, same, unexpected, write_json

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

NAME = "bedrock_converse"
PROVIDER = "aws.bedrock"
PATHS: Mapping[str, Operation] = {"/converse": Operation.CHAT, "/converse-stream": Operation.CHAT}
STREAM_TYPE = "application/vnd.amazon.eventstream"

_CONFIG: Final = {
    "temperature": "temperature",
    "top_p": "topP",
    "max_tokens": "maxTokens",
    "stop_sequences": "stopSequences",
}


def read_request(body: bytes, operation: Operation) -> Request:
    """Read a request; ValueError where it is no object with a list of messages."""
    wire = parse_object(body, f"{NAME} request")
    entries, system, config, tools = (
        wire.get(name) for name in ("messages", "system", "inferenceConfig", "toolConfig")
    )
    if not isinstance(entries, list):
        raise unexpected(f"{NAME} request: messages", entries, "a list")
    read = [_recall_message(entry) for entry in objects(entries, f"{NAME} request: messages")]
    settings: dict[str, Json] = {}
    if isinstance(config, dict):
        settings |= {setting: config[field] for setting, field in _CONFIG.items() if field in config}
    if isinstance(tools, dict) and "toolChoice" in tools:
        settings["tool_choice"] = tools["toolChoice"]
    listed = tools.get("tools") if isinstance(tools, dict) else None
    request = Request(
        operation=operation,
        model=None,
        messages=tuple(message for message, _ in read),
        instructions=tuple(map(read_block, system)) if isinstance(system, list) else (),
        tools=tuple(map(read_tool, listed)) if isinstance(listed, list) else (),
        settings=settings,
    )
    known: dict[str, Json] = {"messages": entries} if all(exact for _, exact in read) else {}
    return replace(request, provider_fields=residue(wire, _write(request, known)))


_recall_message: Final = Recalling(
    lambda entry: read_message(entry, f"{NAME} request: a message"),
    lambda entry, message: same(write_message(message), entry),
)


def write_request(request: Request) -> bytes:
    """Write a request; what the path says of it is not in it."""
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
    system = [*request.instructions]
    entries: list[Json] = []
    for message in request.messages:
        if message.get("role") == "system":
            system += message.get("parts") or []
        elif "messages" not in known:
            entries.append(write_message(message))
    wire: dict[str, Json] = {"messages": known.get("messages", entries)}
    if system:
        wire["system"] = [write_block(part) for part in system]
    config = {field: request.settings[setting] for setting, field in _CONFIG.items() if setting in request.settings}
    if config:
        wire["inferenceConfig"] = config
    tools: dict[str, Json] = {"tools": [write_tool(tool) for tool in request.tools]} if request.tools else {}
    if "tool_choice" in request.settings:
        tools["toolChoice"] = request.settings["tool_choice"]
    if tools:
        wire["toolConfig"] = tools
    return overlay(wire, request.provider_fields)
