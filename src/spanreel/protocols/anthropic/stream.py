"""Streams of Anthropic messages: joined into the message they amount to, and cut again as they were.

An event is recorded as ``[milliseconds, type, fields]`` without what the message holds, a delta without what the delta
before it had; or, where it is no event of ours, as ``[milliseconds, {"$event": ...}]``. Those that repeat the event
before them have one chunk (`protocols.chunks`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spanreel.exchange import Piece
from spanreel.model import Answer, Json
from spanreel.protocols.anthropic.answers import read_body, write_body, write_failure
from spanreel.protocols.anthropic.blocks import read_input
from spanreel.protocols.anthropic.events import DELTA, Hider, Joined, Positions, spots
from spanreel.protocols.anthropic.synthesis import cut
from spanreel.protocols.chunks import Chunks, Hidden, read_back
from spanreel.protocols.openai_errors import write_error
from spanreel.protocols.repeats import Fields, Item, Repeats, read, said
from spanreel.protocols.residue import EXACT, overlay, residue, same, write_arguments, write_json
from spanreel.protocols.sse import Event, frame, rebuild, reframe, write_event
from spanreel.protocols.typed_events import kind_of, read_fields


def join(pieces: Sequence[Piece]) -> Answer:
    """Read a streamed body, whole or cut off; ValueError where it holds no event at all."""
    items = list(read(pieces, read_fields, spots))
    if not items:
        raise ValueError("anthropic_messages stream: holds no event")
    joined = Joined()
    for fields in said(items):
        joined.add(fields)
    answer = read_body(joined.body())
    return replace(answer, streamed=True, complete=joined.ended, chunks=_record(items, joined, answer))


def split(answer: Answer) -> list[Piece]:
    """Write an answer as a stream: as its chunks say, where they still carry what it holds; else as Anthropic would."""
    if answer.status >= 400:
        return [(0.0, write_error(answer, write_failure))]
    events = _restore(answer)
    if events is None:
        fields = cut(write_body(answer), _inputs(answer, {}))
        events = [Event(0.0, kind_of(event), write_json(event).decode()) for event in fields]
    return [(event.time, write_event(event)) for event in events]


def _inputs(answer: Answer, forms: Mapping[int, Json]) -> dict[int, str]:
    """The texts of what the answer's tools are called with, by position."""
    parts = [part for message in answer.messages for part in message["parts"]]
    return {
        position: write_arguments(value, forms.get(position))
        for position, part in enumerate(parts)
        if (value := read_input(part)) is not None
    }


def _record(items: Sequence[Item], joined: Joined, answer: Answer) -> tuple[list[Json], ...]:
    """The chunks that say how the events were cut."""
    hider = Hider(write_body(answer), _inputs(answer, joined.forms), joined.texts)
    positions = Positions()
    chunks = Chunks(_write, spots, kind_of)
    for item in items:
        if isinstance(item, Repeats):
            chunks.repeats(item)
            continue
        event, fields = item
        if fields is None:
            chunks.other(event)
            continue
        kind, position = kind_of(fields), positions.find(fields)
        hidden = hider.hide(fields)
        form = joined.forms.get(position) if position is not None and kind == "content_block_start" else None
        if form is not None:
            hidden[EXACT] = form
        chunks.event(event.time, hidden, frame(event, kind or None))
    return chunks.finish()


def _write(hidden: Fields, before: Fields | None) -> list[Json]:
    kind = kind_of(hidden)
    if kind == DELTA:
        return [kind, residue(hidden, before or {"type": DELTA})]
    return [kind, {key: value for key, value in hidden.items() if key != "type" or not kind}]


def _restore(answer: Answer) -> list[Event] | None:
    """The events that chunks record; None where there are none, or they do not add up to the answer (any more)."""
    positions = Positions()
    forms: dict[int, Json] = {}

    def read_event(written: list[Json], before: Mapping[str, Fields]) -> tuple[Fields, list[Json]] | None:
        match written:
            case [str() as kind, dict() as fields, *added]:
                if kind == DELTA:
                    event = overlay(before.get(DELTA, {"type": DELTA}), fields)
                else:
                    event = {**({"type": kind} if kind else {}), **fields}
                position, form = positions.find(event), event.pop(EXACT, None)
                if position is not None and form is not None:
                    forms[position] = form
                return event, added
        return None

    hidden = read_back(answer.chunks, read_event, kind_of)
    return _show(hidden, write_body(answer), _inputs(answer, forms)) if hidden else None


def _show(
    hidden: Sequence[Hidden],
    body: Mapping[str, Json],
    inputs: Mapping[int, str],
) -> list[Event] | None:
    hider = Hider(body, inputs)
    hider.count(fields for _, fields, added in hidden if added is not None)
    joined = Joined()
    events = []
    for time, fields, added in hidden:
        if added is not None:
            shown = hider.show(fields)
            joined.add(shown)
            events.append(reframe(Event(time, kind_of(shown) or None, write_json(shown).decode()), added))
        else:
            events.append(rebuild(time, fields))
    return events if same(joined.body().get("content", []), body.get("content", [])) else None
