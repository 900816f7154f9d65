"""Spans in the place of events, of writers that export no spans, or too few: their ids, and when they were."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from spanreel_collector.dialects import values
from spanreel_collector.span import RawLog, RawSpan


def digest(writer: str, *told: Any) -> str:
    """An id made of these, by the writer's name; of 64 hex digits, of which an id takes as many as it has."""
    return hashlib.sha256("\x1f".join((writer, *map(str, told))).encode("utf-8", "replace")).hexdigest()


def span_of(log: RawLog, ids: tuple[str, str, str | None], name: str, attributes: Mapping[str, Any]) -> RawSpan:
    """A span that ends with the event, as long as the event says; ``ids`` are the trace's, its own, its parent's."""
    trace_id, span_id, parent_id = ids
    milliseconds = values.integer(log.attributes, "duration_ms") or 0
    return RawSpan(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=parent_id,
        name=name,
        kind=1,
        start=max(0, log.time - milliseconds * 1_000_000),
        end=log.time,
        attributes=attributes,
        origin=log.origin,
        place=log.place,
    )
