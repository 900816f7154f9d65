"""Many sessions replayed in one process, each in a context of its own; a report of each, and one summary of all.

What is reported depends on the sessions alone: not on how many are played at once, nor in which order they end.
"""

from __future__ import annotations

import contextlib
import contextvars
import hashlib
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Final, NoReturn

from spanreel.errors import NotIntercepted, ReplayRefused, ReplayStop, SpanreelError
from spanreel.model import Json
from spanreel.replay.changing.changes import Changes
from spanreel.replay.comparing.placeholders import placeholders_of
from spanreel.replay.guarding import stage
from spanreel.replay.guarding.gate import unseen
from spanreel.replay.judging.junit import write_junit
from spanreel.replay.judging.report import to_json, write_value
from spanreel.replay.judging.verdict import Verdict
from spanreel.replay.running.batch_summary import EXIT_CODES, REFUSED, BatchOutcome, closing_of, line_of, summarise
from spanreel.replay.running.entries import play_entry
from spanreel.replay.running.entry import load
from spanreel.replay.running.inventory import SUMMARY_FILE, Candidate, files_of, items_of
from spanreel.replay.running.options import GiveBack, Options
from spanreel.replay.running.preflight import check, find_run
from spanreel.replay.running.recovered import with_recovered
from spanreel.replay.running.runner import only_stops
from spanreel.session_files import write_session

JOBS: Final = 4


def is_batch(sources: Sequence[str], jobs: int | None) -> bool:
    """Whether these words of the command line mean a batch."""
    return jobs is not None or len(sources) > 1 or Path(sources[0]).is_dir()


def batch_command(  # noqa: PLR0913 - each is a question of its own, and most have a default
    sources: Sequence[str],
    options: Options,
    *,
    jobs: int,
    resume: bool,
    give_back: GiveBack | None = None,
    faults: Mapping[str, str] | None = None,
) -> int:
    """Replay all sessions of these files and folders with an entry function; print the summary; the exit code.

    ``faults`` says of files that are not there why they are not.

    Raises:
        ReplayRefused: refused before anything ran.
    """
    folder = _report_folder(sources, options)
    files = list(files_of(sources))
    outcomes: list[BatchOutcome] = []
    lost: list[str] = []
    before = folder if resume else None
    for outcome in play_all(files, options, jobs=jobs, folder=before, write_to=folder, faults=faults):
        outcomes.append(outcome)
        _print(line_of(outcome))
        if give_back is not None:
            with unseen():  # by the guard, since it is none of the sessions' doing
                fault = give_back(outcome.source, outcome.report)
            lost += [fault] if fault is not None else []
    outcomes.sort(key=lambda one: one.name)
    summary = summarise(outcomes)
    if folder is not None:
        write_value(summary, folder / SUMMARY_FILE)
    if options.junit is not None:
        write_junit([(one.name, one.report) for one in outcomes], options.junit)
    _print(closing_of(outcomes))
    if lost:
        raise ReplayRefused(f"{len(lost)} report{'s' * (len(lost) > 1)} could not be given back: {lost[0]}")
    return int(summary["exit_code"])


def play_all(  # noqa: PLR0913 - as above
    files: Sequence[tuple[str, str | None]],
    options: Options,
    *,
    jobs: int = JOBS,
    folder: Path | None = None,
    write_to: Path | None = None,
    faults: Mapping[str, str] | None = None,
) -> Iterator[BatchOutcome]:
    """The outcomes in the order in which they end. ``folder`` holds reports of before, which are not made again.

    A report is written as soon as it is made, so that an interrupted batch can go on from there.
    """
    asked = _asked(options)
    stopped = threading.Event()
    with _in_place(options), ThreadPoolExecutor(jobs, thread_name_prefix="spanreel-replay") as pool:
        pending: set[Future[BatchOutcome | None]] = set()
        try:
            for item in items_of(files, faults):
                made = _resumed(item, asked, folder)
                if made is not None:
                    yield made
                    continue
                # Only so many sessions are held as can be played.
                if len(pending) >= 2 * jobs:
                    done, pending = wait(pending, return_when=FIRST_COMPLETED)
                    yield from _ended(done)
                context = contextvars.copy_context()
                pending.add(pool.submit(context.run, _play, item, options, asked, write_to, stopped))
            while pending:
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                yield from _ended(done)
        finally:
            stopped.set()


def _ended(done: set[Future[BatchOutcome | None]]) -> Iterator[BatchOutcome]:
    yield from sorted((outcome for one in done if (outcome := one.result()) is not None), key=lambda one: one.name)


def _play(
    item: Candidate, options: Options, asked: dict[str, Json], write_to: Path | None, stopped: threading.Event
) -> BatchOutcome | None:
    """Play one session; None where the batch has been interrupted meanwhile."""
    if stopped.is_set():
        return None
    report = {**_report(item, options), "asked": asked, "document": _digest_of(item)}
    if stopped.is_set():
        return None
    outcome = BatchOutcome(item.name, report, source=item.source)
    if write_to is not None:
        write_value(report, write_to / f"{item.name}.json")
    return outcome


