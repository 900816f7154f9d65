"""Server-sent events: a body of bytes to events and back (WHATWG HTML, section 9.2). No JSON, no meaning."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from spanreel.model import Json
from spanreel.point import Piece

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


def read_events(pieces: Sequence[Piece]) -> list[Event]:
    """All events of a body, in order; what follows the last blank line comes last, not ``ended``."""
    body = b"".join(piece for _, piece in pieces)
    arrivals = iter(zip(accumulate(len(piece) for _, piece in pieces), (time for time, _ in pieces), strict=True))
    there, time = next(arrivals, (0, 0.0))
    events = []
    start = 0
    for end, next_start in _blocks(body):
        while there < next_start:
            there, time = next(arrivals)
        if body[start:end].strip(b"\r\n"):
            events.append(_event(body[start:end], time, True))
        start = next_start
    if body[start:].strip(b"\r\n"):
        events.append(_event(body[start:], pieces[-1][0], False))
    return events


def _blocks(body: bytes) -> Iterator[tuple[int, int]]:
    """Where each block that a blank line ends stops, and where the next begins."""
    if b"\r" in body or b"\n\n\n" in body:
        yield from (match.span() for match in _BLANK_LINE.finditer(body))
        return
    end = body.find(b"\n\n")
    while end >= 0:
        yield end, end + 2
        end = body.find(b"\n\n", end + 2)


def write_event(event: Event) -> bytes:
    """The bytes of one event, with LF line ends; without the blank line where it was not ended."""
    lines = list(event.other)
    if event.name is not None:
        lines.append(f"event: {event.name}")
    if event.data is not None:
        lines.extend(f"data: {line}" for line in event.data.split("\n"))
    text = "\n".join(lines)
    return (text + "\n\n" if event.ended else text).encode("utf-8", "replace")


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


def _event(block: bytes, time: float, ended: bool) -> Event:
    if ended and (simple := _simple_event(block, round(time, 3))) is not None:
        return simple
    text = block.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    time = round(time, 3)
    if not ended:
        return Event(time, other=(text,), ended=False)
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
