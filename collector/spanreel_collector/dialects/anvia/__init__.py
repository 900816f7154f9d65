"""Anvia's spans: ``anvia.*``, none of them a name of the conventions. Usage is read on model calls only.

A run's instructions stand on its span alone; its model calls are made with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spanreel.model import (
    Agent,
    Answer,
    Error,
    ErrorCategory,
    Fidelity,
    Json,
    Message,
    Operation,
    Request,
    Status,
    ToolDefinition,
    ToolKind,
    Usage,
)
from spanreel.records import ModelRecord, Record, RunRecord, ToolRecord
from spanreel_collector.dialects import values
from spanreel_collector.dialects.anvia import messages
from spanreel_collector.dialects.content import ai_sdk, bodies, losses
from spanreel_collector.span import Attributes, RawLog, RawSpan

NAME = "anvia"

_GENERATION, _TOOL, _RUN, _CHILD = "anvia.generation.", "anvia.tool.", "anvia.run.", "anvia.child_agent."
_MODEL_TURN = "model.turn."
_INSTRUCTIONS = "anvia.agent.instructions"
_OUTER_INSTRUCTIONS = "spanreel.instructions"
_SETTINGS = {"temperature": "temperature", "max_tokens": "max_tokens", "tool_choice": "tool_choice"}


def speaks(span: RawSpan) -> bool:
    """Whether the span has attributes of Anvia's that tell of a run or a call."""
    return _kind(span) is not None


def read(span: RawSpan) -> Record | None:
    """What the span says."""
    kind = _kind(span)
    if kind == _GENERATION:
        return _read_model(span)
    if kind == _TOOL:
        return _read_tool(span)
    return _read_run(span) if kind is not None else None


def trace_of(log: RawLog) -> str | None:
    """Anvia's logs are evaluations; they tell of no calls."""
    del log
    return None


def gather(spans: Sequence[RawSpan], logs: Sequence[RawLog]) -> tuple[list[RawSpan], list[RawLog]]:
    """The spans, model calls with the instructions of the run that they stand in."""
    told = {
        (span.trace_id, span.span_id): span.attributes[_INSTRUCTIONS]
        for span in spans
        if isinstance(span.attributes.get(_INSTRUCTIONS), str)
    }
    if not told:
        return list(spans), list(logs)
    return [_instructed(span, told.get((span.trace_id, span.parent_id or ""))) for span in spans], list(logs)


def _instructed(span: RawSpan, instructions: str | None) -> RawSpan:
    if instructions is None or _kind(span) != _GENERATION:
        return span
    return replace(span, attributes={**span.attributes, _OUTER_INSTRUCTIONS: instructions})


def _kind(span: RawSpan) -> str | None:
    """What the span is; a child agent's name stands on all spans of it, a model's on spans of the application too."""
    attributes = span.attributes
    # Every span is asked, and few are of this library.
    if "anvia." not in "\n".join(attributes):
        return None
    if any(f"{_GENERATION}{key}" in attributes for key in ("turn", "input", "output")):
        return _GENERATION
    if _MODEL_TURN in span.name and any(key.startswith((_GENERATION, _CHILD)) for key in attributes):
        return _GENERATION
    if f"{_TOOL}name" in attributes:
        return _TOOL
    named = span.name.startswith("agent.") and "anvia.agent.name" in attributes
    return _RUN if named or any(key.startswith((_RUN, _CHILD)) for key in attributes) else None


# -- runs ------------------------------------------------------------------------------------------------------------


def _read_run(span: RawSpan) -> RunRecord:
    attributes = span.attributes
    asked, state = messages.read_messages(attributes, "anvia.run.prompt")
    history, _ = messages.read_messages(attributes, "anvia.run.history")
    answered = values.text(attributes, "anvia.run.output", "anvia.child_agent.text", "anvia.run.text")
    answered = answered or values.text(attributes, "anvia.child_agent.output")
    parts = ai_sdk.parts(answered)
    error = _failure(span, ErrorCategory.OTHER, "anvia.run.error")
    fidelity = {"input": state, "output": losses.state(answered) if parts else Fidelity.ABSENT}
    if error and not parts:
        del fidelity["output"]
    instructions = _system(values.text(attributes, _INSTRUCTIONS))
    return RunRecord(
        agent=Agent(
            values.text(attributes, "anvia.agent.name", "anvia.child_agent.name", "anvia.child_agent.id"),
            values.text(attributes, "anvia.child_agent.id"),
        ),
        input=(*instructions, *history, *asked),
        output=({"role": "assistant", "parts": parts},) if parts else (),
        status=values.status_of(error),
        error=error,
        fidelity=values.marks(fidelity),
    )


def _system(text: str | None) -> tuple[Message, ...]:
    return ({"role": "system", "parts": [{"type": "text", "content": text}]},) if text else ()


# -- model calls -----------------------------------------------------------------------------------------------------


