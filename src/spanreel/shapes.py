"""What a result was before it became JSON, in a short text that is kept beside it; and the result, made again by that.

The text is of Python's own notation: ``datetime.datetime``, ``list[Order]``, ``{'total': decimal.Decimal}``; ``_`` is
JSON as it stands, ``numpy('<f8')`` an array or a scalar, ``text(Client)`` what only a text was kept of. It comes back
from documents that anybody may have written: it names nothing but what stands in `STANDARD` or, as a class, in the
tool's own module; nothing is imported.
"""

from __future__ import annotations

import ast
import collections
import dataclasses
import datetime as dt
import decimal
import enum
import functools
import inspect
import math
import pathlib
import sys
import types
import uuid
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping
from typing import Any, Final

import pydantic

from spanreel import arrays
from spanreel.model import Json
from spanreel.rebuilding import code_of, hints_of, plain, rebuild_value

LONGEST: Final = 2_000
"""Characters; what is more varied than that comes back as JSON."""
DEPTH: Final = 20

STANDARD: Final[dict[str, tuple[type, Callable[[Any], Any]]]] = {
    "float": (float, float),
    "complex": (complex, complex),
    "bytes": (bytes, bytes),
    "bytearray": (bytearray, bytearray),
    "datetime.datetime": (dt.datetime, dt.datetime.fromisoformat),
    "datetime.date": (dt.date, dt.date.fromisoformat),
    "datetime.time": (dt.time, dt.time.fromisoformat),
    "datetime.timedelta": (dt.timedelta, lambda seconds: dt.timedelta(seconds=seconds)),
    "decimal.Decimal": (decimal.Decimal, decimal.Decimal),
    "uuid.UUID": (uuid.UUID, uuid.UUID),
    "pathlib.Path": (pathlib.Path, pathlib.Path),
    "pathlib.PurePath": (pathlib.PurePath, pathlib.PurePath),
    "collections.Counter": (collections.Counter, collections.Counter),
    "collections.OrderedDict": (collections.OrderedDict, collections.OrderedDict),
    "types.SimpleNamespace": (types.SimpleNamespace, lambda fields: types.SimpleNamespace(**fields)),
}
"""Classes of the standard library by name, and how each is made of its JSON form."""

CONTAINERS: Final[dict[str, type]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "collections.deque": collections.deque,
}
_NAMES: Final = {kind: name for name, kind in CONTAINERS.items()} | {kind: name for name, (kind, _) in STANDARD.items()}
_PLAIN: Final = "_"
_TEXT: Final = "text"
_BEFORE: Final = "before"
_AS_IT_IS: Final = frozenset({str, int, bool, type(None)})


class Generated(list[Any]):
    """The values of a generator that a plain function has returned."""


class GeneratedAsync(Generated):
    """Likewise, of an asynchronous one."""


def given_before(shape: str | None) -> str:
    """The shape of what a generator had given when it failed."""
    return f"{_BEFORE}({shape or _PLAIN})"


def before_failure(shape: str | None) -> str | None:
    """The shape of what a generator had given when it failed; None where this is no such shape."""
    if shape is None or not (shape.startswith(f"{_BEFORE}(") and shape.endswith(")")):
        return None
    return shape[len(_BEFORE) + 1 : -1]


def names_of(function: Callable[..., Any]) -> Mapping[str, Any]:
    """Where the classes of a function's results are looked for: in its own module."""
    return getattr(code_of(function), "__globals__", {})


def names_of_class(kind: type) -> Mapping[str, Any]:
    """Where the classes of what its objects hold are looked for: in its own module."""
    return getattr(sys.modules.get(kind.__module__), "__dict__", {})


def shape_of(value: Any, names: Mapping[str, Any]) -> str | None:
    """The text that says what a value is beside its JSON form; None where that says it all, or where it is too much."""
    shape = _shape(value, names, DEPTH)
    return None if shape == _PLAIN or len(shape) > LONGEST else shape


def reshaped(recorded: Json, shape: str, names: Mapping[str, Any]) -> Any:
    """What the recorded value was; as JSON where the shape does not fit, or names what is not here."""
    try:
        return _made(recorded, ast.parse(shape[: LONGEST + 1], mode="eval").body, names)
    except Exception:  # noqa: BLE001 - the text may be anything, and the classes are the user's
        return plain(recorded)


