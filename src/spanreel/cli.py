"""The command line: `spanreel run`, `replay`, `doctor`, and the commands that installed packages add by entry point.

It reads arguments and says what went wrong in one line; the work is done elsewhere. A subcommand imports what it needs
when it runs, so that the command line itself starts at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Final, NoReturn, Protocol

from spanreel import __version__
from spanreel.errors import NotIntercepted, ReplayRefused, SpanreelError
from spanreel.launch import recorded_environment

if TYPE_CHECKING:
    from spanreel.replay.changes import Changes

FAILED: Final = 1
REFUSED: Final = 3
NOT_INTERCEPTED: Final = 4
USAGE: Final = 64
CANNOT_RUN: Final = 126
NOT_FOUND: Final = 127
INTERRUPTED: Final = 130


class Command(Protocol):
    """A subcommand. Entry points of the group ``spanreel.commands`` name objects of this shape."""

    @property
    def name(self) -> str:
        """The word after ``spanreel``; the entry point's name."""

    @property
    def help(self) -> str:
        """One line for people."""

    @property
    def configure(self) -> Callable[[argparse.ArgumentParser], None]:
        """Adds the command's arguments to its parser."""

    @property
    def run(self) -> Callable[[argparse.Namespace], int]:
        """Does the work; the answer is the exit code."""


@dataclass(frozen=True, slots=True)
class OwnCommand:
    """A subcommand of this module."""

    name: str
    help: str
    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand.

    Returns:
        Its exit code; of our own: 1 failed, 3 refused, 4 not intercepted, 64 wrong usage (raised as SystemExit).
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    words, command = split_command(words)
    try:
        options, unknown = build_parser(words).parse_known_args(words)
        if unknown:
            hint = "; a command comes after --" if words[0] == "replay" and not command else ""
            complaint = f"unrecognized arguments: {' '.join(unknown)}{hint}; see spanreel {words[0]} --help"
            return complain(complaint, USAGE)
        options.command = command
        return int(options.run(options))
    except SpanreelError as error:
        return complain(str(error), exit_code(error))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has gone; a second fault at exit, when Python flushes, would be noise.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


def split_command(words: list[str]) -> tuple[list[str], list[str]]:
    """Set apart the command to run, whose options may be like ours: what follows ``--``, or all of ``run``'s words."""
    if words[:1] == ["run"] and words[1:2] not in (["-h"], ["--help"]):
        return words[:1], words[2:] if words[1:2] == ["--"] else words[1:]
    if "--" in words:
        place = words.index("--")
        return words[:place], words[place + 1 :]
    return words, []


def exit_code(error: SpanreelError) -> int:
    """The exit code that tells what kind of error it was."""
    if isinstance(error, ReplayRefused):
        return REFUSED
    return NOT_INTERCEPTED if isinstance(error, NotIntercepted) else FAILED


def complain(message: str, code: int) -> int:
    """Say what is wrong, and return the exit code that says it too."""
    print(f"spanreel: {message}", file=sys.stderr)
    return code


class Parser(argparse.ArgumentParser):
    """argparse exits 2 on wrong usage, which is the verdict INCONCLUSIVE here; this is where it lets us differ."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where help is, and exit 64."""
        complain(f"{message}; see {self.prog} --help", USAGE)
        raise SystemExit(USAGE)


