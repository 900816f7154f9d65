"""What a store of the service keeps and answers, as data and one protocol. How it does so is each store's own.

Everything belongs to a tenant, which is the first column of every key. What came over OTLP is kept as it came, in
segments: what one request held of one trace. Sessions are made of segments, and can be made again. Moments are
nanoseconds since 1970 (UTC). All methods may be called from any thread; each that writes has committed when it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Protocol

Signal = Literal["traces", "logs"]

TraceKey = tuple[str, bytes]
"""Tenant and trace."""

NO_TRACE = bytes(16)
"""The trace of log records that name none."""


class StoreError(Exception):
    """The store cannot do this now: it is full, locked or gone. Nothing of it was written; trying again may help."""


class Conflict(Exception):
    """A session's head is not the one that the caller read; to be read and made again."""


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
    signal: Signal
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


class Store(Protocol):
    """What each store can do. Whatever cannot be done now raises `StoreError`."""

    # Taking in

    def append(self, segments: Sequence[Segment], refusals: Sequence[Refusal] = ()) -> Appended:
        """Keep segments, all or none, and note their traces as pending. An item that is known is not kept twice.

        Nothing is kept of traces that were erased.
        """
        ...

    def refusals(self, tenant: str, limit: int = 100) -> tuple[Refusal, ...]:
        """What was refused last, newest first."""
        ...

    # Making sessions

    def claim(self, quiet_since: int, until: int, limit: int) -> tuple[Pending, ...]:
        """Pending traces of which nothing came since a moment, oldest first; nobody else gets them until another."""
        ...

    def pending(self, tenant: str, before: int) -> int:
        """Of how many traces something came before a moment that no session was made of yet."""
        ...

    def release(self, claimed: Sequence[Pending]) -> None:
        """Give back what was claimed, so that others need not wait for the claim's end."""
        ...

    def related(self, tenant: str, names: frozenset[str]) -> frozenset[bytes]:
        """The traces that have any of these names, as they were last read."""
        ...

    def names(self, tenant: str, traces: frozenset[bytes]) -> frozenset[str]:
        """All names of these traces, as they were last read."""
        ...

    def segments(self, tenant: str, traces: frozenset[bytes]) -> Iterator[tuple[int, Segment]]:
        """What is kept of traces, in the order of arrival, each with its mark.

        ``items`` are those that were new when it came. The body of a segment that was known in part has the others too.
        """
        ...

    def heads(self, tenant: str, sessions: frozenset[str]) -> Mapping[str, tuple[int, bytes]]:
        """The last revision of these sessions and its document."""
        ...

    def sessions_of(self, tenant: str, traces: frozenset[bytes]) -> frozenset[str]:
        """The sessions that were made of any of these traces."""
        ...

    def save(self, derived: Derived) -> None:
        """Keep what was made. A trace is no longer pending if nothing came since its mark.

        Raises:
            Conflict: a session of it has another head by now than the one before the given revision, or something that
                was read of it is removed.
        """
        ...

    def read_traces(self, after: tuple[str, bytes], limit: int, reader: str | None = None) -> tuple[TraceKey, ...]:
        """Traces that were read, by tenant and id, that follow one; with a reader, those that another one read."""
        ...

    # Reading

    def find(
        self, tenant: str, wanted: Filter, order: Order = "started", limit: int = 50, cursor: str | None = None
    ) -> Page:
        """Sessions that fit, greatest first; a cursor goes on after the page that gave it.

        Raises:
            ValueError: the cursor is none of ours.
        """
        ...

    def facets(self, tenant: str) -> Mapping[str, tuple[tuple[str, int], ...]]:
        """The values of agent, version, model, tool, tag, origin and status, each with how many sessions have it."""
        ...

    def session(self, tenant: str, session: str, revision: int | None = None) -> tuple[Summary, bytes] | None:
        """A session and its document, as of a revision or the last; the summary is always the last."""
        ...

    def revisions(self, tenant: str, session: str) -> tuple[Revision, ...]:
        """The revisions that can be read, newest first."""
        ...

    def traces_of(self, tenant: str, session: str) -> frozenset[bytes]:
        """The traces that a session was made of."""
        ...

    def add_report(self, tenant: str, report: Report) -> None:
        """Keep what a replay found. The same id replaces. Of a session the newest are kept, by number and size."""
        ...

    def reports(self, tenant: str, session: str) -> tuple[Report, ...]:
        """What replays of a session found, newest first."""
        ...

    # Keeping house

    def erase(self, tenant: str, sessions: frozenset[str], traces: frozenset[bytes] = frozenset()) -> Receipt:
        """Remove sessions with all revisions, reports, segments and search text, and traces; from the disk too.

        All these traces are remembered as erased, by id alone, so that a late delivery does not bring them back.
        """
        ...

    def expire(self, before: int, limit: int) -> Receipt:
        """Remove sessions (and traces of none) of which nothing came since a moment, oldest first, at most so many."""
        ...

    def oldest(self) -> int | None:
        """When the last thing came of the session that `expire` would remove first."""
        ...

    def size(self) -> Size:
        """How much there is."""
        ...

    def upkeep(self) -> None:
        """Give freed space back, and renew what queries are planned by."""
        ...

    def tenants(self) -> tuple[str, ...]:
        """All tenants that have anything."""
        ...

    def dump(self) -> Iterator[Entry]:
        """All that is kept, as of one moment, in an order in which another store takes it."""
        ...

    def load(self, entries: Iterable[Entry]) -> None:
        """Take in what a store dumped; what came before a failure is there.

        Raises:
            ValueError: this store is not empty, or an entry is none of a store's.
        """
        ...

    def ready(self) -> None:
        """Return if it can be read and written now."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...


OpenStore = Callable[[str], Store]
"""Opens a store by its URL: ``sqlite:///path`` or ``postgresql://...``; migrations have run when it returns."""
