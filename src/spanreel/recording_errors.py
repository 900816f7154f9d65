"""Tells the user's ``on_recording_error(stage, session_id)`` of faults of ours: once a run, from a thread of its own.

The hook is never awaited: whether it fails or hangs changes nothing for the user's program.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable

from opentelemetry import context as otel

from spanreel.scope import ToolScope, scope_in, session_in

Hook = Callable[[str, str | None], None]
"""Called with what could not be done, in words without content, and the session's id where it is known."""

MOST_WAITING = 100
MOST_RUNS = 10_000


class RecordingErrors:
    """A listener of `quiet` that passes faults on to the user's hook."""

    def __init__(self, hook: Hook) -> None:
        self._hook = hook
        self._told: dict[str, None] = {}
        self._waiting: queue.Queue[tuple[str, str | None]] = queue.Queue(MOST_WAITING)
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def __call__(self, stage: str, run: str | None, session: str | None) -> None:
        """A fault has happened; where it says no run, it is the one that is current here."""
        if run is None:
            context = otel.get_current()
            scope = scope_in(context)
            here = scope.run if isinstance(scope, ToolScope) else scope
            run = here.live.id if here is not None else None
            session = session or session_in(context).id
        with self._lock:
            if run is not None:
                if run in self._told:
                    return
                while len(self._told) >= MOST_RUNS:
                    self._told.pop(next(iter(self._told)))
                self._told[run] = None
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="spanreel-errors", daemon=True)
                self._thread.start()
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait((stage, session))

    def _work(self) -> None:
        while True:
            stage, session = self._waiting.get()
            with contextlib.suppress(Exception):
                self._hook(stage, session)
