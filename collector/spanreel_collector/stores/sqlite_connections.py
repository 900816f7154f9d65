"""Connections to a SQLite file: the file itself, how they are set up, and how statements go over them."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from spanreel.errors import SettingsError
from spanreel_collector.stores.rows import Row, storable
from spanreel_collector.stores.store import StoreError

BUSY: Final = 10.0
"""Seconds to wait for another process that writes."""


class SqliteRows:
    """One transaction of a connection."""

    __slots__ = ("_connection",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def all(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """See `Rows`."""
        return self._connection.execute(sql, [storable(value) for value in values]).fetchall()

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        """See `Rows`."""
        return self._connection.execute(sql, [storable(value) for value in values]).rowcount

    def many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        """See `Rows`."""
        self._connection.executemany(sql, ([storable(value) for value in row] for row in values))


def make_file(path: Path) -> tuple[int, int]:
    """Readable by its owner alone, from its start; what SQLite puts beside it is as private as it. As `file_at`.

    Raises:
        StoreError: it can neither be made nor written.
    """
    try:
        place = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StoreError(f"the store {str(path)!r}: {reason}", reason) from error
    try:
        found = os.fstat(place)
    finally:
        os.close(place)
    return found.st_dev, found.st_ino


def file_at(path: Path) -> tuple[int, int] | None:
    """Which file has this name now; None: there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def connect(path: Path) -> sqlite3.Connection:
    """A connection, for one thread at a time."""
    connection = sqlite3.connect(path, timeout=BUSY, isolation_level=None, check_same_thread=False)
    for pragma in ("synchronous = FULL", "secure_delete = ON", "foreign_keys = ON", "temp_store = MEMORY"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("PRAGMA cache_size = -32000")
    connection.execute(f"PRAGMA journal_size_limit = {64 * 2**20}")
    return connection


def prepare(connection: sqlite3.Connection, path: str) -> None:
    """What the file itself keeps: space is given back bit by bit, and the log. The first only before anything else.

    Raises:
        SettingsError: the file is something else.
    """
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if tables and "migration" not in tables:
        raise SettingsError(f"the store {path!r} is a database of something else; give another name")
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    # For this alone SQLite does not wait for another that opens the file at the same time.
    deadline = time.monotonic() + BUSY
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return
