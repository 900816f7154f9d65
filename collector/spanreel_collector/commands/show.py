"""The command ``show``: a session as text for people, from a file or a service."""

from __future__ import annotations

import argparse
import os
import shutil
import sys

from spanreel.errors import ReplayRefused, SessionError
from spanreel.session import Session
from spanreel.session_files import load_sessions, read_session, split_address
from spanreel.subcommand import FAILED, OK, Command
from spanreel_collector.conversion.convert import convert_files
from spanreel_collector.show.forecast import show_forecast
from spanreel_collector.show.session import Look, show_run, show_session


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "session",
        metavar="SESSION[#run]",
        help="a file of sessions, or of traces, as `convert` reads them; or the URL of a session in a service",
    )
    parser.add_argument("--width", type=int, default=0, help="columns to fit into (default: the terminal's)")
    parser.add_argument("--full", action="store_true", help="messages, arguments and results whole; ids of calls")
    parser.add_argument("--forecast", action="store_true", help="what an offline replay would do, call by call")


def _run(options: argparse.Namespace) -> int:
    path, run = split_address(options.session)
    try:
        sessions = _served(path) if path.startswith(("http://", "https://")) else _load(path)
        look = Look(
            width=options.width if options.width > 0 else shutil.get_terminal_size((100, 24)).columns,
            colour=sys.stdout.isatty() and "NO_COLOR" not in os.environ,
            full=options.full,
        )
        session = _session_of(sessions, run, options.session) if run else None
        if options.forecast:
            shown = [show_forecast(session, session.run(run))] if session and run else map(show_forecast, sessions)
            print("\n\n".join(shown))
        elif session and run:
            print(show_run(session, session.run(run), look))
        else:
            print("\n\n".join(show_session(session, look) for session in sessions))
    except (SessionError, ReplayRefused) as error:
        print(f"spanreel: {error}", file=sys.stderr)
        return FAILED
    return OK


def _served(url: str) -> list[Session]:
    """The session that a service keeps at this address."""
    # Who shows files need not wait for an HTTP client.
    from spanreel.replay.running.served import fetch  # noqa: PLC0415 - as said

    return [read_session(fetch(url))]


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


SHOW = Command("show", "print a session for people", _configure, _run)
