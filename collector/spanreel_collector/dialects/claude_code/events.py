"""Claude Code's events, which are logs: joined to the spans that they tell of, or made into spans where there are none.

Events carry the interaction's span id, whatever they tell of. Ids of requests and tool calls tell them apart, and their
order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spanreel_collector.dialects import values
from spanreel_collector.dialects.claude_code.names import (
    BODY,
    CALLS,
    SUBAGENT,
    digest,
    event_name,
    is_ours,
    kind_of,
    text_of,
)
from spanreel_collector.dialects.claude_code.spans import make
from spanreel_collector.span import RawEvent, RawLog, RawSpan

ASKED = "spanreel.asked"
"""An event that we put on a model call: a tool call that followed it, by that call's attributes."""
EXECUTION = "spanreel.execution"
"""An event that we put on a tool call: how its execution, a span of its own, ended."""

_ANSWERS = ("assistant_response", "api_response_body")
_BODIES = ("system_prompt", "tool")
_COUNTS = ("model", "input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")


def trace_of(log: RawLog) -> str | None:
    """A trace for the events of a session that was recorded without traces."""
    session = values.text(log.attributes, "session.id")
    return digest(session)[:32] if session and is_ours(log.origin.scope, log.body) else None


def gather(spans: Sequence[RawSpan], logs: Sequence[RawLog]) -> tuple[list[RawSpan], list[RawLog]]:
    """The spans with the events that tell of them; of traces that have none, spans made of events; and other logs."""
    events: dict[str, list[RawLog]] = defaultdict(list)
    others: list[RawLog] = []
    for log in logs:
        if log.trace_id is not None and is_ours(log.origin.scope, log.body):
            events[log.trace_id].append(log)
        else:
            others.append(log)
    ours: dict[str, list[RawSpan]] = defaultdict(list)
    for span in spans:
        if span.name.startswith(BODY):
            ours[span.trace_id].append(span)
    if not events and not ours:
        return list(spans), list(logs)
    bodies = [log for found in events.values() for log in found if event_name(log) in _BODIES]
    joined: dict[tuple[str, str], RawSpan] = {}
    for trace in {**ours, **events}:
        ordered = _ordered(events.get(trace, ()))
        for span in _join(ours.get(trace) or list(make(trace, ordered)), ordered, bodies):
            joined[trace, span.span_id] = span
    kept = [joined.pop((span.trace_id, span.span_id), span) for span in spans]
    return [*kept, *joined.values()], others


def _ordered(logs: Iterable[RawLog]) -> list[RawLog]:
    """The events of a trace in the order in which they were written, each once."""
    once: dict[str, RawLog] = {}
    for log in logs:
        once.setdefault(repr((log.time, sorted(log.attributes.items(), key=lambda item: item[0]))), log)
    return sorted(once.values(), key=lambda log: (values.integer(log.attributes, "event.sequence") or 0, log.time))


@dataclass(eq=False, slots=True)
class _Call:
    """The events of one model call."""

    ended: RawLog
    around: list[RawLog] = field(default_factory=list)

    def answers(self, log: RawLog) -> bool:
        """Whether the event tells of this call's answer."""
        said, asked = log.attributes.get("request_id"), self.ended.attributes.get("request_id")
        return said == asked and _source(log) == _source(self.ended)


def _calls(events: list[RawLog]) -> list[_Call]:
    """The model calls that events tell of: a body goes before what it is the body of, an answer after."""
    calls: list[_Call] = []
    waiting: dict[Any, list[RawLog]] = defaultdict(list)
    for log in events:
        name = event_name(log)
        if name == "api_request_body":
            waiting[_source(log)].append(log)
        elif name in CALLS:
            bodies = waiting[_source(log)]
            calls.append(_Call(log, [log, *([bodies.pop(0)] if bodies else [])]))
        elif name in _ANSWERS:
            call = next((call for call in reversed(calls) if call.answers(log)), None)
            if call is not None:
                call.around.append(log)
    return calls


def _source(log: RawLog) -> tuple[Any, Any]:
    return text_of(log.attributes, "query_source"), text_of(log.attributes, "model")


# -- events to spans that are there ----------------------------------------------------------------------------------


