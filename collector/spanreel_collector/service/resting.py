"""Which traces are left alone for some time: one endless conversation would leave none for the others."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

_REST: Final = 9.0
"""A conversation that took so long that it must rest does so for this many times as long."""


@dataclass(eq=False, slots=True)
class Resting:
    """Traces whose sessions took more than ``dear_seconds`` of the processor's time.

    Those of which too much came rest for good.
    """

    dear_seconds: float
    too_large: set[bytes] = field(default_factory=set)
    _until: dict[bytes, float] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self._until or self.too_large)

    def note(self, traces: Iterable[bytes], took: float) -> None:
        """Let them rest, if they took too many seconds of the processor."""
        now = time.monotonic()
        if took > self.dear_seconds:
            self._until = {trace: until for trace, until in self._until.items() if until > now}
            self._until |= dict.fromkeys(traces, now + _REST * took)

    def rests(self, traces: frozenset[bytes]) -> bool:
        """Whether some of them rest now."""
        now = time.monotonic()
        return any(self._until.get(trace, 0.0) > now for trace in traces)

    def wake(self) -> None:
        """End all rest but that of what is too large."""
        self._until.clear()
