"""What the export thread does with a batch: read captures, finish spans, cut into requests, hand these to exporters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.util.types import AttributeValue

from spanreel import conventions, json_text
from spanreel import losses as reasons
from spanreel.encoded_sizes import encoded_size
from spanreel.errors import SettingsError
from spanreel.exporters import Complaint, make_exporters
from spanreel.fidelity import content_of, mark
from spanreel.losses import Losses
from spanreel.model import Fidelity
from spanreel.offloading import Offload
from spanreel.outgoing import Terms, finish_resource, finish_span
from spanreel.quiet import log_once, note_fault, quietly
from spanreel.redaction import policy_of
from spanreel.safe_texts import STATUS_BYTES, safe_text
from spanreel.settings import Settings
from spanreel.spans import OwnSpan

REQUEST_BYTES: Final = 3584 * 1024
"""The most of one export request: a default Collector refuses over 4 MiB."""
REQUEST_OVERHEAD: Final = 64 * 1024
"""What a request may hold beside its spans: resource and scopes."""


class Capture(Protocol):
    """What a boundary kept of a call."""

    @property
    def size(self) -> int:
        """The bytes that it holds."""
        ...

    def attributes(self) -> Mapping[str, AttributeValue]:
        """What it says, as span attributes. Expensive: called in the export thread."""
        ...


class Waiting:
    """A span that is to be exported; ``capture`` is None where it has none, or where ``content_dropped``.

    Not exported, where it is ``superseded`` by one that says the same and more. ``begun`` makes the span that says that
    this one has begun, and is exported in its place.
    """

    # What few say is the class's.
    content_dropped: bool = False
    superseded: bool = False
    begun: Callable[[], OwnSpan] | None = None

    def __init__(self, span: OwnSpan, capture: Capture | None, size: int) -> None:
        self.span = span
        self.capture = capture
        self.size = size

    def drop_content(self, size: int) -> None:
        """There is no room for the content, but for a span of so many bytes."""
        self.capture, self.size, self.content_dropped = None, size, True

    def settle(self) -> None:
        """Have the span that is exported."""
        if self.begun is not None:
            self.span, self.begun = self.begun(), None
            self.capture, self.span.capture = self.span.capture, None


class Delivery:
    """Finishes spans and exports them; used by one thread. ``exporters`` None are those of the settings."""

    def __init__(self, settings: Settings, exporters: Sequence[SpanExporter] | None, losses: Losses) -> None:
        self.settings = settings
        self.losses = losses
        self.failing = False
        self.complaint = Complaint()
        self._exporters = None if exporters is None else list(exporters)
        self._terms = Terms(settings, policy_of(settings))
        self._resource: tuple[Resource, Resource] | None = None

    def prepare(self) -> None:
        """Make the exporters that the settings ask for; one that cannot be made is said, and counted span by span."""
        if self.settings.offload is not None:
            try:
                self._terms = replace(self._terms, offload=Offload(self.settings.offload, self.settings.offload_bytes))
            except SettingsError as fault:
                log_once(f"could not prepare the offload, so large values stay on their spans: {_said(fault)}")
        if self._exporters is None:
            try:
                self._exporters = make_exporters(self.settings)
            except Exception as fault:  # noqa: BLE001 -- not installed, or its own settings are wrong
                self._exporters = []
                log_once(f"could not make an exporter, so nothing is exported: {_said(fault)}")

    def deliver(self, batch: Sequence[Waiting]) -> None:
        """Export the batch in requests that a default Collector takes. What fails is counted; nothing is raised."""
        said = self.losses.take()
        requests = self._requests(batch, said)
        first = next(requests, None)
        if first is None or not self._send(first):
            self.losses.put_back(said)
        for request in requests:
            self._send(request)

    def _requests(self, batch: Sequence[Waiting], said: Mapping[str, int]) -> Iterator[list[ReadableSpan]]:
        """The batch, finished and cut into requests; its first span says what was lost before."""
        request: list[ReadableSpan] = []
        size = REQUEST_OVERHEAD
        for waiting in batch:
            try:
                span = self._finish(waiting, said)
            except Exception as fault:  # noqa: BLE001 -- a span that cannot be finished costs only itself
                self.losses.add(reasons.EXPORT_FAILED)
                log_once(f"could not finish a span: {type(fault).__name__}")
                continue
            said = {}
            span_size = encoded_size(span)
            if request and size + span_size > REQUEST_BYTES:
                yield request
                request, size = [], REQUEST_OVERHEAD
            request.append(span)
            size += span_size
        if request:
            yield request

    def shutdown(self) -> None:
        """Shut the exporters down; one that waits to try again stops."""
        for exporter in self._exporters or ():
            with quietly("shut an exporter down"):
                exporter.shutdown()

    def _finish(self, waiting: Waiting, said: Mapping[str, int]) -> ReadableSpan:
        waiting.settle()
        span = waiting.span
        attributes = dict(span.attributes)
        if waiting.content_dropped:
            attributes = self._without_content(attributes)
        elif waiting.capture is not None:
            try:
                attributes |= waiting.capture.attributes()
            except Exception as fault:  # noqa: BLE001 -- what cannot be read costs its content, not its span
                # The text of the exception may quote the content: it is not logged.
                run, session = attributes.get(conventions.RUN_ID), attributes.get(conventions.CONVERSATION_ID)
                note_fault("read what a call kept", fault, str(run) if run else None, str(session) if session else None)
                self.losses.add(reasons.CAPTURE_FAILED)
                attributes = self._without_content(attributes)
        if said:
            attributes[conventions.LOSSES] = json_text.encode(said)
        return finish_span(span, self._finished(span.resource), attributes, self._terms)

    def _without_content(self, attributes: dict[str, AttributeValue]) -> dict[str, AttributeValue]:
        return mark(attributes, content_of(attributes.get(conventions.OPERATION)), Fidelity.ABSENT)

    def _finished(self, resource: Resource) -> Resource:
        """The resource as it may leave: the same for all spans, so worked out once."""
        if self._resource is None or self._resource[0] is not resource:
            self._resource = (resource, finish_resource(resource, self._terms))
        return self._resource[1]

    def _send(self, spans: Sequence[ReadableSpan]) -> bool:
        """Whether every exporter took the spans."""
        self.failing = not self._exporters
        for exporter in self._exporters or ():
            self.complaint.begin()
            try:
                taken = exporter.export(spans) is SpanExportResult.SUCCESS
            except Exception as fault:  # noqa: BLE001 -- whatever an exporter raises
                log_once(f"could not export with {type(exporter).__name__}: {type(fault).__name__}: {_said(fault)}")
                taken = False
            if not taken:
                self.failing = True
                self.losses.explain(self.complaint.text)
                self.losses.add(reasons.EXPORT_FAILED, len(spans))
        if not self._exporters:
            self.losses.add(reasons.EXPORT_FAILED, len(spans))
        return not self.failing


def _said(fault: Exception) -> str:
    """What an exporter's exception says; it may quote what it could not send."""
    return safe_text(str(fault), STATUS_BYTES)
