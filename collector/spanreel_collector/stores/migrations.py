"""Schemas of stores, brought up to date: each numbered migration runs once, in a transaction of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

from spanreel.errors import SettingsError
from spanreel_collector.stores.rows import Rows

Writing = Callable[[], AbstractContextManager[Rows]]


def migrate(writing: Writing, migrations: Sequence[str], store: str, lock: str | None = None) -> None:
    """Run the migrations that did not run yet; ``lock`` is a statement that lets one process at a time do so.

    Raises:
        SettingsError: the store was written by a newer release than this one.
    """
    done = -1
    while done < len(migrations):
        with writing() as rows:
            if lock is not None:
                rows.all(lock)
            rows.run("CREATE TABLE IF NOT EXISTS migration (version INTEGER PRIMARY KEY, at BIGINT NOT NULL)")
            done = rows.all("SELECT COALESCE(MAX(version), 0) FROM migration")[0][0]
            if done > len(migrations):
                raise SettingsError(
                    f"{store} is of a newer release (its schema is {done}, this release knows {len(migrations)}): "
                    "install that release, or give another store"
                )
            if done < len(migrations):
                for statement in _statements(migrations[done]):
                    rows.run(statement)
                rows.run("INSERT INTO migration (version, at) VALUES (?, ?)", (done + 1, time.time_ns()))


def _statements(script: str) -> Iterator[str]:
    """The statements of a script, each of which ends a line with a semicolon; a comment has a line of its own."""
    lines = [line for line in script.splitlines() if not line.lstrip().startswith("--")]
    yield from (statement for part in "\n".join(lines).split(";\n") if (statement := part.strip().rstrip(";")))
