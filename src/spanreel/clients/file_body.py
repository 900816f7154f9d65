"""A body in pieces, read by the methods of files and of urllib3's responses."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any


class PieceFile(io.RawIOBase):
    """Reads pieces as they come, none before it is asked for."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        super().__init__()
        self._pieces = pieces
        self._iterator: Iterator[bytes] | None = None
        self._rest = b""

    def readable(self) -> bool:
        """It is."""
        return True

    def stream(self, amt: int | None = None, decode_content: bool | None = None) -> Iterator[bytes]:
        """What there is, as it comes, so much at most at once."""
        while piece := self._next(amt):
            yield piece

    def read(self, amt: int | None = None, *_: Any, **__: Any) -> bytes:
        """So many bytes, fewer at the end only; all where nothing is said."""
        parts, wanted = [], None if amt is None or amt < 0 else amt
        while (wanted is None or wanted > 0) and (piece := self._next(wanted)):
            parts.append(piece)
            wanted = None if wanted is None else wanted - len(piece)
        return b"".join(parts)

    def readinto(self, buffer: Any) -> int:
        """Into a buffer, as much as it takes."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _next(self, most: int | None) -> bytes:
        if self._iterator is None:
            self._iterator = iter(self._pieces)
        piece = self._rest or next((piece for piece in self._iterator if piece), b"")
        cut = len(piece) if most is None else most
        self._rest = piece[cut:]
        return piece[:cut]
