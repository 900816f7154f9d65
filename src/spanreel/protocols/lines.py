"""Streams of JSON objects, one a line (``application/x-ndjson``): a body of bytes to events and back. No meaning."""

from __future__ import annotations

from collections.abc import Sequence

from spanreel.exchange import Piece
from spanreel.protocols.residue import write_json
from spanreel.protocols.sse import EVENT, Body, Event, read_object
from spanreel.protocols.weaving import Growing, Item, Woven


def read_lines(pieces: Sequence[Piece]) -> list[Event]:
    """The lines of a body as events; the last is not ended where no line end follows it."""
    body = Body(pieces)
    events, start = [], 0
    while start < len(body.bytes):
        end = body.bytes.find(b"\n", start)
        after = len(body.bytes) if end < 0 else end + 1
        text = body.bytes[start:after].decode("utf-8", "replace").rstrip("\r\n")
        if text.strip():
            events.append(Event(body.arrivals([after])[0] / 1000, data=text, ended=end >= 0))
        start = after
    return events


def read_items(pieces: Sequence[Piece], growing: Growing, stream: str) -> list[Item]:
    """The lines of a streamed answer, each taken in; ValueError, which names the stream, where there is none."""
    items: list[Item] = []
    for event in read_lines(pieces):
        fields = read_object(event) if event.ended else None
        if fields is None or EVENT in fields:
            items.append(event)
        else:
            items.append(Woven(event.time, fields, growing.add(fields)))
    if not items:
        raise ValueError(f"{stream} stream: holds no line")
    return items


def write_item(item: Item) -> Piece:
    """The inverse, of one of them."""
    event = item if isinstance(item, Event) else Event(item.time, data=write_json(item.fields).decode())
    return item.time, write_line(event)


def write_line(event: Event) -> bytes:
    """The bytes of one line, with an LF at its end; without where it was not ended."""
    return ((event.data or "") + ("\n" if event.ended else "")).encode("utf-8", "replace")
