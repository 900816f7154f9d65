"""The tracer of our own pipeline: it begins spans that only take notes.

Sampler, ids, limits and resource are those of the SDK's provider, which reads them from ``OTEL_*``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.sampling import DEFAULT_ON, Decision
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanContext, SpanKind, TraceFlags, Tracer
from opentelemetry.util.types import Attributes

from spanreel import contexts, conventions
from spanreel.spans import FLAGS, OwnSpan, Start

_SAMPLED: Final = TraceFlags.SAMPLED
_RANDOM: Final = 2
"""The flag of a trace id that is random (W3C trace context, level 2)."""


def begin(tracer: Tracer, start: Start, context: Context, kind: SpanKind = SpanKind.INTERNAL) -> Span:
    """A span below the one that is current in the context, of whosever tracer."""
    if isinstance(tracer, OwnTracer):
        return tracer.begin(start, context, kind)
    return tracer.start_span(start.name(), context=context, kind=kind, attributes=start.attributes())


class Taker(Protocol):
    """Where spans go that have ended."""

    def take(self, span: OwnSpan) -> None:
        """A span has ended."""
        ...

    def announce(self, run: OwnSpan, begun: Callable[[], OwnSpan], size: int) -> None:
        """A run has begun; ``begun`` makes the span that says so, of so many bytes, where it is needed."""
        ...


class OwnTracer(trace.Tracer):
    """Starts spans whose end is told to the taker."""

    def __init__(self, provider: TracerProvider, scope: InstrumentationScope, taker: Taker) -> None:
        self.resource: Resource = provider.resource
        self.scope = scope
        self.take: Callable[[OwnSpan], None] = taker.take
        self.announce = taker.announce
        self.limits = SpanLimits()
        self._sampler = provider.sampler
        self.asks_nobody = self._sampler is DEFAULT_ON
        """Whether nobody wants to know what a span says before it leaves."""
        self._ids = provider.id_generator
        is_random = getattr(self._ids, "is_trace_id_random", None)  # not yet in the oldest SDK that we run with
        self._root_flags = _RANDOM if is_random is not None and is_random() else 0

    def begin(self, start: Start, context: Context, kind: SpanKind) -> Span:
        """`start_span`; where the sampler is the one that nearly all have, nothing asks yet what the span says."""
        if not self.asks_nobody:
            return self.start_span(start.name(), context, kind, start.attributes())
        above = context.get(contexts.SPAN_KEY)
        if above is None:
            trace_id, flags, state = self._ids.generate_trace_id(), self._root_flags | _SAMPLED, None
        elif type(above) is OwnSpan and above.flags & _SAMPLED:
            trace_id, flags, state = above.trace_id, above.flags, above.state
        else:
            return self.start_span(start.name(), context, kind, start.attributes())
        return OwnSpan(self, trace_id, self._ids.generate_span_id(), flags, state, above, kind, start)

    def start_span(  # noqa: PLR0913 - OpenTelemetry's own signature
        self,
        name: str,
        context: Context | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        start_time: int | None = None,
        record_exception: bool = True,
        set_status_on_exception: bool = True,
    ) -> Span:
        """A span below the one that is current in the context; one that records nothing where the sampler says so."""
        parent: SpanContext | None = trace.get_current_span(context).get_span_context()
        if parent is None or not parent.is_valid:
            parent = None
            trace_id, flags = self._ids.generate_trace_id(), self._root_flags
        else:
            trace_id, flags = parent.trace_id, parent.trace_flags & _RANDOM
        result = self._sampler.should_sample(context, trace_id, name, kind, attributes, links or ())
        span_id, state = self._ids.generate_span_id(), result.trace_state
        if result.decision is Decision.DROP:
            return NonRecordingSpan(SpanContext(trace_id, span_id, False, FLAGS[flags], state))
        if result.decision is Decision.RECORD_AND_SAMPLE:
            flags |= _SAMPLED
        start = Given(name, dict(result.attributes or ()))
        span = OwnSpan(self, trace_id, span_id, flags, state, parent, kind, start)
        if start_time is not None:
            span.start_time = start_time
        if links:
            span.links = list(links)
        return span

    @contextmanager
    def start_as_current_span(  # type: ignore[override]  # the SDK's is a generator's manager too
        self, name: str, *args: Any, end_on_exit: bool = True, **kwargs: Any
    ) -> Iterator[Span]:
        """A span that is current in the block."""
        with trace.use_span(self.start_span(name, *args, **kwargs), end_on_exit) as span:
            yield span


@dataclass(eq=False, slots=True)
class Given:
    """A start that is known already."""

    given_name: str
    given_attributes: dict[str, Any]

    @property
    def operation(self) -> str:
        """As given."""
        return str(self.given_attributes.get(conventions.OPERATION, ""))

    def name(self) -> str:
        """As given."""
        return self.given_name

    def attributes(self) -> dict[str, Any]:
        """As given."""
        return self.given_attributes
