"""Objects of a shape that was read before: what reading made of that shape, with what is new filled in.

A client's bodies differ in few places: ids, times, what was said. Reading hands these through as they are, which is
declared of each by the name it stands under (``free``). So a shape is read once with marks in these places, and where
the marks turn up is where the texts of all others of this shape belong. Before that is relied on, it is compared with
what reading makes of the object at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from operator import itemgetter
from typing import Any, Final, Generic, TypeVar

from spanreel.model import Json
from spanreel.protocols.residue import SPACED, read_arguments, write_arguments

Result = TypeVar("Result")
Fill = Callable[[list[Json]], Any]
"""Makes a result of what stands in the free places."""


class Free(Enum):
    """What of a member is handed through: texts and numbers that are not empty; objects; what `read_arguments` reads.

    Of arguments that is what they say, where that is an object, and they are written compact or SPACED.
    """

    SAID = "said"
    OBJECT = "object"
    ARGUMENTS = "arguments"


def said(*names: str) -> dict[str, Free]:
    """Members of these names are free in what they say."""
    return dict.fromkeys(names, Free.SAID)


_MOST_SHAPES: Final = 512
_MOST_MEMBERS: Final = 128
"""Members of an object and of those inside it. What has more is not likely to come again."""
_LONG: Final = 256
"""Characters of a text in a place that is not free, of which likewise."""
_MARK: Final = "\ue000%d\ue001"
_NUMBER: Final = 0x1D5F_ACE0_0000
_FORMS: Final = (None, SPACED)


class _NotToBeFilledError(Exception):
    """A shape is too large, or what it is read as does not hold what is free in it as it stood."""


class _Found(list[Json]):
    """What stands in the free places of an object, in order; ``room`` is for how many more members."""

    __slots__ = ("room",)

    room: int


class Shaped(Generic[Result]):
    """Reads objects by ``read``, those of a shape that came twice by filling in.

    What is not free in results is shared: nobody may change them.
    """

    def __init__(self, read: Callable[[dict[str, Json]], Result], free: Mapping[str, Free]) -> None:
        self._read = read
        self._free = free
        self._known: dict[Any, Fill | None] = {}
        self._came_once: set[Any] = set()

    def __call__(self, value: dict[str, Json]) -> Result:
        """The object, read."""
        found = _Found()
        found.room = _MOST_MEMBERS
        try:
            shape = _shape_of(value, self._free, found)
        except _NotToBeFilledError:
            return self._read(value)
        try:
            fill = self._known[shape]
        except KeyError:
            return self._learn(value, shape, found)
        result: Result = self._read(value) if fill is None else fill(found)
        return result

    def _learn(self, value: dict[str, Json], shape: Any, found: list[Json]) -> Result:
        """Read the object; where its shape has come before, note how results of it are made."""
        result = self._read(value)
        if shape not in self._came_once:
            _make_room(self._came_once)
            self._came_once.add(shape)
            return result
        _make_room(self._known)
        self._known[shape] = None
        fill = self._fill_of(value, found)
        if fill is not None and _alike(fill(found), result):
            self._known[shape] = fill
        return result

    def _fill_of(self, value: dict[str, Json], found: list[Json]) -> Fill | None:
        """What makes results like that of the object; None where they have to be read."""
        marks = [_mark_for(one, number) for number, one in enumerate(found)]
        places = {next(iter(mark)) if type(mark) is dict else mark: number for number, mark in enumerate(marks)}
        try:
            template = self._read(_marked(value, self._free, iter(marks)))
            return _filling(template, places) or (lambda _: template)
        except (_NotToBeFilledError, ValueError):
            return None


def _make_room(known: dict[Any, Any] | set[Any]) -> None:
    if len(known) >= _MOST_SHAPES:
        known.clear()


def _shape_of(value: dict[str, Json], free: Mapping[str, Free], found: _Found) -> tuple[Any, ...]:
    """The object but for what is free in it, which is added to ``found``."""
    found.room -= len(value)
    if found.room < 0:
        raise _NotToBeFilledError
    shape: list[Any] = [dict]
    for name, part in value.items():
        kind = type(part)
        what = free.get(name) if part else None
        if what is Free.SAID and (kind is str or kind is int or kind is float):
            found.append(part)
            shape += (name, kind)
        elif what is Free.ARGUMENTS and kind is str and (form := _form_of(part, found)) is not None:
            shape += (name, form)
        elif what is Free.OBJECT and kind is dict:
            found.append(part)
            shape += (name, kind)
        elif kind is dict:
            shape += (name, _shape_of(part, free, found))
        elif kind is list:
            shape += (name, _shape_of_list(part, free, found))
        elif kind is str and len(part) > _LONG:
            raise _NotToBeFilledError
        else:
            shape += (name, kind, repr(part) if kind is float else part)
    return tuple(shape)


def _shape_of_list(values: list[Json], free: Mapping[str, Free], found: _Found) -> tuple[Any, ...]:
    found.room -= len(values)
    if found.room < 0:
        raise _NotToBeFilledError
    shape: list[Any] = [list]
    for value in values:
        if type(value) is dict:
            shape.append(_shape_of(value, free, found))
        elif type(value) is list:
            shape.append(_shape_of_list(value, free, found))
        elif type(value) is str and len(value) > _LONG:
            raise _NotToBeFilledError
        else:
            shape += (type(value), repr(value) if type(value) is float else value)
    return tuple(shape)


def _form_of(arguments: str, found: list[Json]) -> tuple[Free, str | None] | None:
    """How arguments are written, where they can be written so from what they say, which is added to ``found``."""
    value, form = read_arguments(arguments)
    if type(value) is not dict or form not in _FORMS:
        return None
    found.append(value)
    return Free.ARGUMENTS, form


def _mark_for(value: Json, number: int) -> Json:
    """What is found again in a result, of the kind of the value."""
    text = _MARK % number
    if type(value) is dict:
        return {text: number}
    return text if type(value) is str else type(value)(_NUMBER + number)


def _marked(value: dict[str, Json], free: Mapping[str, Free], marks: Iterator[Json]) -> dict[str, Json]:
    """The object with marks in its free places, in the order of `_shape_of`."""
    marked: dict[str, Json] = {}
    for name, part in value.items():
        what = free.get(name) if part else None
        if (what is Free.SAID and type(part) in (str, int, float)) or (what is Free.OBJECT and type(part) is dict):
            marked[name] = next(marks)
        elif what is Free.ARGUMENTS and type(part) is str and (form := _form_of(part, [])) is not None:
            marked[name] = write_arguments(next(marks), form[1])
        else:
            marked[name] = _marked_inside(part, free, marks)
    return marked


def _marked_inside(value: Json, free: Mapping[str, Free], marks: Iterator[Json]) -> Json:
    if type(value) is list:
        return [_marked_inside(part, free, marks) for part in value]
    return _marked(value, free, marks) if type(value) is dict else value


def _filling(node: Any, marks: Mapping[Any, int]) -> Fill | None:
    """What makes a value like the node, with others in the places of the marks; None where it has none."""
    kind = type(node)
    if kind is str or kind is int or kind is float:
        return _filling_of_leaf(node, marks)
    if isinstance(node, dict):
        if len(node) == 1 and (place := marks.get(next(iter(node)))) is not None:
            return itemgetter(place)
        for key in node:
            _filling_of_leaf(key, {})
        return _filling_of_parts(node, node.items(), marks)
    if kind is list:
        return _filling_of_parts(node, enumerate(node), marks)
    if kind is tuple:
        return _made_of(tuple, _filling(list(node), marks))
    if is_dataclass(node) and not isinstance(node, type):
        parts = _filling([getattr(node, field.name) for field in fields(node)], marks)
        return _made_of(lambda values: kind(*values), parts)
    return None


def _made_of(make: Callable[[Any], Any], parts: Fill | None) -> Fill | None:
    return None if parts is None else lambda found: make(parts(found))


def _filling_of_leaf(leaf: Json, marks: Mapping[Any, int]) -> Fill | None:
    place = marks.get(leaf)
    if place is None and type(leaf) is str and _MARK[0] in leaf:
        raise _NotToBeFilledError
    return None if place is None else itemgetter(place)


def _filling_of_parts(node: Any, parts: Iterable[tuple[Any, Any]], marks: Mapping[Any, int]) -> Fill | None:
    """Of a list or an object: a copy, in which some parts are made anew."""
    made = [(key, fill) for key, part in parts if (fill := _filling(part, marks)) is not None]
    if not made:
        return None
    copy = type(node).copy

    def filled(found: list[Json]) -> Any:
        new = copy(node)
        for key, fill in made:
            new[key] = fill(found)
        return new

    return filled


def _alike(one: Any, other: Any) -> bool:
    """Whether two results are the same, to the order of their members."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(map(_alike, one.values(), other.values()))
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_alike, one, other))
    if is_dataclass(one) and not isinstance(one, type):
        return all(_alike(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    return bool(one == other)
