"""What Bedrock's invoke streams: JSON in base64 in Amazon's frames, unpacked to server-sent events and packed again."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from spanreel.exchange import Piece
from spanreel.model import Json
from spanreel.protocols.frames import Frame, Header, read_frames, write_frame
from spanreel.protocols.residue import read_json, write_json
from spanreel.protocols.sse import Event, read_event, read_object, write_event

STREAM_TYPE: Final = "application/vnd.amazon.eventstream"

_HEADERS: Final[tuple[Header, ...]] = (
    (":event-type", "chunk"),
    (":content-type", "application/json"),
    (":message-type", "event"),
)
_PADDING: Final = "id: "
"""Before what pads a frame, in the event that stands for it."""
_RAW: Final = ": "
"""Before a frame as it came, where no event stands in it."""


def read_events(pieces: Sequence[Piece]) -> Iterator[Event]:
    """The events in the frames of a body."""
    return map(_as_event, read_frames(pieces))


def write_events(events: Iterable[tuple[float, Event]]) -> list[Piece]:
    """The inverse; what is no JSON, as an end that others' streams have, Bedrock does not send."""
    return [
        (time, _as_frame(event))
        for time, event in events
        if read_object(event) is not None or any(line.startswith(_RAW) for line in event.other)
    ]


def unpack(pieces: Sequence[Piece]) -> list[Piece]:
    """The frames of a body as server-sent events, a piece each."""
    return [(event.time, write_event(event)) for event in read_events(pieces)]


def pack(pieces: Sequence[Piece]) -> list[Piece]:
    """The inverse of `unpack`."""
    return write_events((time, read_event(written.rstrip(b"\n"), 0)) for time, written in pieces)


def _as_event(frame: Frame) -> Event:
    """The event in a frame, with what pads it as its id."""
    try:
        payload = read_json(frame.payload) if frame.headers == _HEADERS else None
        match payload:
            case {"bytes": str() as packed, **rest} if rest.keys() <= {"p"}:
                data = base64.b64decode(packed, validate=True).decode()
                fields = read_json(data)
                if isinstance(fields, dict) and "\n" not in data:
                    kind = fields.get("type")
                    pads = (_PADDING + str(rest["p"]),) if "p" in rest else ()
                    return Event(frame.time, kind if isinstance(kind, str) else None, data, pads)
    except ValueError:
        pass  # neither JSON nor in base64: a frame of another kind
    return Event(frame.time, other=(_RAW + base64.b64encode(frame.raw).decode(),))


def _as_frame(event: Event) -> bytes:
    if event.data is None:
        raw = next((line for line in event.other if line.startswith(_RAW)), _RAW)
        return base64.b64decode(raw.removeprefix(_RAW))
    payload: dict[str, Json] = {"bytes": base64.b64encode(event.data.encode()).decode()}
    pads = next((line for line in event.other if line.startswith(_PADDING)), None)
    if pads is not None:
        payload["p"] = pads.removeprefix(_PADDING)
    return write_frame(_HEADERS, write_json(payload))
