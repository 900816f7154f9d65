"""Whose tracer a span gets. The global TracerProvider is never set here: it is the user's, from when there is one.

Until then spans are our own, and go through our own `Pipeline`; the user's spans never pass that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import NoOpTracer, Span, StatusCode, Tracer

from spanreel import (
    __version__,
    process_ends,  # noqa: F401 -- so that the program's own ends, which it registers later, come first and are recorded
)
from spanreel.conventions import FIDELITY, SCOPE
from spanreel.errors import SettingsError
from spanreel.native import live_span
from spanreel.own_tracer import OwnTracer
from spanreel.quiet import log_once, quietly
from spanreel.settings import Settings
from spanreel.spans import OwnSpan

if TYPE_CHECKING:
    from spanreel.export import Capture, Pipeline
    from spanreel.offloading import Offload

Hold = Callable[[Span, "Capture"], None]
"""Takes what was kept of a call, just before its span ends."""


class TracerSource:
    """Gives tracers. ``tracer_provider`` is where all spans go, where the user says so; ``exporters`` are for tests."""

    def __init__(
        self, settings: Settings, tracer_provider: Any = None, exporters: Sequence[SpanExporter] | None = None
    ) -> None:
        self.settings = settings
        self._lock = threading.Lock()
        self._exporters = exporters
        self._version = __version__
        given = self._tracer_of(tracer_provider) if tracer_provider is not None else None
        self._explicit: _Guarded | None = _Guarded(given, settings) if given is not None else None
        self._users: tuple[Any, _Guarded] | None = None
        self._own: tuple[Tracer, Pipeline] | None = None
        self._kept: Offload | None = None

    def tracer_for(self, context: Context | None = None) -> tuple[Tracer, Hold]:
        """The tracer for a span whose parent is current in this context, and what takes its capture.

        A trace stays where it began: only new roots go to a provider that the user has set since.
        """
        if self._explicit is not None:
            return self._explicit, self._write_now
        users = _users_provider()
        if users is None or self._is_own(live_span(context)):
            return (self._own or self._private())[0], _hold
        if self._users is None or self._users[0] is not users:
            self._users = (users, _Guarded(self._tracer_of(users), self.settings))
        return self._users[1], self._write_now

    @property
    def pipeline(self) -> Pipeline | None:
        """Our own pipeline, where one has been needed so far."""
        return self._own[1] if self._own is not None else None

    def flush(self, timeout: float = 5.0) -> bool:
        """Export what went through our own pipeline; the user's provider is the user's to flush."""
        kept = self._kept.flush(timeout) if self._kept is not None else True
        return kept and (self.pipeline.flush(timeout) if self.pipeline is not None else True)

    def shutdown(self, timeout: float | None = None) -> None:
        """Export what waits and take no more."""
        if self._kept is not None:
            self._kept.flush()
        if self.pipeline is not None:
            self.pipeline.shutdown(timeout)

    def _private(self) -> tuple[Tracer, Pipeline]:
        with self._lock:
            if self._own is None:
                from spanreel.export import Pipeline  # noqa: PLC0415 - `import spanreel.auto` must not pay for it

                # Never given a processor: it is asked for what it read from the environment.
                provider = TracerProvider(shutdown_on_exit=False, resource=_resource())
                pipeline = Pipeline(self.settings, self._exporters)
                tracer = self._tracer_of(provider)
                if not isinstance(tracer, NoOpTracer):  # OTEL_SDK_DISABLED
                    tracer = OwnTracer(provider, InstrumentationScope(SCOPE, self._version), pipeline)
                self._own = (tracer, pipeline)
            return self._own

    def _offload(self) -> Offload | None:
        """Where large values go that leave on the user's provider; written later, since their caller waits."""
        place = self.settings.offload
        if place is None:
            return None
        from spanreel.offloading import Offload  # noqa: PLC0415 - as in `_private`

        with self._lock:
            if self._kept is None:
                try:
                    self._kept = Offload(place, self.settings.offload_bytes, later=True)
                except SettingsError as fault:
                    log_once(f"could not prepare the offload, so large values stay on their spans: {fault}")
        return self._kept

    def _is_own(self, span: Span) -> bool:
        """Whether the span is of our own pipeline."""
        own: object = self._own[0] if self._own is not None else None
        return isinstance(span, OwnSpan) and span.tracer is own

    def _tracer_of(self, provider: Any) -> Tracer:
        tracer: Tracer = provider.get_tracer(SCOPE, self._version)
        return tracer

    def _write_now(self, span: Span, capture: Capture) -> None:
        """On the user's provider, what leaves is finished before the span ends."""
        if not span.is_recording():
            return
        from spanreel.fidelity import join_marks  # noqa: PLC0415 - as in `_private`
        from spanreel.outgoing import failure_in, finish  # noqa: PLC0415 - as in `_private`
        from spanreel.redaction import policy_of  # noqa: PLC0415 - as in `_private`
        from spanreel.safe_texts import STATUS_BYTES, safe_text  # noqa: PLC0415 - as in `_private`

        with quietly("write what a call kept"):
            said = dict(span.attributes or {}) if isinstance(span, ReadableSpan) else {}
            attributes = join_marks({**said, **capture.attributes()}, str(said.get(FIDELITY)))
            attributes = finish(attributes, self.settings, offload=self._offload())
            span.set_attributes(attributes)
            found = failure_in(attributes, span.status) if isinstance(span, ReadableSpan) else None
            if found is not None:
                span.set_status(found)
        if isinstance(span, ReadableSpan) and span.status.description:
            with quietly("redact a span's status"):
                safe = safe_text(span.status.description, STATUS_BYTES, policy_of(self.settings))
                if safe != span.status.description and span.status.status_code is StatusCode.ERROR:
                    span.set_status(StatusCode.ERROR, safe)


