"""What a filter, an order and a cursor are as SQL that both databases understand."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Any, Final

from spanreel_collector.stores.rows import LEAST, key_of, storable
from spanreel_collector.stores.store import Filter, Order

_BY: Final[dict[Order, str]] = {
    "started": "by_started",
    "updated": "by_updated",
    "duration": "by_duration",
    "tokens": "by_tokens",
    "cost": "by_cost",
}
_FACETS: Final = ("agent", "version", "model", "tool", "tag")
_COLUMNS: Final = (("origin", "origin"), ("status", "status"), ("key", "key"), ("user", "user_id"))


@dataclass(slots=True)
class Conditions:
    """The conditions of a query, and their values; ``rare`` where few sessions fit, so that these are looked up."""

    tenant: str
    rare: bool = False
    sql: list[str] = field(default_factory=lambda: ["s.tenant = ?"])
    values: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.values.append(self.tenant)

    def add(self, sql: str, *values: Any) -> None:
        """One more condition."""
        self.sql.append(sql)
        self.values.extend(values)


def asked_facets(wanted: Filter) -> list[tuple[str, str]]:
    """The facets that a filter asks for, as kind and value."""
    asked = ((kind, getattr(wanted, kind)) for kind in _FACETS)
    return [(kind, key_of(value)) for kind, value in asked if value is not None]


def add_conditions(conditions: Conditions, wanted: Filter) -> None:
    """All of a filter but its text, which each database has its own way for."""
    for kind, value in asked_facets(wanted):
        one = "SELECT f.session FROM facet f WHERE f.tenant = ? AND f.kind = ? AND f.value = ?"
        if conditions.rare:
            conditions.add(f"s.number IN ({one})", conditions.tenant, kind, value)
        else:
            conditions.add(f"EXISTS ({one} AND f.session = s.number)", conditions.tenant, kind, value)
    for name, column in (*_COLUMNS, ("baseline", "baseline")):
        if (value := getattr(wanted, name)) is not None:
            conditions.add(f"s.{column} = ?", key_of(value))
    if wanted.eligible is not None:
        conditions.add("s.eligible = ?", int(wanted.eligible))
    if wanted.since is not None:
        conditions.add("s.by_started >= ?", max(wanted.since, LEAST + 1))
    if wanted.until is not None:
        conditions.add("s.by_started < ? AND s.by_started > ?", wanted.until, LEAST)
    if wanted.least_tokens is not None:
        conditions.add("s.by_tokens >= ?", max(wanted.least_tokens, 0))
    if wanted.most_tokens is not None:
        conditions.add("s.by_tokens <= ? AND s.by_tokens >= 0", wanted.most_tokens)
    if wanted.least_cost is not None:
        conditions.add("s.by_cost >= ?", max(float(wanted.least_cost), 0.0))
    if wanted.most_cost is not None:
        conditions.add("s.by_cost <= ? AND s.by_cost >= 0", float(wanted.most_cost))


def find_sql(conditions: Conditions, order: Order, limit: int, cursor: str | None) -> tuple[str, list[Any]]:
    """The query and its values: summaries, and the place of each, one more than asked for.

    Raises:
        ValueError: the cursor is none of ours, or of another order; or there is no such order.
    """
    if order not in _BY:
        raise ValueError(f"no order {order!r}; there are {', '.join(_BY)}")
    # A sign before the column keeps a database from walking the whole order for a few sessions.
    by = f"{'+' if conditions.rare else ''}s.{_BY[order]}"
    if cursor is not None:
        conditions.add(f"({by}, s.id) < (?, ?)", *_read_cursor(order, cursor))
    where = " AND ".join(conditions.sql)
    sql = f"SELECT s.summary, s.{_BY[order]}, s.id FROM session s WHERE {where} ORDER BY {by} DESC, s.id DESC LIMIT ?"
    return sql, [*conditions.values, limit + 1]


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
