"""Sessions as rows: kept, counted and removed again, in SQL that both databases understand, inside one transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from spanreel_collector.stores.rows import SESSION_COLUMNS, Rows, chunks, facets_of, pack, places, session_columns
from spanreel_collector.stores.store import NO_TRACE, Conflict, Derived, Made, Receipt

KEPT_REVISIONS: Final = 20


class Database(Protocol):
    """What is one database's own in this."""

    def lock_traces(self, rows: Rows, tenant: str, traces: Iterable[bytes]) -> None:
        """Nobody else changes these traces until the end of the transaction; all are locked in the same order."""
        ...

    def index_text(self, rows: Rows, number: int, text: str | None) -> None:
        """Put a session's text, by its number, in the place of what was to be searched before; None removes it."""
        ...


@dataclass(frozen=True, slots=True)
class Saving:
    """One transaction that keeps or removes sessions of one tenant, at a moment."""

    rows: Rows
    tenant: str
    now: int
    database: Database


def save(saving: Saving, derived: Derived) -> None:
    """Keep what was made of some traces.

    Raises:
        Conflict: a session has another head than the one before, or is made of what was erased meanwhile.
    """
    heads = _heads(saving, derived.made)
    traces = frozenset(derived.marks)
    kept = {one.summary.id for one in derived.made} | derived.same
    gone = sessions_of(saving.rows, saving.tenant, traces) - kept
    touched = set(traces) | traces_of(saving.rows, saving.tenant, {*gone, *heads})
    touched.update(*(one.traces for one in derived.made))
    saving.database.lock_traces(saving.rows, saving.tenant, touched)
    remove_sessions(saving, gone)
    _note_traces(saving, derived)
    for one in sorted(derived.made, key=lambda made: made.summary.id):
        _save_session(saving, one, derived.reader, heads.get(one.summary.id))
    _renew_arrivals(saving, kept)
    _note_alone(saving, touched)


def _heads(saving: Saving, made: Iterable[Made]) -> dict[str, int]:
    """The number of each session that is there already; that its head is the one before is made sure."""
    rows, tenant = saving.rows, saving.tenant
    revisions = {one.summary.id: one.summary.revision for one in made}
    heads: dict[str, int] = {}
    for ids in chunks(sorted(revisions)):
        sql = f"SELECT id, revision, number FROM session WHERE tenant = ? AND id IN {places(ids)}"
        for session, revision, number in rows.all(sql, (tenant, *ids)):
            heads[session] = number
            if revisions[session] != revision + 1:
                raise Conflict(f"session {session!r} is at revision {revision}, not before {revisions[session]}")
    for session in revisions.keys() - heads.keys():
        if revisions[session] != 1:
            raise Conflict(f"session {session!r} is not there, and revision {revisions[session]} was to follow")
    for traces in chunks({trace for one in made for trace in one.traces}):
        sql = f"SELECT 1 FROM erased WHERE tenant = ? AND trace IN {places(traces)} LIMIT 1"
        if rows.all(sql, (tenant, *traces)):
            raise Conflict("something of what was read is erased by now")
    return heads


def _save_session(saving: Saving, one: Made, reader: str, number: int | None) -> None:
    rows, tenant, summary = saving.rows, saving.tenant, one.summary
    document = pack(one.document)
    columns = session_columns(summary, reader, summary.at)
    if number is None:
        sql = f"INSERT INTO session (tenant, id, {SESSION_COLUMNS}) VALUES {places((1, 1, *columns))} RETURNING number"
        ((number,),) = rows.all(sql, (tenant, summary.id, *columns))
    else:
        sql = f"UPDATE session SET ({SESSION_COLUMNS}) = {places(columns)} WHERE number = ?"
        rows.run(sql, (*columns, number))
    _save_facets(saving, number, facets_of(summary))
    sql = "INSERT INTO revision (tenant, session, revision, at, reader, document) VALUES (?, ?, ?, ?, ?, ?)"
    rows.run(sql, (tenant, summary.id, summary.revision, summary.at, reader, document))
    sql = "DELETE FROM revision WHERE tenant = ? AND session = ? AND revision <= ?"
    rows.run(sql, (tenant, summary.id, summary.revision - KEPT_REVISIONS))
    before = traces_of(rows, tenant, [summary.id])
    sql = "DELETE FROM session_trace WHERE tenant = ? AND session = ? AND trace = ?"
    rows.many(sql, ((tenant, summary.id, trace) for trace in sorted(before - one.traces)))
    sql = "INSERT INTO session_trace (tenant, session, trace) VALUES (?, ?, ?)"
    rows.many(sql, ((tenant, summary.id, trace) for trace in sorted(one.traces - before)))
    saving.database.index_text(rows, number, one.text)


