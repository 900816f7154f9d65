"""Pages of spans as Phoenix's API gives them: OTLP spans in a flat list, without resource and scope."""

from __future__ import annotations

from spanreel.model import Json
from spanreel_collector.otlp import read_request
from spanreel_collector.span import Batch


def recognises(document: Json) -> bool:
    """Whether this is such a page."""
    spans = document.get("data") if isinstance(document, dict) else None
    if not isinstance(spans, list):
        return False
    if not spans:
        return "next_cursor" in document
    return all(
        isinstance(span, dict) and not {"trace_id", "traceId"}.isdisjoint(span) and "context" not in span
        for span in spans
    )


def read(document: Json, place: str) -> Batch:
    """The spans of the page."""
    return read_request({"resourceSpans": [{"scopeSpans": [{"spans": document["data"]}]}]}, place)
