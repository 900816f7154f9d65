"""The command line: `spanreel run`, `replay`, `doctor`, and the commands that installed packages add by entry point.

It reads arguments and says what went wrong in one line; the work is done elsewhere. A subcommand imports what it needs
when it runs, so that the command line itself starts at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Final, NoReturn

from spanreel import __version__
from spanreel.errors import NotIntercepted, ReplayRefused, SpanreelError
from spanreel.launch import recorded_environment
from spanreel.replay_command import REPLAY
from spanreel.subcommand import (
    CANNOT_RUN,
    FAILED,
    INTERRUPTED,
    NOT_FOUND,
    NOT_INTERCEPTED,
    OK,
    REFUSED,
    USAGE,
    Command,
    complain,
)


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


# -- doctor ----------------------------------------------------------------------------------------------------------


def configure_doctor(_: argparse.ArgumentParser) -> None:
    """It has no arguments."""


def doctor_command(_: argparse.Namespace) -> int:
    """Print what would be recorded here, where it would go, and what cannot be intercepted."""
    from spanreel.doctor import examine

    for line in examine():
        print(line)
    return OK


OWN_COMMANDS: Final[tuple[Command, ...]] = (
    Command("run", "run a command and record the agents in it", configure_run, run_command),
    REPLAY,
    Command(
        "doctor", "say what is recorded here, where it goes, and what is out of reach", configure_doctor, doctor_command
    ),
)
