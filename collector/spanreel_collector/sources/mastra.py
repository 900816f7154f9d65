"""Mastra's traces as `getTrace` gives them: ``{"traceId", "spans"}``, one or a list, or their spans alone.

Each becomes the spans that Mastra's OTel exporter would have written, with what that leaves out beside it. What they
mean is the dialect's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spanreel.model import Json
from spanreel_collector import json_text
from spanreel_collector.sources.times import nanoseconds
from spanreel_collector.span import Batch, Fault, Origin, RawSpan

SCOPE = "@mastra/core"

_INTERNAL, _CLIENT = 1, 3
_CALLS = ("model_inference", "model_step", "model_generation", "llm_generation", "rag_embedding")
_TOOLS = ("tool_call", "client_tool_call", "provider_tool_call", "mcp_tool_call")
_FACTS = {
    "model": "gen_ai.request.model",
    "provider": "gen_ai.provider.name",
    "responseModel": "gen_ai.response.model",
    "responseId": "gen_ai.response.id",
    "serverAddress": "server.address",
    "serverPort": "server.port",
    "completionStartTime": "mastra.completion_start_time",
}
_PARAMETERS = {
    "temperature": "gen_ai.request.temperature",
    "maxOutputTokens": "gen_ai.request.max_tokens",
    "maxTokens": "gen_ai.request.max_tokens",
    "topP": "gen_ai.request.top_p",
    "topK": "gen_ai.request.top_k",
    "presencePenalty": "gen_ai.request.presence_penalty",
    "frequencyPenalty": "gen_ai.request.frequency_penalty",
    "stopSequences": "gen_ai.request.stop_sequences",
    "seed": "gen_ai.request.seed",
}
_USAGE = {
    ("inputTokens",): "gen_ai.usage.input_tokens",
    ("outputTokens",): "gen_ai.usage.output_tokens",
    ("inputDetails", "cacheRead"): "gen_ai.usage.cache_read.input_tokens",
    ("inputDetails", "cacheWrite"): "gen_ai.usage.cache_creation.input_tokens",
    ("outputDetails", "reasoning"): "gen_ai.usage.reasoning_tokens",
    # Before core 1.0.
    ("promptTokens",): "gen_ai.usage.input_tokens",
    ("completionTokens",): "gen_ai.usage.output_tokens",
    ("cachedInputTokens",): "gen_ai.usage.cache_read.input_tokens",
    ("reasoningTokens",): "gen_ai.usage.reasoning_tokens",
}
_NAMED = ("threadId", "sessionId", "userId", "resourceId", "runId", "requestId", "organizationId")


def recognises(document: Json) -> bool:
    """Whether the document is a trace of Mastra's, or a list of them or of their spans."""
    found = document if isinstance(document, list) else [document]
    return any(map(_is_trace, found)) or any(map(_is_record, found))


def read(document: Json, place: str) -> Batch:
    """The spans of the traces; one that cannot be read costs only itself."""
    spans: list[RawSpan] = []
    faults: list[Fault] = []
    found = document if isinstance(document, list) else [document]
    for number, trace in enumerate(_traces(found)):
        if not isinstance(trace, dict) or not isinstance(trace.get("traceId"), str):
            faults.append(Fault(f"{place} (trace {number})", "no trace of Mastra's: it has no traceId"))
            continue
        if not isinstance(trace.get("spans"), list):
            faults.append(Fault(f"{place} (trace {number})", "no trace of Mastra's: it has no list of spans"))
            continue
        for index, record in enumerate(trace["spans"]):
            try:
                spans.append(_span(record, trace["traceId"], place))
            except ValueError as error:
                faults.append(Fault(f"{place} (trace {number}, span {index})", str(error)))
    return Batch(tuple(spans), faults=tuple(faults))


def _is_trace(value: Json) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("traceId"), str):
        return False
    spans = value.get("spans")
    return isinstance(spans, list) and (not spans or any(isinstance(one, dict) and "spanType" in one for one in spans))


def _is_record(value: Json) -> bool:
    return isinstance(value, dict) and {"traceId", "spanId", "spanType"} <= value.keys()


def _traces(found: list[Json]) -> list[Json]:
    """The traces; of a list of spans, those that they are of."""
    if any(map(_is_trace, found)):
        return found
    spans: dict[str, list[Json]] = {}
    for record in found:
        identity = record.get("traceId") if isinstance(record, dict) else None
        spans.setdefault(str(identity or ""), []).append(record)
    return [{"traceId": identity, "spans": records} for identity, records in spans.items()]


