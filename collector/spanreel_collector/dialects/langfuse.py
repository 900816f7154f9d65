"""Langfuse's SDK, of Python and JavaScript: observations, as its decorator, OpenAI client and callback make them."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from spanreel.model import (
    Agent,
    Answer,
    Error,
    ErrorCategory,
    Fidelity,
    Json,
    Operation,
    ToolDefinition,
    ToolKind,
    Usage,
)
from spanreel.records import ModelRecord, Record, RunRecord, ToolRecord
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content import bodies, counts, ends, exchanges, tokens, tools
from spanreel_collector.dialects.content.decoding import decode
from spanreel_collector.span import Attributes, RawSpan

NAME = "langfuse"

_OBSERVATION = "langfuse.observation."
_TYPE = _OBSERVATION + "type"
_INPUT, _OUTPUT = _OBSERVATION + "input", _OBSERVATION + "output"
_METADATA = _OBSERVATION + "metadata."
_MODEL = _OBSERVATION + "model.name"
_OF_MODELS = (_MODEL, _OBSERVATION + "usage_details", _OBSERVATION + "model.parameters")
"""By these a generation is known that does not say its type: who sends by plain OpenTelemetry need not."""
_RUNS = ("agent", "chain", "span")
_ROOT = "langfuse.internal.is_app_root"
_NEVER = "Infinity"
"""What the OpenAI client writes where no limit of tokens was given."""
_DETAILS = {
    "cache_read_tokens": ("input_cache_read", "input_cached_tokens", "cache_read_input_tokens", "input_cached"),
    "cache_write_tokens": ("input_cache_creation", "cache_creation_input_tokens", "input_cache_write"),
    "reasoning_tokens": ("output_reasoning", "output_reasoning_tokens"),
}


def speaks(span: RawSpan) -> bool:
    """Whether the span is an observation."""
    attributes = span.attributes
    if _TYPE in attributes or any(key in attributes for key in _OF_MODELS):
        return True
    told = _INPUT in attributes or _OUTPUT in attributes
    return told and (span.origin.scope == "langfuse-sdk" or not any(key.startswith("gen_ai.") for key in attributes))


def read(span: RawSpan) -> Record | None:
    """What the observation says; None of guardrails, evaluators and events."""
    kind = (values.text(span.attributes, _TYPE) or _untold(span.attributes)).lower()
    if kind == "generation":
        return _read_model(span, Operation.CHAT)
    if kind == "embedding":
        return _read_model(span, Operation.EMBEDDINGS)
    if kind in ("tool", "retriever"):
        return _read_tool(span, ToolKind.RETRIEVER if kind == "retriever" else ToolKind.FUNCTION)
    return _read_run(span, kind) if kind in _RUNS else None


def _untold(attributes: Attributes) -> str:
    """The type of an observation that does not say it."""
    return "generation" if any(key in attributes for key in _OF_MODELS) else "span"


def _read_model(span: RawSpan, operation: Operation) -> ModelRecord:
    attributes = span.attributes
    decoded, state = decode(attributes.get(_INPUT))
    given, offered = _without_tools(decoded)
    exchange = exchanges.read(given if offered else attributes.get(_INPUT), attributes.get(_OUTPUT), operation)
    request, fidelity = exchange.request, {**(values.marks({"input": state}) if offered else {}), **exchange.fidelity}
    named = values.text(attributes, _MODEL)
    error = _failure(span, ErrorCategory.MODEL)
    if error and fidelity.get("output") is Fidelity.ABSENT:
        del fidelity["output"]
    usage = _read_usage(attributes)
    answer = exchange.answer
    if answer is not None or usage is not None:
        answer = answer or Answer()
        answer = replace(answer, model=answer.model or named, usage=usage or answer.usage)
    began = attributes.get(_OBSERVATION + "completion_start_time")
    return ModelRecord(
        request=replace(
            request,
            model=request.model or _metadata(attributes, "ls_model_name") or named,
            tools=request.tools or offered,
            settings={**request.settings, **_settings(attributes)},
            stream=request.stream or began is not None,
        ),
        answer=replace(answer, streamed=True) if answer is not None and began is not None else answer,
        provider=_metadata(attributes, "ls_provider"),
        error=error,
        status=values.status_of(error),
        fidelity=fidelity,
    )


def _without_tools(given: Json) -> tuple[Json, tuple[ToolDefinition, ...]]:
    """The messages without the tool definitions that LangChain's callback puts after them, as messages of tools."""
    if not isinstance(given, list):
        return given, ()
    said, offered = [], []
    for item in given:
        content = item.get("content") if isinstance(item, dict) and item.get("role") == "tool" else None
        if isinstance(content, dict) and "tool_call_id" not in item:
            offered.append(content)
        else:
            said.append(item)
    return said, bodies.read_tools(offered)


