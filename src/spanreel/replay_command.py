"""The command ``replay``: its arguments, and what is wrong with them, said before anything runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from spanreel.subcommand import OK, REFUSED, USAGE, Command, complain

if TYPE_CHECKING:
    from spanreel.model import Json
    from spanreel.replay.changing.changes import Changes
    from spanreel.replay.running.options import GiveBack
    from spanreel.replay.running.served import Brought


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
        "--timeout", metavar="SECONDS", type=float, help="kill the command, and fail, where it takes longer than this"
    )
    parser.add_argument(
        "--junit", metavar="FILE", help="write the verdicts to this file as JUnit XML, as CI shows tests"
    )
    parser.add_argument(
        "--post-report",
        action="store_true",
        help="of sessions by their URLs: give the reports to the service, to be seen there",
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
        help="let connections to this address (or unix:PATH) through; or, as program:NAME, let this program be started",
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
        "--edit",
        metavar="CALL=VALUE",
        action="append",
        default=[],
        help="another answer of a recorded call, by its id (see show --full)",
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
    from spanreel.replay.running.served import brought

    with brought(options.session) as here:
        if not options.post_report:
            return replay_files(options, here)
        if len(here.homes) < len(here.sources):
            return complain("--post-report is for sessions of a service, named by their URLs", USAGE)
        return replay_files(options, here, partial(_given_back, here.homes))


def _given_back(homes: Mapping[str, str], source: str, report: Mapping[str, Json]) -> str | None:
    """Give a report to the service that the session came from; what went wrong."""
    from spanreel.errors import ReplayRefused
    from spanreel.replay.judging.report import written
    from spanreel.replay.running.served import post_report

    if report.get("session") is None:
        return None  # it could not be read, and the service has said so already
    try:
        post_report(homes[source], written(report))
    except ReplayRefused as refused:
        return str(refused)
    return None


def replay_files(options: argparse.Namespace, here: Brought, give_back: GiveBack | None = None) -> int:
    """Replay sessions that are here, as files."""
    from spanreel.replay.changing.change_files import from_options
    from spanreel.replay.running import batch, command
    from spanreel.replay.running.options import Options
    from spanreel.session_files import split_address

    sources = here.sources
    several = batch.is_batch(sources, options.jobs) or options.resume
    if complaint := next(_complaints(options, several), None):
        return complain(complaint, USAGE)
    changes = from_options(vars(options))
    chosen = Options(
        options.report,
        options.entry,
        tuple(options.allow),
        options.serve_redacted,
        changes,
        options.times,
        options.control,
        options.junit,
        options.timeout,
    )
    if several:
        jobs = options.jobs or batch.JOBS
        return batch.batch_command(
            sources, chosen, jobs=jobs, resume=options.resume, give_back=give_back, faults=here.faults
        )
    session, run = split_address(sources[0])
    if options.plan:
        return print_plan(session, run, changes, options.serve_redacted)
    if options.calibrate:
        from spanreel.replay.running.calibration import calibrate_command

        return calibrate_command(session, run, chosen)
    return command.replay_command(session, run, options.command, chosen, give_back)


def _complaints(options: argparse.Namespace, several: bool) -> Iterator[str]:
    """What is wrong with arguments taken together, the first being worth saying."""
    from spanreel.errors import ReplayRefused
    from spanreel.replay.guarding.gate import checked_allow

    by_entry = bool(options.entry)
    if several and not by_entry:
        yield "several sessions need --entry module:function; a command comes after --; see spanreel replay --help"
    if not (options.command or by_entry or options.plan):
        yield "nothing to replay with: end with -- python app.py, or give --entry module:function"
    if options.command and by_entry:
        yield "--entry calls the function itself: leave out either it or the command after --"
    if by_entry and not all(options.entry.partition(":")):
        yield f"--entry {options.entry!r} is not of the form module:function"
    try:
        checked_allow(options.allow)
    except ReplayRefused as refused:
        yield f"--{refused}"
    if options.timeout is not None and (not options.command or not options.timeout > 0):
        yield "--timeout is a number of seconds above 0, for a command after --; an entry function is not killed"
    if options.calibrate and not by_entry:
        yield "--calibrate needs --entry module:function"
    if several and (options.plan or options.command or options.calibrate):
        yield "several sessions are replayed with --entry module:function, and planned one by one"
    if several and ((options.jobs is not None and options.jobs < 1) or (options.resume and not options.report)):
        yield "--jobs is a number from 1 on, and --resume needs --report FOLDER"
    if options.times < 1 or (options.times > 1 and (several or options.plan or options.calibrate)):
        yield "--times is a number from 1 on, for one session that is replayed"
    if options.control and options.times == 1:
        yield "--control goes with --times N"


def print_plan(source: str, selector: str | None, changes: Changes, serve_redacted: bool) -> int:
    """Say what a replay would do; the exit code is whether it would start."""
    from spanreel.replay.running.planning import plan
    from spanreel.replay.running.preflight import find_run, find_session

    session = find_session(source)
    planned = plan(session, find_run(session, selector), changes, serve_redacted=serve_redacted)
    print("\n".join(planned.lines))
    return REFUSED if planned.refused else OK


REPLAY: Final = Command("replay", "run a recorded agent again, from its recording", configure_replay, replay_command)
