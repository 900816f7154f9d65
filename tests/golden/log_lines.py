"""Log records of the golden dumps, as OTLP/JSON lines beside the spans."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.sdk._logs import LoggerProvider, ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult, SimpleLogRecordProcessor

_PATHS = ("stacktrace", "code.", "process.", "host.", "service.instance", "telemetry.")
"""Of attributes that hold this machine's paths, or differ from run to run."""


class LogLines(LogRecordExporter):
    """Prints each record as a line, without what is the machine's."""

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        for record in batch:
            scope = record.instrumentation_scope
            named = {"name": scope.name, "version": scope.version or ""} if scope is not None else {}
            group = {"scope": named, "logRecords": [_written(record)]}
            resource = {"attributes": _attributes(record.resource.attributes)}
            document = {"resourceLogs": [{"resource": resource, "scopeLogs": [group]}]}
            sys.stdout.write(json.dumps(document, ensure_ascii=False) + "\n")
        return LogRecordExportResult.SUCCESS

    def shutdown(self) -> None:
        return None

    def force_flush(self, timeout_millis: int = 10_000) -> bool:
        del timeout_millis  # nothing waits
        return True


def provider() -> LoggerProvider:
    """A provider that prints its records."""
    made = LoggerProvider()
    made.add_log_record_processor(SimpleLogRecordProcessor(LogLines()))
    return made


def _written(record: ReadableLogRecord) -> dict[str, Any]:
    told = record.log_record
    ids = {"traceId": f"{told.trace_id:032x}", "spanId": f"{told.span_id:016x}"} if told.trace_id else {}
    return {
        **ids,
        "timeUnixNano": str(told.timestamp or told.observed_timestamp or 0),
        "eventName": told.event_name or "",
        "body": _value(told.body),
        "attributes": _attributes(told.attributes or {}),
    }


def _attributes(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"key": key, "value": _value(value)}
        for key, value in attributes.items()
        if not any(word in key for word in _PATHS)
    ]


def _value(value: Any) -> dict[str, Any]:
    if value is None or isinstance(value, (bool, int, float, str)):
        kinds = {bool: "boolValue", int: "intValue", float: "doubleValue", str: "stringValue"}
        return {} if value is None else {kinds[type(value)]: str(value) if type(value) is int else value}
    if isinstance(value, Mapping):
        return {"kvlistValue": {"values": [{"key": key, "value": _value(item)} for key, item in value.items()]}}
    return {"arrayValue": {"values": [_value(item) for item in value]}}