def _settings(attributes: Attributes) -> dict[str, Json]:
    parameters = values.members(attributes.get(_OBSERVATION + "model.parameters"))
    return bodies.settings({key: value for key, value in parameters.items() if value != _NEVER})


def _read_usage(attributes: Attributes) -> Usage | None:
    """The counts with all their details in them: Langfuse counts each token once, OpenAI's own object is passed on."""
    told: dict[str, Any] = values.members(attributes.get(_OBSERVATION + "usage_details"))
    if "prompt_tokens" in told or "input_tokens" in told:
        return tokens.read(told)
    numbers = {key: count for key in told if (count := values.integer(told, key)) is not None}
    if not numbers:
        return counts.read(attributes)
    found = {
        field.name: next((numbers[key] for key in _DETAILS.get(field.name, ()) if key in numbers), None)
        for field in fields(Usage)
    }
    given, taken = numbers.get("input"), numbers.get("output")
    apart = {
        side: sum(count for key, count in numbers.items() if _is_detail(key, side)) for side in ("input", "output")
    }
    if numbers.get("total") != (given or 0) + (taken or 0):
        given = given + apart["input"] if given is not None else None
        taken = taken + apart["output"] if taken is not None else None
    return values.whole_usage(Usage(**{**found, "input_tokens": given, "output_tokens": taken}))


def _is_detail(key: str, side: str) -> bool:
    if "priority" in key:
        return False  # no part of the tokens, but all of them under another tariff
    return key.startswith(f"{side}_") or (side == "input" and key.endswith("_input_tokens"))


def _read_tool(span: RawSpan, kind: ToolKind) -> ToolRecord:
    attributes = span.attributes
    given, given_state = decode(attributes.get(_INPUT))
    came, came_state = decode(attributes.get(_OUTPUT))
    result, told = tools.read_result(came)
    error = _failure(span, ErrorCategory.TOOL) or tools.failure(told, result)
    fidelity = {"arguments": given_state, "result": came_state}
    if error and came_state is Fidelity.ABSENT:
        del fidelity["result"]
    return ToolRecord(
        name=span.name,
        arguments=tools.read_arguments(given),
        result=result,
        call_id=_metadata(attributes, "tool_call_id") or values.text(told, "tool_call_id"),
        kind=kind,
        status=values.status_of(error),
        error=error,
        fidelity=values.marks(fidelity),
    )


def _read_run(span: RawSpan, kind: str) -> RunRecord:
    attributes = span.attributes
    told = ends.read(attributes.get(_INPUT), attributes.get(_OUTPUT))
    error = _failure(span, ErrorCategory.OTHER)
    node = _metadata(attributes, "langgraph_node")
    name = _metadata(attributes, "lc_agent_name")
    # A decorated function is a span where nothing else was asked for; the outermost is called by its own name.
    by_name = (kind == "agent" and node != span.name) or (kind == "span" and attributes.get(_ROOT) is True)
    agent = Agent(name or (span.name if by_name else None))
    return ends.as_run(told, agent, error, outermost_only=kind != "agent" or node == span.name)


def _metadata(attributes: Attributes, key: str) -> str | None:
    """A member of the observation's metadata, which is JSON, texts too."""
    found, _ = decode(attributes.get(_METADATA + key))
    return found if isinstance(found, str) and found else None


def _failure(span: RawSpan, category: ErrorCategory) -> Error | None:
    """How it failed: as the span says it, or by the observation's level alone."""
    message = values.text(span.attributes, _OBSERVATION + "status_message")
    error = values.failure(span, category)
    if error is None and values.text(span.attributes, _OBSERVATION + "level") == "ERROR":
        error = Error(category, "error", message)
    return replace(error, message=error.message or message) if error is not None else None
