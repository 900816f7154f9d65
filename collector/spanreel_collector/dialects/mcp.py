"""Spans of the Model Context Protocol: a client's or a server's, of the SDK and of whoever follows the conventions.

A tool's call is one; listing, connecting and reading resources is none. Around a client's span may stand the agent's
own of the same call, and inside it the server's.
"""

from __future__ import annotations

from dataclasses import replace

from spanreel.model import ToolKind
from spanreel.records import Record, ToolRecord
from spanreel_collector.dialects import genai_spans, values
from spanreel_collector.span import RawSpan

NAME = "mcp"

_METHOD, _CALL = "mcp.method.name", "tools/call"
_TOOL = "gen_ai.tool.name"


def speaks(span: RawSpan) -> bool:
    """Whether the span names a method of the protocol."""
    return isinstance(span.attributes.get(_METHOD), str)


def read(span: RawSpan) -> Record | None:
    """The tool call; None for other methods."""
    if span.attributes[_METHOD] != _CALL:
        return None
    name = values.text(span.attributes, _TOOL) or span.name.partition(f"{_CALL} ")[2] or span.name
    named = {**span.attributes, "gen_ai.operation.name": "execute_tool", _TOOL: name}
    record = genai_spans.read(replace(span, attributes=named))
    return replace(record, kind=ToolKind.MCP) if isinstance(record, ToolRecord) else None
