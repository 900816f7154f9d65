"""What was read a while ago, held for the next time: conversations go on, and come whole again with all that is new."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Generic, TypeVar

from spanreel_collector.conversion.account import Tally
from spanreel_collector.conversion.packing import Packed
from spanreel_collector.trace import Placed, Trace

ROOM: Final = 24 * 1024 * 1024
"""About so many bytes are held of segments, and as many of traces."""
_SPAN: Final = 2_000
"""What a span takes in memory beside what it says."""
_PART: Final = 8
"""One that takes more than such a part of the room is not held: it would drive out all others."""

Value = TypeVar("Value")
Segments = Sequence[tuple[int, bytes]]
"""Of a trace: each with the arrival of its batch's first span."""
PutRight = Callable[[str, Segments, Tally], Trace]


@dataclass(eq=False, slots=True)
class _Shelf(Generic[Value]):
    """The values that were used last, by what they were made of."""

    room: int
    taken: int = 0
    held: OrderedDict[bytes, tuple[Value, int]] = field(default_factory=OrderedDict)

    def find(self, key: bytes) -> Value | None:
        found = self.held.get(key)
        if found is None:
            return None
        self.held.move_to_end(key)
        return found[0]

    def hold(self, key: bytes, value: Value, size: int) -> None:
        if size * _PART > self.room or key in self.held:
            return
        self.held[key] = (value, size)
        self.taken += size
        while self.taken > self.room:
            _, (_, freed) = self.held.popitem(last=False)
            self.taken -= freed


@dataclass(frozen=True, slots=True)
class _Read:
    """A trace put right, where its segments stood then, and what there was to say of it."""

    trace: Trace
    firsts: tuple[int, ...]
    said: Tally


class Remembered:
    """Segments that were packed, and traces that were put right; nothing of it is ever changed."""

    def __init__(self, room: int = ROOM) -> None:
        self._packed = _Shelf[Packed](room)
        self._traces = _Shelf[_Read](room)

    def packed(self, name: bytes, body: bytes, make: Callable[[], Packed]) -> Packed:
        """What ``make`` makes of a segment of this name, or has made of it before."""
        key = _key(name, body)
        found = self._packed.find(key)
        if found is None:
            found = make()
            self._packed.hold(key, found, len(body) + sum(len(segment.data) for segment in found.segments))
        return found

    def trace(self, name: str, segments: Segments, make: PutRight, tally: Tally) -> Trace:
        """What ``make`` makes of the segments of a trace, or has made of them before."""
        key = _key(name.encode("utf-8", "surrogatepass"), *(data for _, data in segments))
        firsts = tuple(first for first, _ in segments)
        found = self._traces.find(key)
        if found is None:
            said = Tally()
            found = _Read(make(name, segments, said), firsts, said)
            self._traces.hold(key, found, sum(len(data) for _, data in segments) + _SPAN * len(found.trace))
        tally.merge(found.said)
        if found.firsts == firsts:
            return found.trace
        return tuple(_moved(placed, found.firsts, firsts) for placed in found.trace)


def _moved(placed: Placed, before: Sequence[int], now: Sequence[int]) -> Placed:
    """The span as it arrives now: in its segment, which stands elsewhere among those of others."""
    segment = max(bisect_right(before, placed.arrival) - 1, 0)
    earlier = tuple(_moved(one, before, now) for one in placed.earlier)
    return replace(placed, arrival=placed.arrival - before[segment] + now[segment], earlier=earlier)


def _key(*pieces: bytes) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for piece in pieces:
        digest.update(len(piece).to_bytes(8, "big"))
        digest.update(piece)
    return digest.digest()
