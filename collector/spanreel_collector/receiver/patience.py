"""Calls whose message takes too long to arrive, ended: gRPC waits for one as long as its sender likes, in a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

_LOOK = 1.0


class Cancellable(Protocol):
    """What can be ended from another thread."""

    def cancel(self) -> object:
        """End it."""
        ...


class Patience:
    """One thread, which looks once a second whether what is awaited has taken more than so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._awaited: dict[int, tuple[float, Cancellable]] = {}
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="spanreel-patience", daemon=True)
        self._thread.start()

    @contextmanager
    def awaiting(self, call: Cancellable) -> Iterator[None]:
        """End the call if the block takes too long."""
        self._awaited[id(call)] = (time.monotonic() + self._seconds, call)
        try:
            yield
        finally:
            self._awaited.pop(id(call), None)

    def close(self) -> None:
        """Look no more."""
        self._closed.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._closed.wait(min(_LOOK, self._seconds / 4)):
            now = time.monotonic()
            # A copy, made at once: threads of calls put in and take out meanwhile.
            for until, call in list(self._awaited.values()):
                if until < now:
                    call.cancel()
