"""Recorded values, made native again for a replay."""

from __future__ import annotations

import base64
import copy
import functools
import inspect
import types
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
            return pydantic.TypeAdapter(annotation).validate_python(plain(recorded))
        except Exception:  # noqa: BLE001 - an annotation may be anything, and raise anything
            return plain(recorded)
    return plain(recorded)


def plain(value: Json) -> Any:
    """A recorded value as JSON says it, a copy of its own; binary content as bytes."""
    if isinstance(value, dict):
        if set(value) == {"$bytes"} and isinstance(value["$bytes"], str):
            try:
                return base64.b64decode(value["$bytes"], validate=True)
            except ValueError:  # what stands for content that was not recorded
                return value["$bytes"].encode()
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
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


def code_of(function: Callable[..., Any]) -> Any:
    """The function that a callable comes to: behind decorators and partials, or the method that makes it one.

    Of what is written in C, the callable itself.
    """
    found: Any = inspect.unwrap(function)
    while isinstance(found, functools.partial):
        found = inspect.unwrap(found.func)
    if hasattr(found, "__globals__") or hasattr(found, "__func__") or isinstance(found, type):
        return getattr(found, "__func__", found)
    method = getattr(type(found), "__call__", found)  # noqa: B004 - which function it is, not whether
    return found if isinstance(method, types.WrapperDescriptorType) else method


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """A function's annotations, resolved; none where they cannot be."""
    try:
        return typing.get_type_hints(code_of(function))
    except Exception:  # noqa: BLE001 - names that only a type checker sees
        return {}


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
    value = plain(after)
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
