"""Parts of Gemini's contents, read and written: a part a part, always; and contents and function declarations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from spanreel.model import Json, Message, ToolDefinition
from spanreel.protocols.gemini.spelling import SPELLED, respell, spell_again
from spanreel.protocols.media import read_own, write_own
from spanreel.protocols.residue import keep, kept, overlay, residue, unexpected

FORM: Final = "$form"
"""Of what a function gave: ``result`` or ``output`` where it stood under that name, as SDKs put what is no object."""
SCHEMA: Final = "$schema_field"
"""The field that a declaration's parameters stood in, where it is not the first of `SCHEMA_FIELDS`."""
SCHEMA_FIELDS: Final = ("parameters", "parametersJsonSchema", "parameters_json_schema")

_OWN: Final = {
    "server_tool_call": ("executableCode", "toolCall"),
    "server_tool_call_response": ("codeExecutionResult", "toolResponse"),
}
"""Parts of tools that Google runs itself, and the fields that these are."""
_WRAPPED: Final = ("result", "output")
_MODALITIES: Final = ("image", "audio", "video")


def read_part(wire: Json) -> dict[str, Any]:
    """Read one part; what is of no known form is kept as it came."""
    if not isinstance(wire, dict):
        return read_own(wire)
    told, spelled = respell(wire)
    part = _read_known(told)
    if part is None:
        return read_own(wire)
    forms = {**kept(part), SPELLED: spelled} if spelled else kept(part)
    part = keep(part, forms)
    return keep(part, {**forms, **residue(wire, write_part(part))})


def write_part(part: Mapping[str, Json]) -> Json:
    """Write one part; a refusal of another provider's is text here."""
    kind = part.get("type")
    if kind in ("text", "refusal"):
        wire: dict[str, Json] = {"text": part.get("content")}
    elif kind == "reasoning":
        wire = {"text": part.get("content"), "thought": True}
    elif kind == "tool_call":
        wire = {"functionCall": _write_call(part)}
    elif kind == "tool_call_response":
        wire = {"functionResponse": _write_result(part)}
    elif kind in _OWN and (own := _own(part, str(kind))) is not None:
        wire = own
    elif kind == "blob":
        wire = {"inlineData": {"mimeType": part.get("mime_type"), "data": part.get("content")}}
    elif kind == "uri":
        wire = {"fileData": {"mimeType": part.get("mime_type"), "fileUri": part.get("uri")}}
    else:
        return write_own(dict(part))
    return overlay(spell_again(wire, kept(part).get(SPELLED)), kept(part))


def read_content(wire: Json, place: str) -> Message:
    """Read one content; ``place`` names it in the ValueError raised where it is no object with a list of parts."""
    if not isinstance(wire, dict) or not isinstance(wire.get("parts"), list):
        raise unexpected(place, wire, "an object with a list of parts")
    parts = [read_part(part) for part in wire["parts"]]
    answers = bool(parts) and all(part["type"] == "tool_call_response" for part in parts)
    role = wire.get("role")
    message: Message = {
        "role": "tool" if answers else {"model": "assistant"}.get(str(role), "user"),
        "parts": parts,
    }
    return keep(message, residue(wire, write_content(message)))


def write_content(message: Message) -> dict[str, Json]:
    """Write one content."""
    role = "model" if message.get("role") == "assistant" else "user"
    written = [write_part(part) for part in message.get("parts") or [] if isinstance(part, dict)]
    return overlay({"role": role, "parts": written}, kept(message))


def read_declaration(wire: Mapping[str, Json]) -> ToolDefinition:
    """Read a function declaration."""
    tool: ToolDefinition = {"type": "function", "name": wire.get("name")}
    if wire.get("description") is not None:
        tool["description"] = wire["description"]
    field = next((field for field in SCHEMA_FIELDS if wire.get(field) is not None), None)
    if field is not None:
        tool["parameters"] = wire[field]
    marks = {SCHEMA: field} if field not in (None, SCHEMA_FIELDS[0]) else {}
    tool = keep(tool, marks)
    return keep(tool, {**marks, **residue(wire, write_declaration(tool))})


def write_declaration(tool: ToolDefinition) -> dict[str, Json]:
    """Write a function declaration."""
    wire: dict[str, Json] = {key: tool[key] for key in ("name", "description") if key in tool}
    if "parameters" in tool:
        field = kept(tool).get(SCHEMA)
        wire[str(field) if field in SCHEMA_FIELDS else SCHEMA_FIELDS[0]] = tool["parameters"]
    return overlay(wire, kept(tool))


def _read_known(wire: Mapping[str, Json]) -> dict[str, Any] | None:
    if isinstance(wire.get("text"), str):
        return {"type": "reasoning" if wire.get("thought") is True else "text", "content": wire["text"]}
    call, result = wire.get("functionCall"), wire.get("functionResponse")
    if isinstance(call, dict):
        identity = {"id": call["id"]} if isinstance(call.get("id"), str) else {}
        return {"type": "tool_call", **identity, "name": call.get("name"), "arguments": call.get("args")}
    if isinstance(result, dict):
        return _read_result(result)
    data, file = wire.get("inlineData"), wire.get("fileData")
    if isinstance(data, dict) and isinstance(data.get("data"), str):
        return {"type": "blob", **_kind(data), "content": data["data"]}
    if isinstance(file, dict) and isinstance(file.get("fileUri"), str):
        return {"type": "uri", **_kind(file), "uri": file["fileUri"]}
    for kind, fields in _OWN.items():
        for field in fields:
            inner = wire.get(field)
            if isinstance(inner, dict) and "type" not in inner:
                asks = {"name": inner.get("toolType", "code_execution")} if kind == "server_tool_call" else {}
                return {"type": kind, "id": inner.get("id"), **asks, kind: {"type": field, **inner}}
    return None


def _read_result(wire: Mapping[str, Json]) -> dict[str, Any]:
    response = wire.get("response")
    part: dict[str, Any] = {"type": "tool_call_response", "response": response}
    if isinstance(wire.get("id"), str):
        part["id"] = wire["id"]
    name = next(iter(response), None) if isinstance(response, dict) and len(response) == 1 else None
    if name in _WRAPPED and isinstance(response, dict):
        return keep({**part, "response": response[name]}, {FORM: name})
    return part


def _write_result(part: Mapping[str, Json]) -> dict[str, Json]:
    response, form = part.get("response"), kept(part).get(FORM)
    wire: dict[str, Json] = {} if part.get("id") is None else {"id": part["id"]}
    if form in _WRAPPED:
        response = {str(form): response}
    elif not isinstance(response, dict):
        response = {_WRAPPED[0]: response}
    return {**wire, "response": response}


def _write_call(part: Mapping[str, Json]) -> dict[str, Json]:
    wire: dict[str, Json] = {} if part.get("id") is None else {"id": part["id"]}
    return {**wire, "name": part.get("name"), "args": part.get("arguments")}


def _own(part: Mapping[str, Json], kind: str) -> dict[str, Json] | None:
    """What the provider's tool was asked, or gave, under its name; None where that is no tool of Gemini's."""
    inner = part.get(kind)
    if not isinstance(inner, dict) or inner.get("type") not in _OWN[kind]:
        return None
    return {str(inner["type"]): {name: value for name, value in inner.items() if name != "type"}}


def _kind(data: Mapping[str, Json]) -> dict[str, Json]:
    mime_type = data.get("mimeType")
    modality = mime_type.partition("/")[0] if isinstance(mime_type, str) else ""
    return {"modality": modality if modality in _MODALITIES else "document", "mime_type": mime_type}
