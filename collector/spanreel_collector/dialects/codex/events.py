"""Spans made of Codex's events: a conversation's are put together, since most of them name no trace.

Where only spans were exported, those of the thousands that tell of the agent are marked as such.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spanreel_collector.dialects import values
from spanreel_collector.dialects.codex.names import ASKED, KIND, conversation, digest, event_name, is_ours, is_refused
from spanreel_collector.dialects.content.event_spans import span_of
from spanreel_collector.span import RawLog, RawSpan

_REQUESTS = ("api_request", "websocket_request")
_STREAM = ("sse_event", "websocket_event")
_TOLD = ("user_prompt", "tool_decision", "tool_result", *_REQUESTS, *_STREAM)
_INPUT = ("input_token_count", "gen_ai.usage.input_tokens")
_TURN, _SAMPLING = "session_task.turn", "codex.sampling"
_PHASE = "codex.tool.phase"


def trace_of(log: RawLog) -> str | None:
    """A trace for all events of a conversation, also for those that name the trace of the program's own work."""
    identity = conversation(log.attributes)
    return _trace(identity) if identity and is_ours(log.origin) else None


def linked(span: RawSpan) -> frozenset[str]:
    """The trace that the events of the span's conversation are put into."""
    identity = conversation(span.attributes)
    return frozenset((_trace(identity),)) if identity and is_ours(span.origin) else frozenset()


def gather(spans: Sequence[RawSpan], logs: Sequence[RawLog]) -> tuple[list[RawSpan], list[RawLog]]:
    """Spans made of events; of conversations that have none, their own spans marked; and other logs."""
    events: dict[str, list[RawLog]] = defaultdict(list)
    others: list[RawLog] = []
    for log in logs:
        if is_ours(log.origin):
            events[conversation(log.attributes) or ""].append(log)
        else:
            others.append(log)
    told = {identity for identity, found in events.items() if any(event_name(log) in _TOLD for log in found)}
    ours = [span for span in spans if is_ours(span.origin)]
    if not events and not ours:
        return list(spans), list(logs)
    marked = dict(_marked(ours, told))
    made = [span for identity in told for span in _make(identity, events[identity])]
    return [*(marked.get((span.trace_id, span.span_id), span) for span in spans), *made], others


def _trace(identity: str) -> str:
    return digest(identity)[:32]


# -- spans made of events --------------------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class _Call:
    """A model call: when it was asked, what its events say of it, and the tool calls that followed."""

    asked: RawLog
    end: int
    told: dict[str, Any] = field(default_factory=dict)
    tools: dict[str, _Tool] = field(default_factory=dict)
    is_over: bool = False


@dataclass(eq=False, slots=True)
class _Tool:
    last: RawLog
    told: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class _Run:
    first: RawLog
    told: dict[str, Any] = field(default_factory=dict)
    calls: list[_Call] = field(default_factory=list)


def _make(identity: str, events: list[RawLog]) -> Iterator[RawSpan]:
    facts = {"conversation.id": identity}
    for log in events:
        if event_name(log) == "conversation_starts" and "provider_name" in log.attributes:
            facts["provider_name"] = str(log.attributes["provider_name"]).lower()
    for run in _runs(sorted(events, key=lambda log: log.time)):
        yield from _spans(run, facts)


def _runs(events: list[RawLog]) -> list[_Run]:
    """The events by the user's prompts; what comes before the first is of one that was not told."""
    runs: list[_Run] = []
    for log in events:
        name = event_name(log)
        if name == "user_prompt":
            runs.append(_Run(log, dict(log.attributes)))
        elif name in _TOLD and not _is_noise(log, name):
            if not runs:
                runs.append(_Run(log))
            _take(runs[-1].calls, log, name)
    return runs


def _is_noise(log: RawLog, name: str) -> bool:
    """Whether an event of a stream is one of its many steps, of which only the end and a failure count."""
    counts = any(log.attributes.get(key) is not None for key in _INPUT)
    return name in _STREAM and not counts and values.text(log.attributes, "error.message") is None


