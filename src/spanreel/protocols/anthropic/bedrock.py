"""Anthropic messages as Bedrock's invoke carries them: behind a path with the model, streamed in Amazon's frames."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Final

import pydantic_core

from spanreel.exchange import Piece
from spanreel.model import Answer, Json, Operation
from spanreel.protocols import anthropic
from spanreel.protocols.anthropic import read_request, read_response, write_request, write_response
from spanreel.protocols.frames import Frame, Header, read_frames, write_frame
from spanreel.protocols.residue import write_json
from spanreel.protocols.sse import Event, read_event, write_event

__all__ = [
    "NAME",
    "PATHS",
    "PROVIDER",
    "STREAM_TYPE",
    "join",
    "read_request",
    "read_response",
    "split",
    "write_request",
    "write_response",
]

NAME = "anthropic_bedrock"
PROVIDER = "aws.bedrock"
PATHS: Mapping[str, Operation] = {"/invoke": Operation.CHAT, "/invoke-with-response-stream": Operation.CHAT}
STREAM_TYPE = "application/vnd.amazon.eventstream"

_HEADERS: Final[tuple[Header, ...]] = (
    (":event-type", "chunk"),
    (":content-type", "application/json"),
    (":message-type", "event"),
)
_PADDING: Final = "id: "
"""Before what pads a frame, in the event that stands for it."""
_RAW: Final = ": "
"""Before a frame as it came, where no event stands in it."""


def join(pieces: Sequence[Piece]) -> Answer:
    """Read a streamed body, whole or cut off; ValueError where it holds no frame at all."""
    return anthropic.join([(frame.time, write_event(_as_event(frame))) for frame in read_frames(pieces)])


def split(answer: Answer) -> list[Piece]:
    """Write an answer as a stream: as its chunks say, where they still carry what it holds; else as Bedrock would."""
    if answer.status >= 400:
        return anthropic.split(answer)
    return [(time, _as_frame(read_event(written.rstrip(b"\n"), 0))) for time, written in anthropic.split(answer)]


def _as_event(frame: Frame) -> Event:
    """The event in a frame, with what pads it as its id."""
    try:
        payload = pydantic_core.from_json(frame.payload) if frame.headers == _HEADERS else None
        match payload:
            case {"bytes": str() as packed, **rest} if rest.keys() <= {"p"}:
                data = base64.b64decode(packed, validate=True).decode()
                fields = pydantic_core.from_json(data)
                if isinstance(fields, dict) and "\n" not in data:
                    pads = (_PADDING + str(rest["p"]),) if "p" in rest else ()
                    return Event(frame.time, str(fields.get("type")), data, pads)
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
