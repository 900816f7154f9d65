"""Vendors whose SDKs put a function's kind, its arguments and its result on a span: Laminar, AgentOps, Braintrust.

Model calls have the conventions' names beside them, of today or of old, where an instrumentation made them; else what
went into the client and came out of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from spanreel.model import Agent, Answer, ErrorCategory, Fidelity, Json, ToolKind, Usage
from spanreel.records import ModelRecord, Record, RunRecord, ToolRecord
from spanreel_collector.dialects import genai_spans, genai_variants, values
from spanreel_collector.dialects.content import ends, exchanges, tokens, tools
from spanreel_collector.dialects.content.decoding import decode
from spanreel_collector.span import Attributes, RawSpan

NAME = "decorated"


@dataclass(frozen=True, slots=True)
class _Vendor:
    """Under which names a vendor puts the kind of a span, what went in and what came out; the first that is there."""

    kind: str
    given: tuple[str, ...]
    came: tuple[str, ...]


_VENDORS = (
    _Vendor("lmnr.span.type", ("lmnr.span.input",), ("lmnr.span.output",)),
    _Vendor(
        "agentops.span.kind",
        ("agentops.entity.input", "tool.parameters"),
        ("agentops.entity.output", "tool.result"),
    ),
    _Vendor(
        "braintrust.span_attributes",
        ("braintrust.input_json", "braintrust.input"),
        ("braintrust.output_json", "braintrust.output"),
    ),
)
_AGENTS = ("agent",)
_RUNS = ("default", "task", "function", "workflow", "session", "operation", "chain", "executor", "pipeline")
_CONVENTIONS = ("gen_ai.",)
_COUNTS = {
    "cache_read_tokens": ("prompt_cached_tokens",),
    "cache_write_tokens": ("prompt_cache_creation_tokens",),
    "reasoning_tokens": ("completion_reasoning_tokens",),
}
"""Braintrust's own among its counts, whose others have OpenAI's names."""


def speaks(span: RawSpan) -> bool:
    """Whether one of them wrote the span."""
    return any(vendor.kind in span.attributes for vendor in _VENDORS)


def read(span: RawSpan) -> Record | None:
    """What the span says; None of scores, evaluations and events."""
    vendor = next(vendor for vendor in _VENDORS if vendor.kind in span.attributes)
    kind = _kind(span.attributes[vendor.kind])
    given, came = _first(span.attributes, vendor.given), _first(span.attributes, vendor.came)
    if kind == "llm":
        return _read_model(span, given, came)
    if kind == "tool":
        return _read_tool(span, given, came)
    return _read_run(span, kind, given, came) if kind in (*_AGENTS, *_RUNS) else None


def _kind(told: Json) -> str:
    """The kind as a word; Braintrust has it in an object. Of a span that says none, that of any function."""
    found, _ = values.decode(told)
    if isinstance(found, dict):
        found = found.get("type")
    return found.lower() if isinstance(found, str) and found else "default"


def _first(attributes: Attributes, keys: tuple[str, ...]) -> Json:
    return next((attributes[key] for key in keys if attributes.get(key) is not None), None)


def _read_model(span: RawSpan, given: Json, came: Json) -> Record | None:
    attributes = span.attributes
    if any(key.startswith(_CONVENTIONS) for key in attributes):
        told = genai_variants.conventional(span)
        operation = genai_spans.operation_of(told)
        named = told if operation in genai_spans.KNOWN else replace(told, attributes=_as_chat(told.attributes))
        record = genai_spans.read(named)
        if isinstance(record, ModelRecord) and (record.request.messages or given is None):
            return record
    metadata, error = values.members(attributes.get("braintrust.metadata")), values.failure(span, ErrorCategory.MODEL)
    exchange = exchanges.read(given, _whole_answer(came))
    usage = _read_usage(attributes)
    answer = exchange.answer
    if answer is not None or usage is not None:
        answer = replace(answer or Answer(), usage=usage or (answer.usage if answer else None))
    return ModelRecord(
        request=replace(exchange.request, model=exchange.request.model or values.text(metadata, "model")),
        answer=answer,
        provider=values.text(metadata, "provider"),
        error=error,
        status=values.status_of(error),
        fidelity=exchange.fidelity,
    )


def _whole_answer(came: Json) -> Json:
    """The answer around a list of its choices, which is all that Braintrust keeps of OpenAI's."""
    found, state = decode(came)
    choices = found if isinstance(found, list) and state is Fidelity.WHOLE else []
    told = bool(choices) and all(isinstance(one, dict) and isinstance(one.get("message"), dict) for one in choices)
    return {"object": "chat.completion", "choices": choices} if told else came


def _as_chat(attributes: Attributes) -> Attributes:
    return {**attributes, "gen_ai.operation.name": "chat"}


def _read_usage(attributes: Attributes) -> Usage | None:
    metrics = values.members(attributes.get("braintrust.metrics"))
    usage = tokens.read(metrics)
    if usage is None:
        return None
    return values.whole_usage(
        replace(usage, **{name: values.integer(metrics, *keys) for name, keys in _COUNTS.items()})
    )


def _read_tool(span: RawSpan, given: Json, came: Json) -> ToolRecord:
    attributes = span.attributes
    decoded, given_state = decode(given)
    found, came_state = decode(came)
    result, told = tools.read_result(found)
    error = values.failure(span, ErrorCategory.TOOL) or tools.failure(told, result)
    fidelity = {"arguments": given_state, "result": came_state}
    if error and came_state is Fidelity.ABSENT:
        del fidelity["result"]
    return ToolRecord(
        name=values.text(attributes, "tool.name", "gen_ai.tool.name") or span.name.removesuffix(".tool"),
        arguments=tools.read_arguments(decoded),
        result=result,
        call_id=values.text(attributes, "gen_ai.tool.call.id") or values.text(told, "tool_call_id"),
        kind=ToolKind.FUNCTION,
        status=values.status_of(error),
        error=error,
        fidelity=values.marks(fidelity),
    )


def _read_run(span: RawSpan, kind: str, given: Json, came: Json) -> RunRecord:
    is_agent = kind in _AGENTS
    name = values.text(span.attributes, "agent.name", "gen_ai.agent.name") or span.name.removesuffix(".agent")
    error = values.failure(span, ErrorCategory.OTHER)
    return ends.as_run(ends.read(given, came), Agent(name if is_agent else None), error, outermost_only=not is_agent)
