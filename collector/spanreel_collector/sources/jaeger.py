"""Traces in Jaeger's own JSON, as its API and its "download" button give them.

Jaeger knows neither scopes nor status: both come as tags, by OpenTelemetry's rules for exporters to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spanreel.model import Json
from spanreel_collector.span import Attributes, Batch, Fault, Origin, RawEvent, RawLink, RawSpan

_KINDS = {"internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}
_STATUS = {"OK": 1, "ERROR": 2}
_OWN = ("span.kind", "otel.status_code", "otel.status_description", "internal.span.format", "w3c.tracestate")
_SCOPE, _SCOPE_VERSION = ("otel.scope.name", "otel.library.name"), ("otel.scope.version", "otel.library.version")
_DROPPED = "otel.dropped_attributes_count"


def recognises(document: Json) -> bool:
    """Whether these are Jaeger's traces: a list of them under ``data``, or none."""
    traces = document.get("data") if isinstance(document, dict) else None
    if not isinstance(traces, list):
        return False
    return all(isinstance(one, dict) and "traceID" in one for one in traces) and (bool(traces) or "total" in document)


def read(document: Json, place: str) -> Batch:
    """The spans of all traces; one that cannot be read costs only itself."""
    spans: list[RawSpan] = []
    faults: list[Fault] = []
    for number, (trace, span) in enumerate(_spans(document["data"])):
        where = f"{place}, span {number}"
        try:
            spans.append(_read_span(span, trace, where))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            faults.append(Fault(where, f"not a span of Jaeger's: {type(error).__name__}: {error}"))
    return Batch(tuple(spans), (), tuple(faults))


def _spans(traces: list[Any]) -> Iterator[tuple[dict[str, Any], Any]]:
    for trace in traces:
        spans = trace.get("spans")
        for span in spans if isinstance(spans, list) else []:
            yield trace, span


def _read_span(span: Any, trace: dict[str, Any], place: str) -> RawSpan:
    attributes = _read_tags(span.get("tags"))
    start = int(span.get("startTime") or 0) * 1000
    trace_id = _read_id(span["traceID"], 32)
    references = [one for one in span.get("references") or [] if isinstance(one, dict)]
    parents = [one for one in references if _read_id(one["traceID"], 32) == trace_id]
    parent = next((one for one in parents if one.get("refType") == "CHILD_OF"), None)
    status = _STATUS.get(str(attributes.get("otel.status_code")), 2 if attributes.get("error") is True else 0)
    return RawSpan(
        trace_id=trace_id,
        span_id=_read_id(span["spanID"], 16),
        parent_id=_read_id(parent["spanID"], 16) if parent else None,
        name=str(span.get("operationName") or ""),
        kind=_KINDS.get(str(attributes.get("span.kind")), 0),
        start=start,
        end=start + int(span.get("duration") or 0) * 1000,
        attributes={key: value for key, value in attributes.items() if key not in (*_OWN, *_SCOPE, *_SCOPE_VERSION)},
        origin=_read_origin(trace, span, attributes),
        place=place,
        events=tuple(_read_event(log) for log in span.get("logs") or []),
        links=tuple(
            RawLink(_read_id(one["traceID"], 32), _read_id(one["spanID"], 16))
            for one in references
            if one is not parent
        ),
        status=status,
        status_message=str(attributes.get("otel.status_description") or ""),
        dropped_attributes=int(attributes.get(_DROPPED) or 0),
    )


def _read_origin(trace: dict[str, Any], span: dict[str, Any], attributes: Attributes) -> Origin:
    processes = trace.get("processes") or {}
    process = span.get("process") or processes.get(span.get("processID")) or {}
    resource = {**_read_tags(process.get("tags")), "service.name": process.get("serviceName")}
    scope = next((attributes[key] for key in _SCOPE if key in attributes), "")
    version = next((attributes[key] for key in _SCOPE_VERSION if key in attributes), "")
    return Origin(resource, str(scope), str(version))


def _read_event(log: dict[str, Any]) -> RawEvent:
    fields = dict(_read_tags(log.get("fields")))
    return RawEvent(str(fields.pop("event", "")), int(log.get("timestamp") or 0) * 1000, fields)


def _read_tags(tags: Any) -> dict[str, Json]:
    return {str(tag["key"]): tag.get("value") for tag in tags or []}


def _read_id(value: Any, digits: int) -> str:
    """An id with the zeros at its front that Jaeger leaves out."""
    text = str(value).lower()
    if not text.strip("0") or len(text) > digits or not set(text) <= set("0123456789abcdef"):
        raise ValueError(f"{str(value)[:60]!r} is no id of {digits} hex digits")
    return text.zfill(digits)
