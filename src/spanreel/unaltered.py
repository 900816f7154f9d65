"""What was worked out of an object of the user's program, as long as it lives and nothing in it has changed since.

An agent's history holds the same messages in every call; to see that one is as it was costs less than to read it again.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import uuid
import weakref
from typing import Any, Final

_LEAVES: Final = frozenset(
    {str, int, float, bool, type(None), dt.datetime, dt.date, dt.time, dt.timedelta, decimal.Decimal, uuid.UUID}
)
"""Types whose values nobody can change. Not bytes: what is made of them is large, and they are rarely in it twice."""
_DEPTH: Final = 10
_MOST: Final = 20_000

Contents = list[tuple[Any, Any]]
"""The dicts and lists that a value is made of, each with a copy."""


class Unaltered:
    """Remembers one result an object."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Any], Contents, Any]] = {}

    def get(self, value: Any) -> Any:
        """What was remembered of this object; None where it was nothing, or where the object has changed since."""
        known = self._known.get(id(value))
        if known is None or known[0]() is not value:
            return None
        for content, copy in known[1]:
            if content != copy:
                return None
        return known[2]

    def put(self, value: Any, contents: Contents | None, result: Any) -> None:
        """Remember this of the object, worked out after it was seen to have these contents."""
        if contents is not None and len(self._known) < _MOST:
            key = id(value)
            self._known[key] = (weakref.ref(value, lambda _: self._known.pop(key, None)), contents, result)


def contents_of(value: Any) -> Contents | None:
    """What a value is made of, where that is dataclasses, dicts, lists and what nobody can change; None for others."""
    contents: Contents = []
    return contents if _collect(value, contents, _DEPTH) else None


def _collect(value: Any, contents: Contents, depth: int) -> bool:
    if type(value) in _LEAVES:
        return True
    if type(value) is dict or type(value) is list:
        content = value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type) and hasattr(value, "__dict__"):
        content = vars(value)
    else:
        return False
    contents.append((content, content.copy()))
    items = content.values() if isinstance(content, dict) else content
    return depth > 0 and all(_collect(item, contents, depth - 1) for item in items)
