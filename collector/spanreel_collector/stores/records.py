"""What a store of the service keeps and answers, as data. What it can do is `store`'s.

Everything belongs to a tenant, which is the first column of every key. What came over OTLP is kept as it came, in
segments: what one request held of one trace. Sessions are made of segments, and can be made again. Moments are
nanoseconds since 1970 (UTC).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any, Literal

from spanreel.frozen import dataclass

KeptSignal = Literal["traces", "logs"]

TraceKey = tuple[str, bytes]
"""Tenant and trace."""

NO_TRACE = bytes(16)
"""The trace of log records that name none."""
_LOOSE = b"\0loose"


def loose_trace(user: str) -> bytes:
    """The trace of those log records of a user that name none, so that they can be erased without all others."""
    return _LOOSE + hashlib.sha256(user.encode("utf-8", "surrogatepass")).digest()[: len(NO_TRACE) - len(_LOOSE)]


def is_loose(trace: bytes) -> bool:
    """Whether this is no real trace: what comes of it has nothing to do with each other, and ever more of it comes."""
    return trace == NO_TRACE or trace.startswith(_LOOSE)


# -- what came -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Segment:
    """What one request held of one trace.

    ``trace`` is 16 bytes. ``items`` tell what is in it apart, all of one length: of a span its id and a checksum of
    what it says (8 and 4 bytes), so that a corrected version is another item; of a log record a digest (16 bytes).
    ``body`` is an ExportTraceServiceRequest (or ExportLogsServiceRequest) of only these items, as zstd; ``size`` is how
    long it was before.
    """

    tenant: str
    trace: bytes
    signal: KeptSignal
    items: tuple[bytes, ...]
    body: bytes
    size: int


@dataclass(frozen=True, slots=True)
class Appended:
    """How many items were new, and how many were there already (a delivery may come twice)."""

    new: int
    known: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """What was not kept of a request, and why, so that it can be looked up."""

    tenant: str
    at: int
    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class Pending:
    """A trace of which something came that no session was made of. ``mark`` grows with each arrival."""

    tenant: str
    trace: bytes
    mark: int
    first: int
    last: int


# -- what was made of it ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Summary:
    """A session as lists show it. ``revision`` counts from 1; ``at`` is when this revision was made.

    ``kind`` and ``key`` are what makes the session one; ``input_tokens`` and the like are None where nobody said them.
    ``user`` is whose it is, ``users`` are all who had a run in it.
    """

    id: str
    revision: int
    at: int
    kind: str
    key: str
    origin: str
    status: str
    name: str | None = None
    user: str | None = None
    users: tuple[str, ...] = ()
    started: int | None = None
    ended: int | None = None
    agents: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    runs: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    eligible: bool = False
    baseline: str | None = None
    opening: str = ""
    """The first words of the first run's input, for people."""
    failure: str | None = None
    """Why the first run that did not end well did not, for people; None where all did, or nothing says why."""


@dataclass(frozen=True, slots=True)
class Made:
    """A revision of a session: its summary, the document (JSON, `spanreel.session/1`), and the text to search."""

    summary: Summary
    document: bytes
    text: str
    traces: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class Derived:
    """What some traces were read as, together.

    ``marks`` are the traces and the mark of what was read of each (0 where nothing was pending); ``names`` what may
    join each to others. ``made`` are sessions that are new or changed; ``same`` those that say what they said. Other
    sessions that were of these traces are no more. ``reader`` is the release that read them.
    """

    tenant: str
    marks: Mapping[bytes, int]
    names: Mapping[bytes, frozenset[str]]
    made: tuple[Made, ...]
    same: frozenset[str]
    reader: str


@dataclass(frozen=True, slots=True)
class Revision:
    """One revision of a session, without its document."""

    revision: int
    at: int
    reader: str


# -- what is asked ---------------------------------------------------------------------------------------------------

Order = Literal["started", "updated", "duration", "tokens", "cost"]


@dataclass(frozen=True, slots=True)
class Filter:
    """Which sessions; None asks nothing. ``since`` and ``until`` bound the start (until excluded).

    ``text`` are words that all stand in the session, the last one perhaps not whole.
    """

    agent: str | None = None
    version: str | None = None
    user: str | None = None
    model: str | None = None
    tool: str | None = None
    tag: str | None = None
    origin: str | None = None
    status: str | None = None
    key: str | None = None
    baseline: str | None = None
    eligible: bool | None = None
    since: int | None = None
    until: int | None = None
    least_tokens: int | None = None
    most_tokens: int | None = None
    least_cost: float | None = None
    most_cost: float | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Some sessions, in order, and the cursor of the next page (None at the end)."""

    sessions: tuple[Summary, ...]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class KeptPage:
    """The same, each session as its summary is kept: JSON of a `Summary`, perhaps of another release's."""

    summaries: tuple[bytes, ...]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class Report:
    """What a replay of a session found; ``document`` is JSON."""

    id: str
    session: str
    at: int
    verdict: str
    document: bytes


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was erased, in numbers."""

    sessions: int = 0
    revisions: int = 0
    traces: int = 0
    items: int = 0
    reports: int = 0

    def __add__(self, other: Receipt) -> Receipt:
        return Receipt(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


@dataclass(frozen=True, slots=True)
class Size:
    """How much a store holds. ``live`` is bytes in use, ``disk`` bytes taken."""

    items: int
    traces: int
    sessions: int
    pending: int
    live: int
    disk: int
    tables: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """Something kept, as it moves from one store to another: a kind and its values (text, numbers, bytes, None)."""

    kind: str
    values: tuple[Any, ...]
