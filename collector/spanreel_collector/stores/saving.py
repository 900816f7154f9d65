"""Sessions as rows: kept and counted, in SQL that both databases understand, inside one transaction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from spanreel_collector.stores.changing import Change, count_facets, index_texts, sessions_of, traces_of
from spanreel_collector.stores.records import Derived, Made
from spanreel_collector.stores.removing import remove_sessions
from spanreel_collector.stores.rows import SESSION_COLUMNS, chunks, facets_of, pack, places, session_columns
from spanreel_collector.stores.store import Conflict

KEPT_REVISIONS: Final = 20


def save(change: Change, derived: Derived) -> None:
    """Keep what was made of some traces.

    Raises:
        Conflict: a session has another head than the one before, or is made of what was removed meanwhile.
    """
    heads = _heads(change, derived.made)
    traces = frozenset(derived.marks)
    kept = {one.summary.id for one in derived.made} | derived.same
    gone = sessions_of(change.rows, change.tenant, traces) - kept
    touched = set(traces) | traces_of(change.rows, change.tenant, {*gone, *heads})
    touched.update(*(one.traces for one in derived.made))
    change.database.lock_traces(change.rows, change.tenant, touched)
    _check_there(change, derived)
    remove_sessions(change, gone)
    _note_traces(change, derived)
    texts: dict[int, str] = {}
    for one in sorted(derived.made, key=lambda made: made.summary.id):
        texts[_save_session(change, one, derived.reader, heads.get(one.summary.id))] = one.text
    index_texts(change.database, change.rows, texts)
    _renew_arrivals(change, kept)
    _note_alone(change, touched)


def _heads(change: Change, made: Iterable[Made]) -> dict[str, int]:
    """The number of each session that is there already; that its head is the one before is made sure."""
    rows, tenant = change.rows, change.tenant
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


def _check_there(change: Change, derived: Derived) -> None:
    """Make sure that what was read of the traces of sessions is still there. A mark of 0 is of what was not read."""
    read = {trace for one in derived.made for trace in one.traces if derived.marks.get(trace, 0) > 0}
    first: dict[bytes, int | None] = {}
    for some in chunks(sorted(read)):
        sql = (
            "SELECT t.trace, (SELECT MIN(mark) FROM segment s WHERE s.tenant = t.tenant AND s.trace = t.trace) "
            f"FROM trace t WHERE t.tenant = ? AND t.trace IN {places(some)}"
        )
        first.update(change.rows.all(sql, (change.tenant, *some)))
    for trace in read:
        # What came after the mark came after the rest was removed.
        if (mark := first.get(trace)) is None or mark > derived.marks[trace]:
            raise Conflict("something of what was read is removed by now")


def _save_session(change: Change, one: Made, reader: str, number: int | None) -> int:
    """Keep a session, but for its text; returns its number."""
    rows, tenant, summary = change.rows, change.tenant, one.summary
    document = pack(one.document)
    columns = session_columns(summary, reader, summary.at)
    if number is None:
        sql = f"INSERT INTO session (tenant, id, {SESSION_COLUMNS}) VALUES {places((1, 1, *columns))} RETURNING number"
        ((number,),) = rows.all(sql, (tenant, summary.id, *columns))
    else:
        sql = f"UPDATE session SET ({SESSION_COLUMNS}) = {places(columns)} WHERE number = ?"
        rows.run(sql, (*columns, number))
    _save_facets(change, number, facets_of(summary))
    sql = "INSERT INTO revision (tenant, session, revision, at, reader, document) VALUES (?, ?, ?, ?, ?, ?)"
    rows.run(sql, (tenant, summary.id, summary.revision, summary.at, reader, document))
    sql = "DELETE FROM revision WHERE tenant = ? AND session = ? AND revision <= ?"
    rows.run(sql, (tenant, summary.id, summary.revision - KEPT_REVISIONS))
    before = traces_of(rows, tenant, [summary.id])
    sql = "DELETE FROM session_trace WHERE tenant = ? AND session = ? AND trace = ?"
    rows.many(sql, ((tenant, summary.id, trace) for trace in sorted(before - one.traces)))
    sql = "INSERT INTO session_trace (tenant, session, trace) VALUES (?, ?, ?)"
    rows.many(sql, ((tenant, summary.id, trace) for trace in sorted(one.traces - before)))
    return int(number)


def _save_facets(change: Change, number: int, facets: frozenset[tuple[str, str]]) -> None:
    rows, tenant = change.rows, change.tenant
    before = {(kind, value) for kind, value in rows.all("SELECT kind, value FROM facet WHERE session = ?", (number,))}
    sql = "DELETE FROM facet WHERE tenant = ? AND kind = ? AND value = ? AND session = ?"
    rows.many(sql, ((tenant, *facet, number) for facet in sorted(before - facets)))
    sql = "INSERT INTO facet (tenant, kind, value, session) VALUES (?, ?, ?, ?)"
    rows.many(sql, ((tenant, *facet, number) for facet in sorted(facets - before)))
    count_facets(change, {**dict.fromkeys(before - facets, -1), **dict.fromkeys(facets - before, 1)})


def _note_traces(change: Change, derived: Derived) -> None:
    """Traces are read up to their mark, by this reader, under these names; the claim on them ends."""
    rows, tenant, now = change.rows, change.tenant, change.now
    unread = derived.marks.keys() - _gone(change, derived)
    # A trace that came by no append (a session was kept without what it is made of) is there from now on.
    sql = (
        "INSERT INTO trace (tenant, trace, mark, done, first, last, claimed, items, bytes, alone, reader) "
        "VALUES (?, ?, ?, ?, ?, ?, 0, 0, 0, 1, ?) ON CONFLICT (tenant, trace) DO UPDATE SET claimed = 0, "
        "done = CASE WHEN excluded.done > trace.done THEN excluded.done ELSE trace.done END, reader = excluded.reader"
    )
    marks = [(trace, derived.marks[trace]) for trace in sorted(unread)]
    rows.many(sql, ((tenant, trace, mark, mark, now, now, derived.reader) for trace, mark in marks))
    for traces in chunks(sorted(derived.names)):
        rows.run(f"DELETE FROM name WHERE tenant = ? AND trace IN {places(traces)}", (tenant, *traces))
    named = sorted((name, trace) for trace in derived.names.keys() & unread for name in derived.names[trace])
    rows.many("INSERT INTO name (tenant, name, trace) VALUES (?, ?, ?)", ((tenant, *one) for one in named))


def _gone(change: Change, derived: Derived) -> set[bytes]:
    """Traces that are not there, and of which no session is made: nothing is to be noted of them any more."""
    there: set[bytes] = set().union(*(one.traces for one in derived.made))
    for some in chunks(derived.marks):
        sql = f"SELECT trace FROM trace WHERE tenant = ? AND trace IN {places(some)}"
        there.update(trace for (trace,) in change.rows.all(sql, (change.tenant, *some)))
    return derived.marks.keys() - there


def _renew_arrivals(change: Change, sessions: Iterable[str]) -> None:
    """When the last thing came of each session, which is what it expires by."""
    sql = (
        "UPDATE session SET arrived = (SELECT MAX(t.last) FROM session_trace l JOIN trace t "
        "ON t.tenant = l.tenant AND t.trace = l.trace WHERE l.tenant = session.tenant AND l.session = session.id) "
        "WHERE tenant = ? AND id = ? AND EXISTS (SELECT 1 FROM session_trace l JOIN trace t "
        "ON t.tenant = l.tenant AND t.trace = l.trace WHERE l.tenant = session.tenant AND l.session = session.id)"
    )
    change.rows.many(sql, ((change.tenant, session) for session in sorted(sessions)))


def _note_alone(change: Change, traces: Iterable[bytes]) -> None:
    """Whether a session is made of each trace: those of none expire by themselves."""
    for some in chunks(sorted(traces)):
        sql = (
            "UPDATE trace SET alone = CASE WHEN EXISTS (SELECT 1 FROM session_trace l WHERE l.tenant = trace.tenant "
            f"AND l.trace = trace.trace) THEN 0 ELSE 1 END WHERE tenant = ? AND trace IN {places(some)}"
        )
        change.rows.run(sql, (change.tenant, *some))
