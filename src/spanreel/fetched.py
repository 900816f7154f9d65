"""Bodies of answers to requests that this program makes itself: how much of one is read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

LARGEST: Final = 256 * 1024 * 1024
"""Bytes of one body that are read."""


class TooLarge(Exception):
    """A body has more bytes than are read."""


def read_body(pieces: Iterable[bytes], most: int) -> bytes:
    """A body that comes in pieces.

    Raises:
        TooLarge: it has more bytes than ``most``; no more of it is read.
    """
    body = bytearray()
    for piece in pieces:
        body += piece
        if len(body) > most:
            raise TooLarge(f"more than {most} bytes")
    return bytes(body)
