"""The texts in a JSON value, each with its number and its place; and the value again, with some of them masked."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from spanreel.detectors import MASK
from spanreel.model import Json

Path = tuple[int | str, ...]
INDEXES: Final = frozenset({"index", "Index"})
"""How the names of numbers end that say which of several texts a piece is of."""
_NAME: Final = re.compile(r"log_?prob", re.IGNORECASE)


class TextPiece(NamedTuple):
    """A text: its number, the place that it stands at, among what, and which event of its kind brought it."""

    number: int
    text: str
    path: Path
    among: Path
    event: int


@functools.lru_cache(4096)
def names_likelihoods(name: object) -> bool:
    """Whether a member of this name says how likely tokens are."""
    return isinstance(name, str) and _NAME.search(name) is not None


def differ(texts: Sequence[str]) -> bool:
    """Whether texts at one place are pieces, and not the same said again."""
    return len(texts) > 1 and len({*texts} - {""}) > 1


Found = tuple[int, str, Path, tuple[tuple[int, Path], ...]]


def texts_in(
    value: Json, path: Path, numbers: Iterator[int], *, told: bool, places: tuple[tuple[int, Path], ...] = ()
) -> Iterator[Found]:
    """The texts in a value, with their places and the indexes in the objects around them, by depth."""
    kind = type(value)
    if kind is str:
        yield next(numbers), value, path, places
    elif kind is list:
        for number, item in enumerate(value):
            inner = type(item)
            if inner is str or inner is dict or inner is list:
                yield from texts_in(item, (*path, number), numbers, told=told, places=places)
    elif kind is dict:
        if told and _is_of_tokens(value):
            yield from ((next(numbers), token, (*path, ""), places) for token in value)
            return
        own = tuple(one for key, one in value.items() if type(one) is int and key[-5:] in INDEXES)
        if own:
            places = (*places, (len(path), own))
        for key, item in value.items():
            inner = type(item)
            if inner is str or inner is dict or inner is list:
                likely = told or (inner is not str and names_likelihoods(key))
                yield from texts_in(item, (*path, key), numbers, told=likely, places=places)


def _is_of_tokens(value: Mapping[str, Json]) -> bool:
    """Whether the names in an object are tokens: each of a number, none of which says what it is."""
    return (
        bool(value)
        and all(type(one) in {int, float} for one in value.values())
        and not any(map(names_likelihoods, value))
    )


def rebuilt(value: Json, altered: Collection[int], numbers: Iterator[int], *, told: bool) -> Json:
    """The value with masks in the place of texts of these numbers; the very same where it has none of them."""
    if type(value) is str:
        return MASK if next(numbers) in altered else value
    if type(value) is list:
        items = [rebuilt(item, altered, numbers, told=told) for item in value]
        return value if _unaltered(items, value) else items
    if type(value) is not dict:
        return value
    if told and _is_of_tokens(value):
        left = {token: likely for token, likely in value.items() if next(numbers) not in altered}
        return value if len(left) == len(value) else left
    fields = {
        key: rebuilt(item, altered, numbers, told=told or (type(item) is not str and names_likelihoods(key)))
        for key, item in value.items()
    }
    if _unaltered(list(fields.values()), list(value.values())):
        return value
    return _concealed_beside(value, fields) if told else fields


def _unaltered(new: list[Json], old: list[Json]) -> bool:
    return all(one is other for one, other in zip(new, old, strict=True))


def _concealed_beside(value: Mapping[str, Json], fields: dict[str, Json]) -> Json:
    """An object with likelihoods, some of whose tokens were masked: without what else tells them.

    That is all of a token's own object, and what stands at its position in the lists beside that of the tokens.
    """
    if any(isinstance(item, str) and fields[key] is not item for key, item in value.items()):
        return _without_tokens(fields)
    gone = {
        (len(item), place)
        for key, item in value.items()
        if isinstance(item, list)
        for place, one in enumerate(item)
        if fields[key][place] is not one
    }
    for key, item in fields.items():
        if isinstance(item, list):
            fields[key] = [
                _without_tokens(one) if (len(item), place) in gone else one for place, one in enumerate(item)
            ]
    return fields


def _without_tokens(value: Json) -> Json:
    """What says how likely a token is, but not which."""
    if isinstance(value, str):
        return MASK
    if isinstance(value, list):
        return []
    if isinstance(value, dict):
        if _is_of_tokens(value):
            return {}
        return {key: _without_tokens(item) for key, item in value.items() if not isinstance(item, list | dict)}
    return 0 if type(value) is int and value > 0 else value
