"""Amazon's event stream encoding: a body of bytes to framed messages and back. No meaning.

https://smithy.io/2.0/aws/amazon-eventstream.html
"""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from spanreel.exchange import Piece

Header = tuple[str, str]
"""A header that is a text, as all are that a model's answer has."""

_TEXT: Final = 7
_PRELUDE: Final = struct.Struct(">III")
_LENGTH: Final = struct.Struct(">H")
_CHECK: Final = struct.Struct(">I")
_LEAST: Final = _PRELUDE.size + _CHECK.size


@dataclass(frozen=True, slots=True)
class Frame:
    """One message with the time at which all of it was there; ``headers`` are None where it could not be read."""

    time: float
    raw: bytes
    headers: tuple[Header, ...] | None
    payload: bytes = b""


def read_frames(pieces: Sequence[Piece]) -> list[Frame]:
    """The frames of a body; what is cut off at its end, or is none, is one that could not be read."""
    times = [time for time, _ in pieces]
    ends = list(accumulate(len(data) for _, data in pieces))
    body = b"".join(data for _, data in pieces)
    frames: list[Frame] = []
    start = 0
    while start < len(body):
        end = _end_of(body, start)
        raw = body[start:end]
        time = times[bisect_left(ends, start + len(raw))]
        read = _read(raw)
        frames.append(Frame(time, raw, None) if read is None else Frame(time, raw, *read))
        start += len(raw)
    return frames


def write_frame(headers: Sequence[Header], payload: bytes) -> bytes:
    """The bytes of one frame, with its check sums."""
    written = b"".join(_write_header(name, value) for name, value in headers)
    prelude = struct.pack(">II", _LEAST + len(written) + len(payload), len(written))
    message = prelude + _CHECK.pack(zlib.crc32(prelude)) + written + payload
    return message + _CHECK.pack(zlib.crc32(message))


def _end_of(body: bytes, start: int) -> int:
    """Where a frame ends by what it says itself; the body's end where that cannot be."""
    if len(body) - start < _LEAST:
        return len(body)
    total, _, check = _PRELUDE.unpack_from(body, start)
    sound = total >= _LEAST and check == zlib.crc32(body[start : start + 8])
    return min(start + total, len(body)) if sound else len(body)


def _read(raw: bytes) -> tuple[tuple[Header, ...], bytes] | None:
    """Headers and payload; None for what does not check."""
    if len(raw) < _LEAST or _CHECK.unpack(raw[-_CHECK.size :])[0] != zlib.crc32(raw[: -_CHECK.size]):
        return None
    _, length, _ = _PRELUDE.unpack_from(raw)
    after = _PRELUDE.size + length
    headers = _read_headers(raw[_PRELUDE.size : after])
    return None if headers is None else (headers, raw[after : -_CHECK.size])


def _read_headers(data: bytes) -> tuple[Header, ...] | None:
    headers: list[Header] = []
    at = 0
    try:
        while at < len(data):
            named = at + 1 + data[at]
            (length,) = _LENGTH.unpack_from(data, named + 1)
            value = named + 1 + _LENGTH.size
            if data[named] != _TEXT or value + length > len(data):
                return None
            headers.append((data[at + 1 : named].decode(), data[value : value + length].decode()))
            at = value + length
    except (IndexError, struct.error, UnicodeDecodeError):
        return None
    return tuple(headers)


def _write_header(name: str, value: str) -> bytes:
    key, text = name.encode(), value.encode()
    return bytes([len(key)]) + key + bytes([_TEXT]) + _LENGTH.pack(len(text)) + text