def _take(calls: list[_Call], log: RawLog, name: str) -> None:
    if name in _REQUESTS:
        calls.append(_Call(log, log.time, dict(log.attributes)))
    elif name in _STREAM:
        if not calls or calls[-1].is_over:
            calls.append(_Call(log, log.time))
        calls[-1].told.update(log.attributes)
        calls[-1].end, calls[-1].is_over = log.time, True
    elif name == "tool_result" or is_refused(log.attributes):
        if not calls:
            calls.append(_Call(log, log.time))
        key = values.text(log.attributes, "call_id") or str(len(calls[-1].tools))
        tool = calls[-1].tools.setdefault(key, _Tool(log))
        tool.last = log
        tool.told.update(log.attributes)


def _spans(run: _Run, facts: Mapping[str, Any]) -> Iterator[RawSpan]:
    root = digest(facts["conversation.id"], run.first.time, "run")[:16]
    inside: list[RawSpan] = []
    for number, call in enumerate(run.calls):
        if call.told:
            asked = [tool.told for tool in call.tools.values()]
            attributes = {**call.told, **facts, KIND: "model", **({ASKED: asked} if asked else {})}
            identity = digest(root, number)[:16]
            inside.append(replace(_span(call.asked, identity, root, attributes), end=max(call.end, call.asked.time)))
        for key, tool in call.tools.items():
            identity = digest(root, number, key)[:16]
            inside.append(_span(tool.last, identity, root, {**tool.told, **facts, KIND: "tool"}))
    start = min([run.first.time, *(span.start for span in inside)])
    end = max([run.first.time, *(span.end for span in inside)])
    last = inside[-1].attributes if inside else {}
    failed = {key: last[key] for key in ("error.message", "http.response.status_code") if key in last}
    told = {key: value for key, value in run.told.items() if key in ("prompt", "user.email", "app.version")}
    attributes = {**told, **(failed if last.get(KIND) == "model" else {}), **facts, KIND: "run"}
    yield replace(_span(run.first, root, None, attributes), start=start, end=end)
    yield from inside


def _span(log: RawLog, identity: str, parent: str | None, attributes: Mapping[str, Any]) -> RawSpan:
    ids = (_trace(str(attributes["conversation.id"])), identity, parent)
    return span_of(log, ids, f"codex.{attributes[KIND]}", attributes)


# -- spans of their own ----------------------------------------------------------------------------------------------


def _marked(spans: list[RawSpan], told: set[str]) -> Iterator[tuple[tuple[str, str], RawSpan]]:
    """The spans of turns, model calls and tool calls of conversations that no events tell of, with what others say."""
    by_id = {(span.trace_id, span.span_id): span for span in spans}
    sampled = {(span.trace_id, span.parent_id): span for span in spans if span.name == _SAMPLING}
    known: dict[tuple[str, str], dict[str, Any]] = defaultdict(dict)
    turns: dict[tuple[str, str], str] = {}
    homes: dict[tuple[str, str], tuple[str, str]] = {}
    for span in spans:
        above = list(_above(span, by_id))
        turn = next((one for one in above if one.name == _TURN), None)
        if turn is not None:
            home = homes[span.trace_id, span.span_id] = (turn.trace_id, turn.span_id)
            if identity := conversation(span.attributes):
                turns[home] = identity
        if any(span.attributes.get(key) is not None for key in _INPUT):
            called = next((sampled[key] for one in above if (key := (one.trace_id, one.span_id)) in sampled), None)
            if called is not None:
                known[called.trace_id, called.span_id].update(span.attributes)
        if span.name == _SAMPLING:
            told_above = next((one.attributes["model"] for one in above if "model" in one.attributes), None)
            known[span.trace_id, span.span_id].update({} if told_above is None else {"model": told_above})
    for key, span in by_id.items():
        kind = _kind(span)
        identity = conversation(span.attributes) or turns.get(homes.get(key, key))
        if kind is not None and identity not in told:
            facts = {KIND: kind, **({"conversation.id": identity} if identity else {})}
            yield key, replace(span, attributes={**known.get(key, {}), **span.attributes, **facts})


def _kind(span: RawSpan) -> str | None:
    if span.name == _TURN:
        return "run"
    if span.name == _SAMPLING:
        return "model"
    return "tool" if span.attributes.get(_PHASE) == "dispatch" and "call_id" in span.attributes else None


def _above(span: RawSpan, by_id: Mapping[tuple[str, str], RawSpan]) -> Iterator[RawSpan]:
    seen = {span.span_id}
    while span.parent_id is not None and span.parent_id not in seen:
        seen.add(span.parent_id)
        found = by_id.get((span.trace_id, span.parent_id))
        if found is None:
            return
        yield found
        span = found
