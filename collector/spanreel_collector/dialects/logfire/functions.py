"""Functions under Logfire's `@instrument`: those that models were offered as tools are tool calls.

Logfire has no decorator of tools. A span of a function says its name and its arguments, and what it returned where that
was asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from spanreel import conventions as names
from spanreel_collector.dialects import values
from spanreel_collector.span import RawSpan

_SCOPE = "logfire"
_CALLING = "Calling "
_SCHEMA = "logfire.json_schema"
_FUNCTION = ("code.function.name", "code.function")
_RETURNED = "return"


def mark_tools(spans: Sequence[RawSpan]) -> list[RawSpan]:
    """The spans, those of functions that models were offered marked as the conventions mark tool calls."""
    offered = {name for span in spans for name in _offered(span)}
    return [_as_tool(span, name) if (name := _function(span)) in offered else span for span in spans]


def _offered(span: RawSpan) -> Iterator[str]:
    """The names of the tools that a model was offered."""
    told: Any = values.decoded(span.attributes, "request_data")
    request = told if isinstance(told, dict) else {}
    for tools in (values.decoded(span.attributes, names.TOOL_DEFINITIONS), request.get("tools")):
        for tool in tools if isinstance(tools, list) else ():
            described = tool.get("function", tool) if isinstance(tool, dict) else None
            if isinstance(described, dict) and isinstance(name := described.get("name"), str):
                yield name


def _function(span: RawSpan) -> str | None:
    """The name of the function that the span is of; None of other spans of Logfire, and of others."""
    if span.origin.scope != _SCOPE or names.OPERATION in span.attributes:
        return None
    told = next((span.attributes[key] for key in _FUNCTION if isinstance(span.attributes.get(key), str)), None)
    if told is None and span.name.startswith(_CALLING):
        told = span.name.removeprefix(_CALLING)
    return str(told).rpartition(".")[2] if told is not None else None


def _as_tool(span: RawSpan, name: str | None) -> RawSpan:
    schema: Any = values.decoded(span.attributes, _SCHEMA)
    known = schema.get("properties") if isinstance(schema, dict) else None
    known = known if isinstance(known, dict) else {}
    given = {key: _value(span, key, known[key]) for key in known if key != _RETURNED and key in span.attributes}
    told = {
        names.OPERATION: names.EXECUTE_TOOL,
        names.TOOL_NAME: name,
        names.TOOL_CALL_ARGUMENTS: json.dumps(given, ensure_ascii=False),
        **({names.TOOL_CALL_RESULT: span.attributes[_RETURNED]} if _RETURNED in span.attributes else {}),
    }
    return replace(span, attributes={**span.attributes, **told})


def _value(span: RawSpan, key: str, schema: Any) -> Any:
    """A value as it was: what is no text, number or truth is JSON, as the span's own schema says."""
    value: Any = span.attributes[key]
    if isinstance(value, str) and isinstance(schema, dict) and schema:
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value
