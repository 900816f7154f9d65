"""What has happened in one replay, in its order, and which of its runs nothing more is answered in.

One lock a replay; what a call has to wait for under it is matching alone. Whether the events amount to PASS is decided
in `verdict`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import NoReturn

from spanreel.errors import ReplayStop
from spanreel.replay.guarding import gate
from spanreel.replay.matching.events import Event, Happening, Subject, describe, without_secrets


class Ledger:
    """The events of a replay, and its stops by root run (``""``: of the whole replay)."""

    def __init__(self, session: str, on_event: Callable[[Event], None] | None = None) -> None:
        self.session = session
        self.lock = threading.RLock()
        self._on_event = on_event
        self._events: list[Event] = []
        self._stopped: dict[str, str] = {}
        self._closed = False
        self._process = os.getpid()

    @property
    def events(self) -> tuple[Event, ...]:
        """What has happened so far."""
        with self.lock:
            return tuple(self._events)

    def close(self) -> None:
        """The replay is over; whoever still asks is stopped."""
        self._closed = True

    def tell(self, event: Event) -> None:
        """Keep an event; the lock is held."""
        event = without_secrets(event)
        self._events.append(event)
        if self._on_event is not None:
            self._on_event(event)

    def log(self, event: Event) -> None:
        """Keep an event; the same note is kept once."""
        with self.lock:
            if event.happening is not Happening.NOTED or without_secrets(event) not in self._events:
                self.tell(event)

    def note(self, what: str) -> None:
        """Something worth knowing that changes nothing."""
        self.log(Event(Happening.NOTED, Subject.REPLAY, detail=what))

    def refuse(self, what: str) -> NoReturn:
        """Something went past every point: nothing more is answered in the whole replay."""
        if os.getpid() == self._process and not self._closed:
            with self.lock:
                event = Event(Happening.REFUSED, Subject.REPLAY, detail=what)
                self.tell(event)
                self._stopped.setdefault("", describe(event))
        raise ReplayStop(f"{what} would have gone past the replay")

    def miss(self, root: str, event: Event) -> NoReturn:
        """A call has no counterpart: nothing more is answered in its root run."""
        said = describe(without_secrets(event))
        with self.lock:
            self.tell(event)
            self._stopped[root] = said
        raise ReplayStop(said)

    def stop_of(self, root: str) -> str | None:
        """Why nothing is answered in this root run; None where something is."""
        return self._stopped.get("") or self._stopped.get(root)

    def check(self, root: str) -> None:
        """Stop a call that nothing may answer.

        Raises:
            ReplayStop: always where the replay is over, its run was stopped, or this is a forked process.
        """
        if os.getpid() != self._process:
            gate.tell_of_call()
            raise ReplayStop(
                "this process was forked from a replayed one; nothing is answered in it, and nothing runs live"
            )
        if self._closed:
            raise ReplayStop(f"the replay of session {self.session!r} is over; nothing runs live after it")
        if (said := self.stop_of(root)) is not None:
            raise ReplayStop(said)
