"""Streams of OpenAI responses: joined into the response they amount to, and cut again as they were.

An event is recorded as ``[milliseconds, type, fields]``: what differs from the last event of its type, without what the
response holds; or, where it is no event of ours, as ``[milliseconds, {"$event": ...}]``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from spanreel.model import Answer, Json
from spanreel.point import Piece
from spanreel.protocols.openai_errors import write_error
from spanreel.protocols.openai_responses.answers import read_body, write_body
from spanreel.protocols.openai_responses.events import Hider, Joined, find
from spanreel.protocols.openai_responses.synthesis import cut
from spanreel.protocols.residue import overlay, residue, same, write_json
from spanreel.protocols.sse import EVENT, Event, describe, frame, read_events, rebuild, reframe, write_event
from spanreel.protocols.typed_events import kind_of, read_fields

# What a response holds itself; these are recorded with each event, not against the event before.
_OBJECTS: Final = ("response", "item", "part")


def join(pieces: Sequence[Piece]) -> Answer:
    """Read a streamed body, whole or cut off; ValueError where it holds no event at all."""
    events = read_events(pieces)
    if not events:
        raise ValueError("openai_responses stream: holds no event")
    read = [(event, read_fields(event)) for event in events]
    joined = Joined()
    for _, fields in read:
        if fields is not None:
            joined.add(fields)
    answer = read_body(joined.body())
    chunks = _record(read, joined, write_body(answer))
    return replace(answer, streamed=True, complete=joined.ended, chunks=tuple(chunks))


def split(answer: Answer) -> list[Piece]:
    """Write an answer as a stream: as its chunks say, where they still carry what it holds; else as OpenAI would."""
    if answer.status >= 400:
        return [(0.0, write_error(answer))]
    body = write_body(answer)
    events = _restore(answer.chunks, body)
    if events is None:
        events = [Event(0.0, kind_of(fields), write_json(fields).decode()) for fields in cut(body)]
    return [(event.time, write_event(event)) for event in events]


def _record(
    read: Sequence[tuple[Event, dict[str, Json] | None]], joined: Joined, body: Mapping[str, Json]
) -> Iterator[list[Json]]:
    """The chunks that say how the events were cut."""
    output = body.get("output")
    whole = frozenset(place for place, texts in joined.texts.items() if (find(output, place) or "") == "".join(texts))
    hider = Hider(body, whole)
    previous: dict[str, dict[str, Json]] = {}
    for event, fields in read:
        if fields is None:
            yield [event.time, {EVENT: describe(event)}]
            continue
        kind = kind_of(fields)
        hidden = hider.hide(fields)
        before = previous.get(kind, {"type": kind})
        yield [
            event.time,
            kind,
            {**residue(_plain(hidden), _plain(before)), **_objects(hidden)},
            *frame(event, kind or None),
        ]
        previous[kind] = hidden


def _restore(chunks: Sequence[list[Json]], body: Mapping[str, Json]) -> list[Event] | None:
    """The events that chunks record; None where there are none, or they do not add up to the answer (any more)."""
    previous: dict[str, dict[str, Json]] = {}
    hidden: list[tuple[float, dict[str, Json], Sequence[Json] | None]] = []
    for chunk in chunks:
        match chunk:
            case [int() | float() as time, {"$event": dict() as described}]:
                hidden.append((float(time), described, None))
            case [int() | float() as time, str() as kind, dict() as fields, *added]:
                before = previous.get(kind, {"type": kind})
                previous[kind] = {**overlay(_plain(before), _plain(fields)), **_objects(fields)}
                hidden.append((float(time), previous[kind], added))
            case _:
                return None
    hider = Hider(body)
    hider.count(fields for _, fields, around in hidden if around is not None)
    joined = Joined()
    events = []
    for time, fields, around in hidden:
        if around is not None:
            shown = hider.show(fields)
            joined.add(shown)
            events.append(reframe(Event(time, kind_of(shown) or None, write_json(shown).decode()), around))
        else:
            events.append(rebuild(time, fields))
    return events if chunks and same(joined.body().get("output", []), body.get("output", [])) else None


def _plain(fields: Mapping[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in fields.items() if key not in _OBJECTS}


def _objects(fields: Mapping[str, Json]) -> dict[str, Json]:
    return {key: fields[key] for key in _OBJECTS if key in fields}
