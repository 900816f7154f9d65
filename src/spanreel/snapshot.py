"""Values of the user's program as JSON, taken while the caller waits: what they are now, never raising.

Pydantic models and dataclasses go by their fields, arrays by their items; what is unknown by a marked repr. One bad
value costs only itself.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import decimal
import enum
import math
import pathlib
import re
import sys
import types
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from spanreel import arrays, frozen
from spanreel.json_pointers import write_step
from spanreel.model import Dumped, Json

DEPTH = 40
"""Deeper values are cut: JSON readers refuse them."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


@frozen.dataclass(frozen=True, slots=True)
class Snapshot:
    """A value as JSON; ``weak`` are the JSON pointers of what could only be kept as text.

    ``plain`` says that the value was JSON already: dicts, lists and scalars of Python's own, and nothing else.
    ``opaque`` says that an object is in it whose text tells what it is, and not what it holds.
    """

    value: Json
    weak: tuple[str, ...] = ()
    plain: bool = False
    opaque: bool = False


@dataclasses.dataclass(eq=False, slots=True)
class _Taken:
    """What is noticed while a snapshot is taken."""

    weak: list[str] = dataclasses.field(default_factory=list)
    plain: bool = True
    opaque: bool = False


def snapshot(value: Any) -> Snapshot:
    """The value as JSON: tuples and sets as lists (sets sorted), bytes as base64 under ``$bytes``, NaN as text."""
    taken = _Taken()
    return Snapshot(_json(value, None, taken, ()), tuple(taken.weak), taken.plain, taken.opaque)


Path = tuple[Any, Any] | None
"""Where a value stands: the path of what is around it, and the step from there; written out only where it is weak."""

_PLAIN = frozenset({str, int, bool, type(None)})
_TEXT = frozenset({str})


def _json(value: Any, path: Path, taken: _Taken, above: tuple[int, ...]) -> Json:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is float:
        return value if math.isfinite(value) else _weak(repr(value), path, taken)
    if kind is Dumped:
        return value
    if id(value) in above or len(above) >= DEPTH:
        return _weak("<recursion>" if id(value) in above else "<too deep>", path, taken)
    # Most of what crosses is this, many times over; what is asked here, is asked without a step in Python.
    if kind is dict and _PLAIN.issuperset(map(type, value.values())) and _TEXT.issuperset(map(type, value)):
        return value.copy()
    try:
        return _structured(value, path, taken, (*above, id(value)))
    except Exception:  # noqa: BLE001 - the user's own properties and iterators may raise anything
        return _text(value, path, taken)


def _structured(value: Any, path: Path, taken: _Taken, above: tuple[int, ...]) -> Json:
    if type(value) is list:
        return [
            item if type(item) in _PLAIN else _json(item, (path, number), taken, above)
            for number, item in enumerate(value)
        ]
    if type(value) is not dict or not _TEXT.issuperset(map(type, value)):
        taken.plain = False
    if type(value) is dict or isinstance(value, Mapping):
        return {
            (name := key if type(key) is str else str(_scalar(key))): (
                item if type(item) in _PLAIN else _json(item, (path, name), taken, above)
            )
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple, deque)):
        return [
            item if type(item) in _PLAIN else _json(item, (path, number), taken, above)
            for number, item in enumerate(value)
        ]
    if isinstance(value, AbstractSet):
        items = [_json(item, path, taken, above) for item in value]
        return sorted(items, key=lambda item: (type(item).__name__, str(item)))
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"$bytes": base64.b64encode(bytes(value)).decode("ascii")}
    if _is_model(value):
        fields = {name: getattr(value, name) for name in type(value).model_fields}
        return _structured({**fields, **(value.model_extra or {})}, path, taken, above)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return _structured(fields, path, taken, above)
    if (names := _fields_of(value)) is not None:
        return _structured({name: getattr(value, name) for name in names}, path, taken, above)
    if type(value).__module__ == "numpy" and (listed := arrays.listed(value)) is not value:
        return _json(listed, path, taken, above)
    scalar = _scalar(value)
    return scalar if scalar is not value else _text(value, path, taken)


def _fields_of(value: Any) -> Sequence[str] | None:
    """The fields of what is made of fields: by attrs, by msgspec, or a namespace; None for all else."""
    kind = type(value)
    if kind is types.SimpleNamespace:
        return list(vars(value))
    if (attributes := getattr(kind, "__attrs_attrs__", None)) is not None:
        return [attribute.name for attribute in attributes]
    return getattr(kind, "__struct_fields__", None)


def _is_model(value: Any) -> bool:
    """Whether the value is a pydantic model; where pydantic's models are not even loaded, none can be."""
    loaded = sys.modules.get("pydantic.main")
    return loaded is not None and isinstance(value, loaded.BaseModel)


def _scalar(value: Any) -> Any:
    """The JSON scalar of a well-known type; the value itself where it is of none."""
    if isinstance(value, enum.Enum):
        return _scalar(value.value)
    if isinstance(value, bool):
        return bool(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else repr(float(value))
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if isinstance(value, (decimal.Decimal, uuid.UUID, pathlib.PurePath)):
        return str(value)
    return value


def _text(value: Any, path: Path, taken: _Taken) -> str:
    try:
        text = _ADDRESS.sub("", repr(value))
    except Exception:  # noqa: BLE001 - a repr may raise anything
        text = f"<{type(value).__name__}, whose repr raises>"
    # Python's own way of writing what is no value: objects without a text of their own, functions, open files.
    taken.opaque = taken.opaque or (text.startswith("<") and text.endswith(">"))
    return _weak(text, path, taken)


def _weak(text: str, path: Path, taken: _Taken) -> str:
    taken.plain = False
    taken.weak.append(_pointer(path))
    return text


def _pointer(path: Path) -> str:
    steps: list[str] = []
    while path is not None:
        path, step = path
        steps.append(f"/{write_step(str(step))}")
    return "".join(reversed(steps))