def _save_facets(saving: Saving, number: int, facets: frozenset[tuple[str, str]]) -> None:
    rows, tenant = saving.rows, saving.tenant
    before = {(kind, value) for kind, value in rows.all("SELECT kind, value FROM facet WHERE session = ?", (number,))}
    sql = "DELETE FROM facet WHERE tenant = ? AND kind = ? AND value = ? AND session = ?"
    rows.many(sql, ((tenant, *facet, number) for facet in sorted(before - facets)))
    sql = "INSERT INTO facet (tenant, kind, value, session) VALUES (?, ?, ?, ?)"
    rows.many(sql, ((tenant, *facet, number) for facet in sorted(facets - before)))
    count_facets(saving, {**dict.fromkeys(before - facets, -1), **dict.fromkeys(facets - before, 1)})


def count_facets(saving: Saving, changes: Mapping[tuple[str, str], int]) -> None:
    """Change how many sessions have these values; lists of them never count sessions."""
    sql = (
        "INSERT INTO facet_count (tenant, kind, value, sessions) VALUES (?, ?, ?, ?) ON CONFLICT (tenant, kind, value) "
        "DO UPDATE SET sessions = facet_count.sessions + excluded.sessions"
    )
    saving.rows.many(sql, ((saving.tenant, *facet, change) for facet, change in sorted(changes.items())))
    fewer = sorted(facet for facet, change in changes.items() if change < 0)
    sql = "DELETE FROM facet_count WHERE tenant = ? AND kind = ? AND value = ? AND sessions <= 0"
    saving.rows.many(sql, ((saving.tenant, *facet) for facet in fewer))


def _note_traces(saving: Saving, derived: Derived) -> None:
    """Traces are read up to their mark, by this release, under these names; the claim on them ends."""
    rows, tenant, now = saving.rows, saving.tenant, saving.now
    # A trace that came by no append (a session was kept without what it is made of) is there from now on.
    sql = (
        "INSERT INTO trace (tenant, trace, mark, done, first, last, claimed, items, bytes, alone, reader) "
        "VALUES (?, ?, ?, ?, ?, ?, 0, 0, 0, 1, ?) ON CONFLICT (tenant, trace) DO UPDATE SET claimed = 0, "
        "done = CASE WHEN excluded.done > trace.done THEN excluded.done ELSE trace.done END, reader = excluded.reader"
    )
    unread = derived.marks.keys() - _erased(saving, derived.marks)
    marks = [(trace, derived.marks[trace]) for trace in sorted(unread)]
    rows.many(sql, ((tenant, trace, mark, mark, now, now, derived.reader) for trace, mark in marks))
    for traces in chunks(sorted(derived.names)):
        rows.run(f"DELETE FROM name WHERE tenant = ? AND trace IN {places(traces)}", (tenant, *traces))
    named = sorted((name, trace) for trace in derived.names.keys() & unread for name in derived.names[trace])
    rows.many("INSERT INTO name (tenant, name, trace) VALUES (?, ?, ?)", ((tenant, *one) for one in named))


def _erased(saving: Saving, traces: Iterable[bytes]) -> set[bytes]:
    found: set[bytes] = set()
    for some in chunks(traces):
        sql = f"SELECT trace FROM erased WHERE tenant = ? AND trace IN {places(some)}"
        found.update(trace for (trace,) in saving.rows.all(sql, (saving.tenant, *some)))
    return found


def _renew_arrivals(saving: Saving, sessions: Iterable[str]) -> None:
    """When the last thing came of each session, which is what it expires by."""
    sql = (
        "UPDATE session SET arrived = (SELECT MAX(t.last) FROM session_trace l JOIN trace t "
        "ON t.tenant = l.tenant AND t.trace = l.trace WHERE l.tenant = session.tenant AND l.session = session.id) "
        "WHERE tenant = ? AND id = ? AND EXISTS (SELECT 1 FROM session_trace l JOIN trace t "
        "ON t.tenant = l.tenant AND t.trace = l.trace WHERE l.tenant = session.tenant AND l.session = session.id)"
    )
    saving.rows.many(sql, ((saving.tenant, session) for session in sorted(sessions)))


def _note_alone(saving: Saving, traces: Iterable[bytes]) -> None:
    """Whether a session is made of each trace: those of none expire by themselves."""
    for some in chunks(sorted(traces)):
        sql = (
            "UPDATE trace SET alone = CASE WHEN EXISTS (SELECT 1 FROM session_trace l WHERE l.tenant = trace.tenant "
            f"AND l.trace = trace.trace) THEN 0 ELSE 1 END WHERE tenant = ? AND trace IN {places(some)}"
        )
        saving.rows.run(sql, (saving.tenant, *some))


