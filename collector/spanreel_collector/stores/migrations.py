"""Schemas of stores, brought up to date: each numbered migration runs once, in a transaction of its own.

Those of one database stand in its schema; here, those that are the same in all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final

from spanreel.errors import SettingsError
from spanreel_collector.stores.rows import Rows
from spanreel_collector.stores.store import StoreError

Writing = Callable[[], AbstractContextManager[Rows]]

TABLES: Final = (
    "trace",
    "item",
    "segment",
    "erased",
    "session",
    "facet",
    "facet_count",
    "revision",
    "session_trace",
    "name",
    "report",
    "refusal",
    "probe",
)
"""Those that all stores have."""

# A session may have several users: they are a facet of it.
SEVERAL_USERS: Final = """
INSERT INTO facet (tenant, kind, value, session)
SELECT tenant, 'user', user_id, number FROM session WHERE user_id IS NOT NULL;
INSERT INTO facet_count (tenant, kind, value, sessions)
SELECT tenant, 'user', user_id, COUNT(*) FROM session WHERE user_id IS NOT NULL GROUP BY tenant, user_id;
DROP INDEX session_of_user;
ALTER TABLE session DROP COLUMN user_id;
"""

# Of a small trace the items stand in its segments alone (`arriving.FEW`). What was written before would take room for
# nothing, and an older release, which looks for each item's row, must not write beside this one.
SMALL_TRACES: Final = """
DELETE FROM item WHERE EXISTS (
    SELECT 1 FROM trace WHERE trace.tenant = item.tenant AND trace.trace = item.trace AND trace.items <= 200
);
"""


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


def check_schema(rows: Rows, tables: Sequence[str], schema: int) -> None:
    """See that all tables are there, and are those of this release: another may have brought them up to date meanwhile.

    Raises:
        StoreError: they are another release's. Of a table that is not there the database tells itself.
    """
    ((found,),) = rows.all("SELECT MAX(version) FROM migration")
    if found != schema:
        reason = f"its schema is {found}, and this release writes {schema}"
        raise StoreError(f"the store is of another release: {reason}", reason)
    rows.all("SELECT " + ", ".join(f"(SELECT 1 FROM {table} LIMIT 1)" for table in tables))


def _statements(script: str) -> Iterator[str]:
    """The statements of a script, each of which ends a line with a semicolon; a comment has a line of its own."""
    lines = [line for line in script.splitlines() if not line.lstrip().startswith("--")]
    yield from (statement for part in "\n".join(lines).split(";\n") if (statement := part.strip().rstrip(";")))
