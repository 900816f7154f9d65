"""`spanreel replay` of one session, by a command, which is a child process, or by an entry function."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from spanreel.errors import NotIntercepted, ReplayRefused
from spanreel.launch import recorded_environment
from spanreel.model import Status
from spanreel.replay.changing.changes import Changes
from spanreel.replay.comparing.placeholders import placeholders_of
from spanreel.replay.judging.junit import write_junit
from spanreel.replay.judging.report import to_json, to_text, write_value
from spanreel.replay.judging.verdict import Report, judge
from spanreel.replay.matching.events import Event, Happening, read_event
from spanreel.replay.playing.recorded_input import recorded_input
from spanreel.replay.running.entries import play_entry
from spanreel.replay.running.options import GiveBack, Options
from spanreel.replay.running.preflight import check, find_run, find_session
from spanreel.replay.running.recovered import with_recovered
from spanreel.replay.running.repeats import advised, repeat, repeats_to_json, repeats_to_text
from spanreel.session import Run, Session
from spanreel.settings import (
    REPLAY,
    REPLAY_ALLOW,
    REPLAY_CHANGES,
    REPLAY_GUARD,
    REPLAY_REPORT,
    REPLAY_SERVE_REDACTED,
    RUN_INPUT,
)

HANGING = 1 << 16
"""In the place of an exit code: the command did not end by itself."""
LONGEST_INPUT = 100_000
"""Characters of input that fit into one environment variable; a longer one is read from the session."""


def replay_command(
    source: str, run: str | None, command: Sequence[str], options: Options, give_back: GiveBack | None = None
) -> int:
    """Replay a session with a command, or with an entry function; print the report; the exit code.

    Raises:
        ReplayRefused: refused before anything ran; or the report was not taken where it was to be given back.
        NotIntercepted: the command never loaded spanreel.
    """
    session = with_recovered(find_session(source), options.changes)
    chosen = find_run(session, run)
    if options.report is not None and not (folder := Path(options.report).absolute().parent).is_dir():
        raise ReplayRefused(f"cannot write the report to {options.report!r}: {str(folder)!r} is no folder")
    check(session, chosen, options.changes, serve_redacted=options.serve_redacted)
    placeholders_of(session)

    def play(changes: Changes) -> Report:
        told = replace(options, changes=changes)
        if options.entry is not None:
            return play_entry(session, chosen, told)
        return play_command(Path(source).resolve(), session, chosen, command, told)

    if options.times > 1:
        repeats = repeat(play, options.changes, options.times, control=options.control)
        report, more = repeats.worst, repeats_to_text(repeats)
        written = repeats_to_json(repeats)
    else:
        report, more = advised(play(options.changes)), []
        written = to_json(report)
    if options.report is not None:
        write_value(written, options.report)
    if options.junit is not None:
        write_junit([(session.id, to_json(report))], options.junit)
    print("\n".join([to_text(report), *more]))  # noqa: T201 - the command's output
    if give_back is not None and (fault := give_back(source, written)) is not None:
        raise ReplayRefused(fault)
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
            code = subprocess.run(list(command), env=environment, check=False, timeout=options.timeout).returncode
        except subprocess.TimeoutExpired:
            code = HANGING
        except OSError as error:
            raise ReplayRefused(f"cannot start {command[0]!r}: {error.strerror or error}") from error
        events = _read_events(file)
    if not events:
        raise NotIntercepted(
            f"{command[0]!r} {_ended(code)} and never loaded spanreel, so nothing was replayed; "
            "it has to start a Python in which spanreel is installed, not isolated by -I, -E or -S"
        )
    if code == HANGING:
        return judge(session, run, events, [f"the command {_ended(code)}"], options.changes.prices)
    return judge(session, run, events, _complaints(session, events, code), options.changes.prices)


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
    told = (Happening.MISSED, Happening.REFUSED, Happening.RAISED)
    stopped = any(event.happening in told for event in events)
    expected = any(run.status is Status.ERROR for run in session.roots())
    return [f"the command {_ended(code)}"] if code and not stopped and not expected else []


def _ended(code: int) -> str:
    if code == HANGING:
        return "had not ended in the time given, and was killed"
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
