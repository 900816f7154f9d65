"""A store on a database: all that SQLite and PostgreSQL do alike. What they do differently is an `Engine`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from spanreel_collector.stores import moving, removing, saving
from spanreel_collector.stores.changing import Change, sessions_of, traces_of
from spanreel_collector.stores.engine import Engine
from spanreel_collector.stores.migrations import check_schema
from spanreel_collector.stores.reading import Asked, find_page, read_segments
from spanreel_collector.stores.records import (
    Appended,
    Derived,
    Entry,
    Filter,
    KeptPage,
    Order,
    Page,
    Pending,
    Receipt,
    Refusal,
    Report,
    Revision,
    Segment,
    Size,
    Summary,
    TraceKey,
)
from spanreel_collector.stores.rows import FACETS, Row, chunks, key_of, pack, places, read_summary, unpack

_AHEAD: Final = 60_000_000_000
"""Nanoseconds by which the clocks of replicas may differ; what is further ahead is of a clock that was wrong."""


@dataclass(frozen=True, slots=True)
class DatabaseStore:
    """A `Store` on an engine."""

    engine: Engine
    clock: Callable[[], int] = time.time_ns

    # -- taking in -----------------------------------------------------------------------------------------------------

    def append(self, segments: Sequence[Segment], refusals: Sequence[Refusal] = ()) -> Appended:
        """See `Store`."""
        return self.engine.append(segments, refusals, self.clock())

    def refusals(self, tenant: str, limit: int = 100) -> tuple[Refusal, ...]:
        """See `Store`."""
        sql = "SELECT tenant, at, place, reason FROM refusal WHERE tenant = ? ORDER BY number DESC LIMIT ?"
        with self.engine.reading() as rows:
            return tuple(Refusal(*row) for row in rows.all(sql, (tenant, limit)))

    # -- making sessions -----------------------------------------------------------------------------------------------

    def claim(self, quiet_since: int, until: int, limit: int) -> tuple[Pending, ...]:
        """See `Store`."""
        now = self.clock()
        found: list[Row] = []
        with self.engine.writing() as rows:
            # What came later than now came before the clock was set back, which may take days to reach it again.
            for quiet, moment in (("last <= ?", quiet_since), ("last > ?", now + _AHEAD)):
                if len(found) >= limit:
                    break
                sql = (
                    "UPDATE trace SET claimed = ? WHERE (tenant, trace) IN (SELECT tenant, trace FROM trace "
                    f"WHERE done < mark AND {quiet} AND claimed <= ? ORDER BY last LIMIT ? {self.engine.skip_claimed}) "
                    "RETURNING tenant, trace, mark, first, last"
                )
                found += rows.all(sql, (until, moment, now, limit - len(found)))
        return tuple(sorted((Pending(*row) for row in found), key=lambda one: (one.last, one.tenant, one.trace)))

    def pending(self, tenant: str, before: int) -> int:
        """See `Store`. By the index of what is pending: a tenant may have very many traces."""
        sql = f"SELECT COUNT(*) FROM trace WHERE {self.engine.sign}tenant = ? AND done < mark AND first <= ?"
        with self.engine.reading() as rows:
            ((count,),) = rows.all(sql, (tenant, before))
        return int(count)

    def release(self, claimed: Sequence[Pending]) -> None:
        """See `Store`."""
        with self.engine.writing() as rows:
            sql = "UPDATE trace SET claimed = 0 WHERE tenant = ? AND trace = ?"
            rows.many(sql, sorted((one.tenant, one.trace) for one in claimed))

    def related(self, tenant: str, names: frozenset[str]) -> frozenset[bytes]:
        """See `Store`."""
        return frozenset(self._each(tenant, "SELECT trace FROM name WHERE tenant = ? AND name", map(key_of, names)))

    def names(self, tenant: str, traces: frozenset[bytes]) -> frozenset[str]:
        """See `Store`."""
        return frozenset(self._each(tenant, "SELECT name FROM name WHERE tenant = ? AND trace", traces))

    def segments(self, tenant: str, traces: frozenset[bytes]) -> Iterator[tuple[int, Segment]]:
        """See `Store`."""
        return read_segments(self.engine, tenant, traces)

    def heads(self, tenant: str, sessions: frozenset[str]) -> Mapping[str, tuple[int, bytes]]:
        """See `Store`."""
        heads: dict[str, tuple[int, bytes]] = {}
        with self.engine.reading() as rows:
            for ids in chunks(sorted(sessions)):
                sql = (
                    "SELECT s.id, s.revision, r.document FROM session s JOIN revision r ON r.tenant = s.tenant "
                    f"AND r.session = s.id AND r.revision = s.revision WHERE s.tenant = ? AND s.id IN {places(ids)}"
                )
                found = rows.all(sql, (tenant, *ids))
                heads.update((session, (revision, unpack(document))) for session, revision, document in found)
        return heads

    def sessions_of(self, tenant: str, traces: frozenset[bytes]) -> frozenset[str]:
        """See `Store`."""
        with self.engine.reading() as rows:
            return sessions_of(rows, tenant, traces)

    def save(self, derived: Derived) -> None:
        """See `Store`."""
        names = {trace: frozenset(map(key_of, names)) for trace, names in derived.names.items()}
        with self._changing(derived.tenant) as change:
            saving.save(
                change, Derived(derived.tenant, derived.marks, names, derived.made, derived.same, derived.reader)
            )

    def read_traces(self, after: tuple[str, bytes], limit: int, reader: str | None = None) -> tuple[TraceKey, ...]:
        """See `Store`."""
        with self.engine.reading() as rows:
            if reader is None:
                sql = "SELECT tenant, trace FROM trace WHERE reader IS NOT NULL AND (tenant, trace) > (?, ?)"
                found = rows.all(f"{sql} ORDER BY tenant, trace LIMIT ?", (*after, limit))
            else:
                one = "SELECT tenant, trace FROM trace WHERE reader {} ? AND (tenant, trace) > (?, ?)"
                both = f"{one.format('<')} UNION ALL {one.format('>')} ORDER BY tenant, trace LIMIT ?"
                found = rows.all(both, (reader, *after, reader, *after, limit))
        return tuple((tenant, trace) for tenant, trace in found)

    # -- reading -------------------------------------------------------------------------------------------------------

    def find(
        self, tenant: str, wanted: Filter, order: Order = "started", limit: int = 50, cursor: str | None = None
    ) -> Page:
        """See `Store`."""
        found = self.find_kept(tenant, wanted, order, limit, cursor)
        return Page(tuple(map(read_summary, found.summaries)), found.cursor)

    def find_kept(
        self, tenant: str, wanted: Filter, order: Order = "started", limit: int = 50, cursor: str | None = None
    ) -> KeptPage:
        """See `Store`."""
        with self.engine.reading() as rows:
            return find_page(rows, self.engine, tenant, wanted, Asked(order, limit, cursor))

    def facets(self, tenant: str) -> Mapping[str, tuple[tuple[str, int], ...]]:
        """See `Store`."""
        sql = f"SELECT kind, value, sessions FROM facet_count WHERE tenant = ? AND kind IN {places(FACETS)}"
        with self.engine.reading() as rows:
            found = sorted(rows.all(sql, (tenant, *FACETS)), key=lambda row: (-row[2], row[1]))
        return {name: tuple((value, count) for kind, value, count in found if kind == name) for name in FACETS}

    def session(self, tenant: str, session: str, revision: int | None = None) -> tuple[Summary, bytes] | None:
        """See `Store`."""
        sql = (
            "SELECT s.summary, r.document FROM session s JOIN revision r ON r.tenant = s.tenant AND r.session = s.id "
            f"AND r.revision = {'s.revision' if revision is None else '?'} WHERE s.tenant = ? AND s.id = ?"
        )
        asked = () if revision is None else (revision,)
        with self.engine.reading() as rows:
            found = rows.all(sql, (*asked, tenant, session))
        return (read_summary(found[0][0]), unpack(found[0][1])) if found else None

    def revisions(self, tenant: str, session: str) -> tuple[Revision, ...]:
        """See `Store`."""
        sql = "SELECT revision, at, reader FROM revision WHERE tenant = ? AND session = ? ORDER BY revision DESC"
        with self.engine.reading() as rows:
            return tuple(Revision(*row) for row in rows.all(sql, (tenant, session)))

    def traces_of(self, tenant: str, session: str) -> frozenset[bytes]:
        """See `Store`."""
        with self.engine.reading() as rows:
            return traces_of(rows, tenant, [session])

    def add_report(self, tenant: str, report: Report) -> None:
        """See `Store`."""
        sql = (
            "INSERT INTO report (tenant, id, session, at, verdict, document) VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (tenant, id) DO UPDATE SET session = excluded.session, at = excluded.at, "
            "verdict = excluded.verdict, document = excluded.document"
        )
        values = (key_of(report.id), report.session, report.at, report.verdict, pack(report.document))
        with self.engine.writing() as rows:
            rows.run(sql, (tenant, *values))
            removing.remove_older_reports(rows, tenant, report.session)

    def reports(self, tenant: str, session: str) -> tuple[Report, ...]:
        """See `Store`."""
        sql = (
            "SELECT id, session, at, verdict, document FROM report WHERE tenant = ? AND session = ? "
            "ORDER BY at DESC, id DESC"
        )
        with self.engine.reading() as rows:
            found = rows.all(sql, (tenant, session))
        return tuple(
            Report(id=id, session=session, at=at, verdict=verdict, document=unpack(document))
            for id, session, at, verdict, document in found  # noqa: A001 - the word of the model
        )

    # -- keeping house -------------------------------------------------------------------------------------------------

    def erase(self, tenant: str, sessions: frozenset[str], traces: frozenset[bytes] = frozenset()) -> Receipt:
        """See `Store`. A trace that another session was made of too goes with it; the other stays as it was read."""
        with self._changing(tenant) as change:
            receipt = removing.erase(change, sessions, traces)
        self.engine.scrub()
        return receipt

    def expire(self, before: int, limit: int) -> Receipt:
        """See `Store`."""
        with self.engine.reading() as rows:
            found = list(removing.find_old(rows, before, limit))
        receipt = Receipt()
        for tenant, old in found:
            with self._changing(tenant) as change:
                receipt += removing.expire(change, before, old)
        return receipt

    def oldest(self) -> int | None:
        """See `Store`."""
        sql = "SELECT MIN(arrived) FROM session UNION ALL SELECT MIN(last) FROM trace WHERE alone = 1"
        with self.engine.reading() as rows:
            return min((moment for (moment,) in rows.all(sql) if moment is not None), default=None)

    def size(self) -> Size:
        """See `Store`."""
        with self.engine.reading() as rows:
            # In one pass: with a million spans it is most of what this takes.
            ((items, traces, size),) = rows.all(
                f"SELECT COALESCE(SUM(items), 0), COUNT(*), COALESCE(SUM({self.engine.live_sql}), 0) FROM trace "
                "WHERE items > 0"
            )
            ((sessions,),) = rows.all("SELECT COUNT(*) FROM session")
            ((pending,),) = rows.all("SELECT COUNT(*) FROM trace WHERE done < mark")
            live, disk, tables = self.engine.size(rows, int(size))
        return Size(int(items), traces, sessions, pending, live, disk, tables)

    def upkeep(self) -> None:
        """See `Store`."""
        self.engine.upkeep()

    def tenants(self) -> tuple[str, ...]:
        """See `Store`."""
        # Each time the next one after, by an index, in the place of reading all keys.
        sql = " UNION ALL ".join(
            f"SELECT * FROM (SELECT tenant FROM {table} WHERE tenant > ? ORDER BY tenant LIMIT 1) {table}_next"
            for table in ("trace", "session", "report", "refusal", "erased")
        )
        found: list[str] = []
        with self.engine.reading() as rows:
            while after := rows.all(sql, (found[-1] if found else "",) * 5):
                found.append(min(tenant for (tenant,) in after))
        return tuple(found)

    def dump(self) -> Iterator[Entry]:
        """See `Store`."""
        return moving.dump(self.engine)

    def load(self, entries: Iterable[Entry]) -> None:
        """See `Store`."""
        if (there := self.tenants()) != ():
            raise ValueError(f"it is not empty: it has {', '.join(map(repr, there[:3]))}")
        moving.load(self.engine, entries, self.clock())

    def ready(self) -> None:
        """See `Store`. A row is written, since a disk that is full or read-only can still be read."""
        self.engine.check()
        sql = "INSERT INTO probe (number, at) VALUES (1, ?) ON CONFLICT (number) DO UPDATE SET at = excluded.at"
        with self.engine.writing() as rows:
            check_schema(rows, self.engine.tables, self.engine.schema)
            rows.run(sql, (self.clock(),))

    def close(self) -> None:
        """See `Store`."""
        self.engine.close()

    # -- shared --------------------------------------------------------------------------------------------------------

    @contextmanager
    def _changing(self, tenant: str) -> Iterator[Change]:
        with self.engine.writing() as rows:
            self.engine.lock(rows, tenant)
            yield Change(rows, tenant, self.clock(), self.engine)

    def _each(self, tenant: str, sql: str, keys: Any) -> Iterator[Any]:
        """The first column of what a query finds for many keys."""
        with self.engine.reading() as rows:
            for some in chunks(keys):
                yield from (value for (value,) in rows.all(f"{sql} IN {places(some)}", (tenant, *some)))
