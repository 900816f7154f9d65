"""The command ``convert``: collected traces, from files and backends, into session documents."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from datetime import datetime

from spanreel.subcommand import FAILED, OK, Command
from spanreel_collector.conversion.account import Tally
from spanreel_collector.conversion.progress import Progress
from spanreel_collector.conversion.spool import Spool
from spanreel_collector.conversion.streaming import Settings, convert_pieces
from spanreel_collector.conversion.writing import Written, indent_of, write_documents
from spanreel_collector.show.account import show_account
from spanreel_collector.sources.files import UnreadRequest, is_remote, read_pieces, size_of

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


def _configure(parser: argparse.ArgumentParser) -> None:
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


def _run(options: argparse.Namespace) -> int:
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


def _pieces(options: argparse.Namespace, progress: Progress) -> Iterator[UnreadRequest]:
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


CONVERT = Command("convert", "turn collected traces into session documents", _configure, _run)
