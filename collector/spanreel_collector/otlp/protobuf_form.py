"""OTLP/protobuf -> raw spans and logs. Messages are taken apart down to single spans before they are decoded.

So a span that cannot be decoded costs only itself; and traces, logs and metrics, whose requests look alike from
outside, are told apart by what stands inside.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from spanreel.model import Json
from spanreel_collector.otlp.json_values import DEEPEST_VALUE
from spanreel_collector.otlp.wire_format import FIXED64, LENGTH, Field, read_fields
from spanreel_collector.span import Attributes, Batch, Fault, Origin, RawEvent, RawLink, RawLog, RawSpan

Signal = Literal["traces", "logs", "metrics"]

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
            items = list(_items(data, entry))
        except ValueError as error:
            faults.append(Fault(place, f"a resource's data cannot be taken apart: {error}"))
            continue
        origins: dict[tuple[Field | None, Field | None], Origin] = {}
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
                    logs.append(_read_log(LogRecord.FromString(_of(data, item)), origins[resource, scope], where))
                else:
                    spans.append(_read_span(Span.FromString(_of(data, item)), origins[resource, scope], where))
            except (ValueError, DecodeError) as error:
                faults.append(Fault(where, str(error)))
    return Batch(tuple(spans), tuple(logs), tuple(faults), {"metrics": 1} if metrics else {})


# -- messages taken apart --------------------------------------------------------------------------------------------


def _of(data: bytes, field: Field | None) -> bytes:
    return b"" if field is None else data[field.start : field.end]


def _resources(data: bytes) -> list[Field]:
    found = _contents(read_fields(data, 0, len(data)), 1)
    if data and not found:
        raise ValueError(f"not an OTLP export request: {len(data)} bytes of protobuf without a resource")
    return found


def _items(data: bytes, within: Field) -> Iterator[tuple[Field | None, Field | None, Field]]:
    """Each span, log record or metric of a resource, with the resource and the scope that it stands under."""
    parts = read_fields(data, within.start, within.end)
    resource = next(iter(_contents(parts, 1)), None)
    for scopes in _contents(parts, 2):
        inner = read_fields(data, scopes.start, scopes.end)
        scope = next(iter(_contents(inner, 1)), None)
        for item in _contents(inner, 2):
            yield resource, scope, item


def _contents(fields: list[Field], number: int) -> list[Field]:
    return [field for field in fields if field.number == number and field.wire == LENGTH]


def _signal_of(data: bytes, item: Field) -> Signal:
    """What an item is, by the types of its fields; one that does not tell is a span, and fails as one."""
    try:
        fields = {(field.number, field.wire): field for field in read_fields(data, item.start, item.end)}
    except ValueError:
        return "traces"
    if (7, FIXED64) in fields or (8, FIXED64) in fields:
        return "traces"
    if (1, FIXED64) in fields or (11, FIXED64) in fields:
        return "logs"
    first = fields.get((1, LENGTH))
    if first is not None and any((number, LENGTH) in fields for number in _METRIC_DATA):
        # A span without times, or a metric whose name is as long as an id: letters are no id.
        named = _of(data, first)
        return "traces" if len(named) == 16 and not named.isascii() else "metrics"
    return "traces"


# -- what is decoded -------------------------------------------------------------------------------------------------


def _read_origin(data: bytes, resource: Field | None, scope: Field | None) -> Origin:
    read_resource = Resource.FromString(_of(data, resource))
    read_scope = InstrumentationScope.FromString(_of(data, scope))
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
