"""Spans of a generation of Mastra's whose own parents never came: without their place they would be counted twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spanreel_collector.span import RawSpan

TYPE = "mastra.span.type"
GENERATIONS = ("model_generation", "llm_generation")
_INSIDE = ("model_step", "model_inference", "tool_call", "client_tool_call", "provider_tool_call", "mcp_tool_call")


def adopt(spans: Sequence[RawSpan]) -> list[RawSpan]:
    """The spans; one whose parent is not in its trace stands in the one generation that it happened in.

    Such a parent is a step, or an inference, as Mastra has these in generations alone.
    """
    known = {(span.trace_id, span.span_id) for span in spans}
    orphans = [
        span
        for span in spans
        if span.attributes.get(TYPE) in _INSIDE and span.parent_id and (span.trace_id, span.parent_id) not in known
    ]
    if not orphans:
        return list(spans)
    generations = [span for span in spans if span.attributes.get(TYPE) in GENERATIONS]
    found: dict[int, str] = {}
    for orphan in orphans:
        around = [one for one in generations if one.trace_id == orphan.trace_id and _holds(one, orphan)]
        if len(around) == 1:
            found[id(orphan)] = around[0].span_id
    return [replace(span, parent_id=found[id(span)]) if id(span) in found else span for span in spans]


def _holds(generation: RawSpan, span: RawSpan) -> bool:
    """Whether the span happened while the generation ran."""
    return 0 < generation.start <= span.start and (generation.end <= 0 or span.end <= generation.end)