def build_parser(words: Sequence[str]) -> Parser:
    """The parser for these words: entry points are loaded only where one is asked for, or a list of all."""
    parser = Parser(prog="spanreel", description="Record what an AI agent did, and play it again.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"spanreel {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in find_commands(words):
        subparser = subparsers.add_parser(command.name, help=command.help, description=command.help, allow_abbrev=False)
        command.configure(subparser)
        subparser.set_defaults(run=command.run)
    return parser


def find_commands(words: Sequence[str]) -> Iterable[Command]:
    """Ours, and of the installed ones the one that is asked for; all of them where none is."""
    yield from OWN_COMMANDS
    wanted = next((word for word in words if not word.startswith("-")), None)
    if wanted in {command.name for command in OWN_COMMANDS} or (wanted is None and not {"-h", "--help"} & set(words)):
        return
    found = sorted(entry_points(group="spanreel.commands"), key=lambda entry: entry.name)
    asked = [entry for entry in found if entry.name == wanted]
    yield from (load_command(entry) for entry in asked or found)


def load_command(entry: EntryPoint) -> Command:
    """The object that an entry point names."""
    try:
        command: Command = entry.load()
    except ImportError as error:
        raise SpanreelError(f"the command {entry.name!r} cannot be loaded from {entry.value!r}: {error}") from error
    return command


# -- run -------------------------------------------------------------------------------------------------------------


def configure_run(parser: argparse.ArgumentParser) -> None:
    """Only its help: all words after ``run`` are the command."""
    parser.usage = "spanreel run -- python app.py ...\n       spanreel run -m module ..."
    parser.epilog = (
        "Spans go to $OTEL_EXPORTER_OTLP_ENDPOINT (where none is set, to http://localhost:4318, which `spanreel serve` "
        "listens on), or with $SPANREEL_FILE to a file. `spanreel doctor` says what is recorded here."
    )


def run_command(options: argparse.Namespace) -> int:
    """Become the command, with every Python process in it instrumented."""
    command = options.command
    if command[:1] == ["-m"] and len(command) > 1:
        command = [sys.executable, *command]
    if command in ([], ["-m"]):
        return complain("no command to run; for example: spanreel run -- python app.py", USAGE)
    if command[0].startswith("-"):
        return complain(f"unknown option {command[0]!r}; for example: spanreel run -- python app.py", USAGE)
    try:
        os.execvpe(command[0], command, recorded_environment(os.environ))
    except OSError as error:
        code = NOT_FOUND if isinstance(error, FileNotFoundError) else CANNOT_RUN
        advice = f"; to run a script: spanreel run -- python {command[0]}" if command[0].endswith(".py") else ""
        return complain(f"cannot run {command[0]!r}: {error.strerror}{advice}", code)


# -- replay ----------------------------------------------------------------------------------------------------------


def configure_replay(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``spanreel replay``; the command follows ``--``."""
    parser.usage = (
        "spanreel replay SESSION[#RUN] [options] -- python app.py ...\n"
        "       spanreel replay FOLDER_OR_FILES... --entry module:function [--jobs N] [--report FOLDER [--resume]]"
    )
    parser.epilog = (
        "Exit codes: 0, PASS; 1, FAIL: it diverged; 2, INCONCLUSIVE: the recording cannot tell; 3, refused before it "
        "started; 4, something went, or would have gone, past the replay; 64, wrong usage."
    )
    parser.add_argument(
        "session",
        metavar="SESSION[#RUN]",
        nargs="+",
        help="a session document, or its URL in a service; one run of it by number, id or path; "
        "several, or a folder of them, with --entry",
    )
    parser.add_argument(
        "--plan", action="store_true", help="say what would answer every tool and call, and run nothing"
    )
    parser.add_argument(
        "--report", metavar="FILE", help="write the report, as JSON, to this file; of several, to a folder"
    )
    parser.add_argument(
        "--post-report",
        action="store_true",
        help="of a session by its URL: give the report to the service, to be seen there",
    )
    parser.add_argument(
        "--calibrate", action="store_true", help="with --entry: print rules for what differs by itself, by two replays"
    )
    parser.add_argument(
        "--times", metavar="N", type=int, default=1, help="replay so many times, and show how much a live model varies"
    )
    parser.add_argument(
        "--control", action="store_true", help="with --times: as often with the model live and nothing else changed"
    )
    parser.add_argument(
        "--jobs", metavar="N", type=int, help="of several sessions, replay so many at once (default: 4)"
    )
    parser.add_argument(
        "--resume", action="store_true", help="of several sessions, leave out those whose report is there already"
    )
    parser.add_argument(
        "--entry", metavar="MODULE:FUNCTION", help="call this function once for each root run with the recorded input"
    )
    _configure_changes(
        parser.add_argument_group("what becomes different; from the first call touched, models are live")
    )
    parser.add_argument(
        "--allow",
        metavar="HOST:PORT",
        action="append",
        default=[],
        help="let connections to this address through; or, as program:NAME, let this program be started",
    )
    parser.add_argument(
        "--serve-redacted",
        action="store_true",
        help="answer with what is redacted in the recording: the agent gets placeholders",
    )


def _configure_changes(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--model", metavar="[OLD=]NEW", help="ask another model; OLD where the agent asks several")
    add("--set", metavar="NAME=VALUE", action="append", default=[], help="a setting of the model: temperature=0.2")
    add("--instructions", metavar="FILE", help="the system instructions in this file")
    add("--base-url", metavar="URL", help="where the model is: http://localhost:11434/v1")
    add("--agent", metavar="PATH", default="root", help="the agent that these are meant for (default: root)")
    add("--input", metavar="TEXT", help="another input than the recorded one")
    add(
        "--from",
        metavar="TURN",
        type=int,
        dest="from_turn",
        help="answer from the recording up to this turn; 0 is the first",
    )
    add(
        "--edit", metavar="CALL=VALUE", action="append", default=[], help="another answer of a recorded call, by its id"
    )
    add("--pace", action="store_true", help="let recorded streams take the time that they took")
    add(
        "--freeze",
        action="store_true",
        help="the agent's own code reads the recorded time, and draws the same uuids and random numbers every time",
    )
    add("--map-ids", action="store_true", help="uuids and the like that are made anew stand for those of the recording")
    add(
        "--recovered",
        action="store_true",
        help="spanreel sees every tool now: those that nothing recorded are answered with what the model was told",
    )
    add("--changes", metavar="FILE", help="a TOML or JSON file with all of these; see docs/replay.md")


def replay_command(options: argparse.Namespace) -> int:
    """Run the command, or call the entry, with a recorded session in the place of the world."""
    import tempfile
    from pathlib import Path

    from spanreel.replay.served import brought, post_report

    with brought(options.session) as here, tempfile.TemporaryDirectory(prefix="spanreel-") as folder:
        if not options.post_report:
            return replay_files(options, here.sources)
        if here.home is None or len(here.sources) > 1 or options.report:
            return complain("--post-report is for one session of a service, and goes without --report FILE", USAGE)
        report = Path(folder) / "report.json"
        options.report = str(report)
        code = replay_files(options, here.sources)
        if report.exists():  # nothing was replayed where the command line is wrong, or only a plan was wanted
            post_report(here.home, report.read_bytes())
        return code


def replay_files(options: argparse.Namespace, sources: Sequence[str]) -> int:
    """Replay sessions that are here, as files."""
    if len(sources) > 1 and not options.entry:
        return complain(
            "several sessions need --entry module:function; a command comes after --; see spanreel replay --help", USAGE
        )
    if not options.command and not options.entry and not options.plan:
        return complain("nothing to replay with: end with -- python app.py, or give --entry module:function", USAGE)
    if options.command and options.entry:
        return complain("--entry calls the function itself: leave out either it or the command after --", USAGE)
    if options.entry and not all(options.entry.partition(":")):
        return complain(f"--entry {options.entry!r} is not of the form module:function", USAGE)
    for address in options.allow:
        host, _, port = address.rpartition(":")
        if not host or not (port.isdecimal() or (host == "program" and port)):
            return complain(f"--allow {address!r} is not of the form host:port, or program:name", USAGE)
    from spanreel.replay import batch, command
    from spanreel.replay.change_files import from_options
    from spanreel.replay.options import Options
    from spanreel.session import split_address

    several = batch.is_batch(sources, options.jobs) or options.resume
    if options.calibrate and not options.entry:
        return complain("--calibrate needs --entry module:function", USAGE)
    if several and (options.plan or options.command or options.calibrate):
        return complain("several sessions are replayed with --entry module:function, and planned one by one", USAGE)
    if several and ((options.jobs is not None and options.jobs < 1) or (options.resume and not options.report)):
        return complain("--jobs is a number from 1 on, and --resume needs --report FOLDER", USAGE)
    if options.times < 1 or (options.times > 1 and (several or options.plan or options.calibrate)):
        return complain("--times is a number from 1 on, for one session that is replayed", USAGE)
    if options.control and options.times == 1:
        return complain("--control goes with --times N", USAGE)
    changes = from_options(vars(options))
    chosen = Options(
        options.report,
        options.entry,
        tuple(options.allow),
        options.serve_redacted,
        changes,
        options.times,
        options.control,
    )
    if several:
        return batch.batch_command(sources, chosen, jobs=options.jobs or batch.JOBS, resume=options.resume)
    session, run = split_address(sources[0])
    if options.plan:
        return print_plan(session, run, changes, options.serve_redacted)
    if options.calibrate:
        from spanreel.replay.calibration import calibrate_command

        return calibrate_command(session, run, chosen)
    return command.replay_command(session, run, options.command, chosen)


def print_plan(source: str, selector: str | None, changes: Changes, serve_redacted: bool) -> int:
    """Say what a replay would do; the exit code is whether it would start."""
    from spanreel.replay.planning import plan
    from spanreel.replay.preflight import find_run, find_session

    session = find_session(source)
    planned = plan(session, find_run(session, selector), changes, serve_redacted=serve_redacted)
    print("\n".join(planned.lines))
    return REFUSED if planned.refused else 0


# -- doctor ----------------------------------------------------------------------------------------------------------


def configure_doctor(_: argparse.ArgumentParser) -> None:
    """It has no arguments."""


def doctor_command(_: argparse.Namespace) -> int:
    """Print what would be recorded here, where it would go, and what cannot be intercepted."""
    from spanreel.doctor import examine

    for line in examine():
        print(line)
    return 0


OWN_COMMANDS: Final[tuple[Command, ...]] = (
    OwnCommand("run", "run a command and record the agents in it", configure_run, run_command),
    OwnCommand("replay", "run a recorded agent again, from its recording", configure_replay, replay_command),
    OwnCommand(
        "doctor", "say what is recorded here, where it goes, and what is out of reach", configure_doctor, doctor_command
    ),
)
