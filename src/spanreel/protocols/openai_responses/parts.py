"""Parts of messages and tool definitions in the form of OpenAI responses, read and written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spanreel.model import Json, ToolDefinition
from spanreel.protocols.media import OTHER, read_audio, read_own, read_url, write_audio, write_own, write_url
from spanreel.protocols.residue import keep, kept, overlay, residue

_TEXT_TYPES = ("input_text", "output_text", "text")


def read_content(wire: Json, role: str) -> dict[str, Any]:
    """Read one entry of a message's content; what is of no known form is kept as it came."""
    part = _read_known(wire) if isinstance(wire, dict) else None
    if part is None:
        return read_own(wire)
    return keep(part, residue(wire, write_content(part, role)))


def write_content(part: dict[str, Json], role: str) -> Json:
    """Write one part as an entry of the content of a message of this role."""
    kind, modality = part.get("type"), part.get("modality")
    if kind == "text" and role == "assistant":
        wire: dict[str, Json] = {"type": "output_text", "text": part.get("content"), "annotations": []}
    elif kind == "text":
        wire = {"type": "input_text", "text": part.get("content")}
    elif kind == "refusal":
        wire = {"type": "refusal", "refusal": part.get("content")}
    elif kind == "blob" and modality == "audio":
        wire = {"type": "input_audio", "input_audio": write_audio(part)}
    elif kind in ("blob", "uri", "file"):
        wire = _write_media(part)
    else:
        return write_own(part)
    return overlay(wire, kept(part))


def read_tool(wire: Json) -> ToolDefinition:
    """Read a tool definition; one that is no function is kept as it came."""
    if not isinstance(wire, dict) or wire.get("type") != "function":
        return read_own(wire)
    if not isinstance(wire.get("name"), str):
        return {"type": OTHER, "value": wire}
    tool: ToolDefinition = {"type": "function", "name": wire["name"]}
    for key in ("description", "parameters"):
        if wire.get(key) is not None:
            tool[key] = wire[key]
    return keep(tool, residue(wire, write_tool(tool)))


def write_tool(tool: ToolDefinition) -> Json:
    """Write a tool definition."""
    if tool.get("type") != "function":
        return write_own(tool)
    wire: dict[str, Json] = {key: tool[key] for key in ("type", "name", "description", "parameters") if key in tool}
    return overlay(wire, kept(tool))


def _read_known(wire: Mapping[str, Json]) -> dict[str, Any] | None:
    kind = wire.get("type")
    if kind in _TEXT_TYPES and isinstance(wire.get("text"), str):
        return {"type": "text", "content": wire["text"]}
    if kind == "refusal" and isinstance(wire.get("refusal"), str):
        return {"type": "refusal", "content": wire["refusal"]}
    if kind == "input_image":
        return _read_media(wire, "image", "image_url")
    if kind == "input_file":
        return _read_media(wire, "document", "file_data", "file_url")
    audio = wire.get("input_audio") if kind == "input_audio" else None
    if isinstance(audio, dict) and isinstance(audio.get("data"), str) and isinstance(audio.get("format"), str):
        return read_audio(audio["data"], audio["format"])
    return None


def _read_media(wire: Mapping[str, Json], modality: str, *fields: str) -> dict[str, Any] | None:
    url = next((wire[field] for field in fields if isinstance(wire.get(field), str)), None)
    if url is not None:
        return read_url(url, modality)
    if isinstance(wire.get("file_id"), str):
        return {"type": "file", "modality": modality, "file_id": wire["file_id"]}
    return None


def _write_media(part: dict[str, Json]) -> dict[str, Json]:
    image = part.get("modality") == "image"
    kind = "input_image" if image else "input_file"
    if part.get("type") == "file":
        return {"type": kind, "file_id": part.get("file_id")}
    field = "image_url" if image else "file_data" if part.get("type") == "blob" else "file_url"
    return {"type": kind, field: write_url(part)}
