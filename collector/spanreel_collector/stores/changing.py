"""One change of a tenant's sessions: the transaction that it is made in, and what each database does its own way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from spanreel_collector.stores.rows import Rows, chunks, places


class Database(Protocol):
    """What is one database's own in this."""

    def lock_traces(self, rows: Rows, tenant: str, traces: Iterable[bytes]) -> None:
        """Nobody else changes these traces until the end of the transaction; all are locked in the same order."""
        ...

    def index_text(self, rows: Rows, number: int, text: str | None) -> None:
        """Put a session's text, by its number, in the place of what was to be searched before; None removes it."""
        ...


@dataclass(frozen=True, slots=True)
class Change:
    """One transaction that keeps or removes sessions of one tenant, at a moment."""

    rows: Rows
    tenant: str
    now: int
    database: Database


def index_texts(database: Database, rows: Rows, texts: Mapping[int, str]) -> None:
    """Let sessions be found by their texts, which are given by their numbers. For when all else of them is written.

    SQLite's index puts what it has gathered on disk before a row that may yet be refused is written to another table,
    and where a number is less than the one before.
    """
    for number, text in sorted(texts.items()):
        database.index_text(rows, number, text)


def count_facets(change: Change, changes: Mapping[tuple[str, str], int]) -> None:
    """Change how many sessions have these values; lists of them never count sessions."""
    sql = (
        "INSERT INTO facet_count (tenant, kind, value, sessions) VALUES (?, ?, ?, ?) ON CONFLICT (tenant, kind, value) "
        "DO UPDATE SET sessions = facet_count.sessions + excluded.sessions"
    )
    change.rows.many(sql, ((change.tenant, *facet, more) for facet, more in sorted(changes.items())))
    fewer = sorted(facet for facet, more in changes.items() if more < 0)
    sql = "DELETE FROM facet_count WHERE tenant = ? AND kind = ? AND value = ? AND sessions <= 0"
    change.rows.many(sql, ((change.tenant, *facet) for facet in fewer))


def sessions_of(rows: Rows, tenant: str, traces: Iterable[bytes]) -> frozenset[str]:
    """The sessions that were made of any of these traces."""
    found: set[str] = set()
    for some in chunks(traces):
        # Each once is the set's doing: DISTINCT has SQLite read all sessions of the tenant, in their order.
        sql = f"SELECT session FROM session_trace WHERE tenant = ? AND trace IN {places(some)}"
        found.update(session for (session,) in rows.all(sql, (tenant, *some)))
    return frozenset(found)


def traces_of(rows: Rows, tenant: str, sessions: Iterable[str]) -> frozenset[bytes]:
    """The traces that any of these sessions was made of."""
    found: set[bytes] = set()
    for some in chunks(sessions):
        sql = f"SELECT trace FROM session_trace WHERE tenant = ? AND session IN {places(some)}"
        found.update(trace for (trace,) in rows.all(sql, (tenant, *some)))
    return frozenset(found)
