"""The record of how a stream was cut, as protocols write it: the texts in its events, which may be pieces of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from operator import mul
from typing import Any, Final

from spanreel.model import Json
from spanreel.text_pieces import INDEXES, Path, TextPiece, differ, texts_in

REPEATS: Final = "$repeats"
"""Stands in the place of events that repeat the one before them (`protocols.chunks`)."""
ABSENT: Final = "$absent"
"""Under this stand the names of members that an event has not (`protocols.residue`)."""
_MOST_COPIES: Final = 4
_NUMBERS: Final = frozenset({int, float, bool, type(None)})


class Gathered:
    """The texts of a record by their places: what is found in a moment, and is enough for nearly all of them."""

    def __init__(self) -> None:
        self._root: dict[str, Any] = {}
        self._texts: list[tuple[list[str], list[int]]] = []
        self._alternate = False
        self._event = 0

    def read(self, chunks: Sequence[Json]) -> bool:
        """Take in a record; whether `wholes` are all that may be spelled there."""
        events: Counter[str] = Counter()
        kind = ""
        for chunk in chunks:
            if type(chunk) is not list or len(chunk) < 2:
                return False
            kind = _kind_of(chunk[1]) or kind
            events[kind] += 1
            self._event = events[kind]
            for part in chunk[1:]:
                if type(part) is dict:
                    if REPEATS not in part:
                        self._gather(part, self._root)
                    elif not self._unroll(part):
                        return False
        return not self._alternate or not any(differ(pieces) for pieces, _ in self._texts)

    def wholes(self) -> Iterator[str]:
        """What the texts at each place are together."""
        for pieces, events in self._texts:
            if differ(pieces):
                yield "".join(pieces)
                if events[-1] - events[0] >= len(events):
                    yield "".join(map(mul, pieces, copies(events)))

    def _gather(self, value: Json, node: dict[str, Any]) -> None:
        for key, item in value.items() if type(value) is dict else [("", item) for item in value]:
            kind = type(item)
            if kind is str:
                if key != "type":
                    pieces, events = self._at(node, key)
                    pieces.append(item)
                    events.append(self._event)
            elif kind is int:
                if key[-5:] in INDEXES:
                    self._index(node.setdefault(f"#{key}", []), item)
            elif (kind is dict or kind is list) and item and key != ABSENT:
                child = node.get(key)
                if child is None:
                    child = node[key] = {}
                self._gather(item, child)

    def _at(self, node: dict[str, Any], key: str) -> tuple[list[str], list[int]]:
        found: tuple[list[str], list[int]] | None = node.get(f"={key}")
        if found is None:
            found = node[f"={key}"] = [], []
            self._texts.append(found)
        return found

    def _index(self, came: list[int], index: int) -> None:
        """Note an index; texts alternate where one comes again after another."""
        if not came or came[-1] != index:
            self._alternate = self._alternate or index in came
            came.append(index)

    def _unroll(self, part: Mapping[str, Json]) -> bool:
        """Take in repeats; whether that can be done in a moment."""
        try:
            for steps, column in part[REPEATS]["values"]:
                kinds = set(map(type, column.values() if type(column) is dict else column))
                if kinds == {str} and type(column) is list:
                    node = self._root
                    for step in steps[:-1]:
                        node = node.setdefault(step if type(step) is str else "", {})
                    pieces, events = self._at(node, steps[-1] if type(steps[-1]) is str else "")
                    pieces.extend(column)
                    events.extend([self._event] * len(column))
                elif not kinds <= _NUMBERS:
                    return False
        except (LookupError, TypeError, ValueError, AttributeError):
            return False
        return True


def copies(events: Sequence[int]) -> list[int]:
    """How often the texts came that events of these numbers brought: what is as before is not written again."""
    return [*(min(max(after - event, 1), _MOST_COPIES) for event, after in pairwise(events)), 1]


def recorded(chunks: Sequence[Json], numbers: Iterator[int]) -> Iterator[TextPiece]:
    """The texts of a record; numbered as `rebuilt` comes by them."""
    events: Counter[str] = Counter()
    stood: dict[str, dict[Path, Path]] = {}
    among: dict[Path, Path] = {}
    kind = ""
    for chunk in chunks:
        told: Any = chunk[1] if isinstance(chunk, list) and len(chunk) > 1 else None
        kind = _kind_of(told) or kind
        events[kind] += 1
        indexes = stood.setdefault(kind, {})
        for number, text, path, places in texts_in(chunk, (), numbers, told=False):
            if len(path) < 2 or path[-1] == "type" or ABSENT in path:
                continue
            if path[:2] == (1, REPEATS):
                place = _place_of_column(told, path)
                yield TextPiece(number, _whole_column(told, path, text), place, among.get(place, ()), events[kind])
                continue
            for depth, found in places:
                indexes[path[:depth]] = found
            inside = tuple(one for depth in range(len(path)) for one in indexes.get(path[:depth], ()))
            among[path[1:]] = inside
            yield TextPiece(number, text, path[1:], inside, events[kind])


def _kind_of(told: Json) -> str:
    kind = told.get("type") if isinstance(told, dict) else told
    return kind if isinstance(kind, str) else ""


def _place_of_column(told: Mapping[str, Json], path: Path) -> Path:
    """The place, in an event, of what repeats have in a column; what is no such column stands where it stands."""
    try:
        _, _, values, number, inside, *rest = path
        steps, _ = told[REPEATS][values][number]
        return (*steps, *(step for step in rest[1:] if step != "all")) if inside == 1 else path
    except (LookupError, TypeError, ValueError):
        return path


def _whole_column(told: Mapping[str, Json], path: Path, text: str) -> str:
    """The text as often as it comes."""
    if path[-1] != "all":
        return text
    after = told[REPEATS].get("after")
    return text * (len(after) + 1) if isinstance(after, list) else text
