"""The GenAI semantic conventions as they are, whoever writes them."""

from __future__ import annotations

from spanreel import conventions as names
from spanreel.records import Record
from spanreel_collector.dialects import genai_spans, genai_variants
from spanreel_collector.span import RawSpan

NAME = "genai"


def speaks(span: RawSpan) -> bool:
    """Whether the span names an operation of the conventions, by attribute or (where that was lost) by its name."""
    return names.OPERATION in span.attributes or genai_spans.operation_of(span) in genai_spans.KNOWN


def means(span: RawSpan) -> bool:
    """Whether a span that nobody speaks is a call all the same, by what it has under the conventions' names."""
    return any(key.startswith("gen_ai.") for key in span.attributes) and genai_variants.is_call(span)


def read(span: RawSpan) -> Record | None:
    """What the span says; None for operations that only group others, and for those we do not know."""
    return genai_spans.read(genai_variants.conventional(span))
