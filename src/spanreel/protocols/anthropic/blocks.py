"""Content blocks of Anthropic messages, read into parts and written: a part a block, always."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from spanreel.model import Json
from spanreel.protocols.media import read_own, write_own
from spanreel.protocols.residue import keep, kept, overlay, parse_object, residue, same, write_arguments
from spanreel.protocols.shaped import Free, said

SERVER_CALLS: Final = ("server_tool_use", "mcp_tool_use")
"""Blocks of tool calls that the provider executes; what comes of them stands in blocks of ``SERVER_RESULT``."""
SERVER_RESULT: Final = "_tool_result"

FREE: Final = {
    **said("text", "content", "thinking", "signature", "data", "id", "tool_use_id"),
    "input": Free.OBJECT,
}
"""What stands in messages and blocks and is handed through as it is."""

_MEDIA: Final = ("image", "document")


def read_block(wire: Json) -> dict[str, Any]:
    """Read one block; what is of no known form is kept as it came."""
    part = _read_known(wire) if isinstance(wire, dict) else None
    if part is None:
        return read_own(wire)
    return keep(part, {**kept(part), **residue(wire, write_block(part))})


def write_block(part: Mapping[str, Json]) -> Json:
    """Write one part as a block; a refusal of another provider's is text here."""
    kind = part.get("type")
    rest: Mapping[str, Json] = kept(part)
    if kind in ("text", "refusal"):
        wire: dict[str, Json] = {"type": "text", "text": part.get("content")}
    elif kind == "reasoning":
        wire = _write_reasoning(part, rest)
    elif kind == "tool_call":
        arguments = part.get("arguments")
        wire = {"type": "tool_use", "id": part.get("id"), "name": part.get("name"), "input": write_input(arguments)}
        rest = _while_true(rest, "input", arguments)
    elif kind == "tool_call_response":
        response = part.get("response")
        wire = {"type": "tool_result", "tool_use_id": part.get("id"), "content": _write_response(response)}
        rest = _while_true(rest, "content", response)
    elif kind == "server_tool_call":
        wire = _write_server_call(part)
    elif kind == "server_tool_call_response" and isinstance(part.get("server_tool_call_response"), dict):
        inner = part["server_tool_call_response"]
        wire = {"type": None, "tool_use_id": part.get("id"), **inner}
    elif kind in ("blob", "uri", "file"):
        wire = _write_media(part)
    else:
        return write_own(dict(part))
    return overlay(wire, rest)


def read_input(part: Mapping[str, Json]) -> Json:
    """What a part that is a tool call, the client's or the provider's, is called with; None for all others."""
    if part.get("type") == "tool_call":
        return part.get("arguments")
    inner = part.get("server_tool_call")
    return inner.get("input") if isinstance(inner, dict) else None


def write_input(arguments: Json) -> Json:
    """Arguments as a block's input, which is an object: their text only where it is no object's."""
    if arguments is None:
        return {}
    if not isinstance(arguments, str):
        return arguments
    try:
        return parse_object(arguments, "arguments")
    except ValueError:
        return arguments


def _read_known(wire: Mapping[str, Json]) -> dict[str, Any] | None:
    kind = wire.get("type")
    if not isinstance(kind, str):
        return None
    if kind == "text" and isinstance(wire.get("text"), str):
        return {"type": "text", "content": wire["text"]}
    if kind == "thinking" and isinstance(wire.get("thinking"), str):
        return {"type": "reasoning", "content": wire["thinking"]}
    if kind == "redacted_thinking":
        return {"type": "reasoning", "content": "", "provider_fields": {"type": kind}}
    if kind == "tool_use":
        return {"type": "tool_call", "id": wire.get("id"), "name": wire.get("name"), "arguments": wire.get("input")}
    if kind == "tool_result":
        return {"type": "tool_call_response", "id": wire.get("tool_use_id"), "response": wire.get("content")}
    if kind in SERVER_CALLS:
        asked = {key: wire[key] for key in ("type", "input") if key in wire}
        return {"type": "server_tool_call", "id": wire.get("id"), "name": wire.get("name"), "server_tool_call": asked}
    if kind.endswith(SERVER_RESULT) and "tool_use_id" in wire:
        result = {key: wire[key] for key in ("type", "content") if key in wire}
        return {"type": "server_tool_call_response", "id": wire["tool_use_id"], "server_tool_call_response": result}
    return _read_media(wire, kind) if kind in _MEDIA else None


def _read_media(wire: Mapping[str, Json], modality: str) -> dict[str, Any] | None:
    """An image or document by its source; one whose source is text, or content of its own, is no medium."""
    source = wire.get("source")
    if not isinstance(source, dict):
        return None
    match source.get("type"):
        case "base64" if isinstance(source.get("data"), str):
            mime_type = source.get("media_type")
            return {"type": "blob", "modality": modality, "mime_type": mime_type, "content": source["data"]}
        case "url" if isinstance(source.get("url"), str):
            return {"type": "uri", "modality": modality, "uri": source["url"]}
        case "file" if isinstance(source.get("file_id"), str):
            return {"type": "file", "modality": modality, "file_id": source["file_id"]}
    return None


def _write_media(part: Mapping[str, Json]) -> dict[str, Json]:
    kind = "image" if part.get("modality") == "image" else "document"
    if part.get("type") == "blob":
        source = {"type": "base64", "media_type": part.get("mime_type"), "data": part.get("content")}
    elif part.get("type") == "uri":
        source = {"type": "url", "url": part.get("uri")}
    else:
        source = {"type": "file", "file_id": part.get("file_id")}
    return {"type": kind, "source": source}


def _write_reasoning(part: Mapping[str, Json], rest: Mapping[str, Json]) -> dict[str, Json]:
    if rest.get("type") == "redacted_thinking":
        return {"type": "redacted_thinking"}
    return {"type": "thinking", "thinking": part.get("content") or "", "signature": ""}


def _write_response(response: Json) -> Json:
    if response is None:
        return ""
    return response if isinstance(response, str | list) else write_arguments(response)


def _write_server_call(part: Mapping[str, Json]) -> dict[str, Json]:
    """A call that the provider executes; of another provider's, whatever it holds is the input."""
    inner = part.get("server_tool_call")
    wire: dict[str, Json] = {"type": SERVER_CALLS[0], "id": part.get("id"), "name": part.get("name")}
    if isinstance(inner, dict) and inner.get("type") in SERVER_CALLS:
        return wire | inner
    return {**wire, "input": inner}


def _while_true(rest: Mapping[str, Json], field: str, value: Json) -> Mapping[str, Json]:
    """What was kept, without a field that says another value than the part by now."""
    if field not in rest or same(rest[field], value):
        return rest
    return {key: known for key, known in rest.items() if key != field}
