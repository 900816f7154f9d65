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
from spanreel_collector.stores.arriving import Arriving, by_trace, keep_refusals
from spanreel_collector.stores.database import DatabaseStore
from spanreel_collector.stores.finding import RARE, Conditions
from spanreel_collector.stores.migrations import migrate
from spanreel_collector.stores.postgresql_connections import SCHEMA, WAIT, PostgresqlRows, configure, read_url
from spanreel_collector.stores.postgresql_schema import MIGRATIONS, TABLES
from spanreel_collector.stores.records import Appended, Refusal, Segment, TraceKey
from spanreel_collector.stores.rows import Row, Rows, chunks, places
from spanreel_collector.stores.store import StoreError
from spanreel_collector.stores.words import distinct_words

CONNECTIONS: Final = 8
_ANALYZE_EVERY: Final = 3600.0
# What a row takes beside its large values, with its places in indexes.
_ITEM, _ROW = 130, 400
# Numbers of advisory locks, which all of a database share.
_SESSIONS, _MIGRATING, _UPKEEP = 0x5350_0001, 0x5350_0002, 0x5350_0003
_OURS: Final = (psycopg.IntegrityError, psycopg.DataError, psycopg.ProgrammingError, psycopg.NotSupportedError)


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
        except psycopg.errors.InsufficientPrivilege as error:
            raise StoreError(f"{self._name}: {error}") from error
        except _OURS:
            raise
        except psycopg.Error as error:
            raise StoreError(f"{self._name}: {error}") from error

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
        while True:
            arriving = Arriving()
            try:
                with self.writing() as rows:
                    if segments:
                        self._append(rows, arriving, by_trace(segments), now)
                    keep_refusals(rows, refusals)
            except _ErasedMeanwhile:
                continue
            return arriving.appended()

    def _append(self, rows: Rows, arriving: Arriving, traces: dict[TraceKey, list[Segment]], now: int) -> None:
        """Items first, then traces, both in the order of keys; what comes later holds locks for a shorter time."""
        for key in self._erased(rows, traces):
            del traces[key]
        new = self._add_items(rows, traces)
        for key, segments in traces.items():
            arriving.take(key, segments, {item for one in segments for item in one.items} - new[key])
        if not arriving.traces:
            return
        columns = list(zip(*arriving.traces, strict=True))
        # Marks of a trace grow in the order of commits, since its row is locked from here on.
        found = rows.all(
            "INSERT INTO trace (tenant, trace, mark, done, first, last, claimed, items, bytes, alone) "
            "SELECT t.tenant, t.trace, ? + t.count, 0, ?, ?, 0, t.items, t.bytes, 1 FROM "
            "unnest(?::text[], ?::bytea[], ?::bigint[], ?::bigint[], ?::bigint[]) "
            "AS t (tenant, trace, count, items, bytes) ON CONFLICT (tenant, trace) DO UPDATE SET "
            "first = CASE WHEN trace.done < trace.mark THEN trace.first ELSE excluded.first END, "
            "mark = GREATEST(trace.mark, ?) + excluded.mark - ?, last = GREATEST(trace.last, excluded.last), "
            "items = trace.items + excluded.items, bytes = trace.bytes + excluded.bytes RETURNING tenant, trace, mark",
            (now - 1, now, now, *map(list, columns), now - 1, now - 1),
        )
        # Whoever erases locks the trace too: what is not to be seen by now will not come any more.
        if self._erased(rows, traces):
            raise _ErasedMeanwhile
        counts = {(tenant, trace): count for tenant, trace, count, _, _ in arriving.traces}
        before = {(tenant, trace): mark - counts[tenant, trace] for tenant, trace, mark in found}
        columns = list(zip(*arriving.segments(before), strict=True))
        rows.run(
            "INSERT INTO segment (tenant, trace, mark, signal, size, items, body) SELECT * FROM "
            "unnest(?::text[], ?::bytea[], ?::bigint[], ?::text[], ?::bigint[], ?::bytea[], ?::bytea[])",
            [*map(list, columns)],
        )

    def _add_items(self, rows: Rows, traces: dict[TraceKey, list[Segment]]) -> dict[TraceKey, set[bytes]]:
        """Those that were new, by trace."""
        keys = sorted({(*key, item) for key, segments in traces.items() for one in segments for item in one.items})
        new: dict[TraceKey, set[bytes]] = {key: set() for key in traces}
        if keys:
            sql = (
                "INSERT INTO item (tenant, trace, item) SELECT * FROM unnest(?::text[], ?::bytea[], ?::bytea[]) "
                "ON CONFLICT DO NOTHING RETURNING tenant, trace, item"
            )
            for tenant, trace, item in rows.all(sql, [*map(list, zip(*keys, strict=True))]):
                new[tenant, trace].add(item)
        return new

    def _erased(self, rows: Rows, traces: Iterable[TraceKey]) -> list[TraceKey]:
        keys = list(traces)
        if not keys:
            return []
        sql = (
            "SELECT e.tenant, e.trace FROM unnest(?::text[], ?::bytea[]) AS t (tenant, trace) "
            "JOIN erased e ON e.tenant = t.tenant AND e.trace = t.trace"
        )
        return [(tenant, trace) for tenant, trace in rows.all(sql, [*map(list, zip(*keys, strict=True))])]

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

    def size(self, rows: Rows) -> tuple[int, int, Mapping[str, int]]:
        """See `Engine`. Bytes in use are reckoned: what tables take does not fall when rows are removed."""
        sql = "SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relkind = 'r' AND relnamespace = "
        tables = {name: int(size) for name, size in rows.all(f"{sql}'{SCHEMA}'::regnamespace")}
        ((live,),) = rows.all(
            "SELECT (SELECT COALESCE(SUM(bytes + items * ? + ?), 0) FROM trace) "
            "+ (SELECT COALESCE(SUM(OCTET_LENGTH(document) + ?), 0) FROM revision) "
            "+ (SELECT COALESCE(SUM(OCTET_LENGTH(document) + ?), 0) FROM report) "
            "+ (SELECT COALESCE(SUM(OCTET_LENGTH(summary) + COALESCE(PG_COLUMN_SIZE(words), 0) + ?), 0) FROM session)",
            (_ITEM, _ROW, _ROW, _ROW, _ROW),
        )
        return int(live), sum(tables.values()), tables

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


class _ErasedMeanwhile(Exception):
    """What was being appended was erased by another at the same time; without that, again."""
