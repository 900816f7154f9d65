"""`spanreel.replay(...)` in Python and in pytest, and `spanreel replay` for a command or an entry function."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spanreel.errors import NotIntercepted, ReplayFailed, ReplayRefused, ReplayStop
from spanreel.launch import recorded_environment
from spanreel.model import Json, Status
from spanreel.policy import Policy
from spanreel.policy_file import find_policy
from spanreel.replay import stage
from spanreel.replay.changes import Changes, parse_changes, read_changes
from spanreel.replay.entry import finish, load, remembered
from spanreel.replay.events import Event, Happening, Subject, read_event
from spanreel.replay.placeholders import placeholders_of
from spanreel.replay.player import SessionPlayer
from spanreel.replay.preflight import check, doubts, find_run, find_session
from spanreel.replay.recorded_input import call_again, recorded_arguments, recorded_input
from spanreel.replay.report import to_text, write_json
from spanreel.replay.verdict import Report, Verdict, judge
from spanreel.session import Run, Session, split_address
from spanreel.settings import (
    REPLAY,
    REPLAY_ALLOW,
    REPLAY_CHANGES,
    REPLAY_GUARD,
    REPLAY_REPORT,
    REPLAY_SERVE_REDACTED,
    RUN_INPUT,
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
    touches on the model is asked live. ``allow`` holds ``host:port`` addresses that may be reached, and programs that
    may be started, each as ``program:NAME``. ``serve_redacted`` consents to answers with placeholders in them, where
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
        run: str | None = None,
        changes: Changes | Mapping[str, Json] | str | Path | None = None,
        check: bool = True,
        allow: Sequence[str] = (),
        serve_redacted: bool | None = None,
        redaction: Policy | str | None = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        if isinstance(session, str) and run is None:
            session, run = split_address(session)
        self.session = find_session(session)
        self.run = find_run(self.session, run)
        self.report: Report | None = None
        self.changes = _changes(changes)
        self._check = check
        self._allow = tuple(allow)
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
        for note in (*placeholders.notes, *doubts(self.session, self.run)):
            player.note(note)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        player = self.player
        player.close()
        stage.leave(player)
        self.report = judge(self.session, self.run, player.events)
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
    return read_changes(given) if isinstance(given, (str, Path)) else parse_changes(dict(given), "changes")


def only_stops(error: BaseException) -> bool:
    """Whether what left a block is a replay's end of it and nothing else; task groups put it into groups."""
    if isinstance(error, BaseExceptionGroup):
        return all(only_stops(one) for one in error.exceptions)
    return isinstance(error, ReplayStop)


# -- the command line ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Options:
    """What ``spanreel replay`` was told: where the JSON report goes, what to call, which addresses may be reached.

    ``serve_redacted``: answers that are redacted may be given. ``changes``: what becomes different.
    """

    report: str | None = None
    entry: str | None = None
    allow: tuple[str, ...] = ()
    serve_redacted: bool = False
    changes: Changes = field(default_factory=Changes)


def replay_command(source: str, run: str | None, command: Sequence[str], options: Options) -> int:
    """Replay a session with a command, or with an entry function; print the report; the exit code.

    Raises:
        ReplayRefused: refused before anything ran.
        NotIntercepted: the command never loaded spanreel.
    """
    session = find_session(source)
    chosen = find_run(session, run)
    if options.report is not None and not (folder := Path(options.report).absolute().parent).is_dir():
        raise ReplayRefused(f"cannot write the report to {options.report!r}: {str(folder)!r} is no folder")
    check(session, chosen, options.changes, serve_redacted=options.serve_redacted)
    placeholders_of(session)
    if options.entry is not None:
        report = play_entry(session, chosen, options)
    else:
        report = play_command(Path(source).resolve(), session, chosen, command, options)
    if options.report is not None:
        write_json(report, options.report)
    print(to_text(report))  # noqa: T201 - the command's output
    return report.exit_code


def play_command(source: Path, session: Session, run: Run | None, command: Sequence[str], options: Options) -> Report:
    """Run a command as a child process that replays, and judge by the events that it leaves behind."""
    with tempfile.TemporaryDirectory(prefix="spanreel-replay-") as folder:
        file = Path(folder) / "events.jsonl"
        environment = {
            **recorded_environment(os.environ),
            REPLAY: str(source) + (f"#{run.id}" if run is not None else ""),
            REPLAY_REPORT: str(file),
            REPLAY_ALLOW: ",".join(options.allow),
            REPLAY_SERVE_REDACTED: "1" if options.serve_redacted else "",
            REPLAY_CHANGES: "",
        }
        if options.changes:
            told = Path(folder) / "changes.json"
            told.write_text(options.changes.model_dump_json(exclude_none=True), encoding="utf-8")
            environment[REPLAY_CHANGES] = str(told)
        environment.pop(REPLAY_GUARD, None)
        first = run or next(iter(session.roots()), None)
        asked = recorded_input(session, first) if first is not None else None
        said = json.dumps(asked if options.changes.input is None else options.changes.input)
        if len(said) <= LONGEST_INPUT:
            environment[RUN_INPUT] = said
        try:
            code = subprocess.run(list(command), env=environment, check=False).returncode
        except OSError as error:
            raise ReplayRefused(f"cannot start {command[0]!r}: {error.strerror or error}") from error
        events = _read_events(file)
    if not events:
        raise NotIntercepted(
            f"{command[0]!r} {_ended(code)} and never loaded spanreel, so nothing was replayed; "
            "it has to start a Python in which spanreel is installed, not isolated by -I, -E or -S"
        )
    return judge(session, run, events, _complaints(session, events, code))


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


def _read_events(file: Path) -> list[Event]:
    """The events that a child has written; its last line may be cut off."""
    if not file.exists():
        return []
    events = []
    for line in file.read_bytes().split(b"\n"):
        try:
            events.append(read_event(line))
        except ValueError:
            continue
    return events


def _complaints(session: Session, events: Sequence[Event], code: int) -> list[str]:
    """The command's own failing, where neither the replay nor the recording accounts for it."""
    stopped = any(event.happening in (Happening.MISSED, Happening.REFUSED) for event in events)
    expected = any(run.status is Status.ERROR for run in session.roots())
    return [f"the command {_ended(code)}"] if code and not stopped and not expected else []


def _ended(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
