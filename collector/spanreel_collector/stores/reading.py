"""What is read of a store at length: a page of sessions by a filter, and the segments of traces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from spanreel_collector.stores.engine import Engine
from spanreel_collector.stores.finding import (
    RARE,
    Conditions,
    add_columns,
    add_facets,
    asked_facets,
    asked_ranges,
    find_sql,
    write_cursor,
)
from spanreel_collector.stores.records import Filter, KeptPage, Order, Segment
from spanreel_collector.stores.rows import Rows, chunks, places, unpack_items
from spanreel_collector.stores.words import split_words

_AT_ONCE: Final = 4_000_000
"""Bytes of segments read together."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Which page: in which order, how many, after which cursor."""

    order: Order
    limit: int
    cursor: str | None


def find_page(rows: Rows, engine: Engine, tenant: str, wanted: Filter, asked: Asked) -> KeptPage:
    """A page of the sessions that fit.

    Raises:
        ValueError: as `Store.find`.
    """
    words = split_words(wanted.text or "")
    if wanted.text and not words and not wanted.text.isspace():
        return KeptPage((), None)
    conditions = Conditions(tenant, engine.sign)
    counts = {facet: _facet_count(rows, tenant, facet) for facet in asked_facets(wanted)}
    add_facets(conditions, counts, RARE)
    if words:
        engine.add_words(rows, conditions, words)
    add_columns(conditions, wanted)
    conditions.rare |= any(_few(rows, tenant, *each) for each in asked_ranges(wanted))
    most = max(asked.limit, 1)
    found = rows.all(*find_sql(conditions, asked.order, most, asked.cursor))
    shown = found[:most]
    more = len(found) > len(shown)
    summaries = tuple([summary for summary, _, _ in shown])
    return KeptPage(summaries, write_cursor(asked.order, *shown[-1][1:]) if more else None)


def _few(rows: Rows, tenant: str, condition: str, values: Sequence[Any]) -> bool:
    sql = f"SELECT COUNT(*) FROM (SELECT 1 FROM session s WHERE s.tenant = ? AND {condition} LIMIT ?) few"
    ((count,),) = rows.all(sql, (tenant, *values, RARE + 1))
    return bool(count <= RARE)


def _facet_count(rows: Rows, tenant: str, facet: tuple[str, str]) -> int:
    sql = "SELECT sessions FROM facet_count WHERE tenant = ? AND kind = ? AND value = ?"
    return next((int(count) for (count,) in rows.all(sql, (tenant, *facet))), 0)


def read_segments(engine: Engine, tenant: str, traces: frozenset[bytes]) -> Iterator[tuple[int, Segment]]:
    """As `Store.segments`. No transaction is open between two segments: whoever reads may take their time."""
    found: list[tuple[int, bytes, int]] = []
    with engine.reading() as rows:
        for some in chunks(sorted(traces)):
            which = f"WHERE tenant = ? AND trace IN {places(some)}"
            found += rows.all(f"SELECT mark, trace, LENGTH(body) FROM segment {which}", (tenant, *some))
    before = 0

    def batch(one: tuple[int, bytes, int]) -> int:
        nonlocal before
        before += one[2] + _AT_ONCE // 100
        return before // _AT_ONCE

    for _, group in groupby(sorted(found), key=batch):
        wanted = [(trace, mark) for mark, trace, _ in group]
        # CROSS JOIN tells SQLite to look up one pair after the other: it would read all keys of the tenant.
        sql = (
            f"WITH wanted (trace, mark) AS (VALUES {', '.join('(?, ?)' for _ in wanted)}) "
            "SELECT s.mark, s.trace, s.signal, s.items, s.body, s.size FROM wanted w CROSS JOIN segment s "
            "WHERE s.tenant = ? AND s.trace = w.trace AND s.mark = w.mark"
        )
        with engine.reading() as rows:
            read = rows.all(sql, (*(value for one in wanted for value in one), tenant))
        for mark, trace, signal, items, body, size in sorted(read):
            yield mark, Segment(tenant, trace, signal, unpack_items(items), body, size)
