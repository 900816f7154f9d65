"""Streams of JSON objects, one a line (``application/x-ndjson``): a body of bytes to events and back. No meaning."""

from __future__ import annotations

from collections.abc import Sequence

import pydantic_core

from spanreel.exchange import Piece
from spanreel.model import Json
from spanreel.protocols.sse import Body, Event


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


def write_line(event: Event) -> bytes:
    """The bytes of one line, with an LF at its end; without where it was not ended."""
    return ((event.data or "") + ("\n" if event.ended else "")).encode("utf-8", "replace")


def read_object(event: Event) -> dict[str, Json] | None:
    """The object on a line; None where it is something else."""
    try:
        value = pydantic_core.from_json(event.data or "")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
