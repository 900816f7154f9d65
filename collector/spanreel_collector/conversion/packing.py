"""Spans and logs as bytes, trace by trace, so that they can be set aside; and what may join traces to one session."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from spanreel.conventions import SESSION_NAMESPACE
from spanreel_collector import dialects
from spanreel_collector.sessions.facts import read_ids, read_resource
from spanreel_collector.span import Batch, Fault, Origin, RawEvent, RawLink, RawLog, RawSpan

_PROTOCOL = 5


@dataclass(frozen=True, slots=True)
class Segment:
    """What one batch holds of one trace. ``keys`` are equal in traces that may be one session; ``start`` is the first.

    ``trace`` is empty for logs of no trace. ``linked`` are traces that are one with it, ``users`` all that it names.
    """

    trace: str
    keys: frozenset[str]
    start: int
    data: bytes
    linked: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Packed:
    """A batch in segments; ``spans`` are as many as it had, ``scopes`` who wrote them."""

    segments: tuple[Segment, ...] = ()
    spans: int = 0
    scopes: frozenset[str] = frozenset()
    faults: tuple[Fault, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class _Gathered:
    spans: list[tuple[int, RawSpan]] = field(default_factory=list)
    logs: list[RawLog] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    linked: set[str] = field(default_factory=set)
    users: set[str] = field(default_factory=set)


def pack(batch: Batch) -> Packed:
    """The batch in segments, one a trace."""
    traces: dict[str, _Gathered] = {}
    for number, span in enumerate(batch.spans):
        gathered = traces.get(span.trace_id)
        if gathered is None:
            gathered = traces[span.trace_id] = _Gathered()
        gathered.spans.append((number, span))
        session, users = read_ids(span.attributes)
        _note_whole(gathered, span.origin)
        if users:
            gathered.users.update(users)
        if session:
            namespace = span.attributes.get(SESSION_NAMESPACE)
            gathered.keys.add(session if namespace is None else f"{namespace}\0{session}")
        if linked := dialects.linked(span):
            gathered.linked.update(linked)
    for record in batch.logs:
        log = dialects.place(record)
        gathered = traces.setdefault(log.trace_id or "", _Gathered())
        gathered.logs.append(log)
        if log.trace_id:
            session, users = read_ids(log.attributes)
            _note_whole(gathered, log.origin)
            gathered.users.update(users)
            gathered.keys.update((session,) if session else ())
    origins: dict[int, bytes] = {}
    segments = (_segment(trace, gathered, origins) for trace, gathered in traces.items())
    scopes = frozenset({span.origin.scope for span in batch.spans})
    return Packed(tuple(segments), len(batch.spans), scopes, batch.faults, dict(batch.skipped))


def _note_whole(gathered: _Gathered, origin: Origin) -> None:
    """Note whose the whole process is, where its resource says it."""
    whole = read_resource(origin)
    if whole.id is not None:
        gathered.keys.add(whole.id)
    if whole.user_id is not None:
        gathered.users.add(whole.user_id)


def _segment(trace: str, gathered: _Gathered, origins: dict[int, bytes]) -> Segment:
    """A segment; ``origins`` are those of the batch that are written already, by their identity."""
    indexes: dict[int, int] = {}
    written: list[bytes] = []

    def index(origin: Origin) -> int:
        if id(origin) not in indexes:
            indexes[id(origin)] = len(written)
            if id(origin) not in origins:
                named = (dict(origin.resource), origin.scope, origin.scope_version)
                origins[id(origin)] = pickle.dumps(named, _PROTOCOL)
            written.append(origins[id(origin)])
        return indexes[id(origin)]

    spans = [(number, index(span.origin), _plain_span(span)) for number, span in gathered.spans]
    logs = [(index(log.origin), *_plain_log(log)) for log in gathered.logs]
    start = min((span.start for _, span in gathered.spans if span.start), default=0)
    data = pickle.dumps((written, spans, logs), _PROTOCOL)
    sets = map(frozenset, (gathered.linked, gathered.users))
    return Segment(trace, frozenset(gathered.keys), start, data, *sets)


def _plain_span(span: RawSpan) -> tuple[Any, ...]:
    return (
        span.trace_id,
        span.span_id,
        span.parent_id,
        span.name,
        span.kind,
        span.start,
        span.end,
        dict(span.attributes),
        span.place,
        [(event.name, event.time, dict(event.attributes)) for event in span.events] if span.events else (),
        [(link.trace_id, link.span_id, dict(link.attributes)) for link in span.links] if span.links else (),
        span.status,
        span.status_message,
        span.dropped_attributes,
    )


def _plain_log(log: RawLog) -> tuple[Any, ...]:
    return (log.trace_id, log.span_id, log.event_name, log.time, log.body, dict(log.attributes), log.place)


class Unpacker:
    """Reads segments again. Origins that say the same are one object, as they were."""

    def __init__(self) -> None:
        self._origins: dict[bytes, Origin] = {}

    def unpack(self, segments: Iterable[tuple[int, bytes]]) -> tuple[dict[int, RawSpan], list[RawLog]]:
        """The spans by their arrival, and the logs; each segment comes with the arrival of its batch's first span."""
        spans: dict[int, RawSpan] = {}
        logs: list[RawLog] = []
        for first, data in segments:
            # Only what `pack` wrote, in a file that only this user can read, is ever given to pickle.
            written, packed_spans, packed_logs = pickle.loads(data)  # noqa: S301
            origins = [self._origin(origin) for origin in written]
            for number, origin, fields in packed_spans:
                spans[first + number] = _span(origins[origin], fields)
            for origin, *fields in packed_logs:
                logs.append(_log(origins[origin], fields))
        return spans, logs

    def _origin(self, written: bytes) -> Origin:
        known = self._origins.get(written)
        if known is None:
            known = self._origins[written] = Origin(*pickle.loads(written))  # noqa: S301 - as above
        return known


def _span(origin: Origin, fields: tuple[Any, ...]) -> RawSpan:
    trace, span, parent, name, kind, start, end, attributes, place, events, links, status, message, dropped = fields
    if events:
        events = tuple(RawEvent(*event) for event in events)
    if links:
        links = tuple(RawLink(*link) for link in links)
    # In the order of the fields: to name all of them takes longer than to make it.
    return RawSpan(
        *(trace, span, parent, name, kind, start, end, attributes, origin, place, events, links, status, message),
        dropped_attributes=dropped,
    )


def _log(origin: Origin, fields: list[Any]) -> RawLog:
    trace, span, event, time, body, attributes, place = fields
    return RawLog(trace, span, event, time, body, attributes, origin, place)
