"""Python reprs of objects, read as data: ``Name(field=value)`` becomes ``{"": "Name", "field": value}``."""

from __future__ import annotations

import ast
import re

from spanreel.model import Json

_LONGEST = 1_000_000
_ENDS = ("{}", "[]", "''")
"""How the reprs of a mapping, a list and a text begin and end."""
_ENUM = re.compile(r"<\w+(?:\.\w+)+: ('[^']*'|\"[^\"]*\"|\d+)>")

_NAMELESS = re.compile(r"<(lambda|locals)>")
_OBJECT = re.compile(r"<(?:[^<>'\"]* at 0x[0-9a-fA-F]+|[^<>'\"]* of None|class '[\w.]+')>")
"""An object that shows where it is, a method of one, a class."""


def parse(text: str) -> Json:
    """The value that a repr shows; enum members are their values, and objects that show their place in memory None.

    Raises:
        ValueError: no repr of literals and of objects that are shown by their fields; too long, cut off.
    """
    if len(text) > _LONGEST:
        raise ValueError("too long")
    shown = _ENUM.sub(r"\1", text.strip())
    try:
        return _value(_parsed(shown) or ast.parse(_without_objects(shown), mode="eval").body)
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError("no repr") from error


def _parsed(shown: str) -> ast.expr | None:
    """The expression; None where it is none as it stands."""
    try:
        return ast.parse(shown, mode="eval").body
    except SyntaxError:
        return None


def _without_objects(shown: str) -> str:
    """The repr with None for what shows no value: functions, as callbacks are, methods of objects, classes."""
    shown = _NAMELESS.sub(r"\1", shown)
    return _OBJECT.sub("None", _OBJECT.sub("None", shown))


def unquoted(name: str | None) -> str | None:
    """A tool's name out of its repr, which writers leave of what stands too deep for them."""
    return name[1:-1] if name and len(name) > 2 and name[0] == name[-1] == "'" else name


def undone(value: Json) -> Json:
    """A JSON Schema, whose deeper values may be reprs of what they were."""
    if isinstance(value, dict):
        return {key: undone(item) for key, item in value.items()}
    if isinstance(value, list):
        return [undone(item) for item in value]
    if not isinstance(value, str) or value[:1] + value[-1:] not in _ENDS:
        return value
    try:
        return undone(parse(value))
    except ValueError:
        return value


def without_names(value: Json) -> Json:
    """What was parsed, without the names of classes."""
    if isinstance(value, dict):
        return {key: without_names(item) for key, item in value.items() if key}
    return [without_names(item) for item in value] if isinstance(value, list) else value


def _value(node: ast.expr) -> Json:
    match node:
        case ast.Constant(value=str() | int() | float() | None as value):
            return value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_value(item) for item in items]
        case ast.Dict(keys=keys, values=items) if all(isinstance(key, ast.Constant) for key in keys):
            return {str(_value(key)): _value(item) for key, item in zip(keys, items, strict=True) if key is not None}
        case ast.Call(func=ast.Name(id=name), args=[], keywords=fields):
            return {"": name, **{field.arg or "": _value(field.value) for field in fields}}
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case _:
            raise ValueError(f"{type(node).__name__} is no literal")
