"""Streams of bytes -> the export requests in them, whatever way they were written one after the other.

Knows the four framings of the Collector's file exporter (lines of JSON; a length, then protobuf; a length, then a zstd
frame of either; one zstd stream of either of the first two), gzip around any of them, and a body by itself.
"""

from __future__ import annotations

import gzip
import io
import itertools
import re
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, Literal

from spanreel_collector.sources.documents import is_json

LARGEST = 512 * 1024 * 1024
"""Bytes of one export request that are read, unpacked; a larger one is left out."""

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_BOM = b"\xef\xbb\xbf"
_RESOURCE = b"\x0a"
"""The first byte of an export request in protobuf: field 1, of a length."""
_OPENINGS = (b"{", b"[", b"[{")
_JSON = re.compile(rb"\s*[\[{][\s\"{}\[\]]")
"""How JSON begins, after an empty line, whose end is the same byte."""
_HEAD = 16
_UNREADABLE: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error)
_LITTLE = io.DEFAULT_BUFFER_SIZE
"""Of what is unpacked: where its end is missing, what was read ahead is lost with it."""
PIECE = 1024 * 1024
"""Bytes that are read at a time."""
NO_ZSTD = 'compressed with zstd, which needs a package more: pip install "spanreel[collector]"'


@dataclass(frozen=True, slots=True)
class Record:
    """One export request as bytes, and its number, from 1; ``problem`` says why there are none."""

    number: int
    data: bytes
    form: Literal["json", "protobuf"] = "json"
    problem: str | None = None


def read_records(stream: IO[bytes]) -> Iterator[Record]:
    """The records of a stream. What ends it early is a record with the problem."""
    number = 0
    try:
        for record in _records(stream, PIECE):
            number = record.number
            yield record
    except (*_UNREADABLE, *_zstd_errors()) as error:
        yield Record(number + 1, b"", problem=f"cannot be read on: {error}")
    except ImportError:
        yield Record(number + 1, b"", problem=NO_ZSTD)


def _records(stream: IO[bytes], ahead: int) -> Iterator[Record]:
    """By the first bytes: packed as a whole, or lengths, or protobuf by itself, or lines; read so far ahead."""
    begun = _Begun(stream)
    head, whole = begun.head, io.BufferedReader(begun, ahead)
    if head.startswith(_GZIP):
        with gzip.GzipFile(fileobj=whole) as unpacked:
            yield from _records(unpacked, _LITTLE)  # type: ignore[arg-type] # read is all that is asked of it
    elif head.startswith(_ZSTD):
        yield from _records(_zstd().stream_reader(whole, read_across_frames=True), _LITTLE)
    elif head[4:8] == _ZSTD or (head[:1] == b"\0" and head[4:5] == _RESOURCE):
        yield from _lengths(whole)
    elif head.startswith(_RESOURCE) and not _JSON.match(head):
        data = whole.read(LARGEST + 1)
        yield Record(1, data, "protobuf") if len(data) <= LARGEST else Record(1, b"", problem=_too_large(len(data)))
    else:
        yield from _documents(_lines(whole))


class _Begun(io.RawIOBase):
    """A stream whose first bytes are known, and come again; a pipe may give them one by one."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.head = b""
        while len(self.head) < _HEAD and (more := stream.read(_HEAD - len(self.head))):
            self.head += more
        self._left = self.head

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._left[: len(buffer)] or self._stream.read(len(buffer))
        self._left = self._left[len(data) :]
        buffer[: len(data)] = data
        return len(data)


def _zstd() -> Any:
    import zstandard  # noqa: PLC0415 - of the extra "collector", and only where a file needs it

    return zstandard.ZstdDecompressor()


def _zstd_errors() -> tuple[type[Exception], ...]:
    module = sys.modules.get("zstandard")
    return () if module is None else (module.ZstdError,)


# -- lengths ---------------------------------------------------------------------------------------------------------


def _lengths(stream: IO[bytes]) -> Iterator[Record]:
    """Each record after its length, in four bytes, the greatest first; it may be a zstd frame of its own."""
    for number in itertools.count(1):
        header = stream.read(4)
        if not header:
            return
        length = int.from_bytes(header, "big")
        if len(header) == 4 and length > LARGEST:
            # What follows cannot be found, since this is no length: the file is damaged, or of another form.
            yield Record(number, b"", problem=_too_large(length))
            return
        data = stream.read(length) if len(header) == 4 else header
        if len(header) < 4 or len(data) < length:
            yield Record(number, b"", problem=f"cut off after {len(data)} of {length} bytes")
            return
        yield _unpacked(number, data)


def _unpacked(number: int, data: bytes) -> Record:
    if data.startswith(_ZSTD):
        try:
            data = _unpack_frame(data)
        except _zstd_errors() as error:
            return Record(number, b"", problem=f"not a whole zstd frame: {error}")
        except ValueError as error:
            return Record(number, b"", problem=str(error))
    return Record(number, data, "json" if data[:1] in (b"{", b"[") else "protobuf")


def _unpack_frame(data: bytes) -> bytes:
    pieces, total = [], 0
    with _zstd().stream_reader(data) as reader:
        while piece := reader.read(PIECE):
            pieces.append(piece)
            total += len(piece)
            if total > LARGEST:
                raise ValueError(_too_large(total))
    return b"".join(pieces)


def _too_large(size: int) -> str:
    return f"one export request of {size} bytes and more; {LARGEST} are read"


# -- lines -----------------------------------------------------------------------------------------------------------


def _lines(stream: IO[bytes]) -> Iterator[Record]:
    """The lines that are not blank, without what ends them."""
    for number in itertools.count(1):
        line = stream.readline(LARGEST + 1)
        if not line:
            return
        if len(line) > LARGEST and not line.endswith(b"\n"):
            while (more := stream.readline(PIECE)) and not more.endswith(b"\n"):
                pass
            yield Record(number, b"", problem=_too_large(len(line)))
        elif text := line.strip().removeprefix(_BOM):
            yield Record(number, text)


def _documents(lines: Iterator[Record]) -> Iterator[Record]:
    """Each line is a document, or all of them are one, where it is printed for people.

    Such a file begins with a line that holds an opening bracket and nothing else.
    """
    first = next(lines, None)
    if first is None:
        return
    taken = [first]
    if first.data in _OPENINGS:
        size = 0
        for line in lines:
            taken.append(line)
            size += len(line.data)
            if size > LARGEST:
                break
        else:
            whole = b"\n".join(line.data for line in taken)
            if is_json(whole):
                yield Record(first.number, whole)
                return
    yield from taken
    yield from lines