def _read_model(span: RawSpan) -> ModelRecord:
    attributes = span.attributes
    asked, state = messages.read_messages(attributes, "anvia.generation.input")
    instructions = values.text(attributes, "anvia.generation.instructions", _OUTER_INSTRUCTIONS)
    # What stands in no parameter of Anvia's own goes to the provider as it is.
    settings = bodies.settings(values.members(attributes.get("anvia.generation.additional_params")))
    settings |= {
        name: attributes[f"{_GENERATION}{key}"]
        for key, name in _SETTINGS.items()
        if attributes.get(f"{_GENERATION}{key}") is not None
    }
    schema = values.decoded(attributes, "anvia.generation.output_schema")
    if isinstance(schema, dict):
        settings["response_format"] = schema
    answer, output = _read_answer(attributes)
    error = values.failure(span, ErrorCategory.MODEL)
    fidelity = {"input": state, "output": output}
    if error and output is Fidelity.ABSENT:
        del fidelity["output"]
    streamed = "anvia.generation.first_delta_ms" in attributes
    first_delta = values.number(attributes, "anvia.generation.first_delta_ms")
    return ModelRecord(
        request=Request(
            Operation.CHAT,
            _model(attributes),
            messages=asked,
            instructions=({"type": "text", "content": instructions},) if instructions else (),
            tools=_tools(attributes),
            settings=settings,
            stream=streamed,
        ),
        answer=replace(answer, streamed=streamed) if answer else None,
        provider=ai_sdk.provider(values.text(attributes, "anvia.generation.provider")),
        time_to_first_chunk=None if first_delta is None else first_delta / 1000,
        error=error,
        status=values.status_of(error),
        raw_request=values.text(attributes, "anvia.generation.input") if state is not Fidelity.WHOLE else None,
        fidelity=values.marks(fidelity),
    )


def _model(attributes: Attributes) -> str | None:
    named = (values.text(attributes, f"{_GENERATION}{key}") for key in ("model_id", "model", "default_model"))
    return next((name for name in named if name and name.strip().lower() != "default"), None)


def _tools(attributes: Attributes) -> tuple[ToolDefinition, ...]:
    """The tools on offer: the agent's, and those that the provider runs itself."""
    given = (attributes.get(f"anvia.generation.{key}") for key in ("tool_definitions", "provider_tools"))
    return tuple(tool for tools in given for tool in values.tools(tools)[0])


def _read_answer(attributes: Attributes) -> tuple[Answer | None, Fidelity]:
    given = attributes.get("anvia.generation.output")
    found, state = values.decode(given)
    if isinstance(found, dict):
        found = found.get("choice", found.get("content"))
    if state is Fidelity.TRUNCATED:
        found = values.items_of(given, parts_depth=2)[0]
    parts = messages.read_parts(found)
    if not parts:
        parts = ai_sdk.parts(values.text(attributes, "anvia.generation.output_text"))
    usage = Usage(
        input_tokens=values.integer(attributes, "anvia.usage.input_tokens"),
        output_tokens=values.integer(attributes, "anvia.usage.output_tokens"),
        cache_read_tokens=values.integer(attributes, "anvia.usage.cached_input_tokens"),
        cache_write_tokens=values.integer(attributes, "anvia.usage.cache_creation_input_tokens"),
    )
    identity = values.text(attributes, "anvia.generation.message_id")
    if not parts and usage == Usage() and identity is None:
        return None, Fidelity.ABSENT
    answer = Answer(
        response_id=identity,
        messages=({"role": "assistant", "parts": parts},) if parts else (),
        usage=values.whole_usage(usage) if usage != Usage() else None,
    )
    return answer, losses.graver(state, losses.state(parts)) if parts else Fidelity.ABSENT


# -- tool calls ------------------------------------------------------------------------------------------------------


def _read_tool(span: RawSpan) -> ToolRecord:
    attributes = span.attributes
    error = _failure(span, ErrorCategory.TOOL, "anvia.tool.error")
    arguments, arguments_state = _value(attributes, "anvia.tool.args")
    result, result_state = _value(attributes, "anvia.tool.result")
    fidelity = {"arguments": arguments_state, "result": result_state}
    if error and result_state is Fidelity.ABSENT:
        del fidelity["result"]
    skipped = attributes.get("anvia.tool.skipped") is True
    return ToolRecord(
        name=values.text(attributes, "anvia.tool.name") or span.name,
        arguments=arguments,
        result=result,
        call_id=values.text(attributes, "anvia.tool.call_id") or _asked_id(attributes),
        kind=ToolKind.FUNCTION,
        status=Status.BLOCKED if skipped else values.status_of(error),
        error=error,
        fidelity=values.marks(fidelity),
    )


def _failure(span: RawSpan, category: ErrorCategory, key: str) -> Error | None:
    """How the span failed, in the words of the attribute where nothing else has any."""
    error, said = values.failure(span, category), values.text(span.attributes, key)
    if said is None:
        return error
    return Error(category, "error", said) if error is None else replace(error, message=error.message or said)


def _asked_id(attributes: Attributes) -> str | None:
    """The id in the request for the call, which the span repeats; the id of Anvia's own means nothing to the model."""
    return messages.call_id_of(values.members(attributes.get("anvia.tool.call")))


def _value(attributes: Attributes, key: str) -> tuple[Json, Fidelity]:
    if attributes.get(key) is None:
        return None, Fidelity.ABSENT
    found, state = values.decode(attributes[key])
    return found, losses.graver(state, losses.state(found))
