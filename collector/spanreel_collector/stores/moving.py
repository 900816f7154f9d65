"""All that a store keeps, as entries that any other store takes: what a backup is made of.

What can be made again of these (items, facets, indexes) is, when they are taken in.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from spanreel_collector.stores.arriving import FEW
from spanreel_collector.stores.changing import Change, count_facets, index_texts
from spanreel_collector.stores.records import Entry
from spanreel_collector.stores.rows import (
    SESSION_COLUMNS,
    Row,
    Rows,
    facets_of,
    places,
    read_summary,
    session_columns,
    unpack,
    unpack_items,
)

# In the order in which they are taken in. `words` is the session's text to search.
_COLUMNS: Final[Mapping[str, str]] = {
    "erased": "tenant, trace, at",
    "trace": "tenant, trace, mark, done, first, last, items, bytes, alone, reader",
    "segment": "tenant, trace, mark, signal, size, items, body",
    "session": "tenant, id, reader, summary, arrived, words",
    "revision": "tenant, session, revision, at, reader, document",
    "session_trace": "tenant, session, trace",
    "name": "tenant, name, trace",
    "report": "tenant, id, session, at, verdict, document",
    "refusal": "tenant, at, place, reason",
}
KINDS: Final[Mapping[str, int]] = {kind: columns.count(",") + 1 for kind, columns in _COLUMNS.items()}
"""Kinds of entries, and how many values each has."""
_TOGETHER: Final = 500
_BYTES_TOGETHER: Final = 32_000_000


class Movable(Protocol):
    """What is one database's own in this."""

    words_sql: str
    """A query's expression for the words of ``session``: text, or that as zstd."""

    def stream(self, queries: Mapping[str, str]) -> Iterator[tuple[str, Row]]:
        """The rows of all queries, as of one moment, without all in memory."""
        ...

    def writing(self) -> AbstractContextManager[Rows]:
        """See `Engine`."""
        ...

    def lock_traces(self, rows: Rows, tenant: str, traces: Iterable[bytes]) -> None:
        """See `changing.Database`."""
        ...

    def index_text(self, rows: Rows, number: int, text: str | None) -> None:
        """See `changing.Database`."""
        ...


def dump(database: Movable) -> Iterator[Entry]:
    """All that is kept."""
    queries = {kind: f"SELECT {columns} FROM {kind}" for kind, columns in _COLUMNS.items()}
    queries["session"] = f"SELECT {_COLUMNS['session'].replace('words', database.words_sql)} FROM session"
    queries["refusal"] += " ORDER BY number"
    for kind, row in database.stream(queries):
        if kind == "session":
            words = row[5]
            row = (*row[:5], unpack(words).decode() if isinstance(words, bytes) else words or "")  # noqa: PLW2901
        yield Entry(kind, row)


def load(database: Movable, entries: Iterable[Entry], now: int) -> None:
    """Take in what was dumped, in transactions of a bounded size."""
    loading = _Loading(database, now)
    for entry in entries:
        if KINDS.get(entry.kind) != len(entry.values):
            raise ValueError(f"an entry {entry.kind!r} of {len(entry.values)} values is unknown")
        loading.add(entry)
    loading.write()


@dataclass(slots=True)
class _Loading:
    """Entries of one kind, gathered until they are written."""

    database: Movable
    now: int
    kind: str = ""
    rows: list[Row] | None = None
    size: int = 0

    def add(self, entry: Entry) -> None:
        if entry.kind != self.kind or self.size > _BYTES_TOGETHER or len(self.rows or ()) >= _TOGETHER:
            self.write()
            self.kind, self.rows, self.size = entry.kind, [], 0
        assert self.rows is not None
        self.rows.append(entry.values)
        self.size += sum(len(value) for value in entry.values if isinstance(value, bytes))

    def write(self) -> None:
        if not self.rows:
            return
        with self.database.writing() as rows:
            if self.kind == "session":
                self._write_sessions(rows, self.rows)
            else:
                self._insert(rows, self.kind, _COLUMNS[self.kind], self.rows)
            if self.kind == "segment":
                self._insert(rows, "item", "tenant, trace, item", self._items_of_large(rows, self.rows))
        self.rows = None

    def _items_of_large(self, rows: Rows, segments: Iterable[Row]) -> list[Row]:
        """Items of traces that have a row for each: how many a trace has was taken in before."""
        sql = "SELECT 1 FROM trace WHERE tenant = ? AND trace = ? AND items > ?"
        large = {key for key in {row[:2] for row in segments} if rows.all(sql, (*key, FEW))}
        return [(*row[:2], item) for row in segments if row[:2] in large for item in unpack_items(row[5])]

    def _insert(self, rows: Rows, table: str, columns: str, values: Sequence[Row]) -> None:
        if table == "trace":
            columns, values = f"{columns}, claimed", [(*row, 0) for row in values]
        if values:
            rows.many(f"INSERT INTO {table} ({columns}) VALUES {places(values[0])}", values)

    def _write_sessions(self, rows: Rows, sessions: Sequence[Row]) -> None:
        facets: list[Row] = []
        texts: dict[int, str] = {}
        counts: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        for tenant, session, reader, data, arrived, words in sessions:
            summary = read_summary(data)
            columns: list[Any] = list(session_columns(summary, reader, arrived))
            columns[SESSION_COLUMNS.split(", ").index("summary")] = data  # with what only a newer release understands
            values = (tenant, session, *columns)
            sql = f"INSERT INTO session (tenant, id, {SESSION_COLUMNS}) VALUES {places(values)} RETURNING number"
            ((number,),) = rows.all(sql, values)
            facets.extend((tenant, *facet, number) for facet in facets_of(summary))
            counts[tenant].update(facets_of(summary))
            texts[number] = words
        rows.many("INSERT INTO facet (tenant, kind, value, session) VALUES (?, ?, ?, ?)", sorted(facets))
        for tenant, changes in sorted(counts.items()):
            count_facets(Change(rows, tenant, self.now, self.database), changes)
        index_texts(self.database, rows, texts)
