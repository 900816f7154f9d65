"""Definitions of tools that are functions, as OpenAI's chat completions write them and many others after it."""

from __future__ import annotations

from collections.abc import Mapping

from spanreel.model import Json, ToolDefinition
from spanreel.protocols.media import OTHER, read_own, write_own
from spanreel.protocols.residue import keep, kept, overlay, residue


def read_tool(wire: Json) -> ToolDefinition:
    """Read a tool definition; one that is no function is kept as it came."""
    if not isinstance(wire, dict) or wire.get("type") != "function":
        return read_own(wire)
    if not isinstance(wire.get("function"), dict):
        return {"type": OTHER, "value": wire}
    tool = read_function(wire["function"])
    return keep(tool, residue(wire, write_tool(tool)))


def write_tool(tool: ToolDefinition) -> Json:
    """Write a tool definition."""
    if tool.get("type") != "function":
        return write_own(tool)
    return overlay({"type": "function", "function": write_function(tool)}, kept(tool))


def read_function(function: Mapping[str, Json]) -> ToolDefinition:
    """Read a function's name, description and parameters."""
    tool: ToolDefinition = {"type": "function", "name": function.get("name")}
    for key in ("description", "parameters"):
        if function.get(key) is not None:
            tool[key] = function[key]
    return tool


def write_function(tool: ToolDefinition) -> dict[str, Json]:
    """Write a function's name, description and parameters."""
    return {key: tool[key] for key in ("name", "description", "parameters") if key in tool}
