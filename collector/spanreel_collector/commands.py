"""The collector's commands, which `spanreel.cli` finds by entry point: ``convert`` and ``show``."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from spanreel.errors import ReplayRefused, SessionError
from spanreel.session import Session, load_sessions, read_session, split_address
from spanreel_collector.account import Tally
from spanreel_collector.convert import convert_files
from spanreel_collector.progress import Progress
from spanreel_collector.show import Look, show_run, show_session
from spanreel_collector.show_account import show_account
from spanreel_collector.show_forecast import show_forecast
from spanreel_collector.sources.files import Piece, is_remote, read_pieces, size_of
from spanreel_collector.spool import Spool
from spanreel_collector.streaming import Settings, convert_pieces
from spanreel_collector.writing import Written, indent_of, write_documents

OK, FAILED, USAGE = 0, 1, 64


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand: its name and help, how its arguments are declared, and what runs it (returning the exit code)."""

    name: str
    help: str
    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


# -- convert ---------------------------------------------------------------------------------------------------------

_ABOUT = """\
Turn collected traces into session documents. A FILE is what the Collector's file exporter writes, in each of its
formats (JSON lines, protobuf, either with zstd), a body of an export request, an export of another backend, Mastra's
getTrace, Kitaru's session JSONL, session documents, or any of these packed with gzip; - is standard input. Traces of
one conversation may be spread over all files given. jaeger:URL and phoenix:URL fetch what these backends hold.
"""
_NOTES = """\
Files may be larger than memory: what they hold is set aside in the folder for temporary files ($TMPDIR).

Into a folder, each session has a file. One that is there already grows: runs that it lacks are added, and its revision
is raised; what is known changes nothing.

From a backend, only the host that is named is asked; a token is taken from $JAEGER_TOKEN or $PHOENIX_API_KEY.

Exit codes: 0, all was read; 1, something was not, and the summary says what, where and why; 64, wrong usage.
"""


def _configure_convert(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _ABOUT, _NOTES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("files", nargs="+", metavar="FILE", help="what to convert; - for standard input")
    parser.add_argument(
        "--format",
        choices=("json", "jsonl", "kitaru"),
        default="json",
        help="a JSON list, or one session a line, or Kitaru's session JSONL",
    )
    parser.add_argument(
        "--out", "--output", metavar="PATH", help="a file, or a folder (existing, or ending in /) with a file a session"
    )
    parser.add_argument(
        "--of",
        action="append",
        default=[],
        metavar="NAME",
        help="of a backend: this service or project (again for more)",
    )
    parser.add_argument(
        "--since", type=_moment, metavar="TIME", help="of a backend: what began then or later (a week ago)"
    )
    parser.add_argument("--until", type=_moment, metavar="TIME", help="of a backend: what began before (now)")
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="processes to work in (0: one a core); the output is the same"
    )
    parser.add_argument(
        "--source-namespace",
        metavar="NAME",
        type=_name,
        help="whose these are, where ids of several sources may be equal: their sessions stay apart",
    )
    parser.add_argument(
        "--report",
        action="store_true",
        help="say what was not understood, by scope and attribute; how many runs could be replayed, why not all",
    )


def _run_convert(options: argparse.Namespace) -> int:
    jobs = options.jobs if options.jobs > 0 else os.cpu_count() or 1
    settings = Settings(jobs, indent_of(options.format), options.report, options.source_namespace)
    with Spool() as spool:
        with Progress() as progress:
            progress.begin("reading", sum(size_of(path) for path in options.files))
            tally = convert_pieces(spool, _pieces(options, progress), settings, progress)
        try:
            written = write_documents(spool.documents(), spool.count()[0], options.format, options.out)
        except BrokenPipeError:
            raise
        except OSError as error:
            print(f"spanreel: cannot write to {options.out!r}: {error.strerror or error}", file=sys.stderr)
            return FAILED
        tally.add(written.faults, {})
        print(_summary(written, spool.count()[1], tally), file=sys.stderr)
    if tally.account is not None:
        print(show_account(tally.account), file=sys.stderr)
    return FAILED if tally.failed else OK


def _pieces(options: argparse.Namespace, progress: Progress) -> Iterator[Piece]:
    for source in options.files:
        if is_remote(source):
            # Who reads files need not wait for an HTTP client.
            from spanreel_collector.sources.remote import Wanted, fetch_pieces  # noqa: PLC0415 - as said

            wanted = Wanted(tuple(options.of), options.since, options.until)
            yield from fetch_pieces(source, wanted, progress.advance)
        else:
            yield from read_pieces(source, progress.advance)


def _name(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty")
    return text


def _moment(text: str) -> datetime:
    """A time as words of the command line; without a zone it is the machine's."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no time like 2026-11-30 or 2026-11-30T10:00+01:00") from None


def _summary(written: Written, runs: int, tally: Tally) -> str:
    parts = [f"{_counted('session', written.created)}, {_counted('run', runs)} created"]
    if written.extended or written.unchanged:
        parts = [
            f"{_counted('session', count)} {state}"
            for state, count in (
                ("created", written.created),
                ("extended", written.extended),
                ("unchanged", written.unchanged),
            )
            if count
        ]
    lines = [f"spanreel: {', '.join(parts)}"]
    lines += [f"  skipped: {number} {kind}" for kind, number in sorted(tally.skipped.items())]
    if tally.failed:
        lines.append(f"  failed: {tally.failed}")
        lines += [f"    {fault.place}: {fault.reason}" for fault in tally.faults]
        if (more := tally.failed - len(tally.faults)) > 0:
            lines.append(f"    and {more} more")
    return "\n".join(lines)


def _counted(noun: str, count: int) -> str:
    return f"{count} {noun if count == 1 else noun + 's'}"


# -- show ------------------------------------------------------------------------------------------------------------


def _configure_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "session",
        metavar="SESSION[#run]",
        help="a file of sessions, or of traces, as `convert` reads them; or the URL of a session in a service",
    )
    parser.add_argument("--width", type=int, default=0, help="columns to fit into (default: the terminal's)")
    parser.add_argument("--full", action="store_true", help="messages, arguments and results whole")
    parser.add_argument("--forecast", action="store_true", help="what an offline replay would do, call by call")


def _run_show(options: argparse.Namespace) -> int:
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
    from spanreel.replay.served import fetch  # noqa: PLC0415 - as said

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


CONVERT = Command("convert", "turn collected traces into session documents", _configure_convert, _run_convert)
SHOW = Command("show", "print a session for people", _configure_show, _run_show)
