"""The service's own metrics and traces, by OpenTelemetry; metrics also as Prometheus text. Its logs: `logs`.

Traces of itself are exported only where OTEL_EXPORTER_OTLP_ENDPOINT says so, and never to itself: that would not end.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import Histogram as HistogramInstrument
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import Histogram, InMemoryMetricReader, Metric, NumberDataPoint, Sum
from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, View
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import Span, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import spanreel

SERVICE = "spanreel"
ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

SLOW = 1.0
"""Seconds from which on work behind the doors leaves a span."""

Attributes = Mapping[str, str | int]
Read = Callable[[], Iterable[tuple[float, Attributes]]]
"""What is observed now: numbers, each with what it is of."""


class Telemetry:
    """What the service says of itself, from its start to `close`."""

    def __init__(self, exporting: bool = False) -> None:
        resource = Resource.create({SERVICE_NAME: SERVICE, SERVICE_VERSION: spanreel.__version__})
        self._reader = InMemoryMetricReader()
        buckets = ExplicitBucketHistogramAggregation(_SECONDS)
        seconds = View(instrument_type=HistogramInstrument, aggregation=buckets)
        self._meters = MeterProvider([self._reader], resource, shutdown_on_exit=False, views=[seconds])
        self._meter = self._meters.get_meter(SERVICE)
        self._tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
        if exporting:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415 - loads requests
                OTLPSpanExporter,
            )

            self._tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._exporting = exporting
        self._tracer = self._tracers.get_tracer(SERVICE)
        self._requests = self._meter.create_counter(
            "spanreel_api_requests", description="Requests of the API, by status"
        )
        self._commits = self._meter.create_histogram(
            "spanreel_commit_seconds", unit="s", description="How long the store took to commit"
        )
        self._answers = self._meter.create_histogram(
            "spanreel_api_seconds", unit="s", description="How long requests of the API took, to their first byte"
        )

    def committed(self, seconds: float) -> None:
        """A commit took so long."""
        self._commits.record(seconds)

    def answered(self, status: int, seconds: float) -> None:
        """A request of the API was answered."""
        self._requests.add(1, {"status": status})
        self._answers.record(seconds)

    def observe(self, name: str, description: str, read: Read, *, grows: bool = False) -> None:
        """Have numbers read whenever metrics are; ``grows``: they are counters."""

        def observations(_: CallbackOptions) -> Iterable[Observation]:
            try:
                return [Observation(value, dict(attributes)) for value, attributes in read()]
            except Exception:  # noqa: BLE001 - one number that cannot be read now must not cost the others
                return []

        create = self._meter.create_observable_counter if grows else self._meter.create_observable_gauge
        create(name, [observations], description=description)

    def span(self, name: str, attributes: Attributes | None = None) -> AbstractContextManager[Any]:
        """A span around what the service does; nothing where none are exported."""
        if not self._exporting:
            return _Nothing()
        return self._tracer.start_as_current_span(name, attributes=dict(attributes or {}))

    def worked(self, name: str, seconds: float) -> None:
        """A span of work behind the doors that took long. What is quick leaves none.

        Or a service whose traces come back to it by way of a Collector would make more of each.
        """
        if self._exporting and seconds >= SLOW:
            now = time.time_ns()
            self._tracer.start_span(name, start_time=now - int(seconds * 1e9)).end(now)

    def text(self) -> str:
        """All metrics as Prometheus text (exposition format 0.0.4)."""
        data = self._reader.get_metrics_data()
        if data is None:
            return ""
        metrics = (
            metric for resource in data.resource_metrics for scope in resource.scope_metrics for metric in scope.metrics
        )
        return "".join(f"{line}\n" for metric in metrics for line in _lines(metric))

    def close(self) -> None:
        """Send what is left, within a bounded time."""
        self._tracers.force_flush(5_000)
        self._tracers.shutdown()
        self._meters.shutdown(timeout_millis=5_000)


@dataclass(frozen=True, slots=True)
class _Nothing:
    def __enter__(self) -> Span | None:
        return None

    def __exit__(self, *_: object) -> None:
        return


def exports(own: Iterable[tuple[str, int]]) -> bool:
    """Whether traces of the service are to be exported: somebody says where to, and it is not the service itself.

    Raises:
        ValueError: it is.
    """
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    endpoint = next((found for name in ENDPOINTS if (found := os.environ.get(name, "").strip())), "")
    if not endpoint:
        return False
    parts = urlsplit(endpoint if "//" in endpoint else f"//{endpoint}")
    local = {"localhost", "127.0.0.1", "::1", "0.0.0.0"}  # noqa: S104 - names are compared, nothing is bound
    for host, port in own:
        same = parts.hostname == host or (parts.hostname in local and host in {*local, "::"})
        if same and (parts.port or 4318) == port:
            raise ValueError(f"{endpoint!r} is this service itself: traces of itself would never end")
    return True


# -- Prometheus text: https://prometheus.io/docs/instrumenting/exposition_formats/ -----------------------------------


def _lines(metric: Metric) -> Iterator[str]:
    kind = {Sum: "counter", Histogram: "histogram"}.get(type(metric.data), "gauge")
    name = f"{metric.name}_total" if kind == "counter" else metric.name
    yield f"# HELP {name} {_escaped(metric.description or '')}"
    yield f"# TYPE {name} {kind}"
    for point in metric.data.data_points:
        labels = {str(key): str(value) for key, value in (point.attributes or {}).items()}
        if isinstance(point, NumberDataPoint):
            yield f"{name}{_labels(labels)} {_number(point.value)}"
            continue
        total = 0
        bounds = (*getattr(point, "explicit_bounds", ()), math.inf)
        for bound, count in zip(bounds, getattr(point, "bucket_counts", ()), strict=True):
            total += count
            yield f"{name}_bucket{_labels({**labels, 'le': _number(bound)})} {total}"
        yield f"{name}_sum{_labels(labels)} {_number(point.sum)}"
        yield f"{name}_count{_labels(labels)} {point.count}"


def _number(value: float) -> str:
    return "+Inf" if value == math.inf else repr(value)


def _labels(labels: Mapping[str, str]) -> str:
    said = ",".join(f'{name}="{_escaped(value)}"' for name, value in sorted(labels.items()))
    return f"{{{said}}}" if said else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
