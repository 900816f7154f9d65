"""What was worked out of an object of the user's program, as long as it lives and nothing in it has changed since.

An agent's history holds the same messages in every call; to see that one is as it was costs less than to read it again.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import uuid
import weakref
from collections.abc import Sequence
from itertools import chain
from operator import attrgetter, is_
from typing import Any, Final, Generic, TypeVar

Result = TypeVar("Result")

_LEAVES: Final = frozenset(
    {str, int, float, bool, type(None), dt.datetime, dt.date, dt.time, dt.timedelta, decimal.Decimal, uuid.UUID}
)
"""Types whose values nobody can change. Not bytes: what is made of them is large, and they are rarely in it twice."""
_DEPTH: Final = 10
_MOST: Final = 20_000

Contents = tuple[list[Any], list[Any]]
"""The dicts and lists that a value is made of, and copies of them."""


@dataclasses.dataclass(eq=False, slots=True)
class _Known(Generic[Result]):
    """An object that lives, what it was made of when ``result`` was worked out, and copies of that."""

    value: weakref.ref[Any]
    contents: list[Any]
    copies: list[Any]
    result: Result


_values, _contents, _copies, _results = map(attrgetter, ("value", "contents", "copies", "result"))


class Unaltered(Generic[Result]):
    """Remembers one result an object."""

    def __init__(self) -> None:
        self._known: dict[int, _Known[Result]] = {}

    def get(self, values: Sequence[Any]) -> list[Result | None]:
        """What was remembered of each; None where it was nothing, or where that object has changed since."""
        found = list(map(self._known.get, map(id, values)))
        # A long history costs no more steps in Python than a short one, where all is as it was.
        if None not in found and self._all_as_they_were(values, found):
            return list(map(_results, found))
        return [
            known.result if known is not None and self._all_as_they_were((value,), (known,)) else None
            for value, known in zip(values, found, strict=True)
        ]

    def _all_as_they_were(self, values: Sequence[Any], found: Sequence[Any]) -> bool:
        if not all(map(is_, values, map(weakref.ref.__call__, map(_values, found)))):
            return False
        return list(chain.from_iterable(map(_contents, found))) == list(chain.from_iterable(map(_copies, found)))

    def put(self, value: Any, contents: Contents | None, result: Result) -> None:
        """Remember this of the object, worked out after it was seen to have these contents."""
        if contents is not None and len(self._known) < _MOST:
            key = id(value)
            self._known[key] = _Known(weakref.ref(value, lambda _: self._known.pop(key, None)), *contents, result)


def contents_of(value: Any) -> Contents | None:
    """What a value is made of, where that is dataclasses, dicts, lists and what nobody can change; None for others."""
    contents: list[Any] = []
    copies: list[Any] = []
    return (contents, copies) if _collect(value, contents, copies, _DEPTH) else None


def _collect(value: Any, contents: list[Any], copies: list[Any], depth: int) -> bool:
    if type(value) in _LEAVES:
        return True
    if type(value) is dict or type(value) is list:
        content = value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type) and hasattr(value, "__dict__"):
        content = vars(value)
    else:
        return False
    contents.append(content)
    copies.append(content.copy())
    items = content.values() if isinstance(content, dict) else content
    return depth > 0 and all(_collect(item, contents, copies, depth - 1) for item in items)
