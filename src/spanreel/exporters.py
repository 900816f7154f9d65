"""Which exporters the settings ask for, made when they are first needed: importing gRPC takes half a second.

Endpoints, headers, timeouts, compression and certificates are read from ``OTEL_*`` by the SDK's exporters themselves.
"""

from __future__ import annotations

import importlib.metadata
import logging
import re
import threading
from collections.abc import Sequence
from types import FunctionType, MethodType
from typing import Any, Final
from urllib.parse import urlsplit

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SpanExporter

from spanreel import __version__
from spanreel.errors import SettingsError
from spanreel.otlp_bytes import encode
from spanreel.otlp_file import FileExporter
from spanreel.redaction import redact_text
from spanreel.safe_texts import safe_text
from spanreel.settings import CaptureLevel, OtlpProtocol, Settings

GROUP: Final = "opentelemetry_traces_exporter"
"""The entry points under which packages offer exporters to ``OTEL_TRACES_EXPORTER``."""


def exports(settings: Settings) -> bool:
    """Whether there is anywhere for spans to go."""
    return not settings.disabled and (settings.file is not None or bool(settings.exporters))


def make_exporters(settings: Settings) -> list[SpanExporter]:
    """The exporters.

    Raises:
        SettingsError: one that is asked for is not installed, or an endpoint that is no URL.
    """
    exporters: list[SpanExporter] = []
    if settings.file is not None:
        exporters.append(FileExporter(settings.file))
    return exporters + [_make(name, settings) for name in settings.exporters]


def describe(settings: Settings) -> str:
    """What records and where to, in one line for the log at start."""
    if settings.disabled or settings.capture is CaptureLevel.OFF:
        return f"spanreel {__version__} records nothing: switched off"
    content = "on" if settings.content else "off"
    return f"spanreel {__version__} records runs, model calls and tool calls to {place(settings)}, content {content}"


def place(settings: Settings) -> str:
    """Where spans go, in words, without credentials."""
    places = [f"the file {settings.file}"] if settings.file else []
    for name in settings.exporters:
        how = "gRPC" if settings.protocol is OtlpProtocol.GRPC else "HTTP"
        endpoint = redact_text(settings.endpoint or "")
        places.append(f"{endpoint} (OTLP over {how})" if name == "otlp" else name)
    return " and ".join(places) or "nowhere"


class Complaint:
    """Why an export fails, as the SDK's exporter logs it: the first of a request, since later ones are of giving up."""

    def __init__(self) -> None:
        self.text = ""
        self._again = True

    def begin(self) -> None:
        """Another request. What was heard before stays until something is: the SDK does not repeat itself."""
        self._again = True

    def hear(self, record: logging.LogRecord) -> None:
        """Something was logged."""
        if self._again and record.levelno >= logging.WARNING:
            said = safe_text(_RETRYING.sub("", record.getMessage()), _COMPLAINT_BYTES)
            self.text, self._again = said + "".join(advice for sign, advice in _ADVICE if sign.search(said)), False


_RETRYING: Final = re.compile(r" encountered while exporting [^\n]*?, retrying in [\d.]+ ?s\.?")
_COMPLAINT_BYTES: Final = 400
_ADVICE: Final = (
    (
        re.compile("Connection refused|StatusCode.UNAVAILABLE"),
        "; does anything listen there? `spanreel serve` or a Collector would; SPANREEL_FILE=traces.jsonl needs neither",
    ),
    (
        re.compile("code: 401|StatusCode.UNAUTHENTICATED"),
        "; a token is sent by OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20TOKEN",
    ),
)
"""What to do, by a sign in what the exporter complains of: words of the SDK's, of urllib3's, of grpc's."""


def quieten(worker: threading.Thread, complaint: Complaint) -> None:
    """Keep the SDK's exporters from logging each failed attempt of this thread: we say once what was lost, and why."""

    def is_not_ours(record: logging.LogRecord) -> bool:
        if record.thread != worker.ident:
            return True
        complaint.hear(record)
        return False

    for name in list(logging.root.manager.loggerDict):
        if name.startswith("opentelemetry.exporter."):
            logging.getLogger(name).addFilter(is_not_ours)


def _make(name: str, settings: Settings) -> SpanExporter:
    if name == "console":
        return ConsoleSpanExporter()
    if name == "otlp":
        _check_endpoint(settings)
        name = "otlp_proto_grpc" if settings.protocol is OtlpProtocol.GRPC else "otlp_proto_http"
    found = list(importlib.metadata.entry_points(group=GROUP, name=name))
    if not found:
        known = sorted(entry.name for entry in importlib.metadata.entry_points(group=GROUP))
        raise SettingsError(f"OTEL_TRACES_EXPORTER names {name!r}, which is not installed; installed: {known!r}")
    exporter: SpanExporter = found[0].load()()
    write_at_once(exporter)
    return exporter


def _check_endpoint(settings: Settings) -> None:
    """Over HTTP each request would fail where it is HOST:PORT alone, which gRPC takes."""
    if settings.protocol is OtlpProtocol.HTTP and urlsplit(settings.endpoint or "").scheme not in ("http", "https"):
        endpoint = redact_text(settings.endpoint or "")
        raise SettingsError(f"the OTLP endpoint is {endpoint!r}; over HTTP it is a URL, such as http://localhost:4318")


class _Request:
    """A request that is written already, as the SDK's exporter over HTTP asks for one."""

    def __init__(self, spans: Sequence[ReadableSpan]) -> None:
        self._written = encode(spans)

    def SerializePartialToString(self) -> bytes:  # noqa: N802 -- a message's own name
        """The bytes of the request."""
        return self._written


def _message(spans: Sequence[ReadableSpan]) -> Any:
    """The request as a message, which gRPC writes again."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (  # noqa: PLC0415 -- slow, and not always used
        ExportTraceServiceRequest,
    )

    return ExportTraceServiceRequest.FromString(encode(spans))


_ENCODERS: Final = {
    "opentelemetry.exporter.otlp.proto.http.trace_exporter": _Request,
    "opentelemetry.exporter.otlp.proto.grpc.trace_exporter": _message,
}


def write_at_once(exporter: SpanExporter) -> bool:
    """Let one of the SDK's OTLP exporters, this one alone, write requests with our encoder; whether it now does.

    Its own methods stay, with another encoder under the name of the SDK's. Where a release has no such name in them,
    nothing is changed.
    """
    kind = type(exporter)
    ours = _ENCODERS.get(kind.__module__)
    if ours is None:
        return False
    found = False
    for name in ("export", "_serialize_spans", "_translate_data"):
        method = vars(kind).get(name)
        if isinstance(method, FunctionType) and _ENCODE in method.__code__.co_names:
            known = {**method.__globals__, _ENCODE: ours}
            copy = FunctionType(method.__code__, known, name, method.__defaults__, method.__closure__)
            copy.__kwdefaults__ = method.__kwdefaults__
            setattr(exporter, name, MethodType(copy, exporter))
            found = True
    return found


_ENCODE: Final = "encode_spans"
