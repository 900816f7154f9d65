"""What was exported, set aside in temporary files until all of it is there, and given out by what may be a session.

Memory does not grow with what is set aside: the bytes lie in a file (`segments`), the places in a
private SQLite database beside it, which sorts on disk. Nobody else can open them, and they end with the spool.
"""

from __future__ import annotations

import pickle
import sqlite3
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from spanreel_collector.conversion.clusters import Cluster, Part, Place, gather_clusters
from spanreel_collector.conversion.packing import Packed
from spanreel_collector.conversion.segments import Segments
from spanreel_collector.conversion.twins import Twin, pair
from spanreel_collector.conversion.unions import Unions

_TABLES = """
CREATE TABLE segment(trace BLOB, start INTEGER, first INTEGER, offset INTEGER, length INTEGER);
CREATE TABLE key(trace BLOB, name BLOB, PRIMARY KEY(trace, name)) WITHOUT ROWID;
CREATE TABLE same(name BLOB PRIMARY KEY, chief BLOB) WITHOUT ROWID;
CREATE TABLE link(trace BLOB, other BLOB, PRIMARY KEY(trace, other)) WITHOUT ROWID;
CREATE TABLE moved(trace BLOB PRIMARY KEY, chief BLOB) WITHOUT ROWID;
CREATE TABLE part(number INTEGER PRIMARY KEY, rest BLOB);
CREATE TABLE member(part INTEGER, cluster BLOB);
CREATE TABLE document(part INTEGER, start INTEGER, arrival INTEGER, kind TEXT, value BLOB, id TEXT, runs INTEGER,
    offset INTEGER, length INTEGER);
CREATE TABLE tail(name BLOB, part INTEGER);
CREATE TABLE head(name BLOB, part INTEGER);
CREATE TABLE twin(name BLOB, sure INTEGER, start INTEGER, end INTEGER, scope BLOB, trace BLOB, part INTEGER);
"""
# Traces that are one are read as one: under the least of their names.
_MERGE = """
INSERT OR IGNORE INTO key SELECT moved.chief, key.name FROM key JOIN moved USING(trace);
DELETE FROM key WHERE trace IN (SELECT trace FROM moved WHERE trace <> chief);
UPDATE segment SET trace = (SELECT chief FROM moved WHERE moved.trace = segment.trace)
    WHERE trace IN (SELECT trace FROM moved);
"""
# By conversation, else by trace; the traces of one by start, those that have none as they came.
_SETTLE = """
CREATE TABLE home AS SELECT key.trace AS trace, MIN(COALESCE(same.chief, key.name)) AS cluster
    FROM key LEFT JOIN same ON same.name = key.name GROUP BY key.trace;
CREATE UNIQUE INDEX home_trace ON home(trace);
CREATE TABLE trace AS SELECT trace, MIN(NULLIF(start, 0)) AS start, MIN(first) AS first FROM segment GROUP BY trace;
CREATE UNIQUE INDEX trace_trace ON trace(trace);
CREATE TABLE placed AS
    SELECT COALESCE(CAST('c' AS BLOB) || home.cluster, CAST('t' AS BLOB) || segment.trace) AS cluster,
        segment.trace AS trace, segment.first AS first, segment.offset AS offset, segment.length AS length
    FROM segment JOIN trace ON trace.trace = segment.trace LEFT JOIN home ON home.trace = segment.trace
    ORDER BY 1, trace.start, CASE WHEN trace.start IS NULL THEN trace.first END, segment.trace, segment.first;
"""
_TOGETHER = """
SELECT X'', placed.trace, placed.first, placed.offset, placed.length
    FROM placed JOIN member USING(cluster) JOIN gone USING(part) JOIN trace ON trace.trace = placed.trace
    ORDER BY trace.start, CASE WHEN trace.start IS NULL THEN trace.first END, placed.trace, placed.first
"""
_CONTINUED = """
SELECT name, part FROM tail WHERE name IN (SELECT name FROM head)
UNION SELECT name, part FROM head WHERE name IN (SELECT name FROM tail) ORDER BY name, part
"""
_SHARED = """
SELECT CAST(kind AS BLOB) || value AS name, part FROM document
    WHERE value IN (SELECT value FROM document GROUP BY kind, value HAVING COUNT(*) > 1) ORDER BY name, part
"""
_TWINS = """
SELECT name, sure, start, end, scope, trace, part FROM twin
    WHERE name IN (SELECT name FROM twin GROUP BY name HAVING COUNT(DISTINCT scope) > 1) ORDER BY name, start, rowid
"""

_LAST = 2**63 - 1
"""The greatest number of SQLite; OTLP's times go on to the year 2554."""


