"""Sessions and traces removed: those that are erased, which do not come back, and those that are too old."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from spanreel_collector.stores.changing import Change, count_facets, traces_of
from spanreel_collector.stores.records import Receipt, is_loose
from spanreel_collector.stores.rows import Row, Rows, chunks, places

KEPT_REPORTS: Final = 100
KEPT_REPORTS_SIZE: Final = 64 * 1024 * 1024
"""Of one session: as many reports at most, and as many bytes, as they are kept."""

# A session of which something came that was not read yet is as old as that.
_OLD: Final = (
    "s.arrived < ? AND NOT EXISTS (SELECT 1 FROM session_trace l JOIN trace t ON t.tenant = l.tenant "
    "AND t.trace = l.trace WHERE l.tenant = s.tenant AND l.session = s.id AND t.last >= ?)"
)
_OLD_SESSIONS: Final = f"SELECT s.arrived, s.tenant, s.id FROM session s WHERE {_OLD} ORDER BY s.arrived LIMIT ?"
_OLD_TRACES: Final = "SELECT last, tenant, trace FROM trace WHERE alone = 1 AND last < ? ORDER BY last LIMIT ?"


def erase(change: Change, sessions: frozenset[str], traces: frozenset[bytes]) -> Receipt:
    """Remove sessions and all their traces, and these traces; and remember all traces by id."""
    traces |= traces_of(change.rows, change.tenant, sessions)
    # Log records without a trace share one: remembering it would refuse all that come later.
    remembered = ((change.tenant, trace, change.now) for trace in sorted(traces) if not is_loose(trace))
    sql = "INSERT INTO erased (tenant, trace, at) VALUES (?, ?, ?) ON CONFLICT (tenant, trace) DO NOTHING"
    change.rows.many(sql, remembered)
    return remove_sessions(change, sessions) + remove_traces(change, traces)


# -- what is too old -------------------------------------------------------------------------------------------------


def find_old(rows: Rows, before: int, limit: int) -> Iterator[tuple[str, list[str | bytes]]]:
    """Sessions (text) and traces of none (bytes) of which nothing came since a moment, the oldest; by their tenant."""
    found: list[Row] = [*rows.all(_OLD_SESSIONS, (before, before, limit)), *rows.all(_OLD_TRACES, (before, limit))]
    oldest = sorted(found, key=lambda row: (row[0], row[1], str(row[2])))[:limit]
    for tenant, group in groupby(sorted(oldest, key=lambda row: str(row[1])), key=lambda row: str(row[1])):
        yield tenant, [row[2] for row in group]


def expire(change: Change, before: int, found: Sequence[str | bytes]) -> Receipt:
    """Remove what was found and is as old still: something may have come before the transaction began."""
    sessions = frozenset(_still_old(change, before, [one for one in found if isinstance(one, str)]))
    alone = frozenset(_still_alone(change, before, [one for one in found if isinstance(one, bytes)]))
    traces = traces_of(change.rows, change.tenant, sessions)
    receipt = remove_sessions(change, sessions)
    # Of their traces those stay that another session is made of.
    shared: set[bytes] = set()
    for some in chunks(sorted(traces)):
        sql = f"SELECT trace FROM session_trace WHERE tenant = ? AND trace IN {places(some)}"
        shared.update(trace for (trace,) in change.rows.all(sql, (change.tenant, *some)))
    return receipt + remove_traces(change, (traces - shared) | alone)


def _still_old(change: Change, before: int, ids: Sequence[str]) -> Iterator[str]:
    for some in chunks(ids):
        sql = f"SELECT s.id FROM session s WHERE {_OLD} AND s.tenant = ? AND s.id IN {places(some)}"
        yield from (session for (session,) in change.rows.all(sql, (before, before, change.tenant, *some)))


def _still_alone(change: Change, before: int, traces: Sequence[bytes]) -> Iterator[bytes]:
    for some in chunks(traces):
        sql = f"SELECT trace FROM trace WHERE alone = 1 AND last < ? AND tenant = ? AND trace IN {places(some)}"
        yield from (trace for (trace,) in change.rows.all(sql, (before, change.tenant, *some)))


# -- rows ------------------------------------------------------------------------------------------------------------


def remove_older_reports(rows: Rows, tenant: str, session: str) -> None:
    """Keep of a session's reports the newest, of a bounded number and size; the last one whatever its size."""
    sql = "SELECT id, LENGTH(document) FROM report WHERE tenant = ? AND session = ? ORDER BY at DESC, id DESC"
    size = 0
    older = []
    for number, (report, length) in enumerate(rows.all(sql, (tenant, session))):
        size += length
        if number and (number >= KEPT_REPORTS or size > KEPT_REPORTS_SIZE):
            older.append((tenant, report))
    rows.many("DELETE FROM report WHERE tenant = ? AND id = ?", older)


def remove_sessions(change: Change, sessions: Iterable[str]) -> Receipt:
    """Remove sessions, with revisions, reports and text; their traces stay."""
    rows, tenant = change.rows, change.tenant
    removed = revisions = reports = 0
    counts = Counter[tuple[str, str]]()
    for ids in chunks(sorted(sessions)):
        named = (tenant, *ids)
        which = f"tenant = ? AND session IN {places(ids)}"
        numbers = [number for (number,) in rows.all(f"SELECT number FROM session WHERE {which_id(ids)}", named)]
        for number in numbers:
            change.database.index_text(rows, number, None)
            counts.subtract(rows.all("SELECT kind, value FROM facet WHERE session = ?", (number,)))
            rows.run("DELETE FROM facet WHERE session = ?", (number,))
        removed += rows.run(f"DELETE FROM session WHERE {which_id(ids)}", named)
        revisions += rows.run(f"DELETE FROM revision WHERE {which}", named)
        reports += rows.run(f"DELETE FROM report WHERE {which}", named)
        rows.run(f"DELETE FROM session_trace WHERE {which}", named)
    count_facets(change, counts)
    return Receipt(sessions=removed, revisions=revisions, reports=reports)


def which_id(ids: list[str]) -> str:
    """The condition for sessions by their ids."""
    return f"tenant = ? AND id IN {places(ids)}"


def remove_traces(change: Change, traces: Iterable[bytes]) -> Receipt:
    """Remove what came of traces, and what they were called."""
    rows, tenant = change.rows, change.tenant
    removed = items = 0
    traces = sorted(traces)
    change.database.lock_traces(rows, tenant, traces)
    for some in chunks(traces):
        which, named = f"WHERE tenant = ? AND trace IN {places(some)}", (tenant, *some)
        items += int(rows.all(f"SELECT COALESCE(SUM(items), 0) FROM trace {which}", named)[0][0])
        removed += rows.run(f"DELETE FROM trace {which}", named)
        rows.run(f"DELETE FROM item {which}", named)
        rows.run(f"DELETE FROM segment {which}", named)
        rows.run(f"DELETE FROM name {which}", named)
        rows.run(f"DELETE FROM session_trace {which}", named)
    return Receipt(traces=removed, items=items)
