"""Spans of our own pipeline: all that OpenTelemetry's API asks of a span, with the work left to the export thread.

An SDK span examines, copies and locks on the caller's thread; ours takes notes, and becomes an SDK span when it leaves.
They are begun by `own_tracer`.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import TracebackType
from typing import Any, Final, Protocol

from opentelemetry.attributes import BoundedAttributes
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, SpanLimits
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState
from opentelemetry.util.types import Attributes, AttributeValue

_SCALARS: Final = frozenset({str, bool, int, float})
FLAGS: Final = tuple(TraceFlags(flags) for flags in range(4))
"""OpenTelemetry's form of each number that flags make."""
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


class Home(Protocol):
    """Whose a span is: what it shares with the others of its tracer, and where it goes when it has ended."""

    resource: Resource
    scope: InstrumentationScope
    limits: SpanLimits
    take: Callable[[OwnSpan], None]


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
        tracer: Home,
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
        return SpanContext(self.trace_id, self.span_id, False, FLAGS[self.flags], self.state)

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


def say(span: Span, attributes: dict[str, Any]) -> None:
    """Have a span that has begun say these too, in the place of what it said from the start; nothing is worked out."""
    if type(span) is OwnSpan:
        span.say(attributes)
    else:
        span.set_attributes(attributes)
