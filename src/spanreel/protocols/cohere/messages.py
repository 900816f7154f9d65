"""Messages of Cohere's chat, second version, read and written: content is a list of entries, or one text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from spanreel.model import Json, Message
from spanreel.protocols.media import read_own, read_url, write_own, write_url
from spanreel.protocols.message_lists import write_apart
from spanreel.protocols.residue import EXACT, keep, kept, overlay, read_arguments, residue, unexpected, write_arguments

FORM: Final = "$form"
"""``text`` of content that was no list; ``tool_plan`` of reasoning that stood there, before the calls."""

_ROLES: Final = ("system", "user", "assistant", "tool")


def read_message(wire: Json, place: str) -> Message:
    """Read one message; ``place`` names it in the ValueError raised where it is no object."""
    if not isinstance(wire, dict):
        raise unexpected(place, wire, "an object")
    role = wire.get("role")
    forms: dict[str, Json] = {}
    if role == "tool":
        identity = {"id": wire["tool_call_id"]} if isinstance(wire.get("tool_call_id"), str) else {}
        parts = [{"type": "tool_call_response", **identity, "response": wire.get("content")}]
    else:
        parts, forms = _read_parts(wire)
    message: Message = {"role": role if isinstance(role, str) and role in _ROLES else "user", "parts": parts}
    message = keep(message, forms)
    return keep(message, {**forms, **residue(wire, write_messages(message)[0])})


def write_messages(message: Message) -> list[dict[str, Json]]:
    """Write one message: as several where it holds several answers of tools, which are a message each here."""
    return write_apart(message, _write_tool_answer, _write_message)


def _write_message(message: Message, parts: list[dict[str, Json]]) -> dict[str, Json]:
    wire: dict[str, Json] = {"role": message.get("role")}
    plans = [part.get("content") for part in parts if _is_plan(part)]
    content = [_write_entry(part) for part in parts if part.get("type") != "tool_call" and not _is_plan(part)]
    calls = [_write_call(part) for part in parts if part.get("type") == "tool_call"]
    if plans:
        wire["tool_plan"] = plans[0]
    if calls:
        wire["tool_calls"] = calls
    if kept(message).get(FORM) == "text" and len(content) == 1 and isinstance(content[0], dict):
        wire["content"] = content[0].get("text")
    elif content:
        wire["content"] = content
    return overlay(wire, kept(message))


def _is_plan(part: Mapping[str, Json]) -> bool:
    return part.get("type") == "reasoning" and kept(part).get(FORM) == "tool_plan"


def _read_parts(wire: Mapping[str, Json]) -> tuple[list[dict[str, Any]], dict[str, Json]]:
    """The parts of a message in the order plan, content, calls, and the forms they stood in."""
    parts: list[dict[str, Any]] = []
    forms: dict[str, Json] = {}
    plan, content, calls = wire.get("tool_plan"), wire.get("content"), wire.get("tool_calls")
    if isinstance(plan, str) and plan:
        parts.append(keep({"type": "reasoning", "content": plan}, {FORM: "tool_plan"}))
    if isinstance(content, str) and content:
        parts.append({"type": "text", "content": content})
        forms[FORM] = "text"
    elif isinstance(content, list):
        parts += map(_read_entry, content)
    if isinstance(calls, list) and all(isinstance(call, dict) for call in calls):
        parts += map(_read_call, calls)
    return parts, forms


def _read_entry(wire: Json) -> dict[str, Any]:
    part: dict[str, Any] | None = None
    kind = wire.get("type") if isinstance(wire, dict) else None
    if kind == "text" and isinstance(wire.get("text"), str):
        part = {"type": "text", "content": wire["text"]}
    elif kind == "thinking" and isinstance(wire.get("thinking"), str):
        part = {"type": "reasoning", "content": wire["thinking"]}
    elif kind == "image_url" and isinstance(wire.get("image_url"), dict):
        url = wire["image_url"].get("url")
        part = read_url(url, "image") if isinstance(url, str) else None
    if part is None:
        return read_own(wire)
    return keep(part, residue(wire, _write_entry(part)))


def _write_entry(part: dict[str, Json]) -> Json:
    kind = part.get("type")
    if kind in ("text", "refusal"):
        wire: dict[str, Json] = {"type": "text", "text": part.get("content")}
    elif kind == "reasoning":
        wire = {"type": "thinking", "thinking": part.get("content")}
    elif kind in ("blob", "uri"):
        wire = {"type": "image_url", "image_url": {"url": write_url(part)}}
    else:
        return write_own(part)
    return overlay(wire, kept(part))


def _read_call(wire: Mapping[str, Json]) -> dict[str, Any]:
    function = wire.get("function")
    function = function if isinstance(function, dict) else {}
    arguments, exact = function.get("arguments"), None
    if isinstance(arguments, str):
        arguments, exact = read_arguments(arguments)
    identity = {"id": wire["id"]} if isinstance(wire.get("id"), str) else {}
    part = {"type": "tool_call", **identity, "name": function.get("name"), "arguments": arguments}
    marks: dict[str, Json] = {EXACT: exact} if exact else {}
    part = keep(part, marks)
    return keep(part, {**marks, **residue(wire, _write_call(part))})


def _write_call(part: Mapping[str, Json]) -> dict[str, Json]:
    identity = {} if part.get("id") is None else {"id": part["id"]}
    function = {"name": part.get("name"), "arguments": write_arguments(part.get("arguments"), kept(part).get(EXACT))}
    return overlay({**identity, "type": "function", "function": function}, kept(part))


def _write_tool_answer(part: Mapping[str, Json], message: Message) -> dict[str, Json]:
    response = part.get("response")
    identity = {} if part.get("id") is None else {"tool_call_id": part["id"]}
    content = response if isinstance(response, str | list | None) else write_arguments(response)
    return overlay({"role": "tool", **identity, "content": content}, kept(message))
