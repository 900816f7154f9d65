"""Texts that came in pieces, beside the answer that holds them whole: in the record of a stream, and as likely tokens.

Pieces that stand at one place, but for positions in lists, are redacted as the text that they spell together. What is
redacted of it is a function's to say, which is given.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count, pairwise
from typing import Any, Final, NamedTuple

from spanreel import json_text
from spanreel.detectors import MASK
from spanreel.model import Json

Path = tuple[int | str, ...]
Redact = Callable[[str], object]
"""The text as it may leave; anything else than a text where nothing of it may."""

REPEATS: Final = "$repeats"
"""What the record of a stream has in the place of events that repeat the one before them (`protocols.chunks`)."""
_PARTIAL: Final = "partialArgs"
_LISTED: Final = frozenset({_PARTIAL, "executed_tools"})
"""What stands in answers as a list of the pieces in which it came: of Gemini's, and of Groq's."""
GLANCE: Final = r'og_?[pP]rob[A-Za-z]*\\*"\s*:\s*(?:[\[{]\s*[^\]}\s]|-?\d)|"(?:executed_tools|partialArgs)\\*"\s*:'
"""Matches wherever JSON text has texts in pieces, but for records of streams."""
_SIGNS: Final = ("ogprob", "og_prob", "ogProb", *_LISTED)
_PIECES: Final = re.compile(GLANCE)
_RECORD: Final = re.compile(r"\[\[\d+(?:\.\d+)?,(?:\{|\"[\w.]+\"[,\]])")
_NAME: Final = re.compile(r"log_?prob", re.IGNORECASE)
ABSENT: Final = "$absent"
"""Under this the record has the names of members that an event has not (`protocols.residue`)."""
_MOST_COPIES: Final = 4
_SHORTEST: Final = 6
"""Characters that no secret is shorter than."""
_MASKED: Final = json_text.encode(MASK)
_SHORT: Final = 4
"""Characters up to which pieces of a text are the same one after another, now and then."""
_INDEXES: Final = frozenset({"index", "Index"})
"""How the names of numbers end that say which of several texts a piece is of."""
_NUMBERS: Final = frozenset({int, float, bool, type(None)})
_TIMES: Final = frozenset({int, float})
_EVENTS: Final = frozenset({dict, str})
"""A chunk begins with its time, and then what its event says, or of what type that is."""


class _Piece(NamedTuple):
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


@functools.lru_cache(4096)
def may_spell(name: object) -> bool:
    """Whether a member of this name may hold a text in pieces."""
    return name == "parts" or name in _LISTED or names_likelihoods(name)


def spells(text: str, redact: Redact) -> bool:
    """Whether something may not leave that texts in a JSON text spell together, or may be so: examine it whole."""
    if any(sign in text for sign in _SIGNS) and _PIECES.search(text) is not None:
        return True
    if text[:2] != "[[" or _RECORD.match(text) is None:
        return False
    try:
        record: list[Json] = json_text.decode(text)
    except ValueError:
        return False
    gathered = _Gathered()
    if gathered.read(record):
        return any(redact(whole) != whole for whole in gathered.wholes())
    return without_pieces(record, redact) is not record


def spelling(text: str, redact: Redact) -> frozenset[str]:
    """The texts in the JSON text of a record that spell together what may not leave; but for the shortest of them."""
    if text[:2] != "[[" or not spells(text, redact):
        return frozenset()
    record: list[Json] = json_text.decode(text)
    pieces = list(_recorded(record, count()))
    altered = _altered(pieces, redact)
    return frozenset(piece.text for piece in pieces if piece.number in altered and len(piece.text) > _SHORT)


def without_told(value: str, texts: frozenset[str]) -> str:
    """An attribute without these texts, of which it may be one, or JSON in which some stand."""
    if value in texts:
        return MASK
    clean = value
    for text in texts:
        clean = clean.replace(json_text.encode(text), _MASKED)
    return value if clean == value else clean


class _Gathered:
    """The texts of a record by their places: what is found in a moment, and is enough for nearly all of them."""

    def __init__(self) -> None:
        self._root: dict[str, Any] = {}
        self._texts: list[list[str]] = []
        self._indexes: dict[str, int] = {}
        self._alternate = False

    def read(self, chunks: Sequence[Json]) -> bool:
        """Take in a record; whether `wholes` are all that may be spelled there."""
        for chunk in chunks:
            for part in chunk[1:] if type(chunk) is list else ():
                if type(part) is dict and not (
                    self._repeats(part) if REPEATS in part else self._event(part, self._root)
                ):
                    return False
        pieces = list(filter(_differ, self._texts))
        # What is as in the event before is not written again.
        return not pieces or not (self._alternate or any(0 < len(one) <= _SHORT for some in pieces for one in some))

    def wholes(self) -> Iterator[str]:
        """What the texts at each place are together."""
        return ("".join(pieces) for pieces in self._texts if _differ(pieces))

    def _event(self, value: Json, node: dict[str, Any]) -> bool:
        for key, item in value.items() if type(value) is dict else [("", item) for item in value]:
            kind = type(item)
            if kind is str:
                if key != "type":
                    self._at(node, key).append(item)
            elif kind is int:
                if key[-5:] in _INDEXES and self._indexes.setdefault(key, item) != item:
                    self._alternate = True
            elif (kind is dict or kind is list) and item and key != ABSENT:
                child = node.get(key)
                if child is None:
                    child = node[key] = {}
                self._event(item, child)
        return True

    def _at(self, node: dict[str, Any], key: str) -> list[str]:
        pieces: list[str] | None = node.get(f"={key}")
        if pieces is None:
            pieces = node[f"={key}"] = []
            self._texts.append(pieces)
        return pieces

    def _repeats(self, part: Mapping[str, Json]) -> bool:
        try:
            for steps, column in part[REPEATS]["values"]:
                kinds = set(map(type, column.values() if type(column) is dict else column))
                if kinds == {str} and type(column) is list:
                    node = self._root
                    for step in steps[:-1]:
                        node = node.setdefault(step if type(step) is str else "", {})
                    self._at(node, steps[-1] if type(steps[-1]) is str else "").extend(column)
                elif not kinds <= _NUMBERS:
                    return False
        except (LookupError, TypeError, ValueError, AttributeError):
            return False
        return True


def without_pieces(value: list[Json], redact: Redact) -> list[Json]:
    """A list without what its texts spell and may not leave; the very same where that is nothing, or it has no pieces.

    Such lists are the record of how a stream was cut, as protocols write it, and tokens with their likelihoods.
    """
    first = value[0] if value else None
    if type(first) is dict and any(map(names_likelihoods, first)):
        told: list[Json] = without_likely(value, redact)
        return told
    if type(first) is not list or len(first) < 2 or type(first[0]) not in _TIMES or type(first[1]) not in _EVENTS:
        return value
    altered = _altered(list(_recorded(value, count())), redact)
    clean: list[Json] = _rebuilt(value, altered, count(), told=False) if altered else value
    return clean


def without_spelled(name: object, value: Json, redact: Redact) -> Json:
    """What stands under a name, without what its texts spell and may not leave.

    These are values that say how likely tokens are, and what stands in answers in the pieces in which it came.
    """
    if names_likelihoods(name):
        return without_likely(value, redact)
    if type(value) is not list or not (name in _LISTED or (name == "parts" and any(map(_is_partial, value)))):
        return value
    texts = _texts(value, (), count(), told=False)
    pieces = [
        _Piece(number, text, path, (), 0) for number, text, path, _ in texts if name in _LISTED or _PARTIAL in path
    ]
    altered = _altered(pieces, redact)
    return _rebuilt(value, altered, count(), told=False) if altered else value


def _is_partial(part: Json) -> bool:
    """Whether a part of a message is a piece of a call, as Gemini streams the arguments of functions."""
    fields = part.get("provider_fields", part) if type(part) is dict else None
    call = fields.get("functionCall") if type(fields) is dict else None
    return type(call) is dict and _PARTIAL in call


def without_likely(value: Json, redact: Redact) -> Json:
    """A value that says how likely tokens are, without what those spell and may not leave."""
    texts = _texts(value, (), count(), told=True)
    altered = _altered([_Piece(number, text, path, (), 0) for number, text, path, _ in texts], redact)
    return _rebuilt(value, altered, count(), told=True) if altered else value


def _recorded(chunks: Sequence[Json], numbers: Iterator[int]) -> Iterator[_Piece]:
    """The texts of a record; numbered as `_rebuilt` comes by them."""
    events: Counter[str] = Counter()
    stood: dict[str, dict[Path, Path]] = {}
    among: dict[Path, Path] = {}
    kind = ""
    for chunk in chunks:
        told: Any = chunk[1] if isinstance(chunk, list) and len(chunk) > 1 else None
        kind = _kind_of(told) or kind
        events[kind] += 1
        indexes = stood.setdefault(kind, {})
        for number, text, path, places in _texts(chunk, (), numbers, told=False):
            if len(path) < 2 or path[-1] == "type" or ABSENT in path:
                continue
            if path[:2] == (1, REPEATS):
                place = _place_of_column(told, path)
                yield _Piece(number, _whole_column(told, path, text), place, among.get(place, ()), events[kind])
                continue
            for depth, found in places:
                indexes[path[:depth]] = found
            inside = tuple(one for depth in range(len(path)) for one in indexes.get(path[:depth], ()))
            among[path[1:]] = inside
            yield _Piece(number, text, path[1:], inside, events[kind])


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


Found = tuple[int, str, Path, tuple[tuple[int, Path], ...]]


def _texts(
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
                yield from _texts(item, (*path, number), numbers, told=told, places=places)
    elif kind is dict:
        if told and _is_of_tokens(value):
            yield from ((next(numbers), token, (*path, ""), places) for token in value)
            return
        own = tuple(one for key, one in value.items() if type(one) is int and key[-5:] in _INDEXES)
        if own:
            places = (*places, (len(path), own))
        for key, item in value.items():
            inner = type(item)
            if inner is str or inner is dict or inner is list:
                likely = told or (inner is not str and names_likelihoods(key))
                yield from _texts(item, (*path, key), numbers, told=likely, places=places)


def _is_of_tokens(value: Mapping[str, Json]) -> bool:
    """Whether the names in an object are tokens: each of a number, none of which says what it is."""
    return (
        bool(value)
        and all(type(one) in {int, float} for one in value.values())
        and not any(map(names_likelihoods, value))
    )


def _altered(pieces: Sequence[_Piece], redact: Redact) -> set[int]:
    """The numbers of the pieces of texts that may not leave."""
    return set().union(*(_spelled(group, redact) for group in _together(pieces)))


def _together(pieces: Sequence[_Piece]) -> Iterator[list[_Piece]]:
    """The pieces that may be of one text: all of a place, those with the same indexes, as often as they came."""
    texts: dict[Path, list[_Piece]] = {}
    for piece in pieces:
        texts.setdefault(tuple("" if type(step) is int else step for step in piece.path), []).append(piece)
    for together in texts.values():
        if not _differ([piece.text for piece in together]):
            continue
        yield together
        apart: dict[Path, list[_Piece]] = {}
        for piece in together:
            apart.setdefault(piece.among, []).append(piece)
        if len(apart) > 1:
            yield from apart.values()
        # What is as in the event before is not written again.
        steps = [min(max(after.event - one.event, 1), _MOST_COPIES) for one, after in pairwise(together)]
        if any(step > 1 for step in steps):
            yield [piece._replace(text=piece.text * n) for piece, n in zip(together, [*steps, 1], strict=True)]


def _differ(texts: Sequence[str]) -> bool:
    """Whether texts at one place are pieces, and not the same said again."""
    return len(texts) > 1 and len({*texts} - {""}) > 1


def _spelled(pieces: Sequence[_Piece], redact: Redact) -> set[int]:
    """The numbers of the pieces in which something of their whole is redacted, from the first to the last."""
    whole = "".join([piece.text for piece in pieces])
    clean = redact(whole)
    if clean == whole:
        return set()
    if not isinstance(clean, str):
        return {piece.number for piece in pieces}
    begun = _same(whole, clean)
    ended = len(whole) - _same(whole[begun:][::-1], clean[begun:][::-1])
    altered, end = set(), 0
    for piece in pieces:
        start, end = end, end + len(piece.text)
        if end > begun and start < ended:
            altered.add(piece.number)
    return altered


def _same(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    length = min(len(one), len(other))
    return next((place for place in range(length) if one[place] != other[place]), length)


def _rebuilt(value: Json, altered: set[int], numbers: Iterator[int], *, told: bool) -> Json:
    """The value with masks in the place of texts of these numbers; the very same where it has none of them."""
    if type(value) is str:
        return MASK if next(numbers) in altered else value
    if type(value) is list:
        items = [_rebuilt(item, altered, numbers, told=told) for item in value]
        return value if _unaltered(items, value) else items
    if type(value) is not dict:
        return value
    if told and _is_of_tokens(value):
        left = {token: likely for token, likely in value.items() if next(numbers) not in altered}
        return value if len(left) == len(value) else left
    fields = {
        key: _rebuilt(item, altered, numbers, told=told or (type(item) is not str and names_likelihoods(key)))
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
