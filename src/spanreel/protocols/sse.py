"""Server-sent events: a body of bytes to events and back (WHATWG HTML, section 9.2). No meaning."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

from spanreel.exchange import Piece
from spanreel.frozen import dataclass
from spanreel.model import Json
from spanreel.protocols.residue import read_json

STREAM_TYPE: Final = "text/event-stream; charset=utf-8"
"""The content type of such a body."""

EVENT: Final = "$event"
"""In a recorded chunk: an event of another form than its protocol's, ``{"name"?, "data"?, "other"?, "ended"?}``."""

FRAME: Final = "$frame"
"""Last in a recorded chunk: the name and the other lines of an event, where they are not its protocol's."""

# Atomic groups: a lone CRLF must not count as a CR line followed by an LF line.
_BLANK_LINE = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)+")


@dataclass(frozen=True, slots=True)
class Event:
    """One block of a stream; ``other`` are its comments and the lines of other fields, as they are.

    ``time`` is the milliseconds at which the event was complete. ``ended`` is False for what was cut off at the end.
    """

    time: float
    name: str | None = None
    data: str | None = None
    other: tuple[str, ...] = ()
    ended: bool = True


class Arrived(Sequence[Piece]):
    """Pieces that need no decoding, as they were kept: one flat list, each behind the nanoseconds of its arrival."""

    def __init__(self, kept: Sequence[Any], started: int) -> None:
        self.at: Sequence[int] = kept[::2]
        self.data: Sequence[bytes] = kept[1::2]
        self.started = started

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        return (self.at[index] - self.started) / 1e6, self.data[index]


class Body:
    """A streamed body, to be gone through block by block; ``arrivals`` says when each byte was there."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = pieces
        self._data = pieces.data if type(pieces) is Arrived else [piece for _, piece in pieces]
        self.bytes = b"".join(self._data)
        self._ends = list(accumulate(map(len, self._data)))
        self._has_returns = b"\r" in self.bytes

    def block(self, start: int) -> tuple[int, int] | None:
        """Where the block that begins here stops, and where the next begins; None where no blank line ends it."""
        if self._has_returns:
            match = _BLANK_LINE.search(self.bytes, start)
            return match.span() if match is not None else None
        end = self.bytes.find(b"\n\n", start)
        if end < 0:
            return None
        after = end + 2
        while self.bytes.startswith(b"\n", after):
            after += 1
        return end, after

    def event(self, start: int, end: int, complete: int) -> Event | None:
        """The event of a block that was complete at a byte; None for a block of line ends alone."""
        block = self.bytes[start:end]
        if not block.strip(b"\r\n"):
            return None
        piece = bisect_left(self._ends, complete)
        return read_event(block, self._microseconds(piece, piece + 1)[0])

    def rest(self, start: int) -> Event | None:
        """What follows the last blank line, as an event that was not ended; None where nothing does."""
        text = _text(self.bytes[start:])
        if not text:
            return None
        last = len(self._ends) - 1
        return Event(self._microseconds(last, last + 1)[0] / 1000, other=(text,), ended=False)

    def pieces(self, start: int, length: int) -> Sequence[bytes]:
        """The pieces as they came, where one began here, within so many bytes."""
        first = bisect_right(self._ends, start)
        if first == 0 or self._ends[first - 1] != start:
            return ()
        return self._data[first : bisect_right(self._ends, start + length)]

    def arrivals_of_pieces(self, start: int, count: int) -> list[int]:
        """The microseconds at which so many pieces came of which the first begins here."""
        first = bisect_right(self._ends, start)
        return self._microseconds(first, first + count)

    def arrivals(self, ends: list[int]) -> list[int]:
        """The microseconds at which all bytes up to each of these were there."""
        first = bisect_left(self._ends, ends[0])
        last = first + len(ends)
        if self._ends[first:last] == ends:  # a piece an event
            return self._microseconds(first, last)
        times = self._microseconds(first, bisect_left(self._ends, ends[-1]) + 1)
        return [times[bisect_left(self._ends, end) - first] for end in ends]

    def _microseconds(self, first: int, last: int) -> list[int]:
        """When these pieces came."""
        pieces = self._pieces
        if type(pieces) is Arrived:
            started = pieces.started - 500
            return [(at - started) // 1000 for at in pieces.at[first:last]]
        return [round(time * 1000) for time, _ in pieces[first:last]]


def write_event(event: Event) -> bytes:
    """The bytes of one event, with LF line ends; without the blank line where it was not ended."""
    lines = list(event.other)
    if event.name is not None:
        lines.append(f"event: {event.name}")
    if event.data is not None:
        lines.extend(f"data: {line}" for line in event.data.split("\n"))
    text = "\n".join(lines)
    return (text + "\n\n" if event.ended else text).encode("utf-8", "replace")


def read_object(event: Event) -> dict[str, Json] | None:
    """The JSON object that an event has as its data; None where that is something else."""
    try:
        value = read_json(event.data or "")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def describe(event: Event) -> dict[str, Json]:
    """An event as JSON, without its time."""
    described: dict[str, Json] = {"name": event.name, "data": event.data, "other": list(event.other)}
    described = {key: value for key, value in described.items() if value not in (None, [])}
    return described if event.ended else {**described, "ended": False}


def frame(event: Event, name: str | None) -> list[Json]:
    """What to add to the record of an event that stands in its protocol's form but for its lines around the data."""
    framed: dict[str, Json] = {}
    if event.name != name:
        framed["name"] = event.name
    if event.other:
        framed["other"] = list(event.other)
    return [{FRAME: framed}] if framed else []


def reframe(event: Event, added: Sequence[Json]) -> Event:
    """The inverse of `frame`: an event in its protocol's form, with the lines that were recorded."""
    framed = added[0].get(FRAME) if added and isinstance(added[0], dict) else None
    if not isinstance(framed, dict):
        return event
    name = framed.get("name", event.name)
    return Event(event.time, name, event.data, tuple(framed.get("other") or ()), event.ended)


def rebuild(time: float, described: Mapping[str, Json]) -> Event:
    """The inverse of `describe`."""
    other = described.get("other") or ()
    return Event(time, described.get("name"), described.get("data"), tuple(other), described.get("ended") is not False)


def read_event(block: bytes, microseconds: int) -> Event:
    """The event that a block is."""
    time = microseconds / 1000
    if (simple := _simple_event(block, time)) is not None:
        return simple
    text = _text(block)
    name: str | None = None
    data: list[str] = []
    other: list[str] = []
    for line in text.split("\n"):
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value
        else:
            other.append(line)
    return Event(time, name, "\n".join(data) if data else None, tuple(other))


def _text(block: bytes) -> str:
    return block.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n").strip("\n")


def _simple_event(block: bytes, time: float) -> Event | None:
    """An event of one line of data, after its name or none, as nearly all are; None for all others."""
    name, separator, data = block.rpartition(b"\n")
    if not data.startswith(b"data: ") or b"\r" in block:
        return None
    text = data[6:].decode("utf-8", "replace")
    if not separator:
        return Event(time, data=text)
    if not name.startswith(b"event: ") or b"\n" in name:
        return None
    return Event(time, name[7:].decode("utf-8", "replace"), text)
