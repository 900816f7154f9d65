"""Connections to PostgreSQL: how they are set up, and how statements go over them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from spanreel.errors import SettingsError
from spanreel_collector.stores.rows import Row, storable

SCHEMA: Final = "spanreel"
WAIT: Final = 5.0
"""Seconds until a connection of the pool that does not come is a `StoreError`."""
CONNECT: Final = 20.0
"""The same for one that is made: a database on a busy machine takes some seconds, and nobody waits with a request."""
_ARRAY: Final = re.compile(r"\?(?=::\w+\[\])")


@lru_cache(maxsize=1000)
def _dialect(sql: str) -> str:
    # Arrays in binary: as text, a body would be written as hex digits.
    return _ARRAY.sub("%b", sql).replace("?", "%s")


class PostgresqlRows:
    """One transaction of a connection, or statements that are one each."""

    __slots__ = ("_connection",)

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection

    def all(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """See `Rows`."""
        return self._execute(sql, values).fetchall()

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        """See `Rows`."""
        return self._execute(sql, values).rowcount

    def many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        """See `Rows`."""
        with self._connection.cursor() as cursor:
            cursor.executemany(_dialect(sql).encode(), [[storable(value) for value in row] for row in values])

    def copy(self, into: str, types: Sequence[str], values: Iterable[Row]) -> None:
        """Add rows to a table, whose columns are of these types: of large values it costs less than any INSERT."""
        with (
            self._connection.cursor() as cursor,
            cursor.copy(f"COPY {into} FROM STDIN (FORMAT BINARY)".encode()) as copy,
        ):
            copy.set_types(types)
            for row in values:
                copy.write_row(row)

    def _execute(self, sql: str, values: Sequence[Any]) -> psycopg.Cursor[Row]:
        return self._connection.execute(_dialect(sql).encode(), [storable(value) for value in values], binary=True)


def configure(connection: psycopg.Connection[Row]) -> None:
    """Have a connection find our tables."""
    connection.execute(f"SET search_path TO {SCHEMA}".encode())


def read_url(url: str) -> tuple[str, str]:
    """The connection string, and how messages name the store: without the password.

    Raises:
        SettingsError: the URL is wrong. Of what libpq says about it nothing is shown: it may quote the password.
    """
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        raise SettingsError(
            f"the store's URL {url.partition('://')[0]}://... cannot be read; it is "
            "postgresql://USER@HOST:PORT/DATABASE, with special characters of a password as %XX"
        ) from None
    where = "".join(f" {name}={parts[name]}" for name in ("host", "port", "dbname", "user") if parts.get(name))
    parts.setdefault("connect_timeout", str(int(CONNECT)))
    parts.setdefault("application_name", "spanreel")
    return make_conninfo("", **parts), f"the store in PostgreSQL ({where.strip() or 'by its defaults'})"
