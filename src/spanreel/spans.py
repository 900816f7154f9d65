"""Spans of our own pipeline: all that OpenTelemetry's API asks of a span, with the work left to the export thread.

An SDK span examines, copies and locks on the caller's thread; ours takes notes, and becomes an SDK span when it leaves.
Sampler, ids, limits and resource are those of the SDK's provider, which reads them from ``OTEL_*``.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Any, Final, Protocol

from opentelemetry import trace
from opentelemetry.attributes import BoundedAttributes
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.sampling import DEFAULT_ON, Decision
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    TraceState,
)
from opentelemetry.util.types import Attributes, AttributeValue

from spanreel import contexts, conventions

_SCALARS: Final = frozenset({str, bool, int, float})
_SAMPLED: Final = TraceFlags.SAMPLED
_RANDOM: Final = 2
"""The flag of a trace id that is random (W3C trace context, level 2)."""
_FLAGS: Final = tuple(TraceFlags(flags) for flags in range(4))
_UNSET: Final = Status()


class Start(Protocol):
    """What a span says from its start. Asked when it leaves, or when somebody wants to know before."""

    @property
    def operation(self) -> str:
        """``gen_ai.operation.name``, which all else may wait for."""
        ...

    def name(self) -> str:
        """The span's name."""
        ...

    def attributes(self) -> dict[str, Any]:
        """The span's attributes, the operation among them."""
        ...


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


def begin(tracer: Tracer, start: Start, context: Context, kind: SpanKind = SpanKind.INTERNAL) -> Span:
    """A span below the one that is current in the context, of whosever tracer."""
    if isinstance(tracer, OwnTracer):
        return tracer.begin(start, context, kind)
    return tracer.start_span(start.name(), context=context, kind=kind, attributes=start.attributes())


def say(span: Span, attributes: dict[str, Any]) -> None:
    """Have a span that has begun say these too, in the place of what it said from the start; nothing is worked out."""
    if type(span) is OwnSpan:
        span.say(attributes)
    else:
        span.set_attributes(attributes)


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
        self.take, self.announce = taker.take, taker.announce
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
            return NonRecordingSpan(SpanContext(trace_id, span_id, False, _FLAGS[flags], state))
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


