"""A PostgreSQL of the tests' own: a cluster in a temporary folder, reached by a socket in it, stopped at the end."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from conftest import POSTGRESQL_ABSENT

PORT = 5432
"""Only the name of the socket: nothing listens on TCP."""


@dataclass(slots=True)
class Cluster:
    """A running server. ``stop`` and ``start`` are what an operator does; databases stay."""

    folder: Path
    binaries: Path
    durable: bool = False
    _numbers: count[int] = field(default_factory=count)
    _free: list[str] = field(default_factory=list)

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={quote(str(self.folder), safe='')}&port={PORT}"

    def new_database(self) -> str:
        """The URL of an empty database."""
        if self._free:
            return self._free.pop()
        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self.url(name)

    def give_back(self, url: str) -> None:
        """A database is for others again: emptying one takes less than making one."""
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA IF EXISTS spanreel CASCADE")
        self._free.append(url)

    def start(self) -> None:
        # Durability is what the server is trusted with; in tests it would only cost time.
        fsync = "on" if self.durable else "off"
        options = f"-k {self.folder} -p {PORT} -c listen_addresses= -c fsync={fsync} -c max_connections=60"
        self._run("pg_ctl", "start", "-w", "-t", "300", "-D", self.data, "-l", self.folder / "log", "-o", options)

    def stop(self) -> None:
        self._run("pg_ctl", "stop", "-w", "-t", "300", "-m", "immediate", "-D", self.data)

    def make(self) -> None:
        self._run("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def _run(self, program: str, *arguments: str | Path) -> None:
        # It refuses to run as root.
        as_postgres = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        words = [*as_postgres, str(self.binaries / program), *map(str, arguments)]
        done = subprocess.run(
            words, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=600, check=False
        )
        assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()


@contextmanager
def running_cluster(*, durable: bool = False) -> Iterator[Cluster]:
    """A cluster while the block runs; the test is skipped where PostgreSQL is not installed."""
    binaries = _find_binaries()
    if binaries is None:
        pytest.skip(f"{POSTGRESQL_ABSENT}: no initdb on the PATH or in /usr/lib/postgresql")
    # Not pytest's folder: the name of a socket is bounded, and another user has to get there.
    with tempfile.TemporaryDirectory(prefix="spanreel-pg-", ignore_cleanup_errors=True) as folder:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
        cluster = Cluster(Path(folder), binaries, durable)
        cluster.make()
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.stop()


def _find_binaries() -> Path | None:
    if (found := shutil.which("initdb")) is not None:
        return Path(found).resolve().parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return versions[-1].parent if versions else None
