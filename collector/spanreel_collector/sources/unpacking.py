"""Packed streams as plain ones: gzip and zstd, several one after the other, damaged or cut off.

What was whole before the damage is given first: a stream ends there, and says why.
"""

from __future__ import annotations

import io
import sys
import zlib
from collections.abc import Callable
from typing import IO, Any, Final, Protocol

GZIP: Final = b"\x1f\x8b"
ZSTD: Final = b"\x28\xb5\x2f\xfd"
NO_ZSTD: Final = 'compressed with zstd, which needs a package more: pip install "spanreel[collector]"'
CUT: Final = "the compressed data is cut off"
_PACKED_PIECE: Final = {GZIP: 16 * 1024, ZSTD: 1024}
"""Packed bytes that are unpacked at a time: what comes of them, which no call bounds, stays under some 32 MB."""
_GZIP_ONLY: Final = 31


class _Decoder(Protocol):
    """What reads one packed stream."""

    @property
    def eof(self) -> bool:
        """Whether its end was there."""
        ...

    @property
    def unused_data(self) -> bytes:
        """What came after its end."""
        ...

    def decompress(self, data: bytes, /) -> bytes:
        """What these bytes add."""
        ...


class Unpacked(io.RawIOBase):
    """What a packed stream holds, until it ends or cannot be read on; ``problem`` then says why, if there is one."""

    def __init__(self, stream: IO[bytes], kind: bytes) -> None:
        self._stream = stream
        self._piece = _PACKED_PIECE[kind]
        self._make = _DECODERS[kind]
        self._decoder: _Decoder | None = self._make()
        self._packed = self._plain = b""
        self._begun = self._ended = False
        self.problem: str | None = None

    def readable(self) -> bool:
        """Whether it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer, as far as one piece goes."""
        while not self._plain and not self._ended:
            self._plain = self._next()
        size = min(len(buffer), len(self._plain))
        buffer[:size], self._plain = self._plain[:size], self._plain[size:]
        return size

    def _next(self) -> bytes:
        """What the next packed piece holds; the end, where there is none."""
        piece = self._packed or self._stream.read(self._piece)
        self._packed = b""
        try:
            if not piece:
                self._ended = True
                self.problem = CUT if self._begun else None
                return b""
            if not self._begun and not (piece := piece.lstrip(b"\0")):
                return b""  # what pads the end of a stream
            self._begun = True
            self._decoder = self._decoder or self._make()
            plain = self._decoder.decompress(piece)
        except packing_errors() as error:
            self._ended, self.problem = True, str(error)
            return b""
        if self._decoder.eof:
            self._packed, self._decoder, self._begun = self._decoder.unused_data, None, False
        return plain


def _gzip() -> _Decoder:
    decoder: _Decoder = zlib.decompressobj(_GZIP_ONLY)
    return decoder


def _zstd() -> _Decoder:
    decoder: _Decoder = zstd().decompressobj()
    return decoder


_DECODERS: Final[dict[bytes, Callable[[], _Decoder]]] = {GZIP: _gzip, ZSTD: _zstd}


def zstd() -> Any:
    """What unpacks zstd.

    Raises:
        ImportError: it is not installed.
    """
    import zstandard  # noqa: PLC0415 - of the extra "collector", and only where a file needs it

    return zstandard.ZstdDecompressor()


def packing_errors() -> tuple[type[Exception], ...]:
    """What unpacking raises where it cannot go on."""
    module = sys.modules.get("zstandard")
    return (zlib.error,) if module is None else (zlib.error, module.ZstdError)
