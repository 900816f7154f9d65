"""An exporter that lets nothing out as it came: for providers of the user's, whose spans others write too."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from spanreel.offloading import Offload
from spanreel.outgoing import Terms, finish_resource, finish_span
from spanreel.quiet import log_once
from spanreel.redaction import Policy, policy_of
from spanreel.settings import Settings, read_settings


class RedactingExporter(SpanExporter):
    """Gives an exporter what our own pipeline would give it: redacted, bounded, without content where that is off.

        provider.add_span_processor(BatchSpanProcessor(spanreel.RedactingExporter(OTLPSpanExporter())))

    Each span in every place where content can stand, whichever instrumentation wrote it. A span that cannot be examined
    does not leave, and costs only itself. ``settings`` are read from the environment where none are
    given; ``policy`` is the one that they name.

    Raises:
        SettingsError: the settings, or what they name, cannot be used.
    """

    def __init__(
        self, exporter: SpanExporter, *, settings: Settings | None = None, policy: Policy | None = None
    ) -> None:
        settings = settings or read_settings()
        offload = Offload(settings.offload, settings.offload_bytes) if settings.offload is not None else None
        self._exporter = exporter
        self._terms = Terms(settings, policy or policy_of(settings), offload)
        self._resource: tuple[Resource, Resource] | None = None
        self._lock = threading.Lock()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Finish the spans and hand them on."""
        finished = []
        for span in spans:
            try:
                resource = self._finished(span.resource)
                finished.append(finish_span(span, resource, dict(span.attributes or {}), self._terms))
            except Exception as fault:  # noqa: BLE001 -- whatever a stranger's span holds: it costs only itself
                log_once(f"could not finish a span, which therefore does not leave: {type(fault).__name__}")
        return self._exporter.export(finished) if finished else SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Shut the exporter down."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Flush the exporter."""
        return self._exporter.force_flush(timeout_millis)

    def _finished(self, resource: Resource) -> Resource:
        with self._lock:
            if self._resource is None or self._resource[0] is not resource:
                self._resource = (resource, finish_resource(resource, self._terms))
            return self._resource[1]
