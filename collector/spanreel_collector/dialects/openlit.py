"""OpenLIT: the GenAI conventions, with settings that nobody gave."""

from __future__ import annotations

from dataclasses import replace

from spanreel import conventions as names
from spanreel.model import Record
from spanreel_collector.dialects import genai_spans
from spanreel_collector.span import RawSpan

NAME = "openlit"

_SCOPE = "openlit"
_INVENTED = {
    names.REQUEST_SEED: 0,
    names.REQUEST_TOP_P: 1.0,
    names.REQUEST_FREQUENCY_PENALTY: 0.0,
    names.REQUEST_PRESENCE_PENALTY: 0.0,
}
"""What it writes where nothing was set; whoever did set just these cannot be told apart."""


def speaks(span: RawSpan) -> bool:
    """Whether OpenLIT wrote the span."""
    scope = span.origin.scope
    return (scope == _SCOPE or scope.startswith(f"{_SCOPE}.")) and any(
        key.startswith("gen_ai.") for key in span.attributes
    )


def read(span: RawSpan) -> Record | None:
    """What the span says. The tools that a model call names are those it asked for, not one that was called."""
    given = {key: value for key, value in span.attributes.items() if key not in _INVENTED or value != _INVENTED[key]}
    return genai_spans.read(replace(span, attributes=given))
