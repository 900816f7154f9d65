"""How far a conversion is, for people who wait: one line on a terminal, written over; nothing where nobody looks."""

from __future__ import annotations

import sys
import time
from typing import Self, TextIO

_EVERY = 0.2
_WIDTH = 24


class Progress:
    """A line that says what is being done, and how much of it is."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._shown = self._stream.isatty()
        self._doing = ""
        self._done = self._total = 0
        self._said = 0.0
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._write("")

    def begin(self, doing: str, total: int) -> None:
        """Something else is being done, of this much (0: nobody knows)."""
        self._doing, self._done, self._total = doing, 0, total
        self._began = time.monotonic()

    def advance(self, amount: int) -> None:
        """This much more of it is done."""
        self._done += amount
        now = time.monotonic()
        if self._shown and now - self._said >= _EVERY:
            self._said = now
            self._write(self._line(now))

    def _line(self, now: float) -> str:
        if not self._total:
            return f"{self._doing}: {self._done / 1_000_000:.0f} MB"
        share = min(1.0, self._done / self._total)
        bar = "#" * int(share * _WIDTH)
        left = (now - self._began) * (1 - share) / share if share else 0.0
        return f"{self._doing} [{bar:<{_WIDTH}}] {share:4.0%}, {left:.0f} s left"

    def _write(self, text: str) -> None:
        if self._shown:
            self._stream.write(f"\r\x1b[K{text}")
            self._stream.flush()
