"""Spans as the bytes of an OTLP request: what the SDK's encoder makes by way of messages, written at once.

Most attributes of a span were on spans before: their bytes are known. Numbers of fields are those of
opentelemetry-proto 1.x.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status

SHORT: Final = 64
"""Characters of texts that are few, and come again and again."""
_FEW: Final = 4096
"""Numbers below are few: indices, statuses, counts of tokens."""
_KINDS: Final = {
    SpanKind.INTERNAL: b"\x30\x01",
    SpanKind.SERVER: b"\x30\x02",
    SpanKind.CLIENT: b"\x30\x03",
    SpanKind.PRODUCER: b"\x30\x04",
    SpanKind.CONSUMER: b"\x30\x05",
}
_TIME: Final = struct.Struct("<BQ")
_DOUBLE: Final = struct.Struct("<Bd")
_SPAN_ATTRIBUTE: Final = 0x4A
_REMOTE_KNOWN: Final = 0x100
_IS_REMOTE: Final = 0x200

Pieces = list[bytes]
"""What is joined once, at the end, so that long texts are not copied at every level."""


class WrittenSpan(ReadableSpan):
    """A span whose attributes are written already, where ``written`` is not None."""

    written: Pieces | None = None


def encode(spans: Iterable[ReadableSpan]) -> bytes:
    """The request that exports these spans: those of one resource, and of one scope, together."""
    grouped: dict[Resource, dict[InstrumentationScope | None, Pieces]] = {}
    for span in spans:
        scopes = grouped.setdefault(span.resource, {})
        scopes.setdefault(span.instrumentation_scope or None, []).extend(_framed(0x12, _span(span)))
    request: Pieces = []
    for resource, scopes in grouped.items():
        request += _framed(0x0A, _resource_spans(resource, scopes))
    return b"".join(request)


def _resource_spans(resource: Resource, scopes: Mapping[InstrumentationScope | None, Pieces]) -> Pieces:
    pieces = _framed(0x0A, _attributes(0x0A, resource.attributes))
    for scope, spans in scopes.items():
        head = _field(0x0A, b"" if scope is None else _scope(scope))
        pieces += _framed(0x12, [head, *spans, _text(0x1A, scope.schema_url if scope else None)])
    pieces.append(_text(0x1A, resource.schema_url))
    return pieces


def _framed(tag: int, pieces: Pieces) -> Pieces:
    """The pieces as one field."""
    return [_head(tag, sum(map(len, pieces))), *pieces]


def _scope(scope: InstrumentationScope) -> bytes:
    return _text(0x0A, scope.name) + _text(0x12, scope.version) + _joined(0x1A, scope.attributes)


def _span(span: ReadableSpan) -> Pieces:
    context: SpanContext = span.get_span_context()  # type: ignore[assignment]  # a finished span has one
    parent = span.parent
    parts = [b"\x0a\x10", context.trace_id.to_bytes(16, "big"), b"\x12\x08", context.span_id.to_bytes(8, "big")]
    if context.trace_state:
        parts.append(_text(0x1A, ",".join([f"{key}={value}" for key, value in context.trace_state.items()])))
    if parent is not None:
        parts += (b"\x22\x08", parent.span_id.to_bytes(8, "big"))
    parts += (_text(0x2A, span.name), _KINDS[span.kind], _time(0x39, span.start_time), _time(0x41, span.end_time))
    written = span.written if type(span) is WrittenSpan else None
    parts += _attributes(_SPAN_ATTRIBUTE, span.attributes) if written is None else written
    if span.dropped_attributes:
        parts.append(_number(b"\x50", span.dropped_attributes))
    parts += [_field(0x5A, _event(event)) for event in span.events]
    if span.dropped_events:
        parts.append(_number(b"\x60", span.dropped_events))
    parts += [_field(0x6A, _link(link)) for link in span.links]
    if span.dropped_links:
        parts.append(_number(b"\x70", span.dropped_links))
    parts += (_field(0x7A, _status(span.status)), b"\x85\x01", _flags(parent))
    return parts


def _event(event: Event) -> bytes:
    dropped = _number(b"\x20", event.dropped_attributes) if event.dropped_attributes else b""
    return _time(0x09, event.timestamp) + _text(0x12, event.name) + _joined(0x1A, event.attributes) + dropped


def _link(link: Link) -> bytes:
    ids = (
        b"\x0a\x10" + link.context.trace_id.to_bytes(16, "big") + b"\x12\x08" + link.context.span_id.to_bytes(8, "big")
    )
    dropped = _number(b"\x28", link.dropped_attributes) if link.dropped_attributes else b""
    return ids + _joined(0x22, link.attributes) + dropped + b"\x35" + _flags(link.context)


def _flags(context: SpanContext | None) -> bytes:
    is_remote = context is not None and context.is_remote
    return (_REMOTE_KNOWN | _IS_REMOTE if is_remote else _REMOTE_KNOWN).to_bytes(4, "little")


def _status(status: Status) -> bytes:
    code = status.status_code.value
    return _text(0x12, status.description) + (b"\x18" + _varint(code) if code else b"")


def _joined(tag: int, attributes: Mapping[str, Any] | None) -> bytes:
    return b"".join(_attributes(tag, attributes))


def write_attribute(name: str, value: Any) -> Pieces:
    """An attribute of a span."""
    if isinstance(value, str):
        return _text_attribute(_SPAN_ATTRIBUTE, name, value)
    data = _value(value)
    return [_pair_head(_SPAN_ATTRIBUTE, name, len(data)), data]


def _text_attribute(tag: int, name: str, text: str) -> Pieces:
    data = text.encode()
    around = b"\x0a" + _varint(len(data))
    return [_pair_head(tag, name, len(around) + len(data)), around, data]


def _attributes(tag: int, attributes: Mapping[str, Any] | None) -> Pieces:
    pieces: Pieces = []
    for name, value in (attributes or {}).items():
        kind = type(value)
        if kind is str and len(value) < SHORT:
            pieces.append(_known(tag, name, value))
        elif isinstance(value, str):
            pieces += _text_attribute(tag, name, value)
        elif kind is bool or (kind is int and 0 <= value < _FEW):
            pieces.append(_known(tag, name, value))
        else:
            data = _value(value)
            pieces += (_pair_head(tag, name, len(data)), data)
    return pieces


@functools.lru_cache(8192, typed=True)
def _known(tag: int, name: str, value: str | bool | int) -> bytes:
    data = _value(value)
    return _pair_head(tag, name, len(data)) + data


@functools.lru_cache(1024)
def _name(name: str) -> bytes:
    return _text(0x0A, name)


def _pair_head(tag: int, name: str, length: int) -> bytes:
    """What stands before a value of so many bytes, under its name."""
    key, size = _name(name), _varint(length)
    return b"".join((_head(tag, len(key) + 1 + len(size) + length), key, b"\x12", size))


def _value(value: Any) -> bytes:
    """An ``AnyValue``; empty for None."""
    if isinstance(value, str):
        return _field(0x0A, value.encode())
    if value is None:
        return b""
    if isinstance(value, bool):
        return b"\x10\x01" if value else b"\x10\x00"
    if isinstance(value, int):
        return b"\x18" + _varint(value & 0xFFFFFFFFFFFFFFFF)
    if isinstance(value, float):
        return _DOUBLE.pack(0x21, value)
    if isinstance(value, bytes):
        return _field(0x3A, value)
    if isinstance(value, Mapping):
        return _field(0x32, _joined(0x0A, {str(key): item for key, item in value.items()}))
    if isinstance(value, Sequence):
        return _field(0x2A, b"".join([_field(0x0A, _value(item)) for item in value]))
    raise TypeError(f"OTLP has no value for {type(value).__name__}")


def _text(tag: int, text: str | None) -> bytes:
    return _field(tag, text.encode()) if text else b""


def _time(tag: int, nanoseconds: int | None) -> bytes:
    return _TIME.pack(tag, nanoseconds) if nanoseconds else b""


def _field(tag: int, data: bytes) -> bytes:
    return _head(tag, len(data)) + data


def _number(tag: bytes, number: int) -> bytes:
    return tag + _varint(number)


def _head(tag: int, length: int) -> bytes:
    return _HEADS[tag][length] if length < 0x80 else bytes((tag,)) + _varint(length)


def _varint(number: int) -> bytes:
    if number < 0x80:
        return _SMALL[number]
    if number < 0x4000:
        return bytes((number & 0x7F | 0x80, number >> 7))
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


_SMALL: Final = [bytes((number,)) for number in range(0x80)]
_HEADS: Final = [[bytes((tag, length)) for length in range(0x80)] for tag in range(0x80)]
