"""LiveKit Agents: what its spans have beside the conventions' names, or, before those, instead of them.

The session of a room only holds the turns of its agents, each of which answers something that a user said.
"""

from __future__ import annotations

from dataclasses import replace

from spanreel import conventions as names
from spanreel.model import Error, ErrorCategory, Fidelity, Json, Message, Status
from spanreel.records import Record, RunRecord, ToolRecord
from spanreel_collector.dialects import genai_spans, genai_variants, values
from spanreel_collector.dialects.content.blocks import parts_of
from spanreel_collector.span import Attributes, RawEvent, RawSpan

NAME = "livekit"

_SCOPE = "livekit-agents"
_MODEL, _TOOL, _SESSION = "llm_request", "function_tool", "agent_session"
_METRICS = "lk.llm_metrics"
_FAILED = "lk.function_tool.is_error"
_CALLS = "tool_calls"
_CONVENTIONAL = {
    names.TOOL_NAME: ("lk.function_tool.name",),
    names.TOOL_CALL_ID: ("lk.function_tool.id",),
    names.TOOL_CALL_ARGUMENTS: ("lk.function_tool.arguments", "lk.pii.function_tool.arguments"),
    names.TOOL_CALL_RESULT: ("lk.function_tool.output", "lk.pii.function_tool.output"),
}
"""Each name of the conventions, and those that LiveKit had before; content is marked as personal since 1.5."""
_ASKED = ("lk.user_input", "lk.pii.user_input")
_ANSWERED = ("lk.response.text", "lk.pii.response.text")


def speaks(span: RawSpan) -> bool:
    """Whether LiveKit wrote the span."""
    return span.origin.scope == _SCOPE


def read(span: RawSpan) -> Record | None:
    """What the span says; None for what only groups, as the session of a room does."""
    if span.name == _SESSION:
        return None
    if span.name == _MODEL:
        events = tuple(_with_calls(event) for event in span.events)
        return _read(replace(span, attributes=_of_model(span.attributes), events=events))
    if span.name == _TOOL:
        record = _read(replace(span, attributes=_of_tool(span.attributes)))
        return _failed(record, span.attributes) if isinstance(record, ToolRecord) else record
    record = _read(span)
    return _with_words(record, span.attributes) if isinstance(record, RunRecord) else record


def _read(span: RawSpan) -> Record | None:
    return genai_spans.read(genai_variants.conventional(span))


def _of_model(attributes: Attributes) -> Attributes:
    """A model call's attributes, with what its metrics alone tell."""
    metrics = values.members(attributes.get(_METRICS))
    told: dict[str, Json] = {
        names.OPERATION: "chat",
        names.REQUEST_STREAM: True,
        names.RESPONSE_ID: metrics.get("request_id"),
        names.USAGE_CACHE_READ_TOKENS: metrics.get("prompt_cached_tokens"),
    }
    return {**{key: value for key, value in told.items() if value is not None}, **attributes}


def _of_tool(attributes: Attributes) -> Attributes:
    told: dict[str, Json] = {names.OPERATION: "execute_tool"}
    for name, keys in _CONVENTIONAL.items():
        value = next((attributes[key] for key in keys if attributes.get(key) is not None), None)
        if value is not None:
            told[name] = value
    return {**told, **attributes}


def _with_calls(event: RawEvent) -> RawEvent:
    """An event of old whose calls of tools are texts of JSON, with the calls."""
    calls = event.attributes.get(_CALLS)
    if not isinstance(calls, list):
        return event
    return replace(event, attributes={**event.attributes, _CALLS: [values.decode(call)[0] for call in calls]})


def _failed(record: ToolRecord, attributes: Attributes) -> ToolRecord:
    """The call with its failure, of which a model is told what would else be the result."""
    if attributes.get(_FAILED) is not True:
        return record
    said = values.text(attributes, *_CONVENTIONAL[names.TOOL_CALL_RESULT])
    error = Error(ErrorCategory.TOOL, values.text(attributes, names.ERROR_TYPE) or "tool_error", said)
    fidelity = {key: state for key, state in record.fidelity.items() if key != "result" or state is not Fidelity.ABSENT}
    return replace(record, status=Status.ERROR, error=error, fidelity=fidelity)


def _with_words(record: RunRecord, attributes: Attributes) -> RunRecord:
    """The turn with what the user said, and what the agent answered."""
    asked = record.input or _words("user", values.text(attributes, *_ASKED))
    answered = record.output or _words("assistant", values.text(attributes, *_ANSWERED))
    told = {"input": asked, "output": answered}
    fidelity = {key: state for key, state in record.fidelity.items() if not told.get(key)}
    return replace(record, input=asked, output=answered, fidelity=fidelity)


def _words(role: str, text: str | None) -> tuple[Message, ...]:
    return ({"role": role, "parts": parts_of(text)},) if text else ()
