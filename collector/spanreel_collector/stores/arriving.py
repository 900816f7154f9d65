"""What one call appends, sorted and freed of what is known: rows for both databases, in the order of their keys."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from spanreel_collector.stores.records import Appended, Refusal, Segment, TraceKey
from spanreel_collector.stores.rows import Row, Rows, pack_items

KEPT_REFUSALS: Final = 1000
"""So many are kept of a tenant."""
_LONGEST: Final = 1000


def by_trace(segments: Sequence[Segment]) -> dict[TraceKey, list[Segment]]:
    """Segments by their trace, in the order of keys: whoever locks rows does so in one order."""
    traces: defaultdict[TraceKey, list[Segment]] = defaultdict(list)
    for segment in segments:
        traces[segment.tenant, segment.trace].append(segment)
    return dict(sorted(traces.items()))


@dataclass(slots=True)
class Arriving:
    """Rows to be written: items; traces as (tenant, trace, segments, items, bytes)."""

    items: list[Row] = field(default_factory=list)
    traces: list[Row] = field(default_factory=list)
    known: int = 0
    _segments: list[tuple[TraceKey, int, Segment, tuple[bytes, ...]]] = field(default_factory=list)

    def take(self, key: TraceKey, segments: Sequence[Segment], known: AbstractSet[bytes]) -> None:
        """Take what is new of the segments of one trace."""
        seen = set(known)
        count = items = size = 0
        for segment in segments:
            new = tuple(item for item in dict.fromkeys(segment.items) if item not in seen)
            self.known += len(segment.items) - len(new)
            if not new:
                continue
            seen.update(new)
            count, items, size = count + 1, items + len(new), size + len(segment.body)
            self.items.extend((*key, item) for item in new)
            self._segments.append((key, count, segment, new))
        if count:
            self.traces.append((*key, count, items, size))

    def segments(self, before: Mapping[TraceKey, int]) -> Iterator[Row]:
        """Rows of segments, each with its mark; before are the marks that those of a trace follow."""
        for key, place, segment, new in self._segments:
            yield (*key, before[key] + place, segment.signal, segment.size, pack_items(new), segment.body)

    def appended(self) -> Appended:
        """What to answer."""
        return Appended(len(self.items), self.known)


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
