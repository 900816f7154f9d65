"""Claude Code's events, which are logs: joined to the spans that they tell of, or made into spans where there are none.

Events carry the interaction's span id, whatever they tell of. Ids of requests and tool calls tell them apart, and their
order.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spanreel_collector.dialects import values
from spanreel_collector.span import RawEvent, RawLog, RawSpan

ASKED = "spanreel.asked"
"""An event that we put on a model call: a tool call that followed it, by that call's attributes."""
EXECUTION = "spanreel.execution"
"""An event that we put on a tool call: how its execution, a span of its own, ended."""

_SCOPE = "com.anthropic.claude_code"
_BODY = "claude_code."
_CALLS = ("api_request", "api_error")
_ANSWERS = ("assistant_response", "api_response_body")
_BODIES = ("system_prompt", "tool")
_COUNTS = ("model", "input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")
_SUBAGENT = "agent:"
_TASKS = ("Task", "Agent")


def event_name(log: RawLog) -> str:
    """The event's name without its prefix."""
    name = log.event_name or values.text(log.attributes, "event.name")
    return (name or (log.body if isinstance(log.body, str) else "")).removeprefix(_BODY)


def trace_of(log: RawLog) -> str | None:
    """A trace for the events of a session that was recorded without traces."""
    session = values.text(log.attributes, "session.id")
    return _digest(session)[:32] if session and _is_ours(log.origin.scope, log.body) else None


def gather(spans: Sequence[RawSpan], logs: Sequence[RawLog]) -> tuple[list[RawSpan], list[RawLog]]:
    """The spans with the events that tell of them; of traces that have none, spans made of events; and other logs."""
    events: dict[str, list[RawLog]] = defaultdict(list)
    others: list[RawLog] = []
    for log in logs:
        if log.trace_id is not None and _is_ours(log.origin.scope, log.body):
            events[log.trace_id].append(log)
        else:
            others.append(log)
    ours: dict[str, list[RawSpan]] = defaultdict(list)
    for span in spans:
        if span.name.startswith(_BODY):
            ours[span.trace_id].append(span)
    if not events and not ours:
        return list(spans), list(logs)
    bodies = [log for found in events.values() for log in found if event_name(log) in _BODIES]
    joined: dict[tuple[str, str], RawSpan] = {}
    for trace in {**ours, **events}:
        ordered = _ordered(events.get(trace, ()))
        for span in _join(ours.get(trace) or list(_made(trace, ordered)), ordered, bodies):
            joined[trace, span.span_id] = span
    kept = [joined.pop((span.trace_id, span.span_id), span) for span in spans]
    return [*kept, *joined.values()], others


def _is_ours(scope: str, body: Any) -> bool:
    return scope.startswith(_SCOPE) or (isinstance(body, str) and body.startswith(_BODY))


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
        elif name in _CALLS:
            bodies = waiting[_source(log)]
            calls.append(_Call(log, [log, *([bodies.pop(0)] if bodies else [])]))
        elif name in _ANSWERS:
            call = next((call for call in reversed(calls) if call.answers(log)), None)
            if call is not None:
                call.around.append(log)
    return calls


def _source(log: RawLog) -> tuple[Any, Any]:
    return log.attributes.get("query_source"), log.attributes.get("model")


# -- events to spans that are there ----------------------------------------------------------------------------------


def _join(spans: list[RawSpan], events: list[RawLog], bodies: list[RawLog]) -> list[RawSpan]:
    tools: dict[Any, list[RawLog]] = defaultdict(list)
    for log in events:
        if event_name(log) in ("tool_result", "tool_decision"):
            tools[log.attributes.get("tool_use_id")].append(log)
    calls = _calls(events)
    of_spans = _match([span for span in spans if _kind(span) == "llm_request"], calls)
    says_texts = any(event_name(log) == "assistant_response" for log in events)
    executions = {span.parent_id: span for span in spans if _kind(span) == "tool.execution"}
    joined = []
    for span in spans:
        kind = _kind(span)
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
            logs = tuple(tools.get(span.attributes.get("tool_use_id"), ()))
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
    later = [other.start for other in beside if _kind(other) == "llm_request" and other.start > span.start]
    until = min(later, default=None)
    return [
        other
        for other in sorted(beside, key=lambda other: other.start)
        if _kind(other) == "tool" and span.start <= other.start and (until is None or other.start < until)
    ]


def _stands(span: RawSpan) -> tuple[Any, ...]:
    return span.parent_id, span.attributes.get("agent_id")


def _asked(tool: RawSpan, logs: Mapping[Any, list[RawLog]]) -> RawEvent:
    attributes = dict(tool.attributes)
    for log in logs.get(tool.attributes.get("tool_use_id"), ()):
        attributes["log"] = dict(log.attributes)
        attributes["tool_parameters"] = log.attributes.get("tool_parameters")
    return RawEvent(ASKED, tool.start, attributes)


