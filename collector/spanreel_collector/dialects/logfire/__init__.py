"""Logfire's own spans: of model SDKs, by the GenAI conventions or as whole bodies, and of the OpenAI Agents SDK.

A span's name is a template. Of a stream there are two spans: the request's, and a log when it has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spanreel import conventions as names
from spanreel.model import Answer, ErrorCategory, Fidelity, Json, Operation, Usage
from spanreel.protocols.anthropic.answers import read_usage
from spanreel.records import ModelRecord, Record
from spanreel_collector.dialects import genai_spans, values
from spanreel_collector.dialects.content import bodies, messages, tokens
from spanreel_collector.dialects.logfire import agents, functions
from spanreel_collector.span import Attributes, RawLog, RawSpan

NAME = "logfire"

_SCOPE = "logfire"
_ANTHROPIC = "logfire.anthropic"
_TYPE = "logfire.span_type"
_STREAMED = "streaming response from "
_REQUEST, _RESPONSE = "request_data", "response_data"
_RAW_USAGE = "gen_ai.usage.raw"


def speaks(span: RawSpan) -> bool:
    """Whether Logfire wrote the span."""
    return span.origin.scope.partition(".")[0] == _SCOPE


def read(span: RawSpan) -> Record | None:
    """What the span says; None where it only groups others, and for the record of a span that has only begun."""
    if span.attributes.get(_TYPE) == "pending_span":
        return None
    if span.origin.scope == agents.SCOPE:
        return agents.read(span)
    record = genai_spans.read(span)
    if isinstance(record, ModelRecord) and names.INPUT_MESSAGES in span.attributes:
        return _with_raw_usage(record, span.attributes)
    # Spans of before release 4.18 or so name no operation.
    if isinstance(values.decoded(span.attributes, _REQUEST), dict) and span.origin.scope != _SCOPE:
        return _read_bodies(span, record if isinstance(record, ModelRecord) else None)
    if record is None and names.REQUEST_MODEL in span.attributes and "events" in span.attributes:
        return _read_events(span)
    return record


def gather(spans: Sequence[RawSpan], logs: Sequence[RawLog]) -> tuple[list[RawSpan], list[RawLog]]:
    """The spans with what a stream's log says put on its request's span; the agents' traces that are runs marked."""
    if not any(speaks(span) for span in spans):
        return list(spans), list(logs)
    ended = {span.span_id: span for span in spans if speaks(span) and span.name.startswith(_STREAMED)}
    open_requests = [span for span in spans if speaks(span) and _is_streamed_request(span, ended)]
    joined: dict[str, RawSpan] = {}
    for log in sorted(ended.values(), key=lambda span: span.start):
        mine = [one for one in open_requests if one.span_id not in joined and _began(one, log)]
        if mine:
            request = max(mine, key=lambda span: span.start)
            told = {key: value for key, value in log.attributes.items() if not key.startswith("logfire.")}
            joined[request.span_id] = replace(request, attributes={**request.attributes, **told}, end=log.end)
            del ended[log.span_id]
    left = {log.span_id for log in ended.values()}
    kept = [
        joined.get(span.span_id, span)
        for span in spans
        if not span.name.startswith(_STREAMED) or not speaks(span) or span.span_id in left
    ]
    return functions.mark_tools(agents.mark_runs(kept)), list(logs)


def trace_of(_log: RawLog) -> str | None:
    """Logfire writes no log records that name no trace."""
    return None


def _is_streamed_request(span: RawSpan, ended: dict[str, RawSpan]) -> bool:
    answered = names.OUTPUT_MESSAGES in span.attributes or _RESPONSE in span.attributes
    return span.span_id not in ended and _REQUEST in span.attributes and not answered


