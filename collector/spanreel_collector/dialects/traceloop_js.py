"""OpenLLMetry of JavaScript's LangChain, which puts all spans of a run beside each other: they go where they ran.

What they mean is `traceloop`'s. Nothing but their times tells where they ran, so where these leave a choice (runs at
once) they stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from spanreel_collector.span import RawLog, RawSpan

_SCOPE = "@traceloop/instrumentation-langchain"
_KIND = "traceloop.span.kind"
_Beside = tuple[str, str | None]


def trace_of(log: RawLog) -> str | None:
    """It writes no logs."""
    del log
    return None


def gather(spans: Sequence[RawSpan], logs: Sequence[RawLog]) -> tuple[list[RawSpan], list[RawLog]]:
    """The spans, each in the workflow that it ran in; a workflow in another is a step of it."""
    beside: dict[_Beside, list[RawSpan]] = {}
    for span in spans:
        if span.origin.scope == _SCOPE and span.end:
            beside.setdefault((span.trace_id, span.parent_id), []).append(span)
    if not beside:
        return list(spans), list(logs)
    homes = {place: home for group in beside.values() for place, home in _homes(group).items()}
    return [_moved(span, homes.get((span.trace_id, span.span_id))) for span in spans], list(logs)


def _homes(group: list[RawSpan]) -> dict[tuple[str, str], RawSpan]:
    """The innermost workflow around each of these, where those around it stand one in the other."""
    found: dict[tuple[str, str], RawSpan] = {}
    running: list[RawSpan] = []
    for span in sorted(group, key=lambda span: (span.start, -span.end)):
        running = [workflow for workflow in running if workflow.end >= span.start]
        around = [workflow for workflow in running if workflow.end >= span.end]
        # Ordered by start: of those one in the other, each ends before the one around it.
        if around and all(inner.end <= outer.end for outer, inner in pairwise(around)):
            found[span.trace_id, span.span_id] = around[-1]
        if span.attributes.get(_KIND) == "workflow":
            running.append(span)
    return found


def _moved(span: RawSpan, home: RawSpan | None) -> RawSpan:
    if home is None:
        return span
    step = {_KIND: "task"} if span.attributes.get(_KIND) == "workflow" else {}
    return replace(span, parent_id=home.span_id, attributes={**span.attributes, **step})
