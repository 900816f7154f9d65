"""What is appended to PostgreSQL, in one transaction: traces are locked, what is known of them is left out.

Whoever calls it begins again where others were in the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from spanreel_collector.stores.arriving import Arriving, Before
from spanreel_collector.stores.postgresql_connections import PostgresqlRows
from spanreel_collector.stores.records import Segment, TraceKey
from spanreel_collector.stores.rows import Rows, columns, unpack_items


class Meanwhile(Exception):
    """Another made a trace at the same time; when that is committed, again."""


class Erased(Exception):
    """Traces of what was being appended are erased; without them, again."""

    def __init__(self, keys: list[TraceKey]) -> None:
        super().__init__(keys)
        self.keys = keys


def append_segments(rows: PostgresqlRows, arriving: Arriving, traces: Mapping[TraceKey, Sequence[Segment]]) -> None:
    """Traces are locked first, in the order of keys: what is known of them by then is all that there is."""
    before = _lock_known(rows, traces)
    known = _known(rows, traces, before)
    for key, segments in traces.items():
        arriving.take(key, segments, before.get(key), known.get(key, set()))
    if not arriving.segments:
        return
    _write_traces(rows, arriving)
    # Whoever erases locks the trace too: what is not to be seen by now will not come any more.
    _refuse_erased(rows, [(tenant, trace) for tenant, trace, *_ in arriving.segments])
    rows.copy(
        "segment (tenant, trace, mark, signal, size, items, body)",
        ("text", "bytea", "int8", "text", "int8", "bytea", "bytea"),
        arriving.segments,
    )
    if arriving.items:
        rows.run(
            "INSERT INTO item (tenant, trace, item) SELECT * FROM unnest(?::text[], ?::bytea[], ?::bytea[]) "
            "ON CONFLICT DO NOTHING",
            columns(arriving.items),
        )


def _write_traces(rows: Rows, arriving: Arriving) -> None:
    now = arriving.now
    if arriving.new:
        made = rows.run(
            "INSERT INTO trace (tenant, trace, mark, done, first, last, claimed, items, bytes, alone) "
            "SELECT t.tenant, t.trace, t.mark, 0, ?, ?, 0, t.items, t.bytes, 1 FROM "
            "unnest(?::text[], ?::bytea[], ?::bigint[], ?::bigint[], ?::bigint[]) "
            "AS t (tenant, trace, mark, items, bytes) ON CONFLICT DO NOTHING",
            (now, now, *columns(arriving.new)),
        )
        if made != len(arriving.new):
            raise Meanwhile
    if arriving.changed:
        rows.run(
            "UPDATE trace SET first = CASE WHEN trace.done < trace.mark THEN trace.first ELSE ? END, "
            "mark = t.mark, last = GREATEST(trace.last, ?), items = trace.items + t.items, "
            "bytes = trace.bytes + t.bytes FROM "
            "unnest(?::bigint[], ?::bigint[], ?::bigint[], ?::text[], ?::bytea[]) "
            "AS t (mark, items, bytes, tenant, trace) WHERE trace.tenant = t.tenant AND trace.trace = t.trace",
            (now, now, *columns(arriving.changed)),
        )


def _lock_known(rows: Rows, traces: Iterable[TraceKey]) -> dict[TraceKey, Before]:
    """Those of the traces that are there; nobody else changes them until the end of the transaction."""
    sql = (
        "SELECT x.tenant, x.trace, x.mark, x.items FROM unnest(?::text[], ?::bytea[]) AS t (tenant, trace) "
        "JOIN trace x ON x.tenant = t.tenant AND x.trace = t.trace ORDER BY x.tenant, x.trace FOR UPDATE OF x"
    )
    return {(tenant, trace): Before(*said) for tenant, trace, *said in rows.all(sql, columns(traces))}


def _known(
    rows: Rows, traces: Mapping[TraceKey, Sequence[Segment]], before: Mapping[TraceKey, Before]
) -> dict[TraceKey, set[bytes]]:
    """Of small traces the items that they have; of large ones those that come again."""
    known: dict[TraceKey, set[bytes]] = {key: set() for key in before}
    if small := [key for key, one in before.items() if one.is_small]:
        sql = (
            "SELECT s.tenant, s.trace, s.items FROM unnest(?::text[], ?::bytea[]) AS t (tenant, trace) "
            "JOIN segment s ON s.tenant = t.tenant AND s.trace = t.trace"
        )
        for tenant, trace, packed in rows.all(sql, columns(small)):
            known[tenant, trace].update(unpack_items(packed))
    large = [key for key, one in before.items() if not one.is_small]
    if asked := [(*key, item) for key in large for one in traces[key] for item in one.items]:
        sql = (
            "SELECT i.tenant, i.trace, i.item FROM unnest(?::text[], ?::bytea[], ?::bytea[]) "
            "AS t (tenant, trace, item) "
            "JOIN item i ON i.tenant = t.tenant AND i.trace = t.trace AND i.item = t.item"
        )
        for tenant, trace, item in rows.all(sql, columns(asked)):
            known[tenant, trace].add(item)
    return known


def _refuse_erased(rows: Rows, keys: Iterable[TraceKey]) -> None:
    sql = (
        "SELECT DISTINCT e.tenant, e.trace FROM unnest(?::text[], ?::bytea[]) AS t (tenant, trace) "
        "JOIN erased e ON e.tenant = t.tenant AND e.trace = t.trace"
    )
    if found := rows.all(sql, columns(keys)):
        raise Erased([(tenant, trace) for tenant, trace in found])
