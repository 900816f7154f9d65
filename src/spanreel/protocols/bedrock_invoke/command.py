"""Cohere's Command R in Bedrock's invoke: the first version of Cohere's chat, in Amazon's frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from spanreel.exchange import Piece
from spanreel.model import Answer
from spanreel.protocols.bedrock_invoke.packing import read_events, write_events
from spanreel.protocols.cohere import first
from spanreel.protocols.cohere.first import read_request, read_response, write_request, write_response
from spanreel.protocols.residue import read_json, write_json
from spanreel.protocols.sse import Event, read_object

__all__ = ["join", "read_request", "read_response", "split", "write_request", "write_response"]

_AROUND: Final = "$around"
"""On a line: what stood around it in its frame."""


def join(pieces: Sequence[Piece]) -> Answer:
    """Read a streamed body, whole or cut off; ValueError where it holds no frame at all."""
    return first.join([(event.time, _as_line(event)) for event in read_events(pieces)])


def split(answer: Answer) -> list[Piece]:
    """Write an answer as a stream: as its chunks say, where they still carry what it holds; else as Cohere would."""
    return write_events((time, _as_event(line)) for time, line in first.split(answer))


def _as_line(event: Event) -> bytes:
    fields = read_object(event)
    around = list(event.other)
    line = around if fields is None else {**fields, _AROUND: around} if around else fields
    return write_json(line) + b"\n"


def _as_event(line: bytes) -> Event:
    """The inverse of `_as_line`."""
    value = read_json(line)
    if isinstance(value, list):
        return Event(0.0, other=tuple(map(str, value)))
    around = value.pop(_AROUND, ())
    kind = value.get("type")
    return Event(0.0, kind if isinstance(kind, str) else None, write_json(value).decode(), tuple(around))
