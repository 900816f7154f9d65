"""Streams of bytes -> the export requests in them, whatever way they were written one after the other.

Knows the four framings of the Collector's file exporter (lines of JSON; a length, then protobuf; a length, then a zstd
frame of either; one zstd stream of either of the first two), gzip around any of them, and a body by itself.
"""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any, Literal

from spanreel_collector import json_text
from spanreel_collector.sources.documents import is_json
from spanreel_collector.sources.unpacking import GZIP, NO_ZSTD, ZSTD, Unpacked, packing_errors, zstd

LARGEST = 512 * 1024 * 1024
"""Bytes of one export request that are read, unpacked; a larger one is left out."""

_BOM = b"\xef\xbb\xbf"
_RESOURCE = b"\x0a"
"""The first byte of an export request in protobuf: field 1, of a length."""
_OPENINGS = (b"{", b"[", b"[{")
_JSON = re.compile(rb"\s*[\[{][\s\"{}\[\]]")
"""How JSON begins, after an empty line, whose end is the same byte."""
_HEAD = 16
PIECE = 1024 * 1024
"""Bytes that are read at a time."""
_STRANGERS = {
    b"PK\x03\x04": "a zip archive: unpack it first",
    b"BZh": "compressed with bzip2: unpack it first",
    b"\xfd7zXZ\0": "compressed with xz: unpack it first",
    b"SQLite format 3": "a SQLite database, no telemetry in a file",
    b"\xff\xfe": "text in UTF-16: write it anew in UTF-8",
    b"\xfe\xff": "text in UTF-16: write it anew in UTF-8",
}
"""How files begin that are none of these, and what to do."""


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
        for record in _records(stream, lambda: None):
            number = record.number
            yield record
    except OSError as error:
        yield Record(number + 1, b"", problem=_ended_early(str(error)))
    except ImportError:
        yield Record(number + 1, b"", problem=NO_ZSTD)


def _records(stream: IO[bytes], problem: Callable[[], str | None]) -> Iterator[Record]:
    """By the first bytes: packed as a whole, or lengths, or protobuf by itself, or lines.

    ``problem`` says, at the end, why the stream ended before its time.
    """
    begun = _Begun(stream)
    head, whole = begun.head, io.BufferedReader(begun, PIECE)
    packed = next((kind for kind in (GZIP, ZSTD) if head.startswith(kind)), None)
    stranger = next((reason for opening, reason in _STRANGERS.items() if head.startswith(opening)), None)
    if packed is not None:
        unpacked = Unpacked(whole, packed)
        yield from _records(unpacked, lambda: unpacked.problem or problem())  # type: ignore[arg-type] # it only reads
    elif stranger is not None:
        yield Record(1, b"", problem=stranger)
    elif head[4:8] == ZSTD or (head[:1] == b"\0" and head[4:5] == _RESOURCE):
        yield from _lengths(whole, problem)
    elif head.startswith(_RESOURCE) and head.strip() and not _JSON.match(head):
        data = whole.read(LARGEST + 1)
        too_large = _too_large(len(data)) if len(data) > LARGEST else None
        early = problem()
        yield Record(1, b"" if too_large else data, "protobuf", too_large or (_ended_early(early) if early else None))
    else:
        yield from _documents(_lines(whole, problem))


def _ended_early(why: str) -> str:
    return f"cannot be read on: {why}"


class _Begun(io.RawIOBase):
    """A stream whose first bytes are known, and come again; a pipe may give them one by one."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.head = b""
        while len(self.head) < _HEAD and (more := stream.read(_HEAD - len(self.head))):
            self.head += more
        self._left = self.head

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            size: int = self._stream.readinto(buffer)
            return size
        data = self._left[: len(buffer)]
        self._left = self._left[len(data) :]
        buffer[: len(data)] = data
        return len(data)


# -- lengths ---------------------------------------------------------------------------------------------------------


def _lengths(stream: IO[bytes], problem: Callable[[], str | None]) -> Iterator[Record]:
    """Each record after its length, in four bytes, the greatest first; it may be a zstd frame of its own."""
    for number in itertools.count(1):
        header = stream.read(4)
        if not header:
            if early := problem():
                yield Record(number, b"", problem=_ended_early(early))
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
    if data.startswith(ZSTD):
        try:
            data = _unpack_frame(data)
        except packing_errors() as error:
            return Record(number, b"", problem=f"not a whole zstd frame: {error}")
        except ValueError as error:
            return Record(number, b"", problem=str(error))
    return Record(number, data, "json" if data[:1] in (b"{", b"[") else "protobuf")


def _unpack_frame(data: bytes) -> bytes:
    pieces, total = [], 0
    with zstd().stream_reader(data) as reader:
        while piece := reader.read(PIECE):
            pieces.append(piece)
            total += len(piece)
            if total > LARGEST:
                raise ValueError(_too_large(total))
    return b"".join(pieces)


def _too_large(size: int) -> str:
    return f"one export request of {size} bytes and more; {LARGEST} are read"


# -- lines -----------------------------------------------------------------------------------------------------------


def _lines(stream: IO[bytes], problem: Callable[[], str | None]) -> Iterator[Record]:
    """The lines that are not blank, without what ends them."""
    for number in itertools.count(1):
        line = stream.readline(LARGEST + 1)
        early = None if line.endswith(b"\n") else problem()
        if early and not is_json(line):
            yield Record(number, b"", problem=_ended_early(early))
            return
        if not line:
            return
        if len(line) > LARGEST and not line.endswith(b"\n"):
            while (more := stream.readline(PIECE)) and not more.endswith(b"\n"):
                pass
            yield Record(number, b"", problem=_too_large(len(line)))
        elif text := line.strip().removeprefix(_BOM):
            yield Record(number, text)
        if early:
            yield Record(number + 1, b"", problem=_ended_early(early))
            return


def _documents(lines: Iterator[Record]) -> Iterator[Record]:
    """Each line is a document, or several are one, where it is printed for people.

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
            whole = b"\n".join(line.data for line in taken if line.problem is None)
            if is_json(whole):
                yield Record(first.number, whole)
            else:
                yield from _printed(whole, first.number)
            yield from (line for line in taken if line.problem is not None)
            return
    yield from taken
    yield from lines


def _printed(text: bytes, first: int) -> Iterator[Record]:
    """Documents that are printed for people, one after the other; each has the number of the line it begins in.

    Blank lines, which are gone, are not counted.
    """
    for offset, document in json_text.documents(text):
        yield Record(first + text.count(b"\n", 0, offset), document)