class OwnSpan(Span):
    """One span; what it says is read when it has ended. ``capture`` is what a boundary kept of its call."""

    # What most spans never say is the class's.
    links: Sequence[Link] = ()
    events: Sequence[Event] = ()
    status: Status = _UNSET
    end_time: int | None = None
    capture: Any = None
    _said: dict[str, Any] | None = None

    def __init__(  # noqa: PLR0913 - what a span is made of
        self,
        tracer: OwnTracer,
        trace_id: int,
        span_id: int,
        flags: int,
        state: TraceState | None,
        above: OwnSpan | SpanContext | None,
        kind: SpanKind,
        start: Start,
    ) -> None:
        self.tracer = tracer
        self.trace_id = trace_id
        self.span_id = span_id
        self.flags = flags
        self.state = state
        self.above = above
        self.kind = kind
        self.operation = start.operation
        self._start: Start | None = start
        self.start_time = time.time_ns()

    @cached_property
    def context(self) -> SpanContext:
        """The span's ids, as OpenTelemetry has them."""
        return SpanContext(self.trace_id, self.span_id, False, _FLAGS[self.flags], self.state)

    @cached_property
    def parent(self) -> SpanContext | None:
        """The ids of the span above."""
        if isinstance(self.above, OwnSpan):
            self.above = self.above.context
        return self.above

    @property
    def is_outermost(self) -> bool:
        """Whether there is none above it in this process."""
        above = self.above
        return above is None or (type(above) is SpanContext and above.is_remote)

    @cached_property
    def name(self) -> str:
        """What the span is called."""
        self._work_out()
        name: str = vars(self)["name"]
        return name

    @cached_property
    def attributes(self) -> dict[str, AttributeValue]:
        """What the span says."""
        self._work_out()
        attributes: dict[str, AttributeValue] = vars(self)["attributes"]
        return attributes

    def say(self, attributes: dict[str, Any]) -> None:
        """Say these too."""
        if self._start is None:
            self.attributes.update(attributes)
        else:
            self._said = attributes if self._said is None else self._said | attributes

    def _work_out(self) -> None:
        """Ask what was said from the start, and let go of what that takes: a context may outlive the call."""
        if (start := self._start) is not None:
            _ = self.parent
            vars(self).setdefault("name", start.name())
            vars(self).setdefault("attributes", start.attributes() | (self._said or {}))
            self._start = None

    @property
    def resource(self) -> Resource:
        """Of the program."""
        return self.tracer.resource

    @property
    def instrumentation_scope(self) -> InstrumentationScope:
        """Ours."""
        return self.tracer.scope

    def get_span_context(self) -> SpanContext:
        """The span's ids."""
        return self.context

    def is_recording(self) -> bool:
        """Whether the span has not ended."""
        return self.end_time is None

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        """Say these."""
        for key, value in attributes.items():
            self.set_attribute(key, value)

    def set_attribute(self, key: str, value: Any) -> None:
        """Say this, within the SDK's limits; values that OTLP has no type for are left out."""
        limits = self.tracer.limits
        full = limits.max_span_attributes is not None and len(self.attributes) >= limits.max_span_attributes
        if self.end_time is not None or (full and key not in self.attributes):
            return
        if type(value) in _SCALARS and (type(value) is not str or limits.max_span_attribute_length is None):
            self.attributes[key] = value
        else:
            self.attributes.update(BoundedAttributes(None, {key: value}, False, limits.max_span_attribute_length))

    def add_event(self, name: str, attributes: Attributes = None, timestamp: int | None = None) -> None:
        """Note that something happened."""
        limits = self.tracer.limits
        if self.end_time is None and (limits.max_events is None or len(self.events) < limits.max_events):
            kept = BoundedAttributes(limits.max_event_attributes, attributes, True, limits.max_attribute_length)
            self.events = [*self.events, Event(name, kept, timestamp)]

    def add_link(self, context: SpanContext, attributes: Attributes = None) -> None:
        """Point to another span."""
        limits = self.tracer.limits
        if self.end_time is None and (limits.max_links is None or len(self.links) < limits.max_links):
            kept = BoundedAttributes(limits.max_link_attributes, attributes, True, limits.max_attribute_length)
            self.links = [*self.links, Link(context, kept)]

    def update_name(self, name: str) -> None:
        """Be called something else."""
        if self.end_time is None:
            self.name = name

    def set_status(self, status: Status | StatusCode, description: str | None = None) -> None:
        """Say how it went; OK is final, and unset says nothing."""
        new = status if isinstance(status, Status) else Status(status, description)
        final = self.status.status_code is StatusCode.OK
        if self.end_time is None and not final and new.status_code is not StatusCode.UNSET:
            self.status = new

    def record_exception(
        self,
        exception: BaseException,
        attributes: Attributes = None,
        timestamp: int | None = None,
        escaped: bool = False,
    ) -> None:
        """Note an exception, as the conventions for exceptions on spans say."""
        kind = type(exception)
        name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        said: dict[str, AttributeValue] = {
            "exception.type": name,
            "exception.message": str(exception),
            "exception.stacktrace": "".join(traceback.format_exception(exception)),
            "exception.escaped": str(escaped),
        }
        self.add_event("exception", {**said, **(attributes or {})}, timestamp)

    def end(self, end_time: int | None = None) -> None:
        """End; only the first end counts."""
        if self.end_time is None:
            self.end_time = time.time_ns() if end_time is None else end_time
            self.tracer.take(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trail: TracebackType | None
    ) -> None:
        """End with the block; an exception in it is noted, as the SDK does."""
        if error is not None and self.is_recording():
            self.record_exception(error, escaped=True)
            self.set_status(Status(StatusCode.ERROR, f"{type(error).__name__}: {error}"))
        self.end()
