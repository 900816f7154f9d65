"""How large a span is in an OTLP request: reckoned, not measured, and never too small."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from opentelemetry.sdk.trace import ReadableSpan

from spanreel.bounds import size_of
from spanreel.otlp_bytes import WrittenSpan

SPAN_OVERHEAD: Final = 256
ATTRIBUTE_OVERHEAD: Final = 24
"""More than protobuf needs around a span, and around an attribute."""
_PLAIN: Final = frozenset({int, float, bool})


def encoded_size(span: ReadableSpan) -> int:
    """At least the bytes that the span takes in an OTLP request."""
    size = SPAN_OVERHEAD + size_of(span.name) + size_of(span.status.description or "")
    written = span.written if type(span) is WrittenSpan else None
    size += attributes_size(span.attributes) if written is None else sum(map(len, written))
    size += sum(64 + size_of(event.name) + attributes_size(event.attributes) for event in span.events)
    return size + sum(64 + attributes_size(link.attributes) for link in span.links)


def attributes_size(attributes: Mapping[str, Any] | None) -> int:
    """The bytes of attributes."""
    size = 0
    for name, value in (attributes or {}).items():
        if type(value) in _PLAIN or (type(value) is str and value.isascii()):
            value_size = len(value) if type(value) is str else 8
            size += len(name) + value_size + 2 * ATTRIBUTE_OVERHEAD
            continue
        items = len(value) if isinstance(value, Sequence) and not isinstance(value, (str, bytes)) else 1
        size += size_of(name) + size_of(value) + ATTRIBUTE_OVERHEAD * (1 + items)
    return size
