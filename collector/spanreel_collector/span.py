"""What was exported, as data: spans and log records. Reading them is `otlp`'s, their meaning the dialects'."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from spanreel.frozen import dataclass
from spanreel.model import Json

ENDED = -1
"""The end of a span that ended, nobody knows when."""

Attributes = Mapping[str, Json]
"""Attribute values as JSON; bytes stay bytes, an attribute without a value is None."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Who wrote a span or log: the resource's attributes and the instrumentation scope."""

    resource: Attributes = field(default_factory=dict)
    scope: str = ""
    scope_version: str = ""


@dataclass(frozen=True, slots=True)
class RawEvent:
    """An event on a span."""

    name: str
    time: int = 0
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RawLink:
    """A link of a span to another one."""

    trace_id: str
    span_id: str
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RawLog:
    """A log record. Ids are lower-case hex, or None; times are nanoseconds since 1970, 0 where unknown."""

    trace_id: str | None
    span_id: str | None
    event_name: str
    time: int
    body: Json
    attributes: Attributes
    origin: Origin
    place: str


@dataclass(frozen=True, slots=True)
class RawSpan:
    """A span as exported. Ids are lower-case hex; times nanoseconds since 1970.

    ``end`` is 0 of a span still open, `ENDED` where only that it ended is known. ``status`` is 0 unset, 1 ok, 2 error.
    ``logs`` are the log records that were written inside the span.
    """

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    kind: int
    start: int
    end: int
    attributes: Attributes
    origin: Origin
    place: str
    events: tuple[RawEvent, ...] = ()
    links: tuple[RawLink, ...] = ()
    status: int = 0
    status_message: str = ""
    dropped_attributes: int = 0
    logs: tuple[RawLog, ...] = ()


@dataclass(frozen=True, slots=True)
class Fault:
    """What could not be read: where (file, line, index) and why."""

    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class Batch:
    """What one export request held; ``skipped`` counts what conversion has no use for, by kind."""

    spans: tuple[RawSpan, ...] = ()
    logs: tuple[RawLog, ...] = ()
    faults: tuple[Fault, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
