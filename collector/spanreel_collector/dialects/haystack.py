"""Haystack's own spans: pipelines, components and an agent's steps, with values as JSON where content is traced.

Under whatever scope: the application names the tracer. Settings are told only where they were given with the run.
"""

from __future__ import annotations

from dataclasses import replace

from spanreel.model import Agent, Answer, Error, ErrorCategory, Fidelity, Json, ToolKind
from spanreel.records import ModelRecord, Record, RunRecord, ToolRecord
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content import bodies, ends, exchanges, messages, reprs
from spanreel_collector.dialects.content.decoding import decode
from spanreel_collector.span import RawSpan

NAME = "haystack"

_PREFIX = "haystack."
_PIPELINE, _COMPONENT, _AGENT = "haystack.pipeline.run", "haystack.component.run", "haystack.agent.run"
_LLM, _TOOL = "haystack.agent.step.llm", "haystack.agent.step.tool"
_STEPS = (_PIPELINE, _COMPONENT, _AGENT, _LLM, _TOOL, "haystack.agent.step")
_CALLBACK = "'streaming_callback': <"
_ENDS = {
    _PIPELINE: ("haystack.pipeline.input_data", "haystack.pipeline.output_data"),
    _COMPONENT: ("haystack.component.input", "haystack.component.output"),
    _AGENT: ("haystack.agent.input", "haystack.agent.output"),
    _LLM: ("haystack.agent.step.llm.input", "haystack.agent.step.llm.output"),
    _TOOL: ("haystack.agent.step.tool.input", "haystack.agent.step.tool.output"),
}


def speaks(span: RawSpan) -> bool:
    """Whether Haystack wrote the span."""
    return span.name in _STEPS and any(key.startswith(_PREFIX) for key in span.attributes)


def read(span: RawSpan) -> Record | None:
    """What the span says; None of steps, and of components that ask no model, tool or store."""
    if span.name == _LLM:
        return _read_model(span)
    if span.name == _TOOL:
        return _read_tool(span, values.text(span.attributes, "haystack.tool.name") or span.name)
    if span.name == _COMPONENT:
        return _read_component(span)
    return _read_run(span) if span.name in (_PIPELINE, _AGENT) else None


def _read_component(span: RawSpan) -> Record | None:
    kind = values.text(span.attributes, "haystack.component.type") or ""
    name = values.text(span.attributes, "haystack.component.name") or kind
    if kind == "Agent":
        return replace(_read_run(span), agent=Agent(name), outermost_only=False)
    if kind.endswith("Generator"):
        return _read_model(span)
    if kind == "ToolInvoker":
        return _read_invoker(span)
    return replace(_read_tool(span, name), kind=ToolKind.RETRIEVER) if kind.endswith("Retriever") else None


def _values(span: RawSpan) -> tuple[Json, Json]:
    given, came = _ENDS[span.name]
    return _value(span.attributes.get(given)), _value(span.attributes.get(came))


def _value(value: Json) -> Json:
    """A value, which is a repr where something in it is no JSON: the function that a stream is handed to."""
    if not isinstance(value, str) or not value.startswith("{'"):
        return value
    try:
        found = reprs.parse(value)
    except ValueError:
        return value
    if not isinstance(found, dict):
        return value
    offered = found.get("tools")
    tools = [{"data": tool} for tool in offered] if isinstance(offered, list) else offered
    return {**found, "tools": tools, "streaming_callback": _CALLBACK in value or None}


def _read_run(span: RawSpan) -> RunRecord:
    told = ends.read(*_values(span))
    error = values.failure(span, ErrorCategory.OTHER)
    offered, _ = decode(span.attributes.get("haystack.agent.tools"))
    return replace(ends.as_run(told, Agent(), error, outermost_only=True), tools=bodies.read_tools(offered))


def _read_model(span: RawSpan) -> ModelRecord:
    given, came = _values(span)
    exchange = exchanges.read(given, came)
    request, fidelity = exchange.request, dict(exchange.fidelity)
    settings = decode(given)[0]
    chosen = settings.get("generation_kwargs") if isinstance(settings, dict) else None
    error = values.failure(span, ErrorCategory.MODEL)
    if error and fidelity.get("output") is Fidelity.ABSENT:
        del fidelity["output"]
    streamed = isinstance(settings, dict) and settings.get("streaming_callback") is not None
    answer: Answer | None = exchange.answer
    return ModelRecord(
        request=replace(
            request,
            settings={**request.settings, **(bodies.settings(chosen) if isinstance(chosen, dict) else {})},
            stream=streamed,
        ),
        answer=replace(answer, streamed=streamed) if answer is not None else None,
        error=error,
        status=values.status_of(error),
        fidelity=fidelity,
    )


def _read_tool(span: RawSpan, name: str) -> ToolRecord:
    (given, given_state), (came, came_state) = map(decode, _values(span))
    error = values.failure(span, ErrorCategory.TOOL)
    if error is None and span.attributes.get("haystack.tool.error") is True:
        said = values.text(came, "error") if isinstance(came, dict) else None
        error = Error(ErrorCategory.TOOL, "tool_error", said)
    fidelity = {"arguments": given_state, "result": came_state}
    if error and came_state is Fidelity.ABSENT:
        del fidelity["result"]
    return ToolRecord(
        name,
        arguments=given,
        result=came,
        call_id=values.text(span.attributes, "haystack.tool.call.id"),
        description=values.text(span.attributes, "haystack.tool.description"),
        status=values.status_of(error),
        error=error,
        fidelity=values.marks(fidelity),
    )


def _read_invoker(span: RawSpan) -> ToolRecord | None:
    """The one tool call that an invoker made; of several at once, the messages tell."""
    asked, told = (
        [part for message in messages.read_messages(decode(value)[0]) for part in message["parts"]]
        for value in _values(span)
    )
    calls = [part for part in asked if part["type"] == "tool_call" and part["name"]]
    answers = [part for part in told if part["type"] == "tool_call_response"]
    if len(calls) != 1 or len(answers) != 1:
        return None
    (call,), (answer,) = calls, answers
    return ToolRecord(call["name"], arguments=call["arguments"], result=answer["response"], call_id=call["id"])
