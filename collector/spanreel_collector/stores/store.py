"""What each store of the service can do, as one protocol. How it does so is its own; what it holds is `records`'.

All methods may be called from any thread; each that writes has committed when it returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from spanreel_collector.stores.records import (
    Appended,
    Derived,
    Entry,
    Filter,
    KeptPage,
    Order,
    Page,
    Pending,
    Receipt,
    Refusal,
    Report,
    Revision,
    Segment,
    Size,
    Summary,
    TraceKey,
)


class StoreError(Exception):
    """The store cannot do this now: it is full, locked or gone. Nothing of it was written; trying again may help.

    ``reason`` is why, for everybody: it names no place and no user.
    """

    def __init__(self, message: str, reason: str = "it failed") -> None:
        super().__init__(message)
        self.reason = reason


class Conflict(Exception):
    """A session's head is not the one that the caller read; to be read and made again."""


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

    def find_kept(
        self, tenant: str, wanted: Filter, order: Order = "started", limit: int = 50, cursor: str | None = None
    ) -> KeptPage:
        """As `find`, for those who pass summaries on: to read them takes longer than to find them."""
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
        """Return if it can be read and written now, and is whole as far as is known."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...
