"""Protobuf's wire format, without a schema: the fields of a message and where they stand.

What a field holds is for others; https://protobuf.dev/programming-guides/encoding/ is the source.
"""

from __future__ import annotations

from typing import Final, NamedTuple

VARINT: Final = 0
FIXED64: Final = 1
LENGTH: Final = 2
FIXED32: Final = 5

_LONGEST_VARINT: Final = 10
_SIZES: Final = {FIXED64: 8, FIXED32: 4}


class TooMany(ValueError):
    """A message has more fields than are read."""


class Field(NamedTuple):
    """A field: its number, its wire type, where it begins, and where its content does and ends."""

    number: int
    wire: int
    begin: int
    start: int
    end: int


def read_fields(data: bytes, start: int, end: int, most: int | None = None) -> list[Field]:
    """The fields of the message between two places, in order; ``most`` bounds how many are read.

    Raises:
        TooMany: there are more.
        ValueError: this is no message, or not all of one.
    """
    found: list[Field] = []
    while start < end:
        begin = start
        tag = data[start]
        start += 1
        if tag >= 0x80:
            tag, start = read_varint(data, begin, end)
        wire = tag & 7
        if wire == LENGTH:
            length, start = read_varint(data, start, end)
        elif wire == VARINT:
            length = read_varint(data, start, end)[1] - start
        elif wire in _SIZES:
            length = _SIZES[wire]
        else:
            raise ValueError(f"not protobuf: wire type {wire} at byte {begin}")
        if tag < 8:
            raise ValueError(f"not protobuf: field number 0 at byte {begin}")
        if length > end - start:
            raise ValueError(f"cut off: {length} bytes at byte {start}, of which {end - start} are there")
        found.append(Field(tag >> 3, wire, begin, start, start + length))
        if most is not None and len(found) > most:
            raise TooMany(f"more than {most} in one message")
        start += length
    return found


def read_varint(data: bytes, start: int, end: int) -> tuple[int, int]:
    """The number at a place, and where it ends.

    Raises:
        ValueError: it does not end.
    """
    value = shift = 0
    for place in range(start, min(end, start + _LONGEST_VARINT)):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place + 1
        shift += 7
    raise ValueError(f"cut off, or not protobuf: a number without an end at byte {start}")


def write_varint(value: int) -> bytes:
    """A number as it is written."""
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def write_head(number: int, size: int) -> bytes:
    """What stands before the content of a field that has a length."""
    return write_varint(number << 3 | LENGTH) + write_varint(size)
