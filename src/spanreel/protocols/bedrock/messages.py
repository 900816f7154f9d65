"""Messages and tools of Bedrock's Converse, read and written: a part a block, which is named by its only field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from spanreel.model import Json, Message, ToolDefinition
from spanreel.protocols.media import read_own, write_own
from spanreel.protocols.residue import (
    keep,
    kept,
    objects,
    overlay,
    parse_object,
    residue,
    unexpected,
    write_arguments,
)

_ROLES: Final = ("user", "assistant")
FORM: Final = "$form"
"""In a part's ``provider_fields``: that a text stood in a block with what it cites."""
CITED: Final = "citationsContent"
_OWN: Final = {"server_tool_call": ("toolUse", "input"), "server_tool_call_response": ("toolResult", "content")}
"""Parts of tools that the provider runs itself: the block, and its field of what was asked or given."""
_MEDIA: Final = {"image": "image", "document": "application", "video": "video", "audio": "audio"}
"""Blocks of media, and how the types of those begin of which only the format is said."""


def read_message(wire: Json, place: str) -> Message:
    """Read one message; ``place`` names it in the ValueError raised where it is no object with a list of blocks."""
    if not isinstance(wire, dict) or not isinstance(wire.get("content"), list):
        raise unexpected(place, wire, "an object with a list of content")
    role = wire.get("role")
    parts = [read_block(block) for block in objects(wire["content"], f"{place}: content")]
    answers = bool(parts) and all(part.get("type") == "tool_call_response" for part in parts)
    known = role if isinstance(role, str) and role in _ROLES else "user"
    message: Message = {"role": "tool" if answers and known == "user" else known, "parts": parts}
    return keep(message, residue(wire, write_message(message)))


def write_message(message: Message) -> dict[str, Json]:
    """Write one message; what tools answered is said by the user here."""
    role = "assistant" if message.get("role") == "assistant" else "user"
    content = [write_block(part) for part in message.get("parts") or []]
    return overlay({"role": role, "content": content}, kept(message))


def read_block(wire: Json) -> dict[str, Any]:
    """Read one block; what is of no known form is kept as it came."""
    part = _read_known(wire) if isinstance(wire, dict) else None
    if part is None:
        return read_own(wire)
    form: dict[str, Json] = {FORM: CITED} if part["type"] == "text" and CITED in wire else {}
    part = keep(part, form)
    written = write_block(part)
    assert isinstance(wire, dict)
    assert isinstance(written, dict)
    return keep(part, {**form, **residue(wire, written)})


def write_block(part: Mapping[str, Json]) -> Json:
    """Write one part as a block."""
    kind = part.get("type")
    if kind == "text" and kept(part).get(FORM) == CITED:
        wire: dict[str, Json] = {CITED: {"content": [{"text": part.get("content")}]}}
    elif kind in ("text", "refusal"):
        wire = {"text": part.get("content")}
    elif kind == "reasoning":
        wire = {"reasoningContent": {"reasoningText": {"text": part.get("content")}}}
    elif kind == "tool_call":
        asked = {"toolUseId": part.get("id"), "name": part.get("name"), "input": _write_input(part.get("arguments"))}
        wire = {"toolUse": asked}
    elif kind == "tool_call_response":
        wire = {"toolResult": {"toolUseId": part.get("id"), "content": _write_result(part.get("response"))}}
    elif kind in _OWN and isinstance(part.get(str(kind)), dict):
        field, given = _OWN[str(kind)]
        inner: Any = part[str(kind)]
        said = {"name": part["name"]} if "name" in part else {}
        wire = {field: {"toolUseId": part.get("id"), **said, "type": inner.get("type"), given: inner.get(given)}}
    elif kind == "blob" and part.get("modality") in _MEDIA:
        name = str(part.get("mime_type") or "").rpartition("/")[2]
        wire = {str(part["modality"]): {"format": name, "source": {"bytes": part.get("content")}}}
    else:
        return write_own(dict(part))
    return overlay(wire, kept(part))


def read_tool(wire: Json) -> ToolDefinition:
    """Read a tool definition; one that is no function is kept as it came."""
    spec = wire.get("toolSpec") if isinstance(wire, dict) else None
    if not isinstance(wire, dict) or not isinstance(spec, dict):
        return read_own(wire)
    tool: ToolDefinition = {"type": "function", "name": spec.get("name")}
    if spec.get("description") is not None:
        tool["description"] = spec["description"]
    schema = spec.get("inputSchema")
    if isinstance(schema, dict) and schema.get("json") is not None:
        tool["parameters"] = schema["json"]
    written = write_tool(tool)
    assert isinstance(written, dict)
    return keep(tool, residue(wire, written))


def write_tool(tool: ToolDefinition) -> Json:
    """Write a tool definition."""
    if tool.get("type") != "function":
        return write_own(tool)
    spec: dict[str, Json] = {key: tool[key] for key in ("name", "description") if key in tool}
    if "parameters" in tool:
        spec["inputSchema"] = {"json": tool["parameters"]}
    return overlay({"toolSpec": spec}, kept(tool))


def _read_known(wire: Mapping[str, Json]) -> dict[str, Any] | None:
    match wire:
        case {"text": str() as text}:
            return {"type": "text", "content": text}
        case {"citationsContent": {"content": [{"text": str() as text}]}}:
            return {"type": "text", "content": text}
        case {"toolUse": {"type": str() as own} as asked}:
            inner = {"type": own, "input": asked.get("input")}
            identity, name = asked.get("toolUseId"), asked.get("name")
            return {"type": "server_tool_call", "id": identity, "name": name, "server_tool_call": inner}
        case {"toolResult": {"type": str() as own} as given}:
            inner = {"type": own, "content": given.get("content")}
            identity = given.get("toolUseId")
            return {"type": "server_tool_call_response", "id": identity, "server_tool_call_response": inner}
        case {"toolUse": dict() as asked}:
            return {
                "type": "tool_call",
                "id": asked.get("toolUseId"),
                "name": asked.get("name"),
                "arguments": asked.get("input"),
            }
        case {"toolResult": dict() as given}:
            return {"type": "tool_call_response", "id": given.get("toolUseId"), "response": given.get("content")}
        case {"reasoningContent": {"reasoningText": {"text": str() as text}}}:
            return {"type": "reasoning", "content": text}
        case {"reasoningContent": {"redactedContent": str()}}:
            return {"type": "reasoning", "content": ""}
    for name, kind in _MEDIA.items():
        match wire.get(name):
            case {"format": str() as form, "source": {"bytes": str() as data}}:
                return {"type": "blob", "modality": name, "mime_type": f"{kind}/{form}", "content": data}
    return None


def _write_input(arguments: Json) -> Json:
    """Arguments as a block's input, which is an object: their text only where it is no object's."""
    if not isinstance(arguments, str):
        return {} if arguments is None else arguments
    try:
        return parse_object(arguments, "arguments")
    except ValueError:
        return arguments


def _write_result(response: Json) -> Json:
    """What a tool answered as blocks, as it came or as one text."""
    if isinstance(response, list) and all(isinstance(block, dict) for block in response):
        return response
    return [{"text": response if isinstance(response, str) else write_arguments(response)}]
