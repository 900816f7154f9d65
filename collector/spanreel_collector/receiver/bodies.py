"""Bodies of requests, never more than a limit: as they come, and unpacked.

What is packed grows a piece at a time, so that a bomb costs no more than the limit. What a body says is for others.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

import zstandard

from spanreel_collector.otlp.parts import TooLarge, Undecodable

inflating: Any = zlib
with suppress(ImportError):  # it has no wheel for every machine
    # Three fifths of the time.
    from isal import isal_zlib as inflating

_PIECE: Final = 64 * 1024
_MOST_MEMBERS: Final = 1_000
"""Of a gzip file: each costs a little, also where nothing is in it."""
_MOST_BLOCKS: Final = 100_000
_LARGEST_WINDOW: Final = 8 * 1024 * 1024
"""What the zstd specification recommends to support."""
_AUTOMATIC: Final = 31
_SKIPPABLE: Final = range(0x184D2A50, 0x184D2A60)
_RLE, _RESERVED = 1, 3


class UnknownEncoding(ValueError):
    """A content encoding that is not read."""


def unpack(body: bytes, encoding: str, limit: int) -> bytes:
    """A body without its content encoding.

    Raises:
        UnknownEncoding: it is none that is read.
        Undecodable: the body is not what its encoding says.
        TooLarge: it would be more than the limit.
    """
    names = [each for each in (one.strip().lower() for one in encoding.split(",")) if each not in ("", "identity")]
    if not names:
        return body
    name = ",".join(names)
    read = _ENCODINGS.get(name)
    if read is None:
        raise UnknownEncoding(f"content encoding {encoding[:40]!r} is none of {', '.join(_ENCODINGS)}")
    pieces: list[bytes] = []
    total = 0
    try:
        for piece in read(body):
            total += len(piece)
            if total > limit:
                raise TooLarge(f"more than {limit} bytes, unpacked")
            pieces.append(piece)
    except (inflating.error, zstandard.ZstdError) as error:
        raise Undecodable(f"not {name}: {error}") from error
    return b"".join(pieces)


def _read_gzip(body: bytes) -> Iterator[bytes]:
    """The members of a gzip file, one after the other; zeros after the last are padding."""
    members = 0
    unpacker = inflating.decompressobj(_AUTOMATIC)
    begun = False
    for waiting in _pieces(body):
        piece = waiting
        while piece:
            if not begun:
                piece = piece.lstrip(b"\0") if members else piece
                begun = bool(piece)
                continue
            yield from _inflate(unpacker, piece)
            piece = unpacker.unused_data
            if unpacker.eof:
                members += 1
                if members > _MOST_MEMBERS:
                    raise Undecodable(f"gzip of more than {_MOST_MEMBERS} members")
                unpacker, begun = inflating.decompressobj(_AUTOMATIC), False
    if begun or not members:
        raise Undecodable("not gzip: cut off")


def _inflate(unpacker: Any, piece: bytes) -> Iterator[bytes]:
    while piece and not unpacker.eof:
        yield unpacker.decompress(piece, _PIECE)
        piece = unpacker.unconsumed_tail


def _read_deflate(body: bytes) -> Iterator[bytes]:
    """The zlib format, which HTTP calls deflate."""
    unpacker = inflating.decompressobj()
    for piece in _pieces(body):
        yield from _inflate(unpacker, piece)
    if not unpacker.eof:
        raise Undecodable("not deflate: cut off")


def _pieces(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), _PIECE):
        yield body[start : start + _PIECE]


# -- zstd: https://www.rfc-editor.org/rfc/rfc8878 --------------------------------------------------------------------


def _read_zstd(body: bytes) -> Iterator[bytes]:
    """The frames of a zstd body; they are found first, since the reader does not say that one is cut off."""
    _check_frames(body)
    unpacker = zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW)
    with unpacker.stream_reader(body, read_across_frames=True) as reader:
        while piece := reader.read(_PIECE):
            yield piece


def _check_frames(body: bytes) -> None:
    place = blocks = 0
    while place < len(body):
        magic = int.from_bytes(body[place : place + 4], "little")
        blocks += 1
        if magic in _SKIPPABLE and blocks <= _MOST_BLOCKS:
            place += 8 + int.from_bytes(body[place + 4 : place + 8], "little")
            continue
        head = body[place : place + 32]
        size = zstandard.frame_header_size(head)
        checksum = 4 if zstandard.get_frame_parameters(head).has_checksum else 0
        place += size
        last = False
        while not last:
            blocks += 1
            if place + 3 > len(body) or blocks > _MOST_BLOCKS:
                raise Undecodable("not zstd: cut off, or of very many blocks")
            block = int.from_bytes(body[place : place + 3], "little")
            last, kind = bool(block & 1), block >> 1 & 3
            if kind == _RESERVED:
                raise Undecodable("not zstd: a block of no known kind")
            place += 3 + (1 if kind == _RLE else block >> 3)
        place += checksum
    if not body or place > len(body):
        raise Undecodable("not zstd: cut off")


_ENCODINGS: Final[dict[str, Callable[[bytes], Iterator[bytes]]]] = {
    "gzip": _read_gzip,
    "x-gzip": _read_gzip,
    "zstd": _read_zstd,
    "deflate": _read_deflate,
}
ENCODINGS: Final = "gzip, zstd, deflate, identity"
