"""The collector's commands, which `spanreel.cli` finds by entry point: ``convert`` and ``show``."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from spanreel.errors import SessionError
from spanreel.session import Session, load_sessions, split_address, write_session
from spanreel_collector.convert import Conversion, convert_files
from spanreel_collector.show import Look, show_run, show_session

OK, FAILED, USAGE = 0, 1, 64
MOST_FAULTS = 50
"""What failed, and is said one by one."""


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand: its name and help, how its arguments are declared, and what runs it (returning the exit code)."""

    name: str
    help: str
    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


# -- convert ---------------------------------------------------------------------------------------------------------


def _configure_convert(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="OTLP JSON lines, gzip or plain; - for stdin")
    parser.add_argument(
        "--format", choices=("json", "jsonl"), default="json", help="a JSON list, or one session a line"
    )
    parser.add_argument(
        "--out", metavar="PATH", help="a file, or a folder (existing, or ending in /) with a file a session"
    )


def _run_convert(options: argparse.Namespace) -> int:
    conversion = convert_files(options.files)
    try:
        _write(conversion.sessions, options.format, options.out)
    except OSError as error:
        print(f"spanreel: cannot write to {options.out!r}: {error.strerror or error}", file=sys.stderr)
        return FAILED
    print(_summary(conversion), file=sys.stderr)
    return FAILED if conversion.faults else OK


def _write(sessions: Sequence[Session], form: str, out: str | None) -> None:
    if out is None:
        sys.stdout.write(_text(sessions, form))
        sys.stdout.flush()
    elif out.endswith(("/", os.sep)) or Path(out).is_dir():
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        for session in sessions:
            indent = 2 if form == "json" else None
            _replace(folder / f"{session.id}.{form}", write_session(session, indent=indent) + "\n")
    else:
        # One session is one document, as `replay` and people want it.
        single = form == "json" and len(sessions) == 1
        _replace(Path(out), write_session(sessions[0], indent=2) + "\n" if single else _text(sessions, form))


def _text(sessions: Sequence[Session], form: str) -> str:
    if form == "jsonl":
        return "".join(write_session(session) + "\n" for session in sessions)
    return "[" + ",\n".join(write_session(session, indent=2) for session in sessions) + "]\n"


def _replace(path: Path, text: str) -> None:
    """Write beside, then rename: a reader never sees half a document."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def _summary(conversion: Conversion) -> str:
    count = len(conversion.sessions)
    runs = sum(len(session.runs) for session in conversion.sessions)
    lines = [f"spanreel: {count} {_plural('session', count)}, {runs} {_plural('run', runs)} created"]
    lines += [f"  skipped: {number} {kind}" for kind, number in sorted(conversion.skipped.items())]
    if conversion.faults:
        lines.append(f"  failed: {len(conversion.faults)}")
        lines += [f"    {fault.place}: {fault.reason}" for fault in conversion.faults[:MOST_FAULTS]]
        if (more := len(conversion.faults) - MOST_FAULTS) > 0:
            lines.append(f"    and {more} more")
    return "\n".join(lines)


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


# -- show ------------------------------------------------------------------------------------------------------------


def _configure_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION[#run]", help="a file of sessions, or of OTLP JSON lines")
    parser.add_argument("--width", type=int, default=0, help="columns to fit into (default: the terminal's)")
    parser.add_argument("--full", action="store_true", help="messages, arguments and results whole")


def _run_show(options: argparse.Namespace) -> int:
    path, run = split_address(options.session)
    try:
        sessions = _load(path)
        look = Look(
            width=options.width if options.width > 0 else shutil.get_terminal_size((100, 24)).columns,
            colour=sys.stdout.isatty() and "NO_COLOR" not in os.environ,
            full=options.full,
        )
        if run:
            session = _session_of(sessions, run, options.session)
            print(show_run(session, session.run(run), look))
        else:
            print("\n\n".join(show_session(session, look) for session in sessions))
    except SessionError as error:
        print(f"spanreel: {error}", file=sys.stderr)
        return FAILED
    return OK


def _session_of(sessions: list[Session], run: str, given: str) -> Session:
    """The one session that has this run."""
    for session in sessions:
        try:
            session.run(run)
        except SessionError:
            if len(sessions) == 1:
                raise
        else:
            return session
    raise SessionError(f"none of the {len(sessions)} sessions of {given!r} has run {run!r}")


def _load(path: str) -> list[Session]:
    """The sessions of a file; of a file of OTLP lines, those they convert to."""
    try:
        return load_sessions(path)
    except SessionError as error:
        conversion = convert_files([path])
        if not conversion.sessions:
            raise error from None
    for fault in conversion.faults:
        print(f"spanreel: {fault.place}: {fault.reason}", file=sys.stderr)
    return list(conversion.sessions)


CONVERT = Command(
    "convert", "turn collected traces (OTLP JSON lines) into session documents", _configure_convert, _run_convert
)
SHOW = Command("show", "print a session for people", _configure_show, _run_show)