def texts_in(shape: str | None) -> list[str]:
    """The classes of which only a text was kept, by name."""
    if shape is None or f"{_TEXT}(" not in shape:
        return []
    try:
        nodes = ast.walk(ast.parse(shape, mode="eval"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return list(dict.fromkeys(str(_text_of(node)) for node in nodes if _text_of(node) is not None))


def result_again(recorded: Json, shape: str | None, function: Callable[..., Any]) -> Any:
    """A tool's recorded result: by its shape, else as the function's annotation says."""
    if shape is not None:
        return reshaped(recorded, shape, names_of(function))
    returns = hints_of(function).get("return", Any)
    if inspect.isgeneratorfunction(code_of(function)) or inspect.isasyncgenfunction(code_of(function)):
        (items, *_) = getattr(returns, "__args__", None) or (Any,)
        returns = list[items]  # type: ignore[valid-type]  # known at run time only
    return rebuild_value(recorded, returns)


# -- said ------------------------------------------------------------------------------------------------------------


def _shape(value: Any, names: Mapping[str, Any], depth: int) -> str:
    kind = type(value)
    if kind in _AS_IT_IS or depth == 0 or (kind is float and math.isfinite(value)):
        return _PLAIN
    if kind is dict:
        return _shape_of_dict(value, names, depth)
    if isinstance(value, Generated):
        return f"{kind.__name__}({_shape_of_items('list', value, names, depth)})"
    if kind in (list, tuple, set, frozenset, collections.deque):
        return _shape_of_items(_NAMES[kind], value, names, depth)
    if isinstance(value, pathlib.PurePath):
        return "pathlib.Path" if isinstance(value, pathlib.Path) else "pathlib.PurePath"
    if kind in _NAMES:
        return _NAMES[kind]
    if arrays.is_numeric(value):
        return f"{arrays.NAME}({arrays.type_of_items(value)!r})"
    if _named(kind.__qualname__, names) is kind and _is_made_again(kind):
        return kind.__qualname__
    return _PLAIN if _is_structured(value) else f"{_TEXT}({kind.__qualname__!r})"


def _shape_of_items(name: str, value: Any, names: Mapping[str, Any], depth: int) -> str:
    if all(type(item) in _AS_IT_IS for item in value):
        return _PLAIN if name == "list" else name
    shapes = [_shape(item, names, depth - 1) for item in value]
    if len(set(shapes)) == 1:
        inner = shapes[0]
        if inner == _PLAIN:
            return _PLAIN if name == "list" else name
        return f"{name}[{inner}]"
    if name in ("set", "frozenset"):  # kept sorted, so that which item is which is not known any more
        return name
    return f"{name}[[{', '.join(shapes)}]]"


def _shape_of_dict(value: dict[Any, Any], names: Mapping[str, Any], depth: int) -> str:
    shapes = [_PLAIN if type(item) in _AS_IT_IS else _shape(item, names, depth - 1) for item in value.values()]
    keys = [_shape_of_key(key, names) for key in value]
    if set(keys) <= {"str"}:
        told = {key: shape for key, shape in zip(value, shapes, strict=True) if shape != _PLAIN}
        return "{" + ", ".join(f"{key!r}: {shape}" for key, shape in told.items()) + "}" if told else _PLAIN
    return f"dict[{_one_or_each(keys)}, {_one_or_each(shapes)}]"


def _one_or_each(shapes: list[str]) -> str:
    return shapes[0] if len(set(shapes)) == 1 else f"[{', '.join(shapes)}]"


def _shape_of_key(key: Any, names: Mapping[str, Any]) -> str:
    is_written = type(key) in _AS_IT_IS or (type(key) is tuple and all(type(item) in _AS_IT_IS for item in key))
    return type(key).__name__ if is_written else _shape(key, names, 1)


def _is_made_again(kind: type) -> bool:
    return (
        dataclasses.is_dataclass(kind)
        or issubclass(kind, (pydantic.BaseModel, enum.Enum, str, int, float))
        or any(hasattr(kind, mark) for mark in ("_fields", "__attrs_attrs__", "__struct_fields__"))
    )


def _is_structured(value: Any) -> bool:
    """Whether the JSON form holds what the value holds, and not a text that stands for it."""
    scalars = (str, int, float, Mapping, list, tuple, collections.abc.Set, enum.Enum, bytes, bytearray, memoryview)
    return isinstance(value, (*scalars, dt.date, dt.time, decimal.Decimal)) or _is_made_again(type(value))


# -- made again ------------------------------------------------------------------------------------------------------


def _made(value: Json, node: ast.expr, names: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Dict) and isinstance(value, dict):
        inner = {ast.literal_eval(key): item for key, item in zip(node.keys, node.values, strict=True) if key}
        return {key: _made(item, inner[key], names) if key in inner else plain(item) for key, item in value.items()}
    if isinstance(node, ast.Subscript):
        return _made_container(value, node, names)
    if isinstance(node, ast.Call) and isinstance(value, list) and _called(node) in _GENERATORS:
        return _GENERATORS[_called(node)](_made(value, node.args[0], names))
    if isinstance(node, ast.Call) and _called(node) == arrays.NAME:
        return arrays.made_again(value, ast.literal_eval(node.args[0]))
    if isinstance(node, ast.Call) or (isinstance(node, ast.Name) and node.id == _PLAIN):
        return plain(value)
    return _made_of_class(value, ast.unparse(node), names)


def _made_container(value: Json, node: ast.Subscript, names: Mapping[str, Any]) -> Any:
    name = ast.unparse(node.value)
    if name == "dict" and isinstance(node.slice, ast.Tuple) and isinstance(value, dict):
        keys, items = [one.elts if isinstance(one, ast.List) else [one] * len(value) for one in node.slice.elts]
        return {
            _made_key(key, key_node, names): _made(item, item_node, names)
            for (key, item), key_node, item_node in zip(value.items(), keys, items, strict=True)
        }
    if not isinstance(value, list):
        raise TypeError("no list")
    if isinstance(node.slice, ast.List):
        return CONTAINERS[name](_made(item, one, names) for item, one in zip(value, node.slice.elts, strict=True))
    return CONTAINERS[name](_made(item, node.slice, names) for item in value)


_WRITTEN: Final = {kind.__name__: kind for kind in (int, bool, type(None), tuple)}
"""Kinds of keys whose text is how Python writes them."""


def _made_key(key: str, node: ast.expr, names: Mapping[str, Any]) -> Any:
    kind = _WRITTEN.get(node.id) if isinstance(node, ast.Name) else None
    if kind is None:
        return key if isinstance(node, ast.Name) and node.id == "str" else _made(key, node, names)
    made = ast.literal_eval(key)
    if type(made) is not kind:
        raise TypeError(f"no {kind.__name__}")
    return made


def _made_of_class(value: Json, name: str, names: Mapping[str, Any]) -> Any:
    if name in CONTAINERS and isinstance(value, list):
        return CONTAINERS[name](plain(value))
    if name in STANDARD:
        return STANDARD[name][1](plain(value))
    kind: Any = _named(name, names)
    if kind is None or not _is_made_again(kind):
        return plain(value)
    if hasattr(kind, "__attrs_attrs__") and isinstance(value, dict):
        return _made_by_fields(value, kind, {field.name: field.alias for field in kind.__attrs_attrs__ if field.init})
    if hasattr(kind, "__struct_fields__") and isinstance(value, dict):
        return _made_by_fields(value, kind, {field: field for field in kind.__struct_fields__})
    if issubclass(kind, (str, int, float)) and not issubclass(kind, enum.Enum):
        return kind(value)
    return _adapter(kind).validate_python(plain(value))


def _made_by_fields(value: Mapping[str, Json], kind: type, fields: Mapping[str, str]) -> Any:
    hints = hints_of(kind)
    return kind(
        **{fields[name]: rebuild_value(item, hints.get(name)) for name, item in value.items() if name in fields}
    )


@functools.lru_cache(maxsize=256)
def _adapter(kind: Any) -> pydantic.TypeAdapter[Any]:
    return pydantic.TypeAdapter(kind)


def _named(name: str, names: Mapping[str, Any]) -> type | None:
    first, *rest = name.split(".")
    found: Any = names.get(first)
    for step in rest:
        found = vars(found).get(step) if isinstance(found, type) else None
    return found if isinstance(found, type) else None


def _called(node: ast.AST) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _text_of(node: ast.AST) -> Any:
    if isinstance(node, ast.Call) and _called(node) == _TEXT and node.args:
        return getattr(node.args[0], "value", None)
    return None


def _generator(items: Iterable[Any]) -> Generator[Any, None, None]:
    yield from items


async def _async_generator(items: Iterable[Any]) -> AsyncGenerator[Any, None]:
    for item in items:
        yield item


_GENERATORS: Final[dict[str, Callable[[Iterable[Any]], Any]]] = {
    Generated.__name__: _generator,
    GeneratedAsync.__name__: _async_generator,
}
