"""Recorded values and failures, made native again for a replay."""

from __future__ import annotations

import base64
import copy
import importlib
import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any

import pydantic

from spanreel.model import Json
from spanreel.point import RecordedError
from spanreel.snapshot import snapshot


class RecordedToolError(Exception):
    """A recorded failure whose class cannot be imported or built here; ``type`` is the recorded class's name."""

    def __init__(self, type: str, message: str | None) -> None:
        super().__init__(message or type)
        self.type = type


def rebuild_error(recorded: RecordedError) -> Exception:
    """The recorded failure as an exception of its own class, else as a `RecordedToolError`."""
    kind = _import(recorded.type)
    if isinstance(kind, type) and issubclass(kind, Exception):
        for arguments in ((recorded.message or "",), ()):
            try:
                error = kind(*arguments)
            except Exception:  # a constructor of any signature
                continue
            if str(error) == (recorded.message or "") or not arguments:
                return error
        try:
            error = kind.__new__(kind)
            Exception.__init__(error, recorded.message or "")
        except Exception:
            return RecordedToolError(recorded.type, recorded.message)
        return error
    return RecordedToolError(recorded.type, recorded.message)


def _import(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    try:
        found: Any = importlib.import_module(module or "builtins")
        for step in attribute.split("."):
            found = getattr(found, step)
    except (ImportError, AttributeError, ValueError):
        return None
    return found


def rebuild_value(recorded: Json, annotation: Any) -> Any:
    """A recorded value as the annotation says; as JSON, bytes decoded, where it says nothing or the value does not fit."""
    if annotation not in (inspect.Parameter.empty, None, Any):
        try:
            return pydantic.TypeAdapter(annotation).validate_python(_plain(recorded))
        except Exception:  # an annotation may be anything, and raise anything
            return _plain(recorded)
    return _plain(recorded)


def _plain(value: Json) -> Any:
    if isinstance(value, dict):
        if set(value) == {"$bytes"} and isinstance(value["$bytes"], str):
            return base64.b64decode(value["$bytes"])
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return copy.copy(value)


def rebuild_arguments(
    function: Callable[..., Any], live: Mapping[str, Any], recorded: Mapping[str, Json]
) -> dict[str, Any]:
    """The caller's arguments with the recorded ones in their place; what has not changed stays the caller's object."""
    hints = annotations(function)
    arguments = dict(live)
    for name, value in recorded.items():
        if name in arguments and snapshot(arguments[name]).value != value:
            arguments[name] = rebuild_value(value, hints.get(name, Any))
    return arguments


def annotations(function: Callable[..., Any]) -> dict[str, Any]:
    """A function's annotations, resolved; none where they cannot be."""
    try:
        return typing.get_type_hints(inspect.unwrap(function))
    except Exception:  # names that only a type checker sees
        return {}
