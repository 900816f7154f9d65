"""The record of how a stream was cut, for protocols whose answers grow at places that can be told event by event.

A chunk is ``[milliseconds, fields, lengths, places?, around?]``: the fields are what differs from the event before,
without the pieces of the answer that the event brought; their lengths (None for a value that came whole) stand apart,
and with them, where it is not as in the event before, ``[place in the event, place in the answer]`` of each. What is
said thus stands once, in the answer, and what is redacted there is redacted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from spanreel.model import Json
from spanreel.protocols.repeats import Fields, Path, find, put
from spanreel.protocols.residue import overlay, residue, same, write_json
from spanreel.protocols.sse import EVENT, Event, describe, rebuild, reframe

Spot = tuple[Path, Path]
"""Where a piece stands in an event, and where in the answer what it is a piece of."""


@dataclass(frozen=True, slots=True)
class Woven:
    """An event of the protocol's; ``around`` are the lines around it, as `sse.frame` gives them."""

    time: float
    fields: dict[str, Json]
    spots: Sequence[Spot] = ()
    around: Sequence[Json] = field(default=())


Item = Woven | Event
"""An event of a stream; as it came where it is none of the protocol's."""


def as_event(item: Item) -> Event:
    """The event as it is sent, with the lines around it."""
    if isinstance(item, Event):
        return item
    return reframe(Event(item.time, data=write_json(item.fields).decode()), item.around)


class Growing(Protocol):
    """An answer in the making."""

    def add(self, fields: Fields, /) -> Sequence[Spot]:
        """Take in one event; where the pieces stand that it brought."""
        ...

    def body(self) -> Fields:
        """The answer, as it is written plain."""
        ...


def amounts_to(body: Fields, names: Sequence[str], growing: Growing, events: Sequence[Fields]) -> bool:
    """Whether events come to an answer, as far as these members of it say."""
    for fields in events:
        growing.add(fields)
    came = growing.body()
    return all(same(came.get(name), body.get(name)) for name in names)


def record(items: Sequence[Item], body: Json) -> tuple[list[Json], ...]:
    """The chunks of these events, which came to this answer, as it is written plain."""
    whole = _whole(items, body)
    chunks: list[list[Json]] = []
    before: dict[str, Json] = {}
    stood: list[Json] = []
    for item in items:
        if isinstance(item, Event):
            chunks.append([item.time, {EVENT: describe(item)}])
            continue
        hidden: dict[str, Json] = item.fields
        places: list[Json] = []
        lengths: list[Json] = []
        for at, of in item.spots:
            if of in whole:
                value = find(item.fields, at)
                hidden = put(hidden, at, None)
                places.append([list(at), list(of)])
                lengths.append(len(value) if isinstance(value, str) else None)
        standing = [] if places == stood else [places]
        chunks.append([item.time, residue(hidden, before), lengths, *standing, *item.around])
        before, stood = hidden, places
    return tuple(chunks)


def restore(chunks: Sequence[list[Json]], body: Json, came_to: Callable[[Sequence[Fields]], bool]) -> list[Item] | None:
    """The events of a record with the pieces of this answer; None where it records none, or not this answer (any more).

    ``came_to`` says whether events with these fields amount to the answer. The last piece of a text is all that is left
    of it: what was redacted since may be longer or shorter than its cuts.
    """
    if not chunks:
        return None
    items = _restored(chunks, body)
    fields = [item.fields for item in items or () if isinstance(item, Woven)]
    return items if items is not None and came_to(fields) else None


def _restored(chunks: Sequence[list[Json]], body: Json) -> list[Item] | None:
    try:
        items = _read_back(chunks)
        left = Counter(of for item in items if isinstance(item, Woven) for _, of in item.spots)
        at = Counter[Path]()
        return [item if isinstance(item, Event) else _shown(item, body, left, at) for item in items]
    except (LookupError, TypeError, ValueError, AttributeError):
        return None


def _whole(items: Sequence[Item], body: Json) -> set[Path]:
    """The places in the answer that hold all of what came for them, and nothing else."""
    came: dict[Path, list[Json]] = {}
    for item in items:
        if isinstance(item, Woven):
            for at, of in item.spots:
                came.setdefault(of, []).append(find(item.fields, at))
    return {of for of, pieces in came.items() if same(find(body, of), _together(pieces))}


def _together(pieces: list[Json]) -> Json:
    if len(pieces) == 1:
        return pieces[0]
    return "".join(pieces) if all(isinstance(piece, str) for piece in pieces) else None


def _read_back(chunks: Sequence[list[Json]]) -> list[Item]:
    """The events, with nothing in the places of pieces; the lengths stand behind the places, for `_shown`."""
    items: list[Item] = []
    before: dict[str, Json] = {}
    stood: Sequence[Json] = ()
    for time, fields, *rest in chunks:
        if EVENT in fields:
            items.append(rebuild(time, fields[EVENT]))
            continue
        lengths, *others = rest
        if others and isinstance(others[0], list):
            stood, *others = others
        before = overlay(before, fields)
        spots = [((*at, length), tuple(of)) for (at, of), length in zip(stood, lengths, strict=True)]
        items.append(Woven(time, before, spots, others))
    return items


def _shown(item: Woven, body: Json, left: Counter[Path], at: Counter[Path]) -> Woven:
    fields: Json = item.fields
    for (*place, length), of in item.spots:
        value = find(body, of)
        left[of] -= 1
        if isinstance(value, str) and isinstance(length, int):
            start, at[of] = at[of], at[of] + length
            value = value[start : start + length] if left[of] else value[start:]
        fields = put(fields, tuple(place), value)
    return Woven(item.time, fields, item.spots, item.around)