class _Guarded(Tracer):
    """A tracer of the user's, whose processors see a span when it starts: what it is given is redacted before."""

    def __init__(self, tracer: Tracer, settings: Settings) -> None:
        self._tracer = tracer
        self._settings = settings

    def start_span(self, name: str, context: Context | None = None, *positional: Any, **named: Any) -> Span:
        """A span with a name and attributes that may leave."""
        from spanreel.redaction import policy_of  # noqa: PLC0415 - as in `_private`
        from spanreel.safe_texts import safe_attributes, safe_name  # noqa: PLC0415 - as in `_private`

        policy = policy_of(self._settings)
        if "attributes" in named:
            named["attributes"] = safe_attributes(named["attributes"], policy)
        return self._tracer.start_span(safe_name(name, policy), context, *positional, **named)

    @contextmanager
    def start_as_current_span(  # type: ignore[override]  # the SDK's is a generator's manager too
        self, name: str, *positional: Any, end_on_exit: bool = True, **named: Any
    ) -> Iterator[Span]:
        """A span that is current in the block."""
        with trace.use_span(self.start_span(name, *positional, **named), end_on_exit) as span:
            yield span


def _hold(span: Span, capture: Capture) -> None:
    """On our own pipeline: kept with the span that is about to end."""
    if isinstance(span, OwnSpan):
        span.capture = capture


def _resource() -> Resource:
    """What the environment says of the program."""
    try:
        return Resource.create()
    except RuntimeError:  # the SDK asks an executor, of which there is none once the main thread has ended
        return Resource({SERVICE_NAME: "unknown_service"}).merge(OTELResourceDetector().detect())


def _users_provider() -> Any:
    """The global provider, where somebody has set one.

    Asked for publicly, it would load what ``OTEL_PYTHON_TRACER_PROVIDER`` names, which is not ours to begin.
    """
    return getattr(trace, "_TRACER_PROVIDER", None)