def sessions_of(rows: Rows, tenant: str, traces: Iterable[bytes]) -> frozenset[str]:
    """The sessions that were made of any of these traces."""
    found: set[str] = set()
    for some in chunks(traces):
        sql = f"SELECT DISTINCT session FROM session_trace WHERE tenant = ? AND trace IN {places(some)}"
        found.update(session for (session,) in rows.all(sql, (tenant, *some)))
    return frozenset(found)


def traces_of(rows: Rows, tenant: str, sessions: Iterable[str]) -> frozenset[bytes]:
    """The traces that any of these sessions was made of."""
    found: set[bytes] = set()
    for some in chunks(sessions):
        sql = f"SELECT trace FROM session_trace WHERE tenant = ? AND session IN {places(some)}"
        found.update(trace for (trace,) in rows.all(sql, (tenant, *some)))
    return frozenset(found)


# -- removing --------------------------------------------------------------------------------------------------------


def remove_sessions(saving: Saving, sessions: Iterable[str]) -> Receipt:
    """Remove sessions, with revisions, reports and text; their traces stay."""
    rows, tenant = saving.rows, saving.tenant
    removed = revisions = reports = 0
    counts = Counter[tuple[str, str]]()
    for ids in chunks(sorted(sessions)):
        named = (tenant, *ids)
        which = f"tenant = ? AND session IN {places(ids)}"
        numbers = [number for (number,) in rows.all(f"SELECT number FROM session WHERE {which_id(ids)}", named)]
        for number in numbers:
            saving.database.index_text(rows, number, None)
            counts.subtract(rows.all("SELECT kind, value FROM facet WHERE session = ?", (number,)))
            rows.run("DELETE FROM facet WHERE session = ?", (number,))
        removed += rows.run(f"DELETE FROM session WHERE {which_id(ids)}", named)
        revisions += rows.run(f"DELETE FROM revision WHERE {which}", named)
        reports += rows.run(f"DELETE FROM report WHERE {which}", named)
        rows.run(f"DELETE FROM session_trace WHERE {which}", named)
    count_facets(saving, counts)
    return Receipt(sessions=removed, revisions=revisions, reports=reports)


def which_id(ids: list[str]) -> str:
    """The condition for sessions by their ids."""
    return f"tenant = ? AND id IN {places(ids)}"


def remove_traces(saving: Saving, traces: Iterable[bytes]) -> Receipt:
    """Remove what came of traces, and what they were called."""
    rows, tenant = saving.rows, saving.tenant
    removed = items = 0
    traces = sorted(traces)
    saving.database.lock_traces(rows, tenant, traces)
    for some in chunks(traces):
        which, named = f"WHERE tenant = ? AND trace IN {places(some)}", (tenant, *some)
        removed += rows.run(f"DELETE FROM trace {which}", named)
        items += rows.run(f"DELETE FROM item {which}", named)
        rows.run(f"DELETE FROM segment {which}", named)
        rows.run(f"DELETE FROM name {which}", named)
        rows.run(f"DELETE FROM session_trace {which}", named)
    return Receipt(traces=removed, items=items)


def erase(saving: Saving, sessions: frozenset[str]) -> Receipt:
    """Remove sessions and all their traces, and remember these by id."""
    traces = traces_of(saving.rows, saving.tenant, sessions)
    # Log records without a trace share one: forgetting it for ever would refuse everybody's.
    remembered = ((saving.tenant, trace, saving.now) for trace in sorted(traces) if trace != NO_TRACE)
    sql = "INSERT INTO erased (tenant, trace, at) VALUES (?, ?, ?) ON CONFLICT (tenant, trace) DO NOTHING"
    saving.rows.many(sql, remembered)
    return remove_sessions(saving, sessions) + remove_traces(saving, traces)


def expire(saving: Saving, sessions: frozenset[str], alone: frozenset[bytes]) -> Receipt:
    """Remove sessions, and of their traces those that no other session is made of; and traces of none."""
    traces = traces_of(saving.rows, saving.tenant, sessions)
    receipt = remove_sessions(saving, sessions)
    shared = {
        trace
        for some in chunks(sorted(traces))
        for (trace,) in saving.rows.all(
            f"SELECT trace FROM session_trace WHERE tenant = ? AND trace IN {places(some)}", (saving.tenant, *some)
        )
    }
    return receipt + remove_traces(saving, (traces - shared) | alone)
