"""OTLP/JSON <-> protobuf messages, by their descriptors.

As strict as the specification in what is written, as lenient as the Collector in what is read: either spelling of
members, enums by name, integers as numbers or text, null for what is absent, hex ids of any case. Members that are not
known are passed over.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Mapping
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor as Kind
from google.protobuf.message import Message

from spanreel_collector.otlp.items import BadId
from spanreel_collector.otlp.json_values import DEEPEST_VALUE, whole

_IDS: Final = {"trace_id": 32, "span_id": 16, "parent_span_id": 16}
"""Fields that are written in hex, and how many digits they have."""
_HEX: Final = re.compile("[0-9a-fA-F]*")
_INTEGERS: Final[Mapping[int, tuple[int, int]]] = {
    **dict.fromkeys((Kind.TYPE_INT64, Kind.TYPE_SFIXED64, Kind.TYPE_SINT64), (-(2**63), 2**63 - 1)),
    **dict.fromkeys((Kind.TYPE_UINT64, Kind.TYPE_FIXED64), (0, 2**64 - 1)),
    **dict.fromkeys((Kind.TYPE_INT32, Kind.TYPE_SFIXED32, Kind.TYPE_SINT32), (-(2**31), 2**31 - 1)),
    **dict.fromkeys((Kind.TYPE_UINT32, Kind.TYPE_FIXED32), (0, 2**32 - 1)),
}
_WIDE: Final = frozenset(kind for kind, (_, greatest) in _INTEGERS.items() if greatest > 2**32)
_SPECIAL: Final = {math.inf: "Infinity", -math.inf: "-Infinity"}


def fill(message: Message, said: Any, without: str = "") -> Message:
    """A message of what JSON says, but for one member (a field's name); the message that was given.

    Raises:
        ValueError: it says something that this message cannot; names the member.
    """
    _fill(message, said, without, 0)
    return message


def _fill(message: Any, said: Any, without: str, depth: int) -> None:
    if not isinstance(said, dict):
        raise ValueError(f"expected an object, got {type(said).__name__}")
    fields = _fields(message.DESCRIPTOR)
    for name, value in said.items():
        field = fields.get(name)
        if field is None or value is None or field.name == without:
            continue
        if not _repeated(field):
            _set(message, field, value, depth)
            continue
        if not isinstance(value, list):
            raise ValueError(f"{field.json_name} is {type(value).__name__}, not a list")
        into = getattr(message, field.name)
        for item in value:
            if field.type == Kind.TYPE_MESSAGE:
                _fill(into.add(), {} if item is None else item, "", _deeper(field, depth))
            elif item is not None:
                into.append(_scalar(field, item))


def _set(message: Any, field: Any, value: Any, depth: int) -> None:
    if field.type == Kind.TYPE_MESSAGE:
        inner = getattr(message, field.name)
        inner.SetInParent()
        _fill(inner, value, "", _deeper(field, depth))
    else:
        setattr(message, field.name, _scalar(field, value))


def _deeper(field: Any, depth: int) -> int:
    """The level of AnyValues that a field's content stands at."""
    if field.message_type.name != "AnyValue":
        return depth
    if depth > DEEPEST_VALUE:
        raise ValueError(f"nested more than {DEEPEST_VALUE} levels deep")
    return depth + 1


def _scalar(field: Any, value: Any) -> Any:
    name = field.json_name
    if field.type in _INTEGERS:
        return _integer(name, value, *_INTEGERS[field.type])
    match field.type:
        case Kind.TYPE_STRING:
            if not isinstance(value, str):
                raise ValueError(f"{name} is {type(value).__name__}, not text")
            return value
        case Kind.TYPE_BYTES:
            return _identity(name, value, _IDS[field.name]) if field.name in _IDS else _decode(name, value)
        case Kind.TYPE_ENUM:
            named = field.enum_type.values_by_name.get(value) if isinstance(value, str) else None
            return named.number if named else _integer(name, value, -(2**31), 2**31 - 1)
        case Kind.TYPE_BOOL:
            if isinstance(value, bool) or value in ("true", "false"):
                return value is True or value == "true"
            raise ValueError(f"{name} is {type(value).__name__}, not true or false")
        case Kind.TYPE_DOUBLE | Kind.TYPE_FLOAT:
            return _real(name, value)
        case _:
            raise ValueError(f"{name} is of a type that is not known")


def _integer(name: str, value: Any, least: int, greatest: int) -> int:
    if value == "":
        return 0
    number = whole(value, name)
    if not least <= number <= greatest:
        raise ValueError(f"{name} is out of range")
    return number


def _real(name: str, value: Any) -> float:
    """A number; "NaN", "Infinity" and "-Infinity" come as text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{name} is {type(value).__name__}, not a number")
    try:
        return float(value)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{name} is not a number") from error


def _identity(name: str, value: Any, digits: int) -> bytes:
    if value == "":
        return b""
    if not isinstance(value, str) or len(value) != digits or not _HEX.fullmatch(value):
        raise BadId(f"{name} {str(value)[:60]!r} is not {digits} hex digits (OTLP/JSON writes ids in hex, not base64)")
    return bytes.fromhex(value)


def _decode(name: str, value: Any) -> bytes:
    if not isinstance(value, str):
        raise ValueError(f"{name} is {type(value).__name__}, not base64")
    try:
        text = value.replace("-", "+").replace("_", "/")
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"{name} is not base64: {error}") from error


# -- written ---------------------------------------------------------------------------------------------------------


def write(message: Message) -> dict[str, Any]:
    """A message as OTLP/JSON. What is not known of it is not in it."""
    return {field.json_name: _written(field, value) for field, value in message.ListFields()}


def _written(field: Any, value: Any) -> Any:
    if _repeated(field):
        return [_one(field, item) for item in value]
    return _one(field, value)


def _one(field: Any, value: Any) -> Any:
    match field.type:
        case Kind.TYPE_MESSAGE:
            return write(value)
        case Kind.TYPE_BYTES:
            return value.hex() if field.name in _IDS else base64.b64encode(value).decode("ascii")
        case Kind.TYPE_DOUBLE | Kind.TYPE_FLOAT if not math.isfinite(value):
            return _SPECIAL.get(value, "NaN")
        case _:
            return str(value) if field.type in _WIDE else value


def _fields(descriptor: Any) -> Mapping[str, Any]:
    """The fields of a message by both of their spellings."""
    known = _KNOWN.get(descriptor.full_name)
    if known is None:
        known = {name: field for field in descriptor.fields for name in (field.name, field.json_name)}
        _KNOWN[descriptor.full_name] = known
    return known


_KNOWN: Final[dict[str, Mapping[str, Any]]] = {}
"""What was worked out of descriptors, which do not change."""


def _repeated(field: Any) -> bool:
    """Older releases of protobuf know only the label."""
    repeated = getattr(field, "is_repeated", None)
    return bool(field.label == Kind.LABEL_REPEATED if repeated is None else repeated)
