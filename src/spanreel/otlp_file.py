"""Spans to a file of OTLP JSON lines, as the Collector's file exporter writes it: one request a line. No protobuf.

Source: the OTLP/JSON encoding (opentelemetry-proto, "JSON Protobuf Encoding").
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, format_span_id, format_trace_id

from spanreel import json_text

HAS_IS_REMOTE = 0x100
IS_REMOTE = 0x200
"""Bits of a span's flags beside the W3C ones."""


class FileExporter(SpanExporter):
    """Appends each batch as one line in one write, so that several processes may share the file; its owner reads it.

    ``{pid}`` in the path becomes the id of this process.
    """

    def __init__(self, path: str) -> None:
        self.path = path.replace("{pid}", str(os.getpid()))

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write the batch; raises OSError where the file cannot be written."""
        line = json_text.encode(export_request(spans)).encode() + b"\n"
        directory = os.path.dirname(self.path)  # noqa: PTH120 -- a path is text here, as open takes it
        if directory:
            os.makedirs(directory, mode=0o700, exist_ok=True)  # noqa: PTH103 -- as above
        # Opened anew each time: the file may have been rotated away, and a fork would share the offset.
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            while line:
                line = line[os.write(descriptor, line) :]  # all at once, but for a full disk or a signal
        finally:
            os.close(descriptor)
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Nothing is held open."""

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Each batch is written when it is exported."""
        return True


def export_request(spans: Sequence[ReadableSpan]) -> dict[str, Any]:
    """The spans as one ExportTraceServiceRequest in OTLP/JSON."""
    resources: dict[Resource, dict[InstrumentationScope | None, list[ReadableSpan]]] = {}
    for span in spans:
        resources.setdefault(span.resource, {}).setdefault(span.instrumentation_scope, []).append(span)
    return {"resourceSpans": [_resource_spans(resource, scopes) for resource, scopes in resources.items()]}


def _resource_spans(
    resource: Resource, scopes: Mapping[InstrumentationScope | None, list[ReadableSpan]]
) -> dict[str, Any]:
    group: dict[str, Any] = {
        "resource": {"attributes": _attributes(resource.attributes)},
        "scopeSpans": [_scope_spans(scope, spans) for scope, spans in scopes.items()],
    }
    if resource.schema_url:
        group["schemaUrl"] = resource.schema_url
    return group


def _scope_spans(scope: InstrumentationScope | None, spans: list[ReadableSpan]) -> dict[str, Any]:
    group: dict[str, Any] = {"scope": {}, "spans": [_span(span) for span in spans]}
    if scope is not None:
        group["scope"] = {"name": scope.name}
        if scope.version:
            group["scope"]["version"] = scope.version
        if scope.attributes:
            group["scope"]["attributes"] = _attributes(scope.attributes)
        if scope.schema_url:
            group["schemaUrl"] = scope.schema_url
    return group


def _span(span: ReadableSpan) -> dict[str, Any]:
    written: dict[str, Any] = _ids(span.context)
    if span.parent is not None:
        written["parentSpanId"] = format_span_id(span.parent.span_id)
    written |= {
        "flags": _flags(span.context, span.parent),
        "name": span.name,
        "kind": span.kind.value + 1,
        "startTimeUnixNano": str(span.start_time or 0),
        "endTimeUnixNano": str(span.end_time or 0),
        "attributes": _attributes(span.attributes),
    }
    if span.events:
        written["events"] = [_event(event) for event in span.events]
    if span.links:
        written["links"] = [_link(link) for link in span.links]
    status: dict[str, Any] = {"code": span.status.status_code.value} if span.status.status_code.value else {}
    if span.status.description:
        status["message"] = span.status.description
    return {**written, "status": status}


def _ids(context: SpanContext | None) -> dict[str, Any]:
    if context is None:
        return {}
    ids = {"traceId": format_trace_id(context.trace_id), "spanId": format_span_id(context.span_id)}
    state = context.trace_state.to_header()
    return {**ids, "traceState": state} if state else ids


def _flags(context: SpanContext | None, parent: SpanContext | None) -> int:
    remote = IS_REMOTE if parent is not None and parent.is_remote else 0
    return (int(context.trace_flags) & 0xFF if context is not None else 0) | HAS_IS_REMOTE | remote


def _event(event: Event) -> dict[str, Any]:
    return {
        "timeUnixNano": str(event.timestamp),
        "name": event.name,
        "attributes": _attributes(event.attributes),
    }


def _link(link: Link) -> dict[str, Any]:
    remote = IS_REMOTE if link.context.is_remote else 0
    return {
        **_ids(link.context),
        "attributes": _attributes(link.attributes),
        "flags": int(link.context.trace_flags) & 0xFF | HAS_IS_REMOTE | remote,
    }


def _attributes(attributes: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    return [{"key": name, "value": _any_value(value)} for name, value in (attributes or {}).items()]


def _any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, bytes):
        return {"bytesValue": base64.b64encode(value).decode("ascii")}
    if isinstance(value, Mapping):
        return {"kvlistValue": {"values": _attributes(value)}}
    if isinstance(value, Sequence):
        return {"arrayValue": {"values": [_any_value(item) for item in value]}}
    return {}
