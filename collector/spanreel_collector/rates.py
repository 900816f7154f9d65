"""How often each caller may ask: a bucket for each, which fills with time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

_BURST: Final = 5.0
"""Seconds whose requests may come at once."""


class TooOften(Exception):
    """A caller asks more often than they may; after ``seconds`` they may again."""

    def __init__(self, name: str, seconds: float) -> None:
        super().__init__(f"{name!r} asks too often")
        self.seconds = seconds


@dataclass(eq=False, slots=True)
class Rates:
    """So many requests ``a_second`` are admitted of each caller, on average. From any thread."""

    a_second: float
    clock: Callable[[], float] = time.monotonic
    _full_at: dict[tuple[str, str], float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, name: str, tenant: str = "") -> None:
        """Count a request of a caller; callers of two tenants may have the same name.

        Raises:
            TooOften: it is one too many.
        """
        now = self.clock()
        with self._lock:
            # When the bucket will be full again: each request puts it off.
            full = max(self._full_at.get((tenant, name), now), now) + 1 / self.a_second
            if (over := full - now - max(_BURST, 1 / self.a_second)) > 0:
                raise TooOften(name, over)
            self._full_at[tenant, name] = full
