"""What is remembered of segments and traces: given again as it was, wherever it stands, and no more than has room."""

from __future__ import annotations

from spanreel_collector.conversion.account import Tally
from spanreel_collector.conversion.packing import Packed
from spanreel_collector.conversion.packing import Segment as PackedSegment
from spanreel_collector.conversion.remembering import Remembered, Segments
from spanreel_collector.span import Fault, Origin, RawSpan
from spanreel_collector.trace import Placed, Trace


def placed(identity: str, arrival: int, earlier: tuple[Placed, ...] = ()) -> Placed:
    span = RawSpan("t", identity, None, "chat", 1, 1, 2, {}, Origin({}, "", ""), "place")
    return Placed(span, None, None, identity, None, arrival, earlier=earlier)


class Maker:
    """Makes a span of each segment, and says something of it; counts how often it is asked."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, trace: str, segments: Segments, tally: Tally) -> Trace:
        self.times += 1
        tally.add([Fault(trace, "bad")], {"logs": 2})
        return tuple(placed(data.decode("latin-1"), first + 1, (placed("earlier", first),)) for first, data in segments)


def test_a_trace_is_read_once_and_stands_where_its_segments_stand_now() -> None:
    remembered, make = Remembered(), Maker()
    tallies = [Tally(), Tally(), Tally()]
    before = remembered.trace("t", [(0, b"a"), (10, b"b")], make, tallies[0])
    again = remembered.trace("t", [(0, b"a"), (10, b"b")], make, tallies[1])
    later = remembered.trace("t", [(7, b"a"), (30, b"b")], make, tallies[2])
    assert make.times == 1
    assert again is before
    assert later == make("t", [(7, b"a"), (30, b"b")], Tally())
    assert [(one.faults, one.failed, one.skipped) for one in tallies] == [([Fault("t", "bad")], 1, {"logs": 2})] * 3


def test_another_trace_or_one_that_has_more_is_read_itself() -> None:
    remembered, make = Remembered(), Maker()
    for name, segments in (("t", [(0, b"a")]), ("u", [(0, b"a")]), ("t", [(0, b"a"), (1, b"b")]), ("t", [(0, b"ab")])):
        remembered.trace(name, segments, make, Tally())
    assert make.times == 4


def test_what_was_used_last_is_held_up_to_the_room_and_nothing_that_takes_most_of_it() -> None:
    remembered, make = Remembered(room=21_000), Maker()  # of ten traces, with what a span takes beside what it says

    def read(*names: str, size: int = 100) -> int:
        before = make.times
        for name in names:
            remembered.trace(name, [(0, b"x" * size)], make, Tally())
        return make.times - before

    assert read(*"abcdefghij") == 10
    assert read("a") == 0
    assert read("k") == 1  # in the place of b, which nobody asked for
    assert read("a", "c") == 0
    assert read("b") == 1
    assert read("large", "large", size=1_900) == 2
    assert read("a") == 0


def test_segments_are_packed_once() -> None:
    remembered = Remembered(room=1000)
    made: list[bytes] = []

    def packed(name: bytes, body: bytes) -> Packed:
        def make() -> Packed:
            made.append(body)
            return Packed((PackedSegment("t", frozenset(), 0, body * 2),), 1)

        return remembered.packed(name, body, make)

    assert packed(b"t", b"one") == packed(b"t", b"one")
    packed(b"u", b"one")
    packed(b"t", b"two")
    assert made == [b"one", b"one", b"two"]
