"""The GenAI semantic conventions as they are, whoever writes them."""

from __future__ import annotations

from spanreel import conventions as names
from spanreel.records import Record
from spanreel_collector.dialects import genai_spans
from spanreel_collector.span import RawSpan

NAME = "genai"


def speaks(span: RawSpan) -> bool:
    """Whether the span names an operation of the conventions, by attribute or (where that was lost) by its name."""
    return names.OPERATION in span.attributes or genai_spans.operation_of(span) in genai_spans.KNOWN


def read(span: RawSpan) -> Record | None:
    """What the span says; None for operations that only group others, and for those we do not know."""
    return genai_spans.read(span)
