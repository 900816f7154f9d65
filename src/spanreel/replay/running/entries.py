"""An entry function, called for the root runs of a session in this process, and what its replay amounts to."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from spanreel.errors import ReplayRefused, ReplayStop
from spanreel.replay.judging.verdict import Report, Verdict
from spanreel.replay.matching.events import Event, Happening, Subject
from spanreel.replay.playing.recorded_input import call_again
from spanreel.replay.running.entry import finish, load, remembered
from spanreel.replay.running.options import Options
from spanreel.replay.running.runner import only_stops, replay
from spanreel.session import Run, Session


def play_entry(session: Session, run: Run | None, options: Options) -> Report:
    """Call a function once for each root run with its recorded input, in this process.

    Of one run of a conversation, those before it are played first: an agent may remember them.
    """
    memory: dict[Any, Any] = {}
    notes: list[str] = []
    for number, before in remembered(session, run):
        try:
            earlier = _play_in(session, before, options, memory)
        except ReplayRefused as refused:
            said = f"refused: {refused}"
        else:
            said = f"{earlier.verdict}: {earlier.reasons[0]}" if earlier.verdict is not Verdict.PASS else ""
        if said and not notes:  # those after it cannot remember what it did not come to
            notes.append(f"run {number}, played before it to be remembered: {said}")
    report = _play_in(session, run, options, memory)
    return dataclasses.replace(report, notes=(*report.notes, *notes))


def _play_in(session: Session, run: Run | None, options: Options, memory: dict[Any, Any]) -> Report:
    """Play with what agents have kept in ``memory``, and will keep there."""
    chosen = run.id if run is not None else None
    consent = options.serve_redacted
    with replay(
        session, run=chosen, changes=options.changes, check=False, allow=options.allow, serve_redacted=consent
    ) as playing:
        playing.player.memory = memory
        try:
            function = load(options.entry or "")
            for root in [run] if run is not None else session.roots():
                _call(playing, function, root)
        except ReplayStop:
            pass  # while it was imported
    assert playing.report is not None
    return playing.report


def _call(playing: replay, function: Callable[..., Any], run: Run) -> None:
    try:
        finish(call_again(function, playing.session, run))
    except BaseException as error:
        if only_stops(error):
            return
        if isinstance(error, KeyboardInterrupt):
            raise
        if isinstance(error, SystemExit) and not error.code:
            return  # the program's own good end is the function's; the report is still to come
        recorded = run.error.type if run.error is not None else None
        if recorded is None or recorded.rpartition(".")[2] != type(error).__qualname__.rpartition(".")[2]:
            said = f"{type(error).__name__}: {error}"
            playing.player.log(Event(Happening.RAISED, Subject.REPLAY, recorded_id=run.id, detail=said))