def _report(item: Candidate, options: Options) -> dict[str, Json]:
    if item.session is None:
        return _refusal(item, item.refused or "", REFUSED)
    try:
        session = with_recovered(item.session, options.changes)
        run = find_run(session, item.run)
        check(session, run, options.changes, serve_redacted=options.serve_redacted)
        placeholders_of(session)
        return dict(to_json(play_entry(session, run, options)))
    except NotIntercepted as error:
        return _refusal(item, str(error), str(Verdict.NOT_INTERCEPTED))
    except SpanreelError as error:
        return _refusal(item, str(error), REFUSED)
    except BaseException as error:  # noqa: BLE001 - one session that ends its thread must not end the others
        return _refusal(item, f"{type(error).__name__}: {error} ended its thread", str(Verdict.FAIL))


def _refusal(item: Candidate, why: str, verdict: str) -> dict[str, Json]:
    session = item.session
    return {
        "schema": "spanreel.replay/1",
        "session": session.id if session is not None else None,
        "revision": session.revision if session is not None else None,
        "run": item.run,
        "verdict": verdict,
        "reasons": [why],
        "exit_code": EXIT_CODES[verdict],
    }


# -- an interrupted batch, gone on with --------------------------------------------------------------------------------


def _resumed(item: Candidate, asked: dict[str, Json], folder: Path | None) -> BatchOutcome | None:
    """The report of before, where it is of the same revision of the session and of the same question."""
    if folder is None or item.session is None:
        return None
    try:
        report: Any = json.loads((folder / f"{item.name}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(report, dict) or report.get("verdict") not in EXIT_CODES:
        return None
    wanted = {"revision": item.session.revision, "asked": asked, "document": _digest_of(item)}
    return BatchOutcome(item.name, report, True, item.source) if wanted.items() <= report.items() else None


def _asked(options: Options) -> dict[str, Json]:
    """What makes another report of the same session: kept in each, so that no batch goes on from one of another."""
    changes = options.changes.model_dump_json(exclude_none=True)
    return {
        "entry": options.entry,
        "changes": hashlib.sha256(changes.encode()).hexdigest() if options.changes != Changes() else None,
        "serve_redacted": options.serve_redacted,
    }


def _digest_of(item: Candidate) -> Json:
    """Two documents may bear the same revision: one written by hand, one converted into another folder."""
    return hashlib.sha256(write_session(item.session).encode()).hexdigest() if item.session is not None else None


def _report_folder(sources: Sequence[str], options: Options) -> Path | None:
    if options.report is None:
        return None
    folder = Path(options.report)
    if any(Path(source).is_dir() and Path(source).resolve() == folder.resolve() for source in sources):
        raise ReplayRefused(f"the reports would lie among the sessions of {options.report!r}; name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReplayRefused(f"cannot write reports to {options.report!r}: {error.strerror or error}") from error
    return folder


# -- the process -----------------------------------------------------------------------------------------------------


class _Nobody:
    """The player of what belongs to no session: the entry's import, and threads whose replay cannot be told.

    Active as long as the batch, so that such code meets the same refusal however many sessions are being played.
    """

    def __init__(self, changes: Changes) -> None:
        self.memory: dict[Any, Any] = {}
        self.changes = changes

    def refuse(self, what: str) -> NoReturn:
        """Nothing is answered."""
        raise ReplayStop(f"{what} belongs to none of the sessions that are replayed")

    def begin_run(self, *_: Any) -> NoReturn:
        """Refused."""
        self.refuse("a run")

    def end_run(self, *_: Any) -> None:
        """There was none."""

    def answer_model(self, *_: Any) -> NoReturn:
        """Refused."""
        self.refuse("a model call")

    def hear_model(self, *_: Any) -> None:
        """There was none."""

    def answer_tool(self, *_: Any) -> NoReturn:
        """Refused."""
        self.refuse("a tool call")

    def connects(self) -> bool:
        """To nobody."""
        return False

    def draw(self, *_: Any) -> None:
        """Whatever it likes."""


@contextlib.contextmanager
def _in_place(options: Options) -> Iterator[None]:
    """The process made ready once for all, and the entry imported once.

    Raises:
        ReplayRefused: the entry cannot be imported, or asks models while it is.
    """
    nobody = _Nobody(options.changes)
    stage.enter(nobody, options.allow)
    try:
        try:
            load(options.entry or "")
        except BaseException as error:
            if only_stops(error):
                raise ReplayRefused(
                    f"--entry {options.entry!r} calls a model or a tool while it is imported ({error}); "
                    "a batch imports it once for all sessions, so that it has to wait until it is called"
                ) from error
            raise
        yield
    finally:
        stage.leave(nobody)


def _print(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - the command's output
