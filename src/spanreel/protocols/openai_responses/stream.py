"""Streams of OpenAI responses: joined into the response they amount to, and cut again as they were.

An event is recorded as ``[milliseconds, type, fields]``: what differs from the last event of its type, without what the
response holds; or, where it is no event of ours, as ``[milliseconds, {"$event": ...}]``. Those that repeat the event
before them have one chunk (`protocols.chunks`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from spanreel.exchange import Piece
from spanreel.model import Answer, Json
from spanreel.protocols.chunks import Chunks, each, read_back
from spanreel.protocols.openai_errors import write_error
from spanreel.protocols.openai_responses.answers import read_body, write_body
from spanreel.protocols.openai_responses.events import Hider, Joined, spots
from spanreel.protocols.openai_responses.synthesis import cut
from spanreel.protocols.repeats import Fields, Item, Repeats, find, read, said
from spanreel.protocols.residue import overlay, residue, same, write_json
from spanreel.protocols.sse import Event, frame, rebuild, reframe, write_event
from spanreel.protocols.typed_events import kind_of, read_fields

# What a response holds itself; these are recorded with each event, not against the event before.
_OBJECTS: Final = ("response", "item", "part")


def join(pieces: Sequence[Piece]) -> Answer:
    """Read a streamed body, whole or cut off; ValueError where it holds no event at all."""
    items = list(read(pieces, read_fields, spots))
    if not items:
        raise ValueError("openai_responses stream: holds no event")
    joined = Joined()
    for fields in said(items):
        joined.add(fields)
    answer = read_body(joined.body())
    chunks = _record(items, joined, write_body(answer))
    return replace(answer, streamed=True, complete=joined.ended, chunks=chunks)


def split(answer: Answer) -> list[Piece]:
    """Write an answer as a stream: as its chunks say, where they still carry what it holds; else as OpenAI would."""
    if answer.status >= 400:
        return [(0.0, write_error(answer))]
    body = write_body(answer)
    events = _restore(answer.chunks, body)
    if events is None:
        events = [Event(0.0, kind_of(fields), write_json(fields).decode()) for fields in cut(body)]
    return [(event.time, write_event(event)) for event in events]


def _record(items: Sequence[Item], joined: Joined, body: Mapping[str, Json]) -> tuple[list[Json], ...]:
    """The chunks that say how the events were cut."""
    output = body.get("output")
    whole = frozenset(place for place, texts in joined.texts.items() if (find(output, place) or "") == "".join(texts))
    hider = Hider(body, whole)
    chunks = Chunks(_write, spots, kind_of)
    last: Fields = {}
    framed: Sequence[Json] = ()
    for item in items:
        if isinstance(item, Repeats):
            repeats = hider.number(item)
            if chunks.can_repeat(repeats):
                hider.skip(len(repeats.times))
                chunks.repeats(repeats)
                continue
            for time, repeated in each(item, last):
                chunks.event(time, hider.hide(repeated), framed)
        elif item[1] is None:
            chunks.other(item[0])
        else:
            event, last = item[0], item[1]
            framed = frame(event, kind_of(last) or None)
            chunks.event(event.time, hider.hide(last), framed)
    return chunks.finish()


def _write(hidden: Fields, before: Fields | None) -> list[Json]:
    kind = kind_of(hidden)
    return [kind, {**residue(_plain(hidden), _plain(before or {"type": kind})), **_objects(hidden)}]


def _restore(chunks: Sequence[list[Json]], body: Mapping[str, Json]) -> list[Event] | None:
    """The events that chunks record; None where there are none, or they do not add up to the answer (any more)."""
    hidden = read_back(chunks, _read_back, kind_of)
    if hidden is None:
        return None
    hider = Hider(body)
    hider.count(fields for _, fields, around in hidden if around is not None)
    joined = Joined()
    events = []
    for time, recorded, around in hidden:
        if around is not None:
            shown = hider.show(recorded)
            joined.add(shown)
            events.append(reframe(Event(time, kind_of(shown) or None, write_json(shown).decode()), around))
        else:
            events.append(rebuild(time, recorded))
    return events if chunks and same(joined.body().get("output", []), body.get("output", [])) else None


def _read_back(written: list[Json], before: Mapping[str, Fields]) -> tuple[Fields, list[Json]] | None:
    match written:
        case [str() as kind, dict() as fields, *added]:
            known = before.get(kind, {"type": kind})
            return {**overlay(_plain(known), _plain(fields)), **_objects(fields)}, added
    return None


def _plain(fields: Mapping[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in fields.items() if key not in _OBJECTS}


def _objects(fields: Mapping[str, Json]) -> dict[str, Json]:
    return {key: fields[key] for key in _OBJECTS if key in fields}
