"""Spring AI: what stands around model calls, its tools and its vector stores; the calls are the conventions'."""

from __future__ import annotations

from spanreel.model import Agent, ErrorCategory, Fidelity, Json, ToolKind
from spanreel.records import Record, RunRecord, ToolRecord
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content import tools
from spanreel_collector.dialects.content.decoding import decode
from spanreel_collector.span import RawSpan

NAME = "spring_ai"

_KIND = "spring.ai.kind"
_TOOL = "spring.ai.tool."
_QUERY, _FOUND = "db.vector.query.content", "db.vector.query.response.documents"


def speaks(span: RawSpan) -> bool:
    """Whether Spring AI wrote the span, and it is no model call."""
    return _KIND in span.attributes


def read(span: RawSpan) -> Record | None:
    """What the span says; None of advisors, which only group."""
    kind = values.text(span.attributes, _KIND)
    if kind == "tool_call":
        given, came = (span.attributes.get(f"{_TOOL}call.{key}") for key in ("arguments", "result"))
        name = values.text(span.attributes, f"{_TOOL}definition.name") or span.name.rpartition(" ")[2]
        return _read_tool(span, name, given, came, ToolKind.FUNCTION)
    if kind == "vector_store" and _QUERY in span.attributes:
        given, came = (span.attributes.get(key) for key in (_QUERY, _FOUND))
        return _read_tool(span, span.name.partition(" ")[0], given, came, ToolKind.RETRIEVER)
    error = values.failure(span, ErrorCategory.OTHER)
    return (
        RunRecord(agent=Agent(), status=values.status_of(error), error=error, outermost_only=True)
        if kind == "chat_client"
        else None
    )


def _read_tool(span: RawSpan, name: str, given: Json, came: Json, kind: ToolKind) -> ToolRecord:
    attributes = span.attributes
    arguments, given_state = decode(given)
    result, came_state = decode(came)
    error = values.failure(span, ErrorCategory.TOOL)
    fidelity = {"arguments": given_state, "result": came_state}
    if error and came_state is Fidelity.ABSENT:
        del fidelity["result"]
    return ToolRecord(
        name=name,
        arguments=tools.read_arguments(arguments) if kind is ToolKind.FUNCTION else arguments,
        result=result,
        call_id=values.text(attributes, "gen_ai.tool.call.id"),
        kind=kind,
        description=values.text(attributes, f"{_TOOL}definition.description"),
        parameters=decode(attributes.get(f"{_TOOL}definition.schema"))[0],
        status=values.status_of(error),
        error=error,
        fidelity=values.marks(fidelity),
    )
