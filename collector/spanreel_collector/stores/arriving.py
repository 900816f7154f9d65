"""What one call appends, sorted and freed of what is known: rows for both databases, in the order of their keys."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from spanreel_collector.stores.records import Appended, Refusal, Segment, TraceKey
from spanreel_collector.stores.rows import Row, Rows, pack_items

KEPT_REFUSALS: Final = 1000
"""So many are kept of a tenant."""
FEW: Final = 200
"""So many items of a trace, at most, are in its segments alone: a row for each would be most of what a span costs."""
_LONGEST: Final = 1000


def by_trace(segments: Sequence[Segment]) -> dict[TraceKey, list[Segment]]:
    """Segments by their trace, in the order of keys: whoever locks rows does so in one order."""
    traces: defaultdict[TraceKey, list[Segment]] = defaultdict(list)
    for segment in segments:
        traces[segment.tenant, segment.trace].append(segment)
    return dict(sorted(traces.items()))


@dataclass(frozen=True, slots=True)
class Before:
    """A trace as it was: its mark, and how many items it had."""

    mark: int
    items: int

    @property
    def is_small(self) -> bool:
        """Whether its items are read from its segments; those of a large trace are looked up, each by its row."""
        return self.items <= FEW


@dataclass(slots=True)
class Arriving:
    """What is to be written, as of a moment: rows of segments, of items of large traces, and of traces.

    A new trace is (tenant, trace, mark, items, bytes), one that was there (mark, items, bytes, tenant, trace): of both,
    what its mark will be, and how many items and bytes more it has.
    """

    now: int
    new: list[Row] = field(default_factory=list)
    changed: list[Row] = field(default_factory=list)
    segments: list[Row] = field(default_factory=list)
    items: list[Row] = field(default_factory=list)
    added: int = 0
    known: int = 0

    def take(self, key: TraceKey, segments: Sequence[Segment], before: Before | None, known: set[bytes]) -> None:
        """Take what is new of the segments of one trace; ``known`` are items that it has, and will be those after.

        Of a small trace they have to be all of them.
        """
        mark = first = max(before.mark if before else 0, self.now - 1)
        items = size = 0
        had = list(known) if before and before.is_small else []
        arrived: list[bytes] = []
        for segment in segments:
            new = segment.items
            # Most often all are new, and each stands there once.
            if known.isdisjoint(new) and len(unique := set(new)) == len(new):
                known |= unique
            else:
                new = tuple(item for item in dict.fromkeys(new) if item not in known)
                self.known += len(segment.items) - len(new)
                known.update(new)
            if new:
                mark, items, size = mark + 1, items + len(new), size + len(segment.body)
                arrived += new
                self.segments.append((*key, mark, segment.signal, segment.size, pack_items(new), segment.body))
        if mark == first:
            return
        self.added += items
        if before is None:
            self.new.append((*key, mark, items, size))
        else:
            self.changed.append((mark, items, size, *key))
        if items + (before.items if before else 0) > FEW:
            self.items.extend((*key, item) for item in (*had, *arrived))

    def appended(self) -> Appended:
        """What to answer."""
        return Appended(self.added, self.known)


def keep_refusals(rows: Rows, refusals: Sequence[Refusal]) -> None:
    """Keep refusals, and of each tenant only the last."""
    values = [(one.tenant, one.at, one.place[:_LONGEST], one.reason[:_LONGEST]) for one in refusals]
    if not values:
        return
    rows.many("INSERT INTO refusal (tenant, at, place, reason) VALUES (?, ?, ?, ?)", values)
    for tenant in sorted({one.tenant for one in refusals}):
        rows.run(
            "DELETE FROM refusal WHERE tenant = ? AND number <= "
            "(SELECT number FROM refusal WHERE tenant = ? ORDER BY number DESC LIMIT 1 OFFSET ?)",
            (tenant, tenant, KEPT_REFUSALS),
        )