def _ends(span: RawSpan, events: list[RawLog], calls: list[_Call]) -> tuple[RawLog, ...]:
    """What the user said in this interaction, and what the last of its calls came to."""
    prompt = span.attributes.get("prompt.id")
    inside = [log for log in events if _is_inside(log, span, prompt)]
    found = [log for log in inside if event_name(log) == "user_prompt"][-1:]
    own = [call for call in calls if call.ended in inside and not str(_source(call.ended)[0]).startswith(_SUBAGENT)]
    if own:
        found += [log for log in own[-1].around if event_name(log) in ("assistant_response", "api_error")]
    return tuple(found)


def _is_inside(log: RawLog, span: RawSpan, prompt: Any) -> bool:
    if prompt is not None:
        return bool(log.attributes.get("prompt.id") == prompt)
    return log.span_id == span.span_id


# -- spans of events -------------------------------------------------------------------------------------------------


def _made(trace: str, events: list[RawLog]) -> Iterable[RawSpan]:
    """The spans that Claude Code would have written of these events, as far as they tell."""
    prompts: dict[Any, list[RawLog]] = defaultdict(list)
    for log in events:
        if log.attributes.get("prompt.id"):
            prompts[log.attributes["prompt.id"]].append(log)
    for prompt, inside in prompts.items():
        if not any(event_name(log) in ("user_prompt", "tool_result", *_CALLS) for log in inside):
            continue
        root = _digest(trace, str(prompt))[:16]
        made = [_span(log, root, _call_attributes(log)) for log in inside if event_name(log) in _CALLS]
        made += [_span(log, root, _tool_attributes(log)) for log in _tool_ends(inside)]
        made = _nested(made)
        starts = [span.start for span in made] + [log.time for log in inside]
        first = inside[0]
        attributes = {**_common(first), "span.type": "interaction", "prompt.id": prompt}
        yield replace(
            _span(first, None, attributes), span_id=root, start=min(starts), end=max(log.time for log in inside)
        )
        yield from made


def _tool_ends(inside: list[RawLog]) -> list[RawLog]:
    """How each tool call ended: with a result, or refused."""
    ended = {log.attributes.get("tool_use_id"): log for log in inside if event_name(log) == "tool_decision"}
    ended = {key: log for key, log in ended.items() if log.attributes.get("decision") == "reject"}
    ended.update({log.attributes.get("tool_use_id"): log for log in inside if event_name(log) == "tool_result"})
    return list(ended.values())


def _span(log: RawLog, parent: str | None, attributes: Mapping[str, Any]) -> RawSpan:
    milliseconds = values.integer(log.attributes, "duration_ms") or 0
    identity = _digest(log.trace_id or "", event_name(log), str(log.attributes.get("event.sequence")), str(log.time))
    return RawSpan(
        trace_id=log.trace_id or "",
        span_id=identity[:16],
        parent_id=parent,
        name=f"{_BODY}{attributes['span.type']}",
        kind=1,
        start=max(0, log.time - milliseconds * 1_000_000),
        end=log.time,
        attributes=attributes,
        origin=log.origin,
        place=log.place,
    )


def _common(log: RawLog) -> dict[str, Any]:
    return {key: log.attributes[key] for key in ("session.id", "user.id") if key in log.attributes}


def _call_attributes(log: RawLog) -> dict[str, Any]:
    kept = {key: value for key, value in log.attributes.items() if not key.startswith(("event.", "prompt."))}
    return {**kept, "span.type": "llm_request", "success": event_name(log) == "api_request"}


def _tool_attributes(log: RawLog) -> dict[str, Any]:
    attributes = {**_common(log), "span.type": "tool", "tool_use_id": log.attributes.get("tool_use_id")}
    return {**attributes, "tool_name": log.attributes.get("tool_name")}


def _nested(spans: list[RawSpan]) -> list[RawSpan]:
    """Model calls of sub-agents inside the tool call that ran then, and tool calls made after these, with them."""
    tasks = [span for span in spans if span.attributes.get("tool_name") in _TASKS]
    inside: dict[str, list[RawSpan]] = defaultdict(list)
    for span in spans:
        around = [task for task in tasks if task.start <= span.start and span.end <= task.end]
        if len(around) == 1 and str(span.attributes.get("query_source")).startswith(_SUBAGENT):
            inside[around[0].span_id].append(span)
    homes = {span.span_id: task for task, found in inside.items() for span in found}
    for task in tasks:
        first = min((span.start for span in inside[task.span_id]), default=None)
        for span in spans:
            late = first is not None and first <= span.start and span.end <= task.end
            if span is not task and _kind(span) == "tool" and late:
                homes.setdefault(span.span_id, task.span_id)
    return [replace(span, parent_id=homes.get(span.span_id, span.parent_id)) for span in spans]


def _kind(span: RawSpan) -> Any:
    return span.attributes.get("span.type")


def _digest(*texts: str) -> str:
    return hashlib.sha256("\x1f".join(("claude-code", *texts)).encode("utf-8", "replace")).hexdigest()