def _join(spans: list[RawSpan], events: list[RawLog], bodies: list[RawLog]) -> list[RawSpan]:
    tools: dict[Any, list[RawLog]] = defaultdict(list)
    for log in events:
        if event_name(log) in ("tool_result", "tool_decision"):
            tools[text_of(log.attributes, "tool_use_id")].append(log)
    calls = _calls(events)
    of_spans = _match([span for span in spans if kind_of(span) == "llm_request"], calls)
    says_texts = any(event_name(log) == "assistant_response" for log in events)
    executions = {span.parent_id: span for span in spans if kind_of(span) == "tool.execution"}
    joined = []
    for span in spans:
        kind = kind_of(span)
        if kind == "llm_request":
            call = of_spans.get(span.span_id)
            logs = (*(call.around if call else ()), *_named_bodies(span, bodies))
            told = {"says_texts": True} if call is not None and says_texts else {}
            asked = [_asked(tool, tools) for tool in _tools_after(span, spans)]
            span = replace(  # noqa: PLW2901 the same, with what is told of it
                span, logs=logs, attributes={**span.attributes, **told}, events=(*span.events, *asked)
            )
        elif kind == "tool":
            inside = executions.get(span.span_id)
            ended = (RawEvent(EXECUTION, inside.end, inside.attributes),) if inside is not None else ()
            logs = tuple(tools.get(text_of(span.attributes, "tool_use_id"), ()))
            span = replace(span, logs=logs, events=(*span.events, *ended))  # noqa: PLW2901 as above
        elif kind == "interaction":
            span = replace(span, logs=_ends(span, events, calls))  # noqa: PLW2901 as above
        joined.append(span)
    return joined


def _match(spans: list[RawSpan], calls: list[_Call]) -> dict[str, _Call]:
    """The calls that events tell of, by the ids of their spans: by request id, else by what was counted, in order."""
    matched: dict[str, _Call] = {}
    left = list(calls)
    for span in sorted(spans, key=lambda span: span.end or span.start):
        wanted = span.attributes.get("request_id")
        found = next((call for call in left if wanted and call.ended.attributes.get("request_id") == wanted), None)
        if found is None:
            found = next((call for call in left if _counts(call.ended.attributes) == _counts(span.attributes)), None)
        if found is not None:
            left.remove(found)
            matched[span.span_id] = found
    return matched


def _counts(attributes: Mapping[str, Any]) -> tuple[Any, ...]:
    return (attributes.get("model"), *(values.integer(attributes, key) for key in _COUNTS[1:]))


def _named_bodies(span: RawSpan, bodies: list[RawLog]) -> list[RawLog]:
    """The bodies, logged once a session, that the span names by their hashes."""
    named = str(span.attributes.get("tools"))
    prompt = span.attributes.get("system_prompt_hash")
    return [
        log
        for log in bodies
        if (prompt and log.attributes.get("system_prompt_hash") == prompt)
        or (log.attributes.get("tool_hash") and str(log.attributes["tool_hash"]) in named)
    ]


def _tools_after(span: RawSpan, spans: list[RawSpan]) -> list[RawSpan]:
    """The tool calls that ran beside this model call and after its start, before the next one's."""
    beside = [other for other in spans if _stands(other) == _stands(span)]
    later = [other.start for other in beside if kind_of(other) == "llm_request" and other.start > span.start]
    until = min(later, default=None)
    return [
        other
        for other in sorted(beside, key=lambda other: other.start)
        if kind_of(other) == "tool" and span.start <= other.start and (until is None or other.start < until)
    ]


def _stands(span: RawSpan) -> tuple[Any, ...]:
    return span.parent_id, span.attributes.get("agent_id")


def _asked(tool: RawSpan, logs: Mapping[Any, list[RawLog]]) -> RawEvent:
    attributes = dict(tool.attributes)
    for log in logs.get(text_of(tool.attributes, "tool_use_id"), ()):
        attributes["log"] = dict(log.attributes)
        attributes["tool_parameters"] = log.attributes.get("tool_parameters")
    return RawEvent(ASKED, tool.start, attributes)


def _ends(span: RawSpan, events: list[RawLog], calls: list[_Call]) -> tuple[RawLog, ...]:
    """What the user said in this interaction, and what the last of its calls came to."""
    prompt = span.attributes.get("prompt.id")
    inside = [log for log in events if _is_inside(log, span, prompt)]
    found = [log for log in inside if event_name(log) == "user_prompt"][-1:]
    own = [call for call in calls if call.ended in inside and not str(_source(call.ended)[0]).startswith(SUBAGENT)]
    if own:
        found += [log for log in own[-1].around if event_name(log) in ("assistant_response", "api_error")]
    return tuple(found)


def _is_inside(log: RawLog, span: RawSpan, prompt: Any) -> bool:
    if prompt is not None:
        return bool(log.attributes.get("prompt.id") == prompt)
    return log.span_id == span.span_id
