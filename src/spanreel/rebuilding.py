"""Recorded values, made native again for a replay."""

from __future__ import annotations

import base64
import copy
import dataclasses
import enum
import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any

import pydantic

from spanreel.model import Json
from spanreel.snapshot import snapshot


def rebuild_value(recorded: Json, annotation: Any) -> Any:
    """A recorded value as the annotation says; as JSON where it says nothing or the value does not fit it."""
    if annotation not in (inspect.Parameter.empty, None, Any):
        try:
            return pydantic.TypeAdapter(annotation).validate_python(_plain(recorded))
        except Exception:  # noqa: BLE001 - an annotation may be anything, and raise anything
            return _plain(recorded)
    return _plain(recorded)


def _plain(value: Json) -> Any:
    if isinstance(value, dict):
        if set(value) == {"$bytes"} and isinstance(value["$bytes"], str):
            try:
                return base64.b64decode(value["$bytes"], validate=True)
            except ValueError:  # what stands for content that was not recorded
                return value["$bytes"].encode()
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return copy.copy(value)


def rebuild_arguments(
    function: Callable[..., Any], live: Mapping[str, Any], recorded: Mapping[str, Json]
) -> dict[str, Any]:
    """The caller's arguments with the recorded ones in their place; what has not changed stays the caller's object."""
    hints = hints_of(function)
    arguments = dict(live)
    for name, value in recorded.items():
        if name in arguments and snapshot(arguments[name]).value != value:
            arguments[name] = rebuild_value(value, hints.get(name, Any))
    return arguments


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """A function's annotations, resolved; none where they cannot be."""
    try:
        return typing.get_type_hints(inspect.unwrap(function))
    except Exception:  # noqa: BLE001 - names that only a type checker sees
        return {}


# -- classes of results, as the tool's own module names them -----------------------------------------------------------

_LISTED = "list["


def type_name(value: Any, function: Callable[..., Any]) -> str | None:
    """The name of the value's class (``Order``, ``list[Order]``), where the function's module has it by that name."""
    if isinstance(value, list):
        names = {type_name(item, function) for item in value}
        name = names.pop() if len(names) == 1 else None
        return f"{_LISTED}{name}]" if name is not None and not name.startswith(_LISTED) else None
    kind = type(value)
    made = (
        dataclasses.is_dataclass(kind) or isinstance(value, (pydantic.BaseModel, enum.Enum)) or hasattr(kind, "_fields")
    )
    return kind.__qualname__ if made and _named(kind.__qualname__, function) is kind else None


def type_named(name: str | None, function: Callable[..., Any]) -> Any:
    """The class of this name in the function's own module; Any where it has none. Imports nothing."""
    if name is None:
        return Any
    if name.startswith(_LISTED) and name.endswith("]"):
        found = _named(name[len(_LISTED) : -1], function)
        return list[found] if found is not None else Any  # type: ignore[valid-type]  # known at run time only
    return _named(name, function) or Any


def _named(name: str, function: Callable[..., Any]) -> type | None:
    first, *rest = name.split(".")
    found: Any = getattr(inspect.unwrap(function), "__globals__", {}).get(first)
    for step in rest:
        found = vars(found).get(step) if isinstance(found, type) else None
    return found if isinstance(found, type) else None


# -- arguments that a tool changes -------------------------------------------------------------------------------------


def changed_arguments(before: Json, live: Mapping[str, Any]) -> dict[str, Json] | None:
    """The arguments that are not any more what they were before; None where all are."""
    if not isinstance(before, dict):
        return None
    changed = {}
    for name, value in before.items():
        given = live.get(name)
        if isinstance(value, (dict, list)) and not isinstance(given, (str, bytes, tuple)):
            after = snapshot(given).value
            if after != value:
                changed[name] = after
    return changed or None


def change_again(live: Mapping[str, Any], changed: Mapping[str, Json]) -> None:
    """Change the caller's own objects as the tool did when it was recorded: lists, dicts, sets, and objects' fields."""
    for name, after in changed.items():
        _become(live.get(name), after)


def _become(given: Any, after: Json) -> None:
    value = _plain(after)
    if isinstance(given, list) and isinstance(value, list):
        # What is the same stays the caller's object.
        given[:] = [
            given[number] if number < len(given) and snapshot(given[number]).value == after[number] else item
            for number, item in enumerate(value)
        ]
    elif isinstance(given, dict) and isinstance(value, dict):
        kept = {key: given[key] for key in given if key in value and snapshot(given[key]).value == value[key]}
        given.clear()
        given.update({key: kept.get(key, item) for key, item in value.items()})
    elif isinstance(given, set) and isinstance(value, list):
        given.clear()
        given.update(value)
    elif isinstance(value, dict) and hasattr(given, "__dict__"):
        for field, item in value.items():
            if field in vars(given) and snapshot(vars(given)[field]).value != item:
                setattr(given, field, item)