def _began(request: RawSpan, log: RawSpan) -> bool:
    """Whether a stream's log is of this request: both tell what was asked."""
    same = all(
        request.attributes.get(key) == log.attributes.get(key)
        for key in (_REQUEST, names.INPUT_MESSAGES, names.REQUEST_MODEL)
    )
    return same and request.parent_id == log.parent_id and request.start <= log.start


def _with_raw_usage(record: ModelRecord, attributes: Attributes) -> ModelRecord:
    """The call with the counts that only the provider's own usage tells, such as that of reasoning."""
    told = tokens.read(values.decoded(attributes, _RAW_USAGE))
    if told is None or record.answer is None or record.answer.usage is None:
        return record
    usage = record.answer.usage
    reasoning = usage.reasoning_tokens if usage.reasoning_tokens is not None else told.reasoning_tokens
    return replace(record, answer=replace(record.answer, usage=replace(usage, reasoning_tokens=reasoning)))


def _read_events(span: RawSpan) -> Record | None:
    """A call of the Responses API of before the conventions: the messages are told as old events."""
    asked, answered = agents.of_events(span.attributes)
    record = genai_spans.read(replace(span, attributes={**span.attributes, names.OPERATION: "chat"}))
    if not isinstance(record, ModelRecord):
        return record
    known = {"input": bool(asked.messages), "output": bool(answered.messages) or record.error is not None}
    return replace(
        record,
        request=replace(record.request, messages=asked.messages),
        answer=None if record.error else replace(record.answer or Answer(), messages=answered.messages),
        fidelity={field: Fidelity.ABSENT for field, found in known.items() if not found},
    )


def _read_bodies(span: RawSpan, known: ModelRecord | None) -> ModelRecord | None:
    """A call of before the conventions: the whole request, and of the response its message and usage."""
    attributes = span.attributes
    body, state = values.decode(attributes[_REQUEST])
    found = bodies.read_request(body)
    if found is None:
        return known
    answer = _read_response(span, known.answer if known is not None else None)
    error = values.failure(span, ErrorCategory.MODEL)
    asked = replace(found[0], stream=found[0].stream or (isinstance(body, dict) and body.get("stream") is True))
    fidelity = {"input": state} if state is not Fidelity.WHOLE else {}
    if error is None and (answer is None or not answer.messages):
        fidelity["output"] = Fidelity.ABSENT
    return ModelRecord(
        request=replace(asked, operation=Operation.CHAT),
        answer=answer,
        provider=values.text(attributes, names.PROVIDER, "gen_ai.system"),
        error=error,
        status=values.status_of(error),
        fidelity=fidelity,
    )


def _read_response(span: RawSpan, known: Answer | None) -> Answer | None:
    attributes = span.attributes
    told = values.members(attributes.get(_RESPONSE))
    message, streamed = told.get("message"), told.get("combined_chunk_content")
    said = messages.read_messages([message]) if isinstance(message, dict) else ()
    of_anthropic = span.origin.scope == _ANTHROPIC
    if of_anthropic:
        said = tuple({**one, "parts": [_without_input(part) for part in one["parts"]]} for one in said)
    if isinstance(streamed, str) and not said:
        said = ({"role": "assistant", "parts": [{"type": "text", "content": streamed}]},)
    read = read_usage if of_anthropic else tokens.read
    usage: Usage | None = read(told.get("usage"))
    answer = replace(known or Answer(), streamed=streamed is not None)
    model = answer.model or values.text(attributes, names.RESPONSE_MODEL)
    answer = replace(answer, messages=said or answer.messages, usage=usage or answer.usage, model=model)
    return answer if answer != Answer() else None


def _without_input(part: dict[str, Json]) -> dict[str, Json]:
    """The part, a tool call's arguments out of the block of Anthropic's that they are kept with."""
    arguments = part.get("arguments")
    wrapped = part["type"] == "tool_call" and isinstance(arguments, dict) and set(arguments) == {"input"}
    return {**part, "arguments": arguments["input"]} if wrapped and isinstance(arguments, dict) else part