def _span(record: Any, trace_id: str, place: str) -> RawSpan:
    if not isinstance(record, dict) or not isinstance(record.get("spanType"), str):
        raise ValueError("no span of Mastra's: it has no spanType")
    identity = record.get("spanId")
    if not isinstance(identity, str) or not identity:
        raise ValueError(f"a span without spanId: {record.get('name')!r}")
    start, end = nanoseconds(record.get("startedAt")), nanoseconds(record.get("endedAt"))
    error = record.get("error")
    parent = record.get("parentSpanId")
    message = error.get("message") if isinstance(error, dict) else error
    return RawSpan(
        trace_id=trace_id.lower(),
        span_id=identity.lower(),
        parent_id=parent.lower() if isinstance(parent, str) and parent else None,
        name=str(record.get("name") or record["spanType"]),
        kind=_CLIENT if record["spanType"] in ("model_inference", "mcp_tool_call") else _INTERNAL,
        start=start,
        end=end or (start if record.get("isEvent") is True else 0),
        attributes={key: json_text.plain(value) for key, value in _attributes(record) if value is not None},
        origin=Origin(_resource(record), SCOPE),
        place=place,
        status=2 if error else 1 if end else 0,
        status_message=message if isinstance(message, str) else "",
    )


def _resource(record: dict[str, Any]) -> dict[str, Json]:
    name = record.get("serviceName")
    return {"service.name": name} if isinstance(name, str) else {}


def _attributes(record: dict[str, Any]) -> Iterator[tuple[str, Json]]:
    """The attributes of the span, by the exporter's names."""
    kind = record["spanType"]
    own = record["attributes"] if isinstance(record.get("attributes"), dict) else {}
    yield "mastra.span.type", kind
    yield "mastra.attributes", own
    if kind in _TOOLS:
        yield from _tool(record, own)
    else:
        yield f"mastra.{kind}.input", record.get("input")
        yield f"mastra.{kind}.output", record.get("output")
    if kind in _CALLS:
        yield from _call(own)
    if kind == "rag_embedding":
        yield "gen_ai.operation.name", "embeddings"
    if kind == "agent_run":
        yield "gen_ai.agent.id", record.get("entityId")
        yield "gen_ai.agent.name", record.get("entityName") or record.get("entityId")
        yield "gen_ai.agent.version", record.get("entityVersionId")
        yield "gen_ai.system_instructions", own.get("instructions")
        yield "gen_ai.tool.definitions", own.get("availableTools")
    yield from _session(record, own)
    error = record.get("error")
    if isinstance(error, dict):
        yield "error.type", error.get("name") or error.get("id")


def _tool(record: dict[str, Any], own: dict[str, Any]) -> Iterator[tuple[str, Json]]:
    yield "gen_ai.tool.name", record.get("entityId") or record.get("entityName")
    yield "gen_ai.tool.call.id", own.get("toolCallId")
    yield "gen_ai.tool.description", own.get("toolDescription")
    yield "gen_ai.tool.call.arguments", record.get("input")
    yield "gen_ai.tool.call.result", record.get("output")


def _call(own: dict[str, Any]) -> Iterator[tuple[str, Json]]:
    for key, name in _FACTS.items():
        yield name, own.get(key)
    if own.get("finishReason") is not None:
        yield "gen_ai.response.finish_reasons", [own["finishReason"]]
    parameters, usage = own.get("parameters"), own.get("usage")
    for key, name in _PARAMETERS.items():
        if isinstance(parameters, dict) and parameters.get(key) is not None:
            yield name, parameters[key]
    for path, name in _USAGE.items():
        value: Any = usage
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        if value is not None:
            yield name, value


def _session(record: dict[str, Any], own: dict[str, Any]) -> Iterator[tuple[str, Json]]:
    metadata = record["metadata"] if isinstance(record.get("metadata"), dict) else {}
    for key, value in metadata.items():
        yield f"mastra.metadata.{key}", value
    for key in _NAMED:
        if record.get(key) is not None:
            yield f"mastra.metadata.{key}", record[key]
    yield "gen_ai.conversation.id", record.get("threadId") or metadata.get("threadId") or own.get("conversationId")
    yield "user.id", record.get("userId") or record.get("resourceId")
    tags = record.get("tags")
    yield "tag.tags", [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else None
