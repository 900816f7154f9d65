"""`spanreel.replay(...)` in Python and in pytest, and `spanreel replay` for a command or an entry function."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from spanreel import playing
from spanreel.errors import ReplayFailed, ReplayRefused, ReplayStop
from spanreel.model import Json
from spanreel.policy import Policy
from spanreel.policy_file import find_policy
from spanreel.replay.changing.change_files import parse_changes, read_changes
from spanreel.replay.changing.changes import Changes
from spanreel.replay.comparing.placeholders import placeholders_of
from spanreel.replay.guarding import children, stage
from spanreel.replay.guarding.gate import checked_allow
from spanreel.replay.judging.report import to_text
from spanreel.replay.judging.verdict import Report, Verdict, judge
from spanreel.replay.matching.events import Event, Happening, Subject
from spanreel.replay.playing.player import SessionPlayer
from spanreel.replay.playing.recorded_input import recorded_arguments, recorded_input
from spanreel.replay.running.preflight import check, doubts, find_run, find_session, idle_policies
from spanreel.replay.running.recovered import with_recovered
from spanreel.session import Session
from spanreel.session_files import split_address
from spanreel.settings import (
    REPLAY_SERVE_REDACTED,
)

LONGEST_INPUT = 100_000
"""Characters of input that fit into one environment variable; a longer one is read from the session."""


class replay:  # noqa: N801 - used in `with`, where functions' names are expected
    """Replay a session around a block of code: models and tools answer from the recording, nothing runs live.

        with spanreel.replay("session.json") as playing:
            answer = my_agent(playing.run_input)

    Raises `ReplayFailed` at the end, an AssertionError whose text is the report, unless the verdict is PASS or
    ``check`` is False; ``playing.report`` holds it. ``run`` names one run by number, id or path, as ``session.json#0``
    does. ``changes`` is what becomes different, as `Changes`, as a JSON value or as a file; from the first call that it
    touches on the model is asked live. ``allow`` holds what may be reached, as ``host:port`` or ``unix:path``, and
    what may be started, as ``program:NAME``. ``serve_redacted`` consents to answers with placeholders in them, where
    the recording is redacted; ``redaction`` is the policy that did it, where it is none of ours and not that of
    ``SPANREEL_REDACTION``. What the replay stops ends the block quietly.

    Raises:
        ReplayRefused: the recording cannot be replayed.
        NotIntercepted: an HTTP client is loaded that spanreel does not wrap.
    """

    def __init__(  # noqa: PLR0913 - each is a question of its own, and has a default
        self,
        session: Session | str | Path,
        *,
        run: str | int | None = None,
        changes: Changes | Mapping[str, Json] | str | Path | None = None,
        check: bool = True,
        allow: Sequence[str] | str = (),
        serve_redacted: bool | None = None,
        redaction: Policy | str | None = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        if isinstance(session, str) and run is None:
            session, run = split_address(session)
        if not isinstance(session, (Session, str, os.PathLike)):
            raise ReplayRefused(f"a replay takes a session, or the path or URL of one, not {session!r}")
        self.changes = _changes(changes)
        self.session = with_recovered(find_session(session), self.changes)
        self.run = find_run(self.session, None if run is None else str(run))
        self.report: Report | None = None
        self._check = check
        self._allow = checked_allow([allow] if isinstance(allow, str) else allow)
        self._serve_redacted = bool(os.environ.get(REPLAY_SERVE_REDACTED)) if serve_redacted is None else serve_redacted
        self._policy = find_policy(redaction) if isinstance(redaction, str) else redaction
        self._on_event = on_event
        self._player: SessionPlayer | None = None

    @property
    def run_input(self) -> Json:
        """What the run (the first root run where none was named) was asked: the user's text, or messages."""
        if self.changes.input is not None:
            return self.changes.input
        run = self.run or next(iter(self.session.roots()), None)
        return recorded_input(self.session, run) if run is not None else None

    @property
    def arguments(self) -> Json:
        """The arguments that the run was called with, by name; None where they were not recorded whole."""
        run = self.run or next(iter(self.session.roots()), None)
        return recorded_arguments(run) if run is not None else None

    @property
    def verdict(self) -> Verdict | None:
        """The verdict; None until the block has ended."""
        return self.report.verdict if self.report is not None else None

    @property
    def events(self) -> tuple[Event, ...]:
        """What has happened so far."""
        return self._player.events if self._player is not None else ()

    @property
    def player(self) -> SessionPlayer:
        """What answers; there is one inside the block."""
        assert self._player is not None
        return self._player

    def __enter__(self) -> replay:
        check(self.session, self.run, self.changes, serve_redacted=self._serve_redacted)
        placeholders = placeholders_of(self.session, self._policy)
        player = SessionPlayer(
            self.session, self.run, placeholders=placeholders, changes=self.changes, on_event=self._on_event
        )
        stage.enter(player, self._allow)
        self._player = player
        player.log(Event(Happening.STARTED, Subject.REPLAY))
        for change in self.changes.describe():
            player.log(Event(Happening.CHANGED, Subject.REPLAY, detail=change))
        idle = idle_policies(self.changes, self.session)
        for note in (*placeholders.notes, *doubts(self.session, self.run), *idle):
            player.note(note)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        player = self.player
        for what in children.heard(player, alone=len(playing.active_players()) == 1):
            player.log(Event(Happening.REFUSED, Subject.REPLAY, detail=what))
        player.close()
        stage.leave(player)
        self.report = judge(self.session, self.run, player.events, prices=self.changes.prices)
        if error is not None and not only_stops(error):
            if self.report.verdict is not Verdict.PASS:
                error.add_note(to_text(self.report))
            return False
        if self._check and self.report.verdict is not Verdict.PASS:
            raise ReplayFailed(to_text(self.report)) from None
        return error is not None

    async def __aenter__(self) -> replay:
        return self.__enter__()

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        return self.__exit__(kind, error, trace)


def _changes(given: Changes | Mapping[str, Json] | str | Path | None) -> Changes:
    if given is None or isinstance(given, Changes):
        return given or Changes()
    return read_changes(given) if isinstance(given, (str, Path)) else parse_changes(given, "changes")


def only_stops(error: BaseException) -> bool:
    """Whether what left a block is a replay's end of it and nothing else; task groups put it into groups."""
    if isinstance(error, BaseExceptionGroup):
        return all(only_stops(one) for one in error.exceptions)
    return isinstance(error, ReplayStop)