class Spool:
    """A life in three stages: packed batches in, clusters out and parts of them in, documents out.

    ``beside`` says that there is more than is set aside here, which other recorders may have written.
    """

    def __init__(self, *, beside: bool = False) -> None:
        self._beside = beside
        self._scopes: set[str] = set()
        self._folder = tempfile.TemporaryDirectory(prefix="spanreel-")
        self._segments = Segments(str(Path(self._folder.name) / "segments"))
        self._texts = (Path(self._folder.name) / "documents").open("w+b")
        self._index = sqlite3.connect(Path(self._folder.name) / "index", isolation_level=None)
        for setting in ("journal_mode=OFF", "synchronous=OFF", "locking_mode=EXCLUSIVE", "cache_size=-8000"):
            self._index.execute(f"PRAGMA {setting}")
        self._index.execute("PRAGMA temp_store=FILE")
        self._index.executescript(_TABLES)
        self._index.execute("BEGIN")
        self._written = self._arrived = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def path(self) -> str:
        """The file of the segments."""
        return self._segments.path

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return self._segments.size

    def close(self) -> None:
        """Remove all of it."""
        self._index.close()
        self._segments.close()
        self._texts.close()
        self._folder.cleanup()

    def add(self, packed: Packed) -> None:
        """Set a batch aside."""
        rows, keys, links = [], [], []
        for segment in packed.segments:
            trace = _bytes(segment.trace)
            rows.append((trace, min(segment.start, _LAST), self._arrived, *self._segments.add(segment.data)))
            keys += [(trace, _bytes(name)) for name in sorted(segment.keys)]
            links += [(trace, _bytes(other)) for other in sorted(segment.linked)]
        self._arrived += packed.spans
        self._scopes |= packed.scopes
        self._index.executemany("INSERT INTO segment VALUES (?, ?, ?, ?, ?)", rows)
        self._index.executemany("INSERT OR IGNORE INTO key VALUES (?, ?)", keys)
        self._index.executemany("INSERT OR IGNORE INTO link VALUES (?, ?)", links)

    # -- clusters ----------------------------------------------------------------------------------------------------

    def clusters(self) -> Iterator[Cluster]:
        """All that was set aside, once; adding ends here."""
        self._segments.flush()
        self._join_traces()
        self._join_keys()
        self._index.executescript(_SETTLE)
        self._index.execute("BEGIN")
        alone = len(self._scopes) < 2 and not self._beside
        for cluster in gather_clusters(self._index.execute("SELECT * FROM placed ORDER BY rowid")):
            yield replace(cluster, alone=alone)

    def _join_traces(self) -> None:
        """Traces that links join are one; a chief that is not here gives its name all the same."""
        unions = Unions[bytes]()
        for one, other in self._index.execute("SELECT trace, other FROM link"):
            unions.join(one, other)
        pairs = unions.pairs()
        if pairs:
            self._index.executemany("INSERT INTO moved VALUES (?, ?)", pairs)
            self._index.execute("COMMIT")
            self._index.executescript(_MERGE)
            self._index.execute("BEGIN")

    def _join_keys(self) -> None:
        """Names that one trace holds several of are of one cluster: the first of them is chief of all."""
        several = (
            "SELECT trace, name FROM key WHERE trace IN (SELECT trace FROM key GROUP BY trace HAVING COUNT(*) > 1)"
        )
        unions = Unions[bytes]()
        last: tuple[bytes, bytes] | None = None
        for trace, name in self._index.execute(f"{several} ORDER BY trace, name"):
            if last is not None and last[0] == trace:
                unions.join(last[1], name)
            last = (trace, name)
        self._index.executemany("INSERT INTO same VALUES (?, ?)", unions.pairs())

    def read(self, place: Place) -> tuple[int, bytes]:
        """A segment, with the arrival of its batch's first span."""
        return self._segments.read(place)

    # -- parts -------------------------------------------------------------------------------------------------------

    def keep(self, part: Part, number: int | None = None) -> None:
        """Keep what a cluster became, as the part of this number, else as the next."""
        rest = pickle.dumps(part.rest)
        cursor = self._index.execute("INSERT INTO part VALUES (?, ?)", (number, rest))
        number = cursor.lastrowid
        self._index.executemany("INSERT INTO member VALUES (?, ?)", ((number, name) for name in part.names))
        for document in part.documents:
            named = (document.kind, _bytes(document.value), document.id, document.runs)
            row = (number, min(document.start, _LAST), document.arrival, *named, self._written, len(document.text))
            self._index.execute("INSERT INTO document VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
            self._texts.write(document.text)
            self._written += len(document.text)
        self._index.executemany("INSERT INTO head VALUES (?, ?)", ((name, number) for name, _ in part.heads))
        self._index.executemany("INSERT INTO tail VALUES (?, ?)", ((name, number) for name, _ in part.tails))
        self._index.executemany(
            "INSERT INTO twin VALUES (?, ?, ?, ?, ?, ?, ?)", (_row(one, number) for one in part.twins)
        )

    def rejoined(self) -> Iterator[tuple[int, Cluster]]:
        """Clusters made of those whose parts belong together, as only their content told; the parts are forgotten.

        Each comes with the number that what it becomes is to be kept as.
        """
        self._index.executescript("CREATE INDEX head_name ON head(name); CREATE INDEX document_key ON document(value);")
        unions = Unions[int]()
        for asked in (_CONTINUED, _SHARED):
            last: tuple[bytes, int] | None = None
            for name, part in self._index.execute(asked):
                if last is not None and last[0] == name:
                    unions.join(last[1], part)
                last = (name, part)
        twins = self._twins(unions)
        together: dict[int, list[int]] = defaultdict(list)
        for number, chief in unions.pairs():
            together[chief].append(number)
        if together:
            self._index.executescript(
                "CREATE INDEX member_part ON member(part); CREATE INDEX placed_cluster ON placed(cluster);"
            )
        for chief, numbers in sorted(together.items()):
            yield chief, self._forget(numbers, twins)

    def _twins(self, unions: Unions[int]) -> dict[str, frozenset[str]]:
        """Traces that share a model call, each with all that it is one with; their parts belong together."""
        homes: dict[str, int] = {}

        def noted() -> Iterator[Twin]:
            for name, sure, start, end, scope, trace, part in self._index.execute(_TWINS):
                twin = Twin(name, bool(sure), start, end, _text(scope), _text(trace))
                homes[twin.trace] = part
                yield twin

        one = Unions[bytes]()
        for first, second in pair(noted()):
            one.join(_bytes(first), _bytes(second))
            unions.join(homes[first], homes[second])
        groups: dict[bytes, set[str]] = defaultdict(set)
        for name, chief in one.pairs():
            groups[chief].add(_text(name))
        return {trace: frozenset(group) for group in groups.values() for trace in group}

    def _forget(self, numbers: Sequence[int], twins: Mapping[str, frozenset[str]]) -> Cluster:
        self._index.execute("CREATE TEMP TABLE gone(part INTEGER PRIMARY KEY)")
        self._index.executemany("INSERT INTO gone VALUES (?)", ((number,) for number in numbers))
        names = self._index.execute("SELECT cluster FROM member JOIN gone USING(part) ORDER BY member.rowid").fetchall()
        (together,) = gather_clusters(self._index.execute(_TOGETHER))
        for table, column in (("part", "number"), ("document", "part")):
            self._index.execute(f"DELETE FROM {table} WHERE {column} IN (SELECT part FROM gone)")  # noqa: S608 - ours
        self._index.execute("DROP TABLE gone")
        groups = dict.fromkeys(twins[trace] for trace, _ in together.traces if trace in twins)
        return Cluster(tuple(name for (name,) in names), together.traces, tuple(groups))

    # -- documents ---------------------------------------------------------------------------------------------------

    def rests(self) -> Iterator[Any]:
        """What was kept beside the documents, part by part."""
        for (rest,) in self._index.execute("SELECT rest FROM part ORDER BY number"):
            yield pickle.loads(rest)  # noqa: S301 - as in packing: only `keep` wrote it

    def count(self) -> tuple[int, int]:
        """How many documents there are, and how many runs in them."""
        documents, runs = self._index.execute("SELECT COUNT(*), COALESCE(SUM(runs), 0) FROM document").fetchone()
        return int(documents), int(runs)

    def documents(self) -> Iterator[tuple[str, bytes]]:
        """All documents, oldest first: the session's id and the text."""
        self._texts.flush()
        ordered = "SELECT id, offset, length FROM document ORDER BY start, arrival, kind, value"
        for identity, offset, length in self._index.execute(ordered):
            self._texts.seek(offset)
            yield identity, self._texts.read(length)


def _row(twin: Twin, number: int | None) -> tuple[Any, ...]:
    times = min(twin.start, _LAST), min(twin.end, _LAST)
    return (twin.name, twin.sure, *times, _bytes(twin.scope), _bytes(twin.trace), number)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _bytes(text: str) -> bytes:
    """Text as SQLite takes it whatever is in it: half a surrogate pair, NUL."""
    return text.encode("utf-8", "surrogatepass")
