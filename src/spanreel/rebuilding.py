"""Recorded values, made native again for a replay."""

from __future__ import annotations

import base64
import copy
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
