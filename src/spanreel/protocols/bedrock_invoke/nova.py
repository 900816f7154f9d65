"""Amazon's Nova in Bedrock's invoke: Converse but for names of its settings, and for how its streams are framed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from spanreel.exchange import Piece
from spanreel.model import Answer, Json, Operation, Request
from spanreel.protocols import bedrock
from spanreel.protocols.bedrock import read_response, write_response
from spanreel.protocols.bedrock_invoke.packing import read_events, write_events
from spanreel.protocols.frames import Header, read_frames, write_frame
from spanreel.protocols.residue import parse_object, read_json, write_json
from spanreel.protocols.sse import Event, read_object

__all__ = ["join", "read_request", "read_response", "split", "write_request", "write_response"]

NAMED: Final = "$named"
"""In a request's ``provider_fields``: settings of Converse by name, and the names that they had."""

_CONFIG: Final = "inferenceConfig"
_NAMES: Final = {"max_new_tokens": "maxTokens", "top_p": "topP", "top_k": "topK", "stop_sequences": "stopSequences"}
_KIND: Final = ":event-type"
_OTHER: Final = "other"
"""A header of ours: what stood beside an event in its frame, and what padded it."""
_RAW: Final = "raw"


def read_request(body: bytes, operation: Operation) -> Request:
    """Read a request; ValueError where it is no object with a list of messages."""
    wire = parse_object(body, f"{bedrock.NAME} request")
    config = wire.get(_CONFIG)
    config = config if isinstance(config, dict) else {}
    named = {_NAMES[name]: name for name in config if name in _NAMES}
    named = {known: name for known, name in named.items() if known not in config}
    if not named:
        return bedrock.read_request(body, operation)
    renamed = {known: config[name] for known, name in named.items()}
    rest = {name: value for name, value in config.items() if name not in named.values()}
    request = bedrock.read_request(write_json({**wire, _CONFIG: {**rest, **renamed}}), operation)
    return replace(request, provider_fields={**request.provider_fields, NAMED: named})


def write_request(request: Request) -> bytes:
    """Write a request."""
    written, named = bedrock.write_request(request), request.provider_fields.get(NAMED)
    if not isinstance(named, dict):
        return written
    wire = parse_object(written, bedrock.NAME)
    config = wire.get(_CONFIG)
    if isinstance(config, dict):
        wire[_CONFIG] = {str(named.get(name, name)): value for name, value in config.items()}
    return write_json(wire)


def join(pieces: Sequence[Piece]) -> Answer:
    """Read a streamed body, whole or cut off; ValueError where it holds no frame at all."""
    return bedrock.join([(event.time, _as_frame(event)) for event in read_events(pieces)])


def split(answer: Answer) -> list[Piece]:
    """Write an answer as a stream: as its chunks say, where they still carry what it holds; else as Bedrock would."""
    return write_events((time, _as_event(frame)) for time, frame in bedrock.split(answer))


def _as_frame(event: Event) -> bytes:
    """The frame that Converse would send; a frame that holds no event of it stays in one as it came."""
    fields = read_object(event)
    kind = next((name for name, value in (fields or {}).items() if isinstance(value, dict)), None)
    if fields is None or kind is None:
        return write_frame(((_RAW, event.data or ""), *((_OTHER, line) for line in event.other)), b"")
    beside: list[Json] = [{name: value for name, value in fields.items() if name != kind}, *event.other]
    headers: list[Header] = [
        *((_KIND, kind), (":content-type", "application/json"), (":message-type", "event")),
        *([] if beside == [{}] else [(_OTHER, write_json(beside).decode())]),
    ]
    return write_frame(headers, write_json(fields[kind]))


def _as_event(written: bytes) -> Event:
    """The inverse of `_as_frame`."""
    (frame,) = read_frames([(0.0, written)])
    headers = list(frame.headers or ())
    if headers and headers[0][0] == _RAW:
        return Event(0.0, data=headers[0][1] or None, other=tuple(value for _, value in headers[1:]))
    told = dict(headers)
    beside, *other = read_json(told[_OTHER]) if _OTHER in told else [{}]
    fields = {told[_KIND]: read_json(frame.payload), **beside}
    return Event(0.0, data=write_json(fields).decode(), other=tuple(other))
