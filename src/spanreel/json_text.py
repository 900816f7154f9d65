"""JSON as text, for attributes: whatever a program's values hold, what is written here can be read again.

Fast through `pydantic_core`; the slow way takes what that refuses (lone surrogates, deep nesting).
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

import pydantic_core

from spanreel.memory import Known, ListItem, Memory, item, known
from spanreel.model import Json

_SURROGATES = re.compile("[\ud800-\udfff]")


def encode(value: Any) -> str:
    """The value as compact JSON text. NaN and infinities become strings, bytes base64, objects their type's name."""
    try:
        return _to_json(value).decode()
    except (ValueError, RecursionError):
        try:
            # ASCII only, so that a lone surrogate stands as its escape, which any UTF-8 channel lets pass.
            return json.dumps(_plain(value), separators=(",", ":"))
        except (ValueError, RecursionError):
            return json.dumps(_marker(value))


def _to_json(value: Any) -> bytes:
    return pydantic_core.to_json(value, inf_nan_mode="strings", bytes_mode="base64", fallback=_marker)


class Listed(str):
    """The JSON text of a list, which remembers the texts of its items: each can be looked at alone."""

    __slots__ = ("items",)

    items: tuple[ListItem, ...]

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str.__str__(self),)  # what is known of it is this process's own


def encode_list(values: Sequence[Any]) -> Listed:
    """`encode` of a list, item by item."""
    if type(values) is not Plain:
        return _list_of_values(values)
    if values.text is None:
        values.text = _list_of_values(values)
    return values.text


def _list_of_values(values: Sequence[Any]) -> Listed:
    if len(values) >= _LONG and type(values[0]) is not Known and (made := _recent.write(values)) is not None:
        return made
    return _list_of(tuple([text_of(value) if type(value) is Known else _remembered(value) for value in values]))


def text_of(value: Known) -> ListItem:
    """`encode` of what was read before, written once."""
    if value.text is None:
        value.text = item(encode(value))
    return value.text


class Plain(list[Json]):
    """A list of JSON values that nobody changes any more: its text is written once."""

    __slots__ = ("text",)

    text: Listed | None


def plain(values: Iterable[Json]) -> Plain:
    """The list, not written yet."""
    made = Plain(values)
    made.text = None
    return made


def read_each(values: Sequence[Any], read: Callable[[Any], dict[str, Any]]) -> tuple[Known, ...]:
    """The items of a list, read; of a plain list, those that came before by the same reader are not read again."""
    if type(values) is not Plain:  # things that are not equal may be written in the same way
        return tuple([known(read(value)) for value in values])
    return tuple(
        [
            text.read[1] if text.read is not None and text.read[0] is read else _read_item(text, value, read)
            for text, value in zip(encode_list(values).items, values, strict=True)
        ]
    )


def _read_item(text: ListItem, value: Any, read: Callable[[Any], dict[str, Any]]) -> Known:
    made = known(read(value))
    text.read = (read, made)
    return made


def _remembered(value: Any) -> ListItem:
    """The text of the value: the very item that had it before, with what is known of that."""
    try:
        content = _to_json(value)
    except (ValueError, RecursionError):
        return item(encode(value))
    found = _items.find(content)
    if found is None:
        found = item(content.decode())
        _items.keep(content, found)
    return found


_items: Memory[ListItem] = Memory(4 * 1024 * 1024)

_LONG: Final = 8
_MOST_RECENT: Final = 6
_MOST_CHARACTERS: Final = 1024 * 1024
"""Of a list that is remembered whole."""


class _Recent:
    """The last long lists, whole: a conversation's begins with what it held the time before."""

    def __init__(self) -> None:
        self._lists: tuple[tuple[Listed, list[int]], ...] = ()

    def write(self, values: Sequence[Any]) -> Listed | None:
        """The text of the list, with the items of one before as far as that is the same; None where it must be slow."""
        try:
            text = _to_json(values).decode()
        except (ValueError, RecursionError):
            return None
        items: tuple[ListItem, ...] = ()
        for before, ends in self._lists:
            count = _alike(text, before, ends)
            if count > len(items):
                items = before.items[:count]
            if count >= len(ends) - 1:
                break
        made = Listed(text)
        made.items = (*items, *[_remembered(value) for value in values[len(items) :]])
        if len(text) <= _MOST_CHARACTERS:
            ends = [end - 1 for end in accumulate([len(one) + 1 for one in made.items], initial=1)][1:]
            self._lists = ((made, ends), *self._lists[: _MOST_RECENT - 1])
        return made


_recent: Final = _Recent()


def _alike(text: str, before: str, ends: Sequence[int]) -> int:
    """With how many of another list's items, which end at these places, the text of a list begins."""
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high + 1) // 2
        if text.startswith(before[: ends[middle - 1]]):
            low = middle
        else:
            high = middle - 1
    # A number may be the beginning of another one.
    return low if low == 0 or text[ends[low - 1]] in ",]" else low - 1


class Parted(str):
    """The JSON text of an object some of whose members are long lists of objects, which can be looked at alone.

    ``frame`` is the text with empty lists in their place, ``lists`` are theirs, by their names.
    """

    __slots__ = ("frame", "lists")

    frame: str
    lists: dict[str, Listed]

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str.__str__(self),)  # as of a list's text


def encode_parted(value: Mapping[str, Any]) -> str:
    """`encode` of an object: what its lists of objects hold has been said before, most of it."""
    lists = {name: encode_list(member) for name, member in value.items() if _is_long(member)}
    if not lists:
        return encode(value)
    members = [f"{encode(name)}:{lists[name] if name in lists else encode(member)}" for name, member in value.items()]
    made = Parted(f"{{{','.join(members)}}}")
    made.frame, made.lists = encode({**value, **dict.fromkeys(lists, ())}), lists
    return made


def _is_long(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 1 and _OBJECTS.issuperset(map(type, value))


_OBJECTS: Final = frozenset[type]((dict, Known))


def listed(texts: Iterable[str]) -> Listed:
    """The list of these JSON texts."""
    return _list_of(tuple([text if type(text) is ListItem else item(text) for text in texts]))


def _list_of(items: tuple[ListItem, ...]) -> Listed:
    made = Listed(f"[{','.join(items)}]")
    made.items = items
    return made


def decode(text: str) -> Json:
    """The value of a JSON text; half a surrogate pair, which no document can hold, becomes U+FFFD.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        return pydantic_core.from_json(text)
    except (ValueError, TypeError):  # TypeError: text with half a surrogate pair outside of escapes
        try:
            return without_surrogates(json.loads(text))
        except RecursionError as error:
            raise ValueError("JSON nested too deep") from error


def without_surrogates(value: Any) -> Json:
    """The value with U+FFFD in the place of each half of a surrogate pair."""
    if isinstance(value, str):
        return value if value.isascii() else _SURROGATES.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_SURROGATES.sub("\ufffd", key): without_surrogates(item) for key, item in value.items()}
    return [without_surrogates(item) for item in value] if isinstance(value, list) else value


def _marker(value: object) -> str:
    return f"<{type(value).__module__}.{type(value).__qualname__}>"


def _plain(value: Any) -> Json:
    """The value out of what `json` knows, by the same rules as the fast way."""
    if isinstance(value, str) or value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(json.loads(encode(value)))
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    if isinstance(value, (bytes, bytearray)):
        return base64.urlsafe_b64encode(value).decode("ascii")
    return _marker(value)
