"""Whether the store can be used: anybody may ask, however often; one probe at a time finds out, now and then."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from spanreel_collector.stores.store import StoreError

HOLDS: Final = 2.0
"""Seconds that what was found out is the answer."""
_PATIENCE: Final = 1.0
"""Seconds that somebody who asks waits for a probe; then what was found before is the answer."""
_SILENT: Final = 10.0
"""Seconds that a probe may take: a store that writes much lets others wait."""
_log: Final = logging.getLogger("spanreel.api")


class Readiness:
    """What a probe found last; it is made on a thread, and raises `StoreError`."""

    def __init__(self, probe: Callable[[], None], patience: float = _PATIENCE) -> None:
        self._probe = probe
        self._patience = patience
        self._found: str | None = "the store has not answered yet"
        self._known = False
        self._due = float("-inf")
        self._began = 0.0
        self._asking: asyncio.Task[None] | None = None

    async def trouble(self) -> str | None:
        """Why the store cannot be used, for everybody; None: it can be."""
        if self._asking is None and time.monotonic() >= self._due:
            self._began = time.monotonic()
            self._asking = asyncio.create_task(self._find_out())
        if self._asking is not None:
            await asyncio.wait({self._asking}, timeout=self._patience)
        if self._asking is not None and (silent := time.monotonic() - self._began) > _SILENT:
            return f"the store has not answered for {silent:.0f} seconds"
        return self._found

    async def _find_out(self) -> None:
        reason = None
        try:
            await asyncio.to_thread(self._probe)
        except Exception as error:  # noqa: BLE001 - whatever it is, whoever asks gets an answer
            why = error.reason if isinstance(error, StoreError) else type(error).__name__
            reason = f"the store cannot be used now: {why}"
            if reason != self._found:  # once, not each time that somebody asks
                _log.warning("not ready: %s", error)
        if self._known and self._found is not None and reason is None:
            _log.warning("ready again")
        self._found, self._known = reason, True
        self._due = time.monotonic() + HOLDS
        self._asking = None
