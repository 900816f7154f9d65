"""OTLP/JSON -> raw spans and logs.

As strict as the specification where ids are concerned, as lenient as the Collector elsewhere (snake_case, enum names,
either form of integers, missing fields). A span that cannot be decoded costs only itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from spanreel.model import Json
from spanreel_collector.otlp.json_members import has_member, list_of, member, objects, spelt, text_of
from spanreel_collector.otlp.json_values import enumerated, identity, read_attributes, read_value, unsigned
from spanreel_collector.span import Batch, Fault, Origin, RawEvent, RawLink, RawLog, RawSpan

_KINDS = {
    "SPAN_KIND_UNSPECIFIED": 0,
    "SPAN_KIND_INTERNAL": 1,
    "SPAN_KIND_SERVER": 2,
    "SPAN_KIND_CLIENT": 3,
    "SPAN_KIND_PRODUCER": 4,
    "SPAN_KIND_CONSUMER": 5,
}
_OLD_SCOPES = {"scopeSpans": "instrumentationLibrarySpans", "scopeLogs": "instrumentationLibraryLogs"}
"""What the protocol called them before version 0.15."""
_STATUS = {"STATUS_CODE_UNSET": 0, "STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}

_T = TypeVar("_T")


def read_request(document: Json, place: str) -> Batch:
    """Decode one export request of traces, logs or metrics, or a bare ResourceSpans or ResourceLogs.

    Raises:
        ValueError: this is no export request.
    """
    if not isinstance(document, dict):
        raise ValueError(f"not an OTLP export request: JSON of type {type(document).__name__}")
    known = ("resourceSpans", "scopeSpans", "resourceLogs", "scopeLogs", "resourceMetrics", "scopeMetrics")
    if str(document.get("schema")).startswith("spanreel.session/"):
        raise ValueError("a session document, which is converted already: spanreel show and replay take it")
    if document and not any(has_member(document, key) for key in known):
        raise ValueError(f"not an OTLP export request: an object with {sorted(document)[:5]!r}")
    faults: list[Fault] = []
    resource_spans = [document] if has_member(document, "scopeSpans") else list_of(document, "resourceSpans")
    resource_logs = [document] if has_member(document, "scopeLogs") else list_of(document, "resourceLogs")
    spans = _read_all(_entries(resource_spans, "scopeSpans", "spans"), _read_span, f"{place}, span", faults)
    logs = _read_all(_entries(resource_logs, "scopeLogs", "logRecords"), _read_log, f"{place}, log", faults)
    skipped = Counter[str]()
    if has_member(document, "resourceMetrics") or has_member(document, "scopeMetrics"):
        skipped["metrics"] += 1
    return Batch(tuple(spans), tuple(logs), tuple(faults), skipped)


def _entries(resources: list[Any], scopes: str, items: str) -> Iterator[tuple[Any, Any, Any]]:
    """Each item with the resource and scope it stands under."""
    for resource in resources:
        if isinstance(resource, dict):
            for scope in list_of(resource, scopes) or list_of(resource, _OLD_SCOPES[scopes]):
                if isinstance(scope, dict):
                    named = member(scope, "scope") or member(scope, "instrumentationLibrary")
                    for item in list_of(scope, items):
                        yield member(resource, "resource"), named, item


def _read_all(
    entries: Iterator[tuple[Any, Any, Any]],
    read: Callable[[dict[str, Any], Origin, str], _T],
    place: str,
    faults: list[Fault],
) -> list[_T]:
    found: list[_T] = []
    origins: dict[tuple[int, int], Origin] = {}
    for index, (resource, scope, item) in enumerate(entries):
        where = f"{place} {index}"
        try:
            key = (id(resource), id(scope))
            if key not in origins:
                origins[key] = _read_origin(resource, scope)
            if not isinstance(item, dict):
                raise ValueError(f"expected an object, got {type(item).__name__}")
            found.append(read(item, origins[key], where))
        except ValueError as error:
            faults.append(Fault(where, str(error)))
    return found


def _read_origin(resource: Any, scope: Any) -> Origin:
    resource = resource if isinstance(resource, dict) else {}
    scope = scope if isinstance(scope, dict) else {}
    return Origin(read_attributes(member(resource, "attributes")), text_of(scope, "name"), text_of(scope, "version"))


def _read_span(item: dict[str, Any], origin: Origin, place: str) -> RawSpan:
    item = spelt(item)
    get = item.get
    status = get("status")
    return RawSpan(
        trace_id=identity(get("traceId"), "traceId", 32) or _refuse_absent("traceId"),
        span_id=identity(get("spanId"), "spanId", 16) or _refuse_absent("spanId"),
        parent_id=identity(get("parentSpanId"), "parentSpanId", 16),
        name=name if isinstance(name := get("name"), str) else "",
        kind=enumerated(get("kind"), "kind", _KINDS),
        start=unsigned(get("startTimeUnixNano"), "startTimeUnixNano"),
        end=unsigned(get("endTimeUnixNano"), "endTimeUnixNano"),
        attributes=read_attributes(get("attributes")),
        origin=origin,
        place=place,
        events=_read_events(item) if get("events") else (),
        links=_read_links(item) if get("links") else (),
        status=enumerated(member(status, "code"), "code", _STATUS) if status and isinstance(status, dict) else 0,
        status_message=text_of(status, "message") if status and isinstance(status, dict) else "",
        dropped_attributes=unsigned(get("droppedAttributesCount"), "droppedAttributesCount"),
    )


def _read_events(item: dict[str, Any]) -> tuple[RawEvent, ...]:
    return tuple(
        RawEvent(
            text_of(event, "name"),
            unsigned(member(event, "timeUnixNano"), "timeUnixNano"),
            read_attributes(member(event, "attributes")),
        )
        for event in objects(item, "events")
    )


def _read_links(item: dict[str, Any]) -> tuple[RawLink, ...]:
    return tuple(
        RawLink(trace_id, span_id, read_attributes(member(link, "attributes")))
        for link in objects(item, "links")
        if (trace_id := identity(member(link, "traceId"), "traceId", 32))
        and (span_id := identity(member(link, "spanId"), "spanId", 16))
    )


def _read_log(item: dict[str, Any], origin: Origin, place: str) -> RawLog:
    attributes = read_attributes(member(item, "attributes"))
    name = text_of(item, "eventName") or attributes.get("event.name")
    return RawLog(
        trace_id=identity(member(item, "traceId"), "traceId", 32),
        span_id=identity(member(item, "spanId"), "spanId", 16),
        event_name=name if isinstance(name, str) else "",
        time=unsigned(member(item, "timeUnixNano"), "timeUnixNano")
        or unsigned(member(item, "observedTimeUnixNano"), "observedTimeUnixNano"),
        body=read_value(member(item, "body")),
        attributes=attributes,
        origin=origin,
        place=place,
    )


def _refuse_absent(field: str) -> str:
    raise ValueError(f"{field} is missing or all zeros")
