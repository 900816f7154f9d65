"""What a filter, an order and a cursor are as SQL that both databases understand."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from spanreel_collector.stores.records import Filter, Order
from spanreel_collector.stores.rows import FACETS, LEAST, key_of, storable

_BY: Final[dict[Order, str]] = {
    "started": "by_started",
    "updated": "by_updated",
    "duration": "by_duration",
    "tokens": "by_tokens",
    "cost": "by_cost",
}
RARE: Final = 2000
"""So many sessions are looked up and sorted; where more fit, the list in its order is walked until a page is full."""
_FACETS: Final = (*FACETS, "user")
_COLUMNS: Final = ("key", "baseline")


@dataclass(slots=True)
class Conditions:
    """The conditions of a query, and their values.

    ``rare`` where few sessions fit one of them, so that these are looked up and sorted. ``sign`` is what keeps a
    database from using an index for the column behind it, where it does not find out by itself.
    """

    tenant: str
    sign: str
    rare: bool = False
    sql: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def add(self, sql: str, *values: Any) -> None:
        """One more condition."""
        self.sql.append(sql)
        self.values.extend(values)


def asked_facets(wanted: Filter) -> list[tuple[str, str]]:
    """The facets that a filter asks for, as kind and value."""
    asked = ((kind, getattr(wanted, kind)) for kind in _FACETS)
    return [(kind, key_of(value)) for kind, value in asked if value is not None]


def asked_ranges(wanted: Filter) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The ranges that a filter asks for, as conditions and their values. Whoever asks, asks for what is known."""
    if wanted.since is not None:
        yield "s.by_started >= ?", (max(wanted.since, LEAST + 1),)
    if wanted.until is not None:
        yield "s.by_started < ? AND s.by_started > ?", (wanted.until, LEAST)
    if wanted.least_tokens is not None:
        yield "s.by_tokens >= ?", (max(wanted.least_tokens, 0),)
    if wanted.most_tokens is not None:
        yield "s.by_tokens <= ? AND s.by_tokens >= 0", (wanted.most_tokens,)
    if wanted.least_cost is not None:
        yield "s.by_cost >= ?", (max(float(wanted.least_cost), 0.0),)
    if wanted.most_cost is not None:
        yield "s.by_cost <= ? AND s.by_cost >= 0", (float(wanted.most_cost),)


def add_facets(conditions: Conditions, counts: Mapping[tuple[str, str], int], rare: int) -> None:
    """Ask for facets, of which so many sessions have each; the rarest is looked up where it is rare."""
    rarest = min(counts, key=lambda facet: counts[facet], default=None)
    for facet in counts:
        one = "SELECT f.session FROM facet f WHERE f.tenant = ? AND f.kind = ? AND f.value = ?"
        if facet == rarest and counts[facet] <= rare:
            conditions.rare = True
            conditions.add(f"s.number IN ({one})", conditions.tenant, *facet)
        elif facet[0] in ("origin", "status"):
            conditions.add(f"s.{facet[0]} = ?", facet[1])
        else:
            conditions.add(f"EXISTS ({one} AND f.session = s.number)", conditions.tenant, *facet)


def add_columns(conditions: Conditions, wanted: Filter) -> None:
    """Ask for what stands in a session itself."""
    for column in _COLUMNS:
        if (value := getattr(wanted, column)) is not None:
            conditions.rare = True  # a key, a baseline: few sessions have the same, and there is an index
            conditions.add(f"s.{column} = ?", key_of(value))
    if wanted.eligible is not None:
        conditions.add("s.eligible = ?", int(wanted.eligible))
    for sql, values in asked_ranges(wanted):
        conditions.add(sql, *values)


def find_sql(conditions: Conditions, order: Order, limit: int, cursor: str | None) -> tuple[str, list[Any]]:
    """The query and its values: summaries, and the place of each, one more than asked for.

    Raises:
        ValueError: the cursor is none of ours, or of another order; or there is no such order.
    """
    if order not in _BY:
        raise ValueError(f"no order {order!r}; there are {', '.join(_BY)}")
    # Walking the whole order for a few sessions takes longer than sorting these.
    by = f"{conditions.sign if conditions.rare else ''}s.{_BY[order]}"
    if cursor is not None:
        conditions.add(f"({by}, s.id) < (?, ?)", *_read_cursor(order, cursor))
    # Looked up by number, a session's tenant is only compared: by its index all of the tenant would be read.
    tenant = f"{conditions.sign if any('s.number IN' in one[:11] for one in conditions.sql) else ''}s.tenant = ?"
    where = " AND ".join((tenant, *conditions.sql))
    sql = f"SELECT s.summary, s.{_BY[order]}, s.id FROM session s WHERE {where} ORDER BY {by} DESC, s.id DESC LIMIT ?"
    return sql, [conditions.tenant, *conditions.values, limit + 1]


def write_cursor(order: Order, value: float, session: str) -> str:
    """Where a page ended."""
    return base64.urlsafe_b64encode(json.dumps([order, value, session]).encode()).decode().rstrip("=")


def _read_cursor(order: Order, cursor: str) -> tuple[Any, str]:
    wrong = f"{cursor[:80]!r} is no cursor of a list"
    try:
        data = base64.b64decode(cursor.encode() + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        of, value, session = json.loads(data)
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(wrong) from error
    if of != order and of in list(_BY):
        raise ValueError(f"the cursor is of a list ordered by {of!r}, not by {order!r}")
    # Not isinstance: true and false are numbers too.
    number = type(value) in ((int, float) if order == "cost" else (int,))
    if of != order or not number or not isinstance(session, str):
        raise ValueError(wrong)
    return storable(value), session
