"""The record of how a stream was cut: a chunk an event, and one for all events that repeat the one before them.

What repeats is decided by what is recorded of the events, never by how they were written: the same events make the same
record. A chunk of repeats is ``[milliseconds, {"$repeats": {"after": [...], "values": [[path, column], ...]}}]``: the
time of the first, the microseconds from each to the next, and by path what differs from the event before: a list, or
``{"all": value}``, or ``{"from": number, "by": number}``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from operator import sub
from typing import Any, Final

from spanreel.model import Json
from spanreel.protocols.repeats import Fields, Path, Repeats, Spots, find, put
from spanreel.protocols.residue import same
from spanreel.protocols.sse import EVENT, Event, describe

REPEATS: Final = "$repeats"
"""In a recorded chunk: events that repeat the one before them, ``{"after", "values"}``."""

Hidden = tuple[float, Fields, Sequence[Json] | None]
"""The time of a recorded event, what is recorded of it, and of the lines around it; None where it is of other form."""

LEAST: Final = 3
"""Fewer repeats have a chunk each."""


class Chunks:
    """A record in the making. ``write(event, before)`` gives an event's chunk but for its time.

    ``before`` is the last event of its kind, as ``kind_of`` tells.
    """

    def __init__(
        self, write: Callable[[Fields, Fields | None], list[Json]], spots: Spots, kind_of: Callable[[Fields], str]
    ) -> None:
        self.written: list[list[Json]] = []
        self._write = write
        self._spots = spots
        self._kind_of = kind_of
        self._before: dict[str, Fields] = {}
        self._last: Fields | None = None
        self._framed: Sequence[Json] = ()
        self._times: list[int] = []
        self._columns: dict[Path, list[Json]] = {}

    def other(self, event: Event) -> None:
        """Add an event that is none of the protocol's."""
        self._close()
        self._last = None
        self.written.append([event.time, {EVENT: describe(event)}])

    def event(self, time: float, fields: Fields, framed: Sequence[Json]) -> None:
        """Add an event, as what is to be recorded of it."""
        last = self._last
        if last is not None and fields.keys() == last.keys() and framed == self._framed:
            paths = tuple(self._spots(fields))
            if paths and paths == tuple(self._spots(last)) and same(_without(fields, paths), _without(last, paths)):
                self._extend([round(time * 1000)], {path: [find(fields, path)] for path in paths})
                return
        self._close()
        self._append(time, fields, framed)
        self._last, self._framed = fields, framed

    def repeats(self, repeats: Repeats) -> None:
        """Add repeats of the event before; their texts are recorded as its was: as lengths, or raw."""
        hidden = {path: _hidden(find(self._last, path), column) for path, column in repeats.columns.items()}
        self._extend(repeats.times, hidden)

    def can_repeat(self, repeats: Repeats) -> bool:
        """Whether these would be repeats of the event before, as it is recorded."""
        return self._last is not None and set(self._spots(self._last)) == repeats.columns.keys()

    def finish(self) -> tuple[list[Json], ...]:
        """The record."""
        self._close()
        return tuple(self.written)

    def _extend(self, times: Sequence[int], columns: Mapping[Path, Sequence[Json]]) -> None:
        if not self._times and self._last is not None:
            self._columns = {path: [] for path in self._spots(self._last)}
        self._times += times
        for path, column in self._columns.items():
            column.extend(columns[path])

    def _append(self, time: float, fields: Fields, framed: Sequence[Json]) -> None:
        kind = self._kind_of(fields)
        self.written.append([time, *self._write(fields, self._before.get(kind)), *framed])
        self._before[kind] = fields

    def _close(self) -> None:
        """Write the repeats that were added; the last of them is what the next event may repeat."""
        times, columns, last = self._times, self._columns, self._last
        if last is None or not times:
            return
        if len(times) < LEAST:
            for time, fields in _rows(last, times, columns):
                self._append(time / 1000, fields, self._framed)
        else:
            after: list[Json] = list(map(sub, times[1:], times))
            values: list[Json] = [[list(path), _pack(column)] for path, column in columns.items()]
            self.written.append([times[0] / 1000, {REPEATS: {"after": after, "values": values}}])
            for path, column in columns.items():
                last = put(last, path, column[-1])
            self._before[self._kind_of(last)] = last
        self._times = []


