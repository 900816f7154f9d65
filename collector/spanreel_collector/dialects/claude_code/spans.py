"""Spans made of Claude Code's events, where a session was recorded without traces."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from spanreel_collector.dialects.claude_code.names import BODY, CALLS, SUBAGENT, digest, event_name, kind_of, text_of
from spanreel_collector.dialects.content.event_spans import span_of
from spanreel_collector.span import RawLog, RawSpan

_TASKS = ("Task", "Agent")


def make(trace: str, events: list[RawLog]) -> Iterable[RawSpan]:
    """The spans that Claude Code would have written of these events, as far as they tell."""
    prompts: dict[Any, list[RawLog]] = defaultdict(list)
    for log in events:
        if prompt := text_of(log.attributes, "prompt.id"):
            prompts[prompt].append(log)
    for prompt, inside in prompts.items():
        if not any(event_name(log) in ("user_prompt", "tool_result", *CALLS) for log in inside):
            continue
        root = digest(trace, str(prompt))[:16]
        made = [_span(log, root, _call_attributes(log)) for log in inside if event_name(log) in CALLS]
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
    ended = {text_of(log.attributes, "tool_use_id"): log for log in inside if event_name(log) == "tool_decision"}
    ended = {key: log for key, log in ended.items() if log.attributes.get("decision") == "reject"}
    ended.update({text_of(log.attributes, "tool_use_id"): log for log in inside if event_name(log) == "tool_result"})
    return list(ended.values())


def _span(log: RawLog, parent: str | None, attributes: Mapping[str, Any]) -> RawSpan:
    trace = log.trace_id or ""
    identity = digest(trace, event_name(log), str(log.attributes.get("event.sequence")), str(log.time))
    return span_of(log, (trace, identity[:16], parent), f"{BODY}{attributes['span.type']}", attributes)


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
    tasks = [span for span in spans if text_of(span.attributes, "tool_name") in _TASKS]
    inside: dict[str, list[RawSpan]] = defaultdict(list)
    for span in spans:
        around = [task for task in tasks if task.start <= span.start and span.end <= task.end]
        if len(around) == 1 and str(span.attributes.get("query_source")).startswith(SUBAGENT):
            inside[around[0].span_id].append(span)
    homes = {span.span_id: task for task, found in inside.items() for span in found}
    for task in tasks:
        first = min((span.start for span in inside[task.span_id]), default=None)
        for span in spans:
            late = first is not None and first <= span.start and span.end <= task.end
            if span is not task and kind_of(span) == "tool" and late:
                homes.setdefault(span.span_id, task.span_id)
    return [replace(span, parent_id=homes.get(span.span_id, span.parent_id)) for span in spans]
