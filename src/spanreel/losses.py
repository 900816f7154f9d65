"""What the recorder had to drop, counted by reason: for the next span that leaves, for the log, and in all."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from typing import Final

from spanreel.quiet import LOG

QUEUE_FULL: Final = "queue_full"
"""Spans for which the queue had no room."""
QUEUE_FULL_CONTENT: Final = "queue_full_content"
"""Spans that left without their content, since the queue had no room for it."""
CAPTURE_FAILED: Final = "capture_failed"
"""Spans that left without their content, since it could not be read."""
EXPORT_FAILED: Final = "export_failed"
"""Spans that an exporter did not take; with several exporters, each counts its own."""
AT_EXIT: Final = "at_exit"
"""Spans that could not leave in the time that the process's exit allows."""
AFTER_SHUTDOWN: Final = "after_shutdown"
"""Spans that ended when recording had been shut down."""

LOG_SECONDS: Final = 60.0


class Losses:
    """Counts, thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._total: Counter[str] = Counter()
        self._unsaid: Counter[str] = Counter()
        self._logged: Counter[str] = Counter()
        self._logged_at = float("-inf")
        self._why = ""

    def add(self, reason: str, number: int = 1) -> None:
        """Count a loss."""
        with self._lock:
            self._total[reason] += number
            self._unsaid[reason] += number

    def take(self) -> dict[str, int]:
        """What no span has said so far; the caller says it, or `put_back`s it."""
        with self._lock:
            unsaid, self._unsaid = dict(self._unsaid), Counter()
        return unsaid

    def put_back(self, counts: Mapping[str, int]) -> None:
        """What was taken has not been said after all."""
        with self._lock:
            self._unsaid.update(counts)

    def total(self) -> dict[str, int]:
        """Everything lost so far, by reason."""
        with self._lock:
            return dict(self._total)

    def explain(self, why: str) -> None:
        """Why the latest of them were lost, for the log; safe to be read by anybody."""
        self._why = why

    def log(self, where_to: str, *, now: bool = False) -> None:
        """Say in one line what has been lost since the last such line; at most once a minute, unless ``now``."""
        with self._lock:
            new = self._total - self._logged
            if not new or (not now and time.monotonic() - self._logged_at < LOG_SECONDS):
                return
            self._logged, self._logged_at = self._total.copy(), time.monotonic()
        counts = ", ".join(f"{reason} {number}" for reason, number in sorted(new.items()))
        why = f"; {self._why}" if self._why and EXPORT_FAILED in new else ""
        LOG.warning("spanreel: spans lost on the way to %s: %s%s", where_to, counts, why)