def read_back(
    chunks: Sequence[list[Json]],
    read: Callable[[list[Json], Mapping[str, Fields]], tuple[Fields, list[Json]] | None],
    kind_of: Callable[[Fields], str],
) -> list[Hidden] | None:
    """The events of a record; None where a chunk says none.

    ``read(written, before)`` undoes what the record was written with: it gives the event and what stands around it.
    ``before`` are the last events by kind.
    """
    hidden: list[Hidden] = []
    before: dict[str, Fields] = {}
    for chunk in chunks:
        match chunk:
            case [int() | float() as time, {"$event": dict() as described}]:
                hidden.append((float(time), described, None))
                continue
            case [_, {"$repeats": _}]:
                repeats = _unroll(chunk, hidden)
                if not repeats:
                    return None
                hidden += repeats
            case [int() | float() as time, *written]:
                found = read(written, before)
                if found is None:
                    return None
                fields, around = found
                hidden.append((float(time), fields, around))
            case _:
                return None
        before[kind_of(hidden[-1][1])] = hidden[-1][1]
    return hidden


def _unroll(chunk: Sequence[Json], hidden: Sequence[Hidden]) -> list[Hidden]:
    """The events that a chunk of repeats stands for, after those before them; none where it says no such thing."""
    if not hidden or hidden[-1][2] is None:
        return []
    _, before, around = hidden[-1]
    try:
        repeats = chunk[1][REPEATS]
        times = list(accumulate(repeats["after"], initial=round(chunk[0] * 1000)))
        columns = {tuple(path): _unpack(column, len(times)) for path, column in repeats["values"]}
        return [(time / 1000, fields, around) for time, fields in _rows(before, times, columns)]
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        return []


def each(repeats: Repeats, fields: Fields) -> Iterator[tuple[float, Fields]]:
    """The events that repeat one, each with its time."""
    for time, repeated in _rows(fields, repeats.times, repeats.columns):
        yield time / 1000, repeated


def _hidden(before: Json, column: Sequence[Json]) -> Sequence[Json]:
    """The values of repeats as they are recorded, of the event before it is so."""
    if isinstance(before, dict):
        (raw,) = before
        return [{raw: value} for value in column]
    return list(map(len, column)) if type(before) is int and isinstance(column[0], str) else column


def _rows(fields: Fields, times: Sequence[int], columns: Mapping[Path, Sequence[Json]]) -> Iterator[tuple[int, Fields]]:
    for number, time in enumerate(times):
        for path, column in columns.items():
            fields = put(fields, path, column[number])
        yield time, fields


def _without(fields: Fields, paths: Sequence[Path]) -> Fields:
    for path in paths:
        fields = put(fields, path, None)
    return fields


def _pack(column: list[Json]) -> Json:
    """A column, shorter where all are the same or it counts up."""
    first, last, count = column[0], column[-1], len(column)
    if isinstance(first, (list, dict, float)) or type(first) is not type(last):
        return column
    if column.count(first) == count and len(set(map(type, column))) == 1:
        return {"all": first}
    if type(first) is int and type(last) is int and set(map(type, column)) == {int}:
        step, rest = divmod(last - first, count - 1)
        if step and not rest and column == list(range(first, last + (1 if step > 0 else -1), step)):
            return {"from": first, "by": step}
    return column


def _unpack(column: Json, count: int) -> Sequence[Any]:
    if isinstance(column, list):
        return column
    if "all" in column:
        return [column["all"]] * count
    return range(column["from"], column["from"] + column["by"] * count, column["by"])
