"""Messages, instructions and tool definitions in the form of Anthropic messages, read and written.

Results of tools stand in user messages here. A message that holds nothing else has the role ``tool``, as in the other
protocols; one that says more beside them stays the user's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from spanreel.model import Json, Message, ToolDefinition
from spanreel.protocols.anthropic.blocks import read_block, write_block
from spanreel.protocols.media import OTHER, read_own, write_own
from spanreel.protocols.residue import keep, kept, overlay, residue, unexpected

FORM: Final = "$form"
"""``list`` where content that is one text stood as a list of blocks; by itself it is written as that text."""


def read_message(wire: Json, place: str) -> Message:
    """Read one message; ``place`` names it in the ValueError raised where it is no object."""
    if not isinstance(wire, dict):
        raise unexpected(place, wire, "an object")
    parts, form = read_content(wire.get("content"))
    role = wire.get("role")
    if role == "user" and parts and all(part["type"] == "tool_call_response" for part in parts):
        role = "tool"
    message = keep({"role": role if isinstance(role, str) else "user", "parts": parts}, form)
    return keep(message, {**form, **residue(wire, write_message(message))})


def write_message(message: Message) -> dict[str, Json]:
    """Write one message."""
    rest = kept(message)
    parts = [part for part in message.get("parts") or [] if isinstance(part, dict)]
    role = message.get("role")
    wire: dict[str, Json] = {"role": "user" if role == "tool" else role, "content": write_content(parts, rest)}
    # What was kept beside the parts must not beat parts that have been put in since.
    return overlay(wire, {key: value for key, value in rest.items() if not (parts and key == "content")})


def read_content(content: Json) -> tuple[list[dict[str, Any]], dict[str, Json]]:
    """Content as parts, and the form it stood in, where that is not what `write_content` gives by itself."""
    if isinstance(content, str) and content:
        return [{"type": "text", "content": content}], {}
    if not isinstance(content, list):
        return [], {}
    parts = [read_block(block) for block in content]
    return parts, {FORM: "list"} if _is_plain(parts) else {}


def write_content(parts: Sequence[dict[str, Json]], forms: Mapping[str, Json]) -> Json:
    """Parts as content: a text where they are one plain text, unless it stood as a list; else a list of blocks."""
    if _is_plain(parts) and forms.get(FORM) != "list":
        return parts[0].get("content")
    return [write_block(part) for part in parts]


def read_tool(wire: Json) -> ToolDefinition:
    """Read a tool definition; one that Anthropic's server executes is kept as it came."""
    if not isinstance(wire, dict) or wire.get("type", "custom") not in ("custom", None, "function"):
        return read_own(wire)
    if not isinstance(wire.get("name"), str) or wire.get("type") == "function":
        return {"type": OTHER, "value": wire}
    tool: ToolDefinition = {"type": "function", "name": wire["name"]}
    for key, field in (("description", "description"), ("parameters", "input_schema")):
        if wire.get(field) is not None:
            tool[key] = wire[field]
    return keep(tool, residue(wire, write_tool(tool)))


def write_tool(tool: ToolDefinition) -> Json:
    """Write a tool definition."""
    if tool.get("type") != "function":
        return write_own(tool)
    wire: dict[str, Json] = {"name": tool.get("name")}
    for key, field in (("description", "description"), ("parameters", "input_schema")):
        if key in tool:
            wire[field] = tool[key]
    return overlay(wire, kept(tool))


def _is_plain(parts: Sequence[dict[str, Json]]) -> bool:
    return len(parts) == 1 and parts[0].get("type") == "text" and not kept(parts[0])
