"""The embedded store: one SQLite file, and no other process.

One connection writes, under a lock; others read beside it (WAL). Another process may use the file at the same time.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from spanreel.errors import SettingsError
from spanreel_collector.stores.arriving import Arriving, Before, by_trace, keep_refusals
from spanreel_collector.stores.database import DatabaseStore
from spanreel_collector.stores.finding import RARE, Conditions
from spanreel_collector.stores.migrations import TABLES, migrate
from spanreel_collector.stores.records import Appended, Refusal, Segment, TraceKey
from spanreel_collector.stores.rows import Row, Rows, chunks, pack, places, unpack, unpack_items
from spanreel_collector.stores.sqlite_connections import BUSY, SqliteRows, connect, file_at, make_file, prepare
from spanreel_collector.stores.sqlite_schema import MIGRATIONS
from spanreel_collector.stores.store import StoreError
from spanreel_collector.stores.words import distinct_words

SCRUBBING: Final = 3.0
"""Seconds that an erasure waits for those who read."""
_IDLE: Final = 8
_MERGED: Final = 500
_logger: Final = logging.getLogger(__name__)


def open_sqlite(path: Path) -> DatabaseStore:
    """Open the store in this file, which is made where there is none.

    Raises:
        StoreError: it cannot be opened now.
        SettingsError: it is no store of ours, or of a newer release.
    """
    return DatabaseStore(SqliteEngine(path))


class SqliteEngine:
    """The `Engine` on a file: its connections, and what is SQLite's own."""

    sign = "+"
    skip_claimed = ""
    live_sql = "bytes"
    tables: Sequence[str] = (*TABLES, "session_words")
    schema = len(MIGRATIONS)
    words_sql = "(SELECT words FROM session_words WHERE session_words.session = session.number)"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        self._damage: StoreError | None = None
        # Whether the text index may have what was removed: at first, who knows.
        self._forgotten = True
        with self._telling():
            self._file = make_file(self._path)
            self._writer = connect(self._path)
            try:
                prepare(self._writer, str(path))
                migrate(self.writing, MIGRATIONS, f"the store {str(path)!r}")
            except BaseException:
                self._writer.close()
                raise

    # -- connections ---------------------------------------------------------------------------------------------------

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """What SQLite complains about is a `StoreError`, but for what only we can have done wrong."""
        try:
            yield
        except sqlite3.IntegrityError:
            raise
        except sqlite3.Error as error:
            # Extended codes have the plain one in their last byte.
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code == sqlite3.SQLITE_NOTADB:
                raise SettingsError(f"the store {str(self._path)!r} is no SQLite file; give another name") from error
            if code != sqlite3.SQLITE_CORRUPT:
                raise self._trouble(str(error)) from error
            self._damage = self._trouble(f"{error}; keep the file, and restore a backup into another")
            raise self._damage from error

    def _trouble(self, reason: str) -> StoreError:
        return StoreError(f"the store {str(self._path)!r}: {reason}", reason)

    def check(self) -> None:
        """See `Engine`. A page that was found damaged stays so, whatever can be written on others."""
        if self._damage is not None:
            raise self._trouble(self._damage.reason)

    @contextmanager
    def reading(self) -> Iterator[Rows]:
        """See `Engine`. A connection is used by one thread at a time, and by the next when that is done."""
        with self._telling():
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = connect(self._path)
            healthy = False
            try:
                connection.execute("BEGIN")
                yield SqliteRows(connection)
                connection.execute("ROLLBACK")
                healthy = True
            finally:
                # Appending to and popping from a list are atomic.
                if healthy and not self._closed and len(self._idle) < _IDLE:
                    self._idle.append(connection)
                else:
                    connection.close()

    def stream(self, queries: Mapping[str, str]) -> Iterator[tuple[str, Row]]:
        """See `Movable`. Others go on writing: what they write stands in the log until this has been read."""
        with self._telling(), closing(connect(self._path)) as connection:
            connection.execute("BEGIN")
            for kind, query in queries.items():
                for row in connection.execute(query):
                    yield kind, row

    @contextmanager
    def writing(self) -> Iterator[Rows]:
        """See `Engine`."""
        with self._lock, self._telling(), self._transaction():
            yield SqliteRows(self._writer)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        # What is written to a file that has no name any more is gone when this process is.
        if file_at(self._path) != self._file:
            raise self._trouble("its file was removed, or replaced, while it was in use; start the service again")
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._writer.execute("COMMIT")
        except BaseException:
            self._writer.rollback()
            raise

    def close(self) -> None:
        """See `Store`."""
        with self._lock:
            self._closed = True
            while self._idle:
                self._idle.pop().close()
            self._writer.close()

    # -- taking in -----------------------------------------------------------------------------------------------------

    def append(self, segments: Sequence[Segment], refusals: Sequence[Refusal], now: int) -> Appended:
        """See `Store`."""
        arriving = Arriving(now)
        with self._lock, self._telling(), self._transaction():
            rows = SqliteRows(self._writer)
            self._append(arriving, segments)
            keep_refusals(rows, refusals)
        return arriving.appended()

    def _append(self, arriving: Arriving, segments: Sequence[Segment]) -> None:
        execute, many, now = self._writer.execute, self._writer.executemany, arriving.now
        for key, group in by_trace(segments).items():
            found = execute("SELECT mark, items FROM trace WHERE tenant = ? AND trace = ?", key).fetchone()
            # What has items was not erased, or would have none.
            if (
                not (found and found[1])
                and execute("SELECT 1 FROM erased WHERE tenant = ? AND trace = ?", key).fetchone()
            ):
                continue
            before = Before(*found) if found else None
            arriving.take(key, group, before, self._known(key, group, before))
        many(
            "INSERT INTO segment (tenant, trace, mark, signal, size, items, body) VALUES (?, ?, ?, ?, ?, ?, ?)",
            arriving.segments,
        )
        many("INSERT INTO item (tenant, trace, item) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", arriving.items)
        many(
            "INSERT INTO trace (tenant, trace, mark, done, first, last, claimed, items, bytes, alone, reader) "
            f"VALUES (?, ?, ?, 0, {now:d}, {now:d}, 0, ?, ?, 1, NULL)",
            arriving.new,
        )
        many(
            f"UPDATE trace SET first = CASE WHEN done < mark THEN first ELSE {now:d} END, mark = ?, "
            f"last = MAX(last, {now:d}), items = items + ?, bytes = bytes + ? WHERE tenant = ? AND trace = ?",
            arriving.changed,
        )

    def _known(self, key: TraceKey, segments: Sequence[Segment], before: Before | None) -> set[bytes]:
        if before is None:
            return set()
        if before.is_small:
            sql = "SELECT items FROM segment WHERE tenant = ? AND trace = ?"
            return {item for (packed,) in self._writer.execute(sql, key) for item in unpack_items(packed)}
        known: set[bytes] = set()
        for items in chunks(item for segment in segments for item in segment.items):
            sql = f"SELECT item FROM item WHERE tenant = ? AND trace = ? AND item IN {places(items)}"
            known.update(item for (item,) in self._writer.execute(sql, (*key, *items)))
        return known

    def lock(self, rows: Rows, tenant: str) -> None:
        """See `Engine`. Whoever writes is alone already."""

    def lock_traces(self, rows: Rows, tenant: str, traces: Iterable[bytes]) -> None:
        """See `changing.Database`. As `lock`."""

    # -- searching -----------------------------------------------------------------------------------------------------

    def index_text(self, rows: Rows, number: int, text: str | None) -> None:
        """See `changing.Database`."""
        words = None if text is None else " ".join(distinct_words(text)).encode()
        before = rows.all("SELECT words FROM session_words WHERE session = ?", (number,))
        old = unpack(before[0][0]) if before else None
        if old == words:
            return
        self._forgotten |= words is None
        if old is not None:
            # The index stores no text: it forgets what it is told to, which has to be what it was told.
            rows.run("INSERT INTO word (word, rowid, words) VALUES ('delete', ?, ?)", (number, old.decode()))
            rows.run("DELETE FROM session_words WHERE session = ?", (number,))
        if words is not None:
            rows.run("INSERT INTO word (rowid, words) VALUES (?, ?)", (number, words.decode()))
            rows.run("INSERT INTO session_words (session, words) VALUES (?, ?)", (number, pack(words)))

    def add_words(self, rows: Rows, conditions: Conditions, words: Sequence[str]) -> None:
        """See `Engine`. Words are letters and digits, so that they mean nothing to the query language in quotes."""
        query = " AND ".join(f'"{word}"' for word in words) + "*"
        matching = "SELECT rowid FROM word WHERE word MATCH ?"
        numbers = [number for (number,) in rows.all(f"{matching} LIMIT ?", (query, RARE + 1))]
        if len(numbers) <= RARE:
            conditions.rare = True
            conditions.add(f"s.number IN {places(numbers)}", *numbers)
        else:
            conditions.add(f"+s.number IN ({matching})", query)

    # -- the disk ------------------------------------------------------------------------------------------------------

    def scrub(self) -> None:
        """See `Engine`.

        Freed pages are overwritten (secure_delete). The text index only notes what was removed, until its parts are
        merged; and the log has what was written, until it is cut.
        """
        self._merge_words()
        deadline = time.monotonic() + SCRUBBING
        while not self._cut_log():
            if time.monotonic() > deadline:
                _logger.warning("the store's log has what was erased until those that read now are done and upkeep ran")
                return
            time.sleep(0.05)

    def _merge_words(self) -> None:
        if not self._forgotten:
            return
        self._forgotten = False
        # A negative number merges all parts into one; in steps, so that others can write between them.
        pages, changes = -_MERGED, 2
        while changes > 1:
            with self.writing() as rows:
                before = self._writer.total_changes
                rows.run("INSERT INTO word (word, rank) VALUES ('merge', ?)", (pages,))
                changes = self._writer.total_changes - before
            pages = _MERGED

    def _cut_log(self) -> bool:
        """Whether the log could be cut. Nobody waits for who reads: writers would wait with us."""
        with self._lock, self._telling():
            self._writer.execute("PRAGMA busy_timeout = 0")
            try:
                return not self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            finally:
                self._writer.execute(f"PRAGMA busy_timeout = {int(BUSY * 1000)}")

    def size(self, rows: Rows, traces: int) -> tuple[int, int, Mapping[str, int]]:
        """See `Engine`. Tables are what their large values take."""
        ((page,),), ((pages,),), ((free,),) = (
            rows.all(f"PRAGMA {name}") for name in ("page_size", "page_count", "freelist_count")
        )
        disk = 0
        for suffix in ("", "-wal", "-shm"):
            try:
                disk += Path(f"{self._path}{suffix}").stat().st_size
            except FileNotFoundError:
                continue
        return (pages - free) * page, disk, {"segment": traces}

    def upkeep(self) -> None:
        """See `Store`. In steps, so that others can write between them."""
        self._merge_words()
        free = 1
        while free:
            with self._lock, self._telling():
                # A step a page: `execute` takes only the first of a statement that has steps and no columns.
                self._writer.executescript("PRAGMA incremental_vacuum(1000)")
                before, free = free, self._writer.execute("PRAGMA freelist_count").fetchone()[0]
                if free == before:
                    break
        with self._lock, self._telling():
            self._writer.execute("PRAGMA analysis_limit = 1000")
            self._writer.execute("PRAGMA optimize")
        self._cut_log()
