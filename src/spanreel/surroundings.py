"""What a tool changes beside its arguments: objects that its agent shares with it, as a context, or its own `self`.

Only dicts and objects whose fields are values are followed, field by field: nobody's `repr` or properties are called
for it, and what is larger than `MOST` values is left alone. What was lost is nothing: a field that has gone stays.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import uuid
from collections.abc import Mapping
from typing import Any, Final

import pydantic

from spanreel.model import Json
from spanreel.rebuilding import change_again, plain
from spanreel.shapes import names_of_class, reshaped, shape_of
from spanreel.snapshot import snapshot

MOST: Final = 500
"""Values in one object that are looked at before each call."""
MARK: Final = "$"
"""Begins the names of such objects, which stand among the arguments that a tool has changed."""

_SCALARS: Final = frozenset(
    {str, int, float, bool, type(None), bytes, dt.datetime, dt.date, dt.timedelta, decimal.Decimal, uuid.UUID}
)
_CONTAINERS: Final = frozenset({list, tuple, set, frozenset})

Noticed = Mapping[str, Mapping[str, Json]]
"""The values of the fields of objects, by the objects' names."""


def notice(shared: Mapping[str, Any]) -> Noticed:
    """What these objects hold, before a tool runs."""
    return {name: _values(given) for name, given in shared.items()}


def changed_since(before: Noticed, shared: Mapping[str, Any]) -> dict[str, Json]:
    """The fields that a tool has changed, ``{"$name": {field: {"value", "type"}}}``; empty where there are none."""
    changed: dict[str, Json] = {}
    for name, given in shared.items():
        held, told = _fields(given), {}
        for field, value in _values(given).items():
            if field not in before[name] or before[name][field] != value:
                shape = shape_of(held[field], names_of_class(type(given)))
                told[field] = {"value": value} if shape is None else {"value": value, "type": shape}
        if told:
            changed[MARK + name] = told
    return changed


def change_shared(shared: Mapping[str, Any], changed: Mapping[str, Json]) -> None:
    """Change the live objects as the tool did when it was recorded."""
    for name, given in shared.items():
        told, held = changed.get(MARK + name), _fields(given)
        for field, after in told.items() if isinstance(told, dict) else ():
            if not isinstance(after, dict) or "value" not in after:
                continue
            value, shape = after["value"], after.get("type")
            before = held.get(field)
            if shape is None and type(before) in (list, dict) and isinstance(value, type(before)):
                change_again({field: before}, {field: value})  # others may hold the very list
                continue
            made = reshaped(value, shape, names_of_class(type(given))) if isinstance(shape, str) else plain(value)
            if isinstance(given, dict):
                given[field] = made
            else:
                setattr(given, field, made)


def _values(given: Any) -> dict[str, Json]:
    """The fields that hold values and nothing else, as JSON; none of an object that holds too many."""
    budget = [MOST]
    found = {}
    for field, value in _fields(given).items():
        is_value = _is_value(value, budget)
        if budget[0] < 0:
            return {}
        if is_value:
            found[field] = snapshot(value).value
    return found


def _fields(given: Any) -> dict[str, Any]:
    """A dict by its keys that are texts, an object by what it holds itself."""
    held = given if type(given) is dict else getattr(given, "__dict__", None)
    if not isinstance(held, dict) or isinstance(given, type):
        return {}
    return {field: value for field, value in held.items() if type(field) is str and not field.startswith("__")}


def _is_value(value: Any, budget: list[int]) -> bool:
    budget[0] -= 1
    if budget[0] < 0:
        return False
    kind = type(value)
    if kind in _SCALARS or isinstance(value, enum.Enum):
        return True
    if kind in _CONTAINERS:
        return all(_is_value(item, budget) for item in value)
    if kind is dict:
        return all(type(key) is str and _is_value(item, budget) for key, item in value.items())
    if isinstance(value, pydantic.BaseModel) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        return all(_is_value(item, budget) for item in vars(value).values()) if hasattr(value, "__dict__") else False
    return False
