"""What is one database's own: how `DatabaseStore`, which does all that is alike, works with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from spanreel_collector.stores.changing import Database
from spanreel_collector.stores.finding import Conditions
from spanreel_collector.stores.moving import Movable
from spanreel_collector.stores.records import Appended, Refusal, Segment
from spanreel_collector.stores.rows import Rows


class Engine(Database, Movable, Protocol):
    """What is one database's own: connections, transactions, taking in, text search, the disk."""

    def reading(self) -> AbstractContextManager[Rows]:
        """A transaction that sees one state, and writes nothing."""
        ...

    def writing(self) -> AbstractContextManager[Rows]:
        """A transaction that is committed at the end of the block, or undone."""
        ...

    def append(self, segments: Sequence[Segment], refusals: Sequence[Refusal], now: int) -> Appended:
        """As `Store.append`."""
        ...

    def lock(self, rows: Rows, tenant: str) -> None:
        """One at a time changes the sessions of a tenant."""
        ...

    skip_claimed: str
    """What keeps a claim from waiting for another, at the end of its query."""

    sign: str
    """See `Conditions`."""

    def add_words(self, rows: Rows, conditions: Conditions, words: Sequence[str]) -> None:
        """Ask for sessions with all these words, the last perhaps not whole; few of them make the conditions rare."""
        ...

    def scrub(self) -> None:
        """See that nothing is left on the disk of what was erased."""
        ...

    live_sql: str
    """The bytes of a row of ``trace`` and all that came of it, as SQL."""

    def size(self, rows: Rows, traces: int) -> tuple[int, int, Mapping[str, int]]:
        """Bytes in use, bytes taken, bytes of each table; ``traces`` are those of all traces, by ``live_sql``."""
        ...

    def upkeep(self) -> None:
        """As `Store.upkeep`."""
        ...

    tables: Sequence[str]
    """All that it keeps something in."""

    schema: int
    """How many migrations its tables have had."""

    def check(self) -> None:
        """Return if nothing is known to be wrong with it that a transaction does not meet."""
        ...

    def close(self) -> None:
        """As `Store.close`."""
        ...
