"""Segments as bytes in a file, set aside one after the other, and read again one by one, each from its place."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Final

from spanreel_collector.conversion.clusters import Place

_AHEAD: Final = 1024 * 1024
"""Bytes of segments, which are small, that are written at a time."""


class Segments:
    """A file that segments are written to, and read from; it is not removed here."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.size = 0
        self._writing = Path(path).open("w+b", _AHEAD)  # noqa: SIM115 - closed by close
        self._reading = Path(path).open("rb", 0)  # noqa: SIM115 - the same; segments are read whole, one by one

    def add(self, data: bytes) -> tuple[int, int]:
        """Set a segment aside; returns its offset and length."""
        offset, length = self.size, len(data)
        self._writing.write(data)
        self.size += length
        return offset, length

    def flush(self) -> None:
        """Let others read what was written."""
        self._writing.flush()

    def read(self, place: Place) -> tuple[int, bytes]:
        """A segment, with the arrival of its batch's first span."""
        return read_segment(self._reading, place)

    def close(self) -> None:
        """Let go of the file."""
        self._writing.close()
        self._reading.close()


def read_segment(file: IO[bytes], place: Place) -> tuple[int, bytes]:
    """A segment of a file, with the arrival of its batch's first span."""
    first, offset, length = place
    file.seek(offset)
    return first, file.read(length)
