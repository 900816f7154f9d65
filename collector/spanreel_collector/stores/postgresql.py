"""The store for a server: PostgreSQL, which several replicas of the service may share.

All is in the schema ``spanreel`` of the database. Rows are locked in the order of their keys, so that nobody waits in a
ring; sessions of a tenant are changed by one at a time.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg_pool import ConnectionPool

from spanreel.errors import SettingsError
from spanreel_collector.stores.arriving import FEW, Arriving, by_trace, keep_refusals
from spanreel_collector.stores.database import DatabaseStore
from spanreel_collector.stores.finding import RARE, Conditions
from spanreel_collector.stores.migrations import TABLES, migrate
from spanreel_collector.stores.postgresql_appending import Erased, Meanwhile, append_segments
from spanreel_collector.stores.postgresql_connections import CONNECT, SCHEMA, WAIT, PostgresqlRows, configure, read_url
from spanreel_collector.stores.postgresql_schema import MIGRATIONS
from spanreel_collector.stores.records import Appended, Refusal, Segment
from spanreel_collector.stores.rows import Row, Rows, chunks, places
from spanreel_collector.stores.store import StoreError
from spanreel_collector.stores.words import distinct_words

CONNECTIONS: Final = 8
_ANALYZE_EVERY: Final = 3600.0
# What a row takes beside its large values, with its places in indexes; an item in a segment, and one with a row too.
_ROW, _ITEM, _ITEM_ROW = 400, 12, 142
_ATTEMPTS: Final = 10
"""To append what others append, or erase, at the same time."""
# Numbers of advisory locks, which all of a database share.
_SESSIONS, _MIGRATING, _UPKEEP = 0x5350_0001, 0x5350_0002, 0x5350_0003
_OURS: Final = (psycopg.IntegrityError, psycopg.DataError, psycopg.ProgrammingError, psycopg.NotSupportedError)

_THEIRS: Final = (
    psycopg.errors.InsufficientPrivilege,
    psycopg.errors.UndefinedTable,
    psycopg.errors.UndefinedColumn,
    psycopg.errors.InvalidSchemaName,
)
"""Of those, what somebody did to the database: dropped what is ours, or took it from us."""


def open_postgresql(url: str) -> DatabaseStore:
    """Open the store in a database, which has to be there.

    Raises:
        StoreError: it cannot be reached now.
        SettingsError: the URL is wrong, or the store is of a newer release, or its schema may not be made.
    """
    return DatabaseStore(PostgresqlEngine(url))


class PostgresqlEngine:
    """The `Engine` on a database: its connections, and what is PostgreSQL's own."""

    sign = ""
    skip_claimed = "FOR UPDATE SKIP LOCKED"
    live_sql = f"bytes + items * CASE WHEN items > {FEW} THEN {_ITEM_ROW} ELSE {_ITEM} END + {_ROW}"
    tables: Sequence[str] = TABLES
    schema = len(MIGRATIONS)
    words_sql = "array_to_string(tsvector_to_array(words), ' ')"

    def __init__(self, url: str) -> None:
        self._conninfo, self._name = read_url(url)
        self._analyzed = float("-inf")
        with self._telling():
            self._make_schema()
        self._pool: ConnectionPool[psycopg.Connection[Row]] = ConnectionPool(
            self._conninfo,
            kwargs={"autocommit": True},
            min_size=1,
            max_size=CONNECTIONS,
            timeout=WAIT,
            # A pool that stops trying starts again when somebody asks, at once; one that tries waits ever longer.
            reconnect_timeout=1.0,
            configure=configure,
            check=ConnectionPool.check_connection,
            open=True,
        )
        try:
            with self._telling():
                self._pool.wait(CONNECT)
            migrate(self.writing, MIGRATIONS, self._name, f"SELECT pg_advisory_xact_lock({_MIGRATING})")
        except BaseException:
            self.close()
            raise

    # -- connections ---------------------------------------------------------------------------------------------------

    def _make_schema(self) -> None:
        """By a connection of its own: why the first one fails should be said, and the pool only says that it waited."""
        with psycopg.connect(self._conninfo, autocommit=True) as connection:
            if connection.execute("SELECT to_regnamespace(%s) IS NULL", (SCHEMA,)).fetchone() == (False,):
                return
            try:
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}".encode())
            except psycopg.errors.UniqueViolation:
                return  # another replica made it just now
            except psycopg.errors.InsufficientPrivilege as error:
                raise SettingsError(
                    f"{self._name} has no schema {SCHEMA!r}, and this user may not make it: let its owner run "
                    f"CREATE SCHEMA {SCHEMA} AUTHORIZATION user"
                ) from error

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """What PostgreSQL complains about is a `StoreError`, but for what only we can have done wrong."""
        try:
            yield
        except _THEIRS as error:
            raise StoreError(f"{self._name}: {error}", _reason(error)) from error
        except _OURS:
            raise
        except psycopg.Error as error:
            raise StoreError(f"{self._name}: {error}", _reason(error)) from error

    def check(self) -> None:
        """See `Engine`. What is wrong is met."""

    @contextmanager
    def reading(self) -> Iterator[Rows]:
        """See `Engine`. Each statement sees what is committed then."""
        with self._telling(), self._pool.connection() as connection:
            yield PostgresqlRows(connection)

    def stream(self, queries: Mapping[str, str]) -> Iterator[tuple[str, Row]]:
        """See `Movable`. By a connection of its own: the pool's are for what is quick."""
        with self._telling(), psycopg.connect(self._conninfo, autocommit=True) as connection:
            configure(connection)
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            with connection.transaction():
                for kind, query in queries.items():
                    with connection.cursor("moving") as cursor:
                        cursor.itersize = 200
                        for row in cursor.execute(query.encode(), binary=True):
                            yield kind, row

    @contextmanager
    def writing(self) -> Iterator[Rows]:
        """See `Engine`."""
        with self._telling(), self._pool.connection() as connection, connection.transaction():
            yield PostgresqlRows(connection)

    def close(self) -> None:
        """See `Store`."""
        self._pool.close()

    # -- taking in -----------------------------------------------------------------------------------------------------

    def append(self, segments: Sequence[Segment], refusals: Sequence[Refusal], now: int) -> Appended:
        """See `Store`."""
        traces = by_trace(segments)
        for _ in range(_ATTEMPTS):
            arriving = Arriving(now)
            try:
                with self._telling(), self._pool.connection() as connection, connection.transaction():
                    rows = PostgresqlRows(connection)
                    if traces:
                        append_segments(rows, arriving, traces)
                    keep_refusals(rows, refusals)
            except Erased as error:
                for key in error.keys:
                    del traces[key]
            except (Meanwhile, psycopg.errors.DeadlockDetected):
                continue
            else:
                return arriving.appended()
        raise StoreError(f"{self._name}: others wrote the same traces, {_ATTEMPTS} times in a row")

    def lock(self, rows: Rows, tenant: str) -> None:
        """See `Engine`."""
        rows.all("SELECT pg_advisory_xact_lock(?, hashtext(?))", (_SESSIONS, tenant))

    def lock_traces(self, rows: Rows, tenant: str, traces: Iterable[bytes]) -> None:
        """See `changing.Database`."""
        for some in chunks(sorted(traces)):
            sql = f"SELECT 1 FROM trace WHERE tenant = ? AND trace IN {places(some)} ORDER BY trace FOR UPDATE"
            rows.all(sql, (tenant, *some))

    # -- searching -----------------------------------------------------------------------------------------------------

    def index_text(self, rows: Rows, number: int, text: str | None) -> None:
        """See `changing.Database`. It stands in the session's row, and goes with it."""
        if text is not None:
            sql = "UPDATE session SET words = array_to_tsvector(?::text[]) WHERE number = ?"
            rows.run(sql, (distinct_words(text), number))

    def add_words(self, rows: Rows, conditions: Conditions, words: Sequence[str]) -> None:
        """See `Engine`. Words are letters and digits, so that they mean nothing to the query language in quotes."""
        query = " & ".join(f"'{word}'" for word in words) + ":*"
        # Materialized, so that it is planned as if all were wanted: guesses about words that begin somehow are bad.
        matching = "WITH found AS MATERIALIZED (SELECT number FROM session WHERE words @@ ?::tsquery)"
        numbers = [number for (number,) in rows.all(f"{matching} SELECT number FROM found LIMIT ?", (query, RARE + 1))]
        if len(numbers) <= RARE:
            conditions.add("s.number = ANY(?::bigint[])", numbers)
        else:
            conditions.add("s.words @@ ?::tsquery", query)

    # -- the disk ------------------------------------------------------------------------------------------------------

    def scrub(self) -> None:
        """See `Engine`. Rows that were removed stay in their pages until these are cleaned."""
        self._vacuum("VACUUM", wait=True)

    def size(self, rows: Rows, traces: int) -> tuple[int, int, Mapping[str, int]]:
        """See `Engine`. Bytes in use are reckoned: what tables take does not fall when rows are removed."""
        sql = "SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relkind = 'r' AND relnamespace = "
        tables = {name: int(size) for name, size in rows.all(f"{sql}'{SCHEMA}'::regnamespace")}
        ((live,),) = rows.all(
            "SELECT (SELECT COALESCE(SUM(OCTET_LENGTH(document) + ?), 0) FROM revision) "
            "+ (SELECT COALESCE(SUM(OCTET_LENGTH(document) + ?), 0) FROM report) "
            "+ (SELECT COALESCE(SUM(OCTET_LENGTH(summary) + COALESCE(PG_COLUMN_SIZE(words), 0) + ?), 0) FROM session)",
            (_ROW, _ROW, _ROW),
        )
        return traces + int(live), sum(tables.values()), tables

    def upkeep(self) -> None:
        """See `Store`. One replica at a time: for another there would be nothing left to do."""
        analyze = time.monotonic() - self._analyzed > _ANALYZE_EVERY
        self._vacuum("VACUUM (ANALYZE)" if analyze else "VACUUM", wait=False)
        self._analyzed = time.monotonic() if analyze else self._analyzed

    def _vacuum(self, command: str, *, wait: bool) -> None:
        """By a connection of its own, since it may take long; the lock goes with it."""
        with self._telling(), psycopg.connect(self._conninfo, autocommit=True) as connection:
            configure(connection)
            if wait:
                connection.execute("SELECT pg_advisory_lock(%s)", (_UPKEEP,))
            elif connection.execute("SELECT pg_try_advisory_lock(%s)", (_UPKEEP,)).fetchone() != (True,):
                return
            for table in TABLES:
                connection.execute(f"{command} {table}".encode())


def _reason(error: psycopg.Error) -> str:
    """What its name says: a message may have the host's, the user's and the statement in it."""
    if isinstance(error, _THEIRS[1:]):
        return "its tables are not there, or are not ours"
    # What a server says has a state; without one, none was reached.
    return "the database cannot be reached" if error.sqlstate is None else f"the database says {type(error).__name__}"
