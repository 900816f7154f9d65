"""The child process of `spanreel replay -- COMMAND`: plays the session that its environment names, until it exits."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

from spanreel import playing
from spanreel.errors import ReplayStop
from spanreel.replay.guarding import gate, guard
from spanreel.replay.judging.report import to_text
from spanreel.replay.judging.verdict import judge
from spanreel.replay.matching.events import Event, Happening, Subject, append_event
from spanreel.replay.running.runner import replay
from spanreel.settings import REPLAY, REPLAY_ALLOW, REPLAY_CHANGES, REPLAY_REPORT


def activate_from_environment() -> None:
    """Replay the session of ``SPANREEL_REPLAY`` (``path`` or ``path#run``) in this whole process.

    Each event is written to the file of ``SPANREEL_REPLAY_REPORT`` at once, so that a crash leaves what happened before
    it; without such a file the report is printed at exit. In a child of a replayed process everything is denied.

    Raises:
        ReplayRefused: the session cannot be replayed.
        NotIntercepted: an HTTP client is loaded that spanreel does not wrap.
    """
    playing.read_guard()
    file = os.environ.get(REPLAY_REPORT)
    if playing.denied():
        guard.install()
        playing.tell_of_denial(gate.tell_of_call)
        if file:
            _silence_stops()
        return
    allow = [address for address in os.environ.get(REPLAY_ALLOW, "").split(",") if address]
    sink = _Sink(Path(file)) if file else None
    changes = os.environ.get(REPLAY_CHANGES) or None
    replaying = replay(os.environ[REPLAY], changes=changes, allow=allow, on_event=sink)
    replaying.__enter__()
    _silence_stops(replaying)
    atexit.register(_finish, replaying, printed=file is None)


class _Sink:
    """Appends events to a file, each whole."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._process = os.getpid()

    def __call__(self, event: Event) -> None:
        if os.getpid() == self._process:
            append_event(self._file, event)


def _finish(replaying: replay, *, printed: bool) -> None:
    replaying.player.log(Event(Happening.ENDED, Subject.REPLAY))
    if printed:
        report = judge(replaying.session, replaying.run, replaying.events, prices=replaying.changes.prices)
        sys.stderr.write(to_text(report) + "\n")


def _silence_stops(replaying: replay | None = None) -> None:
    """The report says why a run was ended; a traceback through libraries would bury it.

    Where an exception ends the program with which no run ended when it was recorded, that is told.
    """
    shown, shown_in_thread = sys.excepthook, threading.excepthook

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, ReplayStop):
            return
        if replaying is not None and not (_is_stopped(replaying) or _was_recorded(replaying, error)):
            raised = Event(Happening.RAISED, Subject.REPLAY, detail=f"{kind.__name__}: {error}")
            replaying.player.log(raised)
        shown(kind, error, trace)

    def show_in_thread(hook: Any) -> None:
        if not issubclass(hook.exc_type, ReplayStop):
            shown_in_thread(hook)

    sys.excepthook, threading.excepthook = show, show_in_thread


def _is_stopped(replaying: replay) -> bool:
    """Whether the replay has stopped something, of which a program may end with anything."""
    return any(event.happening in (Happening.MISSED, Happening.REFUSED) for event in replaying.events)


def _was_recorded(replaying: replay, error: BaseException) -> bool:
    """Whether a run came to such an end when it was recorded: the program may put an exception of its own around it."""
    recorded = {
        run.error.type.rpartition(".")[2]
        for run in replaying.session.roots()
        if run.error is not None and run.error.type is not None
    }
    return not recorded.isdisjoint(type(one).__qualname__.rpartition(".")[2] for one in _behind(error))


def _behind(error: BaseException) -> list[BaseException]:
    """The exception, what it came of, and what it is a group of."""
    found = [error]
    for one in found:  # grows while it is walked
        inner = one.exceptions if isinstance(one, BaseExceptionGroup) else ()
        found += [
            more for more in (one.__cause__, one.__context__, *inner) if more is not None and not _is_in(more, found)
        ]
    return found


def _is_in(error: BaseException, found: list[BaseException]) -> bool:
    return any(one is error for one in found)
