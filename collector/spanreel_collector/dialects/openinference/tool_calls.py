"""Tool and retriever spans: arguments and results out of what the frameworks wrap them in."""

from __future__ import annotations

import re
from typing import Any

from spanreel.model import ErrorCategory, Fidelity, Json, ToolKind
from spanreel.records import ToolRecord
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content import messages as content
from spanreel_collector.dialects.content import tools
from spanreel_collector.dialects.content.indexed import nested
from spanreel_collector.dialects.openinference.messages import REDACTED
from spanreel_collector.span import RawSpan

_IDS = ("tool_call.id", "tool.id", "tool.call_id", "gen_ai.tool.call.id", "ai.toolCall.id")
_HANDOFF = "handoff to "
_OF_DSPY = ".__call__"
"""What is behind the name of a tool of DSPy's."""


def read_tool(span: RawSpan, cut_at: int | None) -> ToolRecord:
    """A tool call. A bare argument is left as it is: its name stands in the model's request only."""
    error = values.failure(span, ErrorCategory.TOOL)
    arguments, arguments_fidelity = _read_arguments(span, cut_at)
    result, result_fidelity = _value(span, "output.value", cut_at)
    result, told = tools.read_result(result)
    error = error or tools.failure(told, result)
    fidelity = {"arguments": arguments_fidelity, "result": result_fidelity}
    if error and result_fidelity is Fidelity.ABSENT:
        del fidelity["result"]
    name, target = values.text(span.attributes, "tool.name", "gen_ai.tool.name"), None
    if name is None and span.name.startswith(_HANDOFF):
        target = span.name.removeprefix(_HANDOFF)
        # What the openai-agents SDK calls the tool that the model asked for.
        name = "transfer_to_" + re.sub(r"\W", "_", target).lower()
        if not isinstance(arguments, dict):  # the agent that hands over
            arguments, fidelity["arguments"] = {}, Fidelity.RECONSTRUCTED
    return ToolRecord(
        name=name or span.name.removesuffix(_OF_DSPY),
        arguments=arguments,
        result=result,
        call_id=values.text(span.attributes, *_IDS) or values.text(told, "tool_call_id", "id"),
        kind=ToolKind.HANDOFF if target else ToolKind.FUNCTION,
        target=target,
        description=values.text(span.attributes, "tool.description"),
        status=values.status_of(error),
        error=error,
        fidelity=values.marks(fidelity),
    )


def read_invoker(span: RawSpan) -> ToolRecord | None:
    """The one tool call that Haystack's invoker made; it writes reprs of messages on a chain, and no tool's span."""
    if span.name != "ToolInvoker.run":
        return None
    asked = [part for part in _parts(span, "input.value") if part["type"] == "tool_call"]
    told = [part for part in _parts(span, "output.value") if part["type"] == "tool_call_response"]
    error = values.failure(span, ErrorCategory.TOOL)
    if len(asked) != 1 or not asked[0]["name"] or len(told) != (0 if error else 1):
        return None
    (call,), result = asked, None if error else told[0]["response"]
    return ToolRecord(
        call["name"],
        arguments=call["arguments"],
        result=result,
        call_id=call["id"],
        status=values.status_of(error),
        error=error,
    )


def _parts(span: RawSpan, key: str) -> list[dict[str, Json]]:
    decoded, _ = values.decode(span.attributes.get(key))
    return [part for message in content.read_messages(decoded) for part in message["parts"]]


def read_retriever(span: RawSpan, cut_at: int | None) -> ToolRecord:
    """A retrieval: the query is its argument, the documents its result."""
    error = values.failure(span, ErrorCategory.TOOL)
    query, query_fidelity = _value(span, "input.value", cut_at)
    result, result_fidelity = _value(span, "output.value", cut_at)
    documents = read_documents(span, "retrieval.documents")
    if documents:
        result, result_fidelity = documents, Fidelity.WHOLE
    fidelity = {"arguments": query_fidelity, "result": result_fidelity}
    if error and result_fidelity is Fidelity.ABSENT:
        del fidelity["result"]
    return ToolRecord(
        name=values.text(span.attributes, "tool.name") or span.name,
        arguments=query,
        result=result,
        kind=ToolKind.RETRIEVER,
        status=values.status_of(error),
        error=error,
        fidelity=values.marks(fidelity),
    )


def read_documents(span: RawSpan, prefix: str) -> list[dict[str, Json]]:
    """The documents under a prefix: id, content, score, and metadata decoded."""
    found = []
    for item in nested(span.attributes, prefix):
        document = item.get("document")
        if isinstance(document, dict):
            found.append({key: values.decode(value)[0] for key, value in document.items() if key != "content"})
            if "content" in document:
                found[-1]["content"] = document["content"]
    return found


def _read_arguments(span: RawSpan, cut_at: int | None) -> tuple[Json, Fidelity]:
    found, fidelity = _value(span, "input.value", cut_at)
    if fidelity is Fidelity.ABSENT:
        found, fidelity = _value(span, "tool.parameters", cut_at)
        if isinstance(found, dict) and _is_schema(found):
            return None, Fidelity.ABSENT
    return tools.read_arguments(found), fidelity


def _is_schema(parameters: dict[str, Any]) -> bool:
    """Whether tool parameters are their JSON Schema, as most write, or smolagents' types by name; not the arguments."""
    if "properties" in parameters or "$schema" in parameters:
        return True
    return bool(parameters) and all(isinstance(item, dict) and "type" in item for item in parameters.values())


def _value(span: RawSpan, key: str, cut_at: int | None) -> tuple[Json, Fidelity]:
    value = span.attributes.get(key)
    if value is None:
        return None, Fidelity.ABSENT
    if value == REDACTED:
        return value, Fidelity.REDACTED
    if isinstance(value, str) and len(value) == cut_at:
        return value, Fidelity.TRUNCATED
    return values.decode(value)
