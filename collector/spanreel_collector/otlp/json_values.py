"""Values of OTLP/JSON: attributes and what they hold, ids, numbers in either form. Strict where ids are concerned."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from spanreel.model import Json
from spanreel_collector.otlp.json_members import list_of, objects
from spanreel_collector.span import Attributes

DEEPEST_VALUE = 40
"""Levels of nested AnyValues that are read; each takes up to four levels of JSON."""
_LARGEST = 2**64
_DIGITS = 20
"""Of the largest number; whatever has fewer is not out of range."""
_NUMERALS = frozenset({int, float, str})
"""Types of JSON that numbers are written in; true and false are of another."""
_HEX = re.compile("[0-9a-fA-F]*")
_WHOLE = re.compile("[+-]?[0-9]+")


def read_attributes(pairs: Any) -> Attributes:
    """The attributes of a list of them; what is no pair is passed over.

    Raises:
        ValueError: they are no list, a key is no text, or a value cannot be read.
    """
    attributes: dict[str, Json] = {}
    if pairs is not None and not isinstance(pairs, list):
        raise ValueError(f"attributes are {type(pairs).__name__}, not a list of keys and values")
    for pair in pairs or ():
        if type(pair) is not dict:
            continue
        key, value = pair.get("key"), pair.get("value")
        if type(key) is not str:
            raise ValueError(f"an attribute's key is {type(key).__name__}, not text")
        # Most values are text: the way there is kept short.
        if type(value) is dict and len(value) == 1 and (text := value.get("stringValue")) is not None:
            attributes[key] = text
            continue
        try:
            attributes[key] = _read_value(value, 0)
        except ValueError as error:
            raise ValueError(f"attribute {key!r}: {error}") from error
    return attributes


def read_value(value: Any) -> Json:
    """Decode an AnyValue; None where it is empty.

    Raises:
        ValueError: it is none, or nested too deep.
    """
    return _read_value(value, 0)


def _read_value(value: Any, depth: int) -> Json:
    """Decode an AnyValue; None where it is empty."""
    if value is None or value == {}:
        return None
    if not isinstance(value, dict):
        raise ValueError(f"expected an AnyValue, got {type(value).__name__}")
    if depth > DEEPEST_VALUE:
        raise ValueError(f"nested more than {DEEPEST_VALUE} levels deep")
    kind, content = next(iter(value.items()))
    if len(value) > 1 and content is None:  # some writers list all kinds, with null in all but one
        kind, content = next(((kind, item) for kind, item in value.items() if item is not None), (kind, content))
    match kind:
        case "stringValue" | "boolValue" | "string_value" | "bool_value":
            return content
        case "intValue" | "int_value":
            return None if content is None else whole(content, "intValue")
        case "doubleValue" | "double_value":
            return None if content is None else _float(content)
        case "bytesValue" | "bytes_value":
            return _read_bytes(content)
        case "arrayValue" | "array_value":
            return [_read_value(item, depth + 1) for item in list_of(content, "values")]
        case "kvlistValue" | "kvlist_value":
            pairs = objects(content, "values")
            return {str(pair.get("key", "")): _read_value(pair.get("value"), depth + 1) for pair in pairs}
        case _:
            raise ValueError(f"unknown kind of value {kind!r}")


def _float(content: Any) -> float:
    """A double; "NaN", "Infinity" and "-Infinity" come as text."""
    if type(content) not in _NUMERALS:
        raise ValueError(f"doubleValue is {type(content).__name__}, not a number")
    try:
        return float(content)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"doubleValue {str(content)[:40]!r} is not a number") from error


def _read_bytes(content: Any) -> bytes | None:
    if content is None:
        return None
    try:
        text = str(content).replace("-", "+").replace("_", "/")
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError(f"bytesValue is not base64: {error}") from error


def identity(value: Any, field: str, digits: int) -> str | None:
    """An id as lower-case hex; None where there is none (absent, empty or all zeros).

    Raises:
        ValueError: it is not of so many hex digits.
    """
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) != digits or not _HEX.fullmatch(value):
        raise ValueError(
            f"{field} {str(value)[:60]!r} is not {digits} hex digits (OTLP/JSON writes ids in hex, not base64)"
        )
    return value.lower() if value.strip("0") else None


def enumerated(value: Any, key: str, names: dict[str, int]) -> int:
    """A number that may be written as its name; 0 where it is absent or not known."""
    if isinstance(value, str) and not value.isdecimal():
        # With its kind before it, as the protocol has it, or without, as people write it.
        return next((number for name, number in names.items() if name.endswith(f"_{value}") or name == value), 0)
    return unsigned(value, key)


def unsigned(value: Any, key: str) -> int:
    """An unsigned number, written as a number or as text; 0 where absent."""
    if value is None or value == "":
        return 0
    if type(value) is str and len(value) < _DIGITS and value.isascii() and value.isdecimal():
        return int(value)
    number = value if type(value) is int else whole(value, key)
    if not 0 <= number < _LARGEST:
        raise ValueError(f"{key} {number!r} is out of range")
    return number


def whole(value: Any, key: str) -> int:
    """A whole number, written as a number or as its digits.

    Raises:
        ValueError: it is none; what it is, which may be a secret, is not told.
    """
    if type(value) not in _NUMERALS:
        raise ValueError(f"{key} is {type(value).__name__}, not a number")
    if type(value) is str and not _WHOLE.fullmatch(value):
        raise ValueError(f"{key} is not a whole number")
    try:
        return int(value)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{key} is not a whole number") from error
