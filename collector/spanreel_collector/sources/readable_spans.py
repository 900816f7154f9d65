"""Spans as OpenTelemetry's SDK for JavaScript holds them, dumped as JSON; with or without ids of traces, and times."""

from __future__ import annotations

import hashlib
from typing import Any

from spanreel.model import Json
from spanreel_collector import json_text
from spanreel_collector.sources.times import nanoseconds
from spanreel_collector.span import ENDED, Batch, Fault, Origin, RawEvent, RawLink, RawSpan


def recognises(document: Json) -> bool:
    """Whether the document is a span of the SDK's, or a list of them."""
    spans = document if isinstance(document, list) else [document]
    return bool(spans) and all(
        isinstance(span, dict)
        and isinstance(span.get("name"), str)
        and isinstance(span.get("attributes"), dict)
        and _identity(span) is not None
        for span in spans
    )


def read(document: Json, place: str) -> Batch:
    """The spans; without ids of traces, each tree of them is one, known by its root. Faults cost only themselves."""
    records = document if isinstance(document, list) else [document]
    roots = _roots(records)
    spans: list[RawSpan] = []
    faults: list[Fault] = []
    for index, record in enumerate(records):
        try:
            spans.append(_span(record, roots, place))
        except ValueError as error:
            faults.append(Fault(f"{place} (span {index})", str(error)))
    return Batch(tuple(spans), faults=tuple(faults))


def _span(record: dict[str, Any], roots: dict[str, str], place: str) -> RawSpan:
    identity = _identity(record) or ""
    start, end = nanoseconds(record.get("startTime")), nanoseconds(record.get("endTime"))
    status = _member(record, "status")
    scope = _member(record, "scope", "instrumentationScope", "instrumentationLibrary")
    resource = _member(record, "resource")
    inner = resource.get("attributes")
    message = status.get("message")
    kind = record.get("kind")
    return RawSpan(
        trace_id=_trace(record) or roots[identity],
        span_id=identity,
        parent_id=_parent(record),
        name=record["name"],
        # The SDK counts from 0 what the protocol counts from 1.
        kind=kind + 1 if isinstance(kind, int) else 0,
        start=start,
        end=end if end or "endTime" in record else ENDED,
        attributes=json_text.plain(record["attributes"]),
        origin=Origin(json_text.plain(inner if isinstance(inner, dict) else resource), str(scope.get("name") or "")),
        place=place,
        events=tuple(_event(event) for event in _list(record, "events")),
        links=tuple(_link(link) for link in _list(record, "links")),
        status=status["code"] if status.get("code") in (1, 2) else 0,
        status_message=message if isinstance(message, str) else "",
    )


def _roots(records: list[dict[str, Any]]) -> dict[str, str]:
    """A trace id for each span: made of the id of the outermost span around it."""
    parents = {_identity(record) or "": _parent(record) for record in records}
    roots: dict[str, str] = {}
    for identity in parents:
        top, seen = identity, {identity}
        while (above := parents.get(top)) is not None and above not in seen:
            seen.add(above)
            top = above
        roots[identity] = hashlib.sha256(f"readable-spans:{top}".encode()).hexdigest()[:32]
    return roots


def _identity(record: dict[str, Any]) -> str | None:
    return _text(record, "spanId", "id") or _text(_member(record, "spanContext", "_spanContext"), "spanId")


def _trace(record: dict[str, Any]) -> str | None:
    return _text(record, "traceId") or _text(_member(record, "spanContext", "_spanContext"), "traceId")


def _parent(record: dict[str, Any]) -> str | None:
    return _text(record, "parentSpanId", "parent", "parentId") or _text(_member(record, "parentSpanContext"), "spanId")


def _event(event: dict[str, Any]) -> RawEvent:
    return RawEvent(
        str(event.get("name") or ""), nanoseconds(event.get("time")), json_text.plain(_member(event, "attributes"))
    )


def _link(link: dict[str, Any]) -> RawLink:
    context = _member(link, "context")
    return RawLink(_text(context, "traceId") or "", _text(context, "spanId") or "", _member(link, "attributes"))


def _text(record: dict[str, Any], *keys: str) -> str | None:
    found = (record.get(key) for key in keys)
    return next((value.lower() for value in found if isinstance(value, str) and value), None)


def _member(record: dict[str, Any], *keys: str) -> dict[str, Any]:
    return next((record[key] for key in keys if isinstance(record.get(key), dict)), {})


def _list(record: dict[str, Any], key: str) -> list[dict[str, Any]]:
    found = record.get(key)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
