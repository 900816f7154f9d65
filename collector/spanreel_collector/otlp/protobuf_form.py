"""OTLP/protobuf -> raw spans and logs. Messages are taken apart down to single spans before they are decoded.

So a span that cannot be decoded costs only itself; and traces, logs and metrics, whose requests look alike from
outside, are told apart by what stands inside.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from spanreel.model import Json
from spanreel_collector.otlp.json_form import DEEPEST_VALUE
from spanreel_collector.span import Attributes, Batch, Fault, Origin, RawEvent, RawLink, RawLog, RawSpan

Signal = Literal["traces", "logs", "metrics"]

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_METRIC_DATA = (5, 7, 9, 10, 11)
"""Fields of a metric that hold its points: gauge, sum, histogram, exponential histogram, summary."""


def read_message(data: bytes, place: str, signal: Signal | None = None) -> Batch:
    """Decode one export request; ``signal`` says of what, where it came by a way that tells.

    Raises:
        ValueError: this is no export request.
    """
    spans: list[RawSpan] = []
    logs: list[RawLog] = []
    faults: list[Fault] = []
    metrics = False
    number = 0
    for entry in _resources(data):
        try:
            items = list(_items(data, *entry))
        except ValueError as error:
            faults.append(Fault(place, f"a resource's data cannot be taken apart: {error}"))
            continue
        origins: dict[tuple[_Slice | None, _Slice | None], Origin] = {}
        for resource, scope, item in items:
            kind = signal or _signal_of(data, item)
            where = f"{place}, {'log' if kind == 'logs' else 'span'} {number}"
            number += 1
            if kind == "metrics":
                metrics = True
                continue
            try:
                if (resource, scope) not in origins:
                    origins[resource, scope] = _read_origin(data, resource, scope)
                if kind == "logs":
                    logs.append(_read_log(LogRecord.FromString(item.of(data)), origins[resource, scope], where))
                else:
                    spans.append(_read_span(Span.FromString(item.of(data)), origins[resource, scope], where))
            except (ValueError, DecodeError) as error:
                faults.append(Fault(where, str(error)))
    return Batch(tuple(spans), tuple(logs), tuple(faults), {"metrics": 1} if metrics else {})


# -- messages taken apart: https://protobuf.dev/programming-guides/encoding/ -----------------------------------------


@dataclass(frozen=True, slots=True)
class _Slice:
    start: int
    end: int

    def of(self, data: bytes) -> bytes:
        return data[self.start : self.end]


def _resources(data: bytes) -> Iterator[tuple[int, int]]:
    found = [content for number, wire, content in _fields(data, 0, len(data)) if number == 1 and wire == _LENGTH]
    if data and not found:
        raise ValueError(f"not an OTLP export request: {len(data)} bytes of protobuf without a resource")
    return ((content.start, content.end) for content in found)


def _items(data: bytes, start: int, end: int) -> Iterator[tuple[_Slice | None, _Slice | None, _Slice]]:
    """Each span, log record or metric of a resource, with the resource and the scope that it stands under."""
    parts = [(number, content) for number, wire, content in _fields(data, start, end) if wire == _LENGTH]
    resource = next((content for number, content in parts if number == 1), None)
    for scopes in (content for number, content in parts if number == 2):
        inner = [(n, content) for n, wire, content in _fields(data, scopes.start, scopes.end) if wire == _LENGTH]
        scope = next((content for number, content in inner if number == 1), None)
        for item in (content for number, content in inner if number == 2):
            yield resource, scope, item


def _fields(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, _Slice]]:
    """The fields of a message: number, wire type, and where the content is.

    Raises:
        ValueError: this is no message, or not all of one.
    """
    while start < end:
        tag, start = _varint(data, start, end)
        wire = tag & 7
        if wire == _LENGTH:
            length, start = _varint(data, start, end)
        elif wire == _VARINT:
            length = _varint(data, start, end)[1] - start
        elif wire in (_FIXED64, _FIXED32):
            length = 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"not protobuf: wire type {wire} at byte {start}")
        if length > end - start:
            raise ValueError(f"cut off: {length} bytes at byte {start}, of which {end - start} are there")
        yield tag >> 3, wire, _Slice(start, start + length)
        start += length


def _varint(data: bytes, start: int, end: int) -> tuple[int, int]:
    value = 0
    for place in range(start, min(end, start + 10)):
        byte = data[place]
        value |= (byte & 0x7F) << (7 * (place - start))
        if byte < 0x80:
            return value, place + 1
    raise ValueError(f"cut off, or not protobuf: a number without an end at byte {start}")


def _signal_of(data: bytes, item: _Slice) -> Signal:
    """What an item is, by the types of its fields; one that does not tell is a span, and fails as one."""
    try:
        fields = {(number, wire): content for number, wire, content in _fields(data, item.start, item.end)}
    except ValueError:
        return "traces"
    if (7, _FIXED64) in fields or (8, _FIXED64) in fields:
        return "traces"
    if (1, _FIXED64) in fields or (11, _FIXED64) in fields:
        return "logs"
    first = fields.get((1, _LENGTH))
    if first is not None and any((number, _LENGTH) in fields for number in _METRIC_DATA):
        # A span without times, or a metric whose name is as long as an id: letters are no id.
        named = first.of(data)
        return "traces" if len(named) == 16 and not named.isascii() else "metrics"
    return "traces"


# -- what is decoded -------------------------------------------------------------------------------------------------


def _read_origin(data: bytes, resource: _Slice | None, scope: _Slice | None) -> Origin:
    read_resource = Resource.FromString(resource.of(data) if resource else b"")
    read_scope = InstrumentationScope.FromString(scope.of(data) if scope else b"")
    return Origin(_read_attributes(read_resource.attributes), read_scope.name, read_scope.version)


def _read_span(span: Span, origin: Origin, place: str) -> RawSpan:
    return RawSpan(
        trace_id=_read_id(span.trace_id, "traceId", 16) or _refuse_absent("traceId"),
        span_id=_read_id(span.span_id, "spanId", 8) or _refuse_absent("spanId"),
        parent_id=_read_id(span.parent_span_id, "parentSpanId", 8),
        name=span.name,
        kind=span.kind,
        start=span.start_time_unix_nano,
        end=span.end_time_unix_nano,
        attributes=_read_attributes(span.attributes),
        origin=origin,
        place=place,
        events=tuple(
            RawEvent(event.name, event.time_unix_nano, _read_attributes(event.attributes)) for event in span.events
        ),
        links=tuple(
            RawLink(trace_id, span_id, _read_attributes(link.attributes))
            for link in span.links
            if (trace_id := _read_id(link.trace_id, "traceId", 16)) and (span_id := _read_id(link.span_id, "spanId", 8))
        ),
        status=span.status.code,
        status_message=span.status.message,
        dropped_attributes=span.dropped_attributes_count,
    )


def _read_log(log: LogRecord, origin: Origin, place: str) -> RawLog:
    attributes = _read_attributes(log.attributes)
    name = log.event_name or attributes.get("event.name")
    return RawLog(
        trace_id=_read_id(log.trace_id, "traceId", 16),
        span_id=_read_id(log.span_id, "spanId", 8),
        event_name=name if isinstance(name, str) else "",
        time=log.time_unix_nano or log.observed_time_unix_nano,
        body=_read_value(log.body, 0),
        attributes=attributes,
        origin=origin,
        place=place,
    )


def _read_id(value: bytes, field: str, size: int) -> str | None:
    """An id as lower-case hex; None where there is none (empty or all zeros)."""
    if value and len(value) != size:
        raise ValueError(f"{field} is of {len(value)} bytes, not {size}")
    return value.hex() if value.strip(b"\0") else None


def _refuse_absent(field: str) -> str:
    raise ValueError(f"{field} is missing or all zeros")


def _read_attributes(pairs: Any) -> Attributes:
    attributes: dict[str, Json] = {}
    for pair in pairs:
        try:
            attributes[pair.key] = _read_value(pair.value, 0)
        except ValueError as error:
            raise ValueError(f"attribute {pair.key!r}: {error}") from error
    return attributes


def _read_value(value: Any, depth: int) -> Json:
    """What an AnyValue holds; None where it is empty."""
    if depth > DEEPEST_VALUE:
        raise ValueError(f"nested more than {DEEPEST_VALUE} levels deep")
    match kind := value.WhichOneof("value"):
        case None:
            return None
        case "array_value":
            return [_read_value(item, depth + 1) for item in value.array_value.values]
        case "kvlist_value":
            return {pair.key: _read_value(pair.value, depth + 1) for pair in value.kvlist_value.values}
        case _:
            return getattr(value, kind)
