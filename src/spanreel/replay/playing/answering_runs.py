"""Runs that begin and end in a replay: which recorded one each is, what it is given, whether it came to the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from spanreel import conventions as names
from spanreel.crossing import describe_error
from spanreel.model import Json
from spanreel.player import LiveRun
from spanreel.point import RunRequest, RunResult
from spanreel.replay.comparing.canonical import canonical, first_difference
from spanreel.replay.comparing.placeholders import Redact, redact_value
from spanreel.replay.matching.casting import Role
from spanreel.replay.matching.events import REWORDED, Event, Happening, Subject, contrast, told
from spanreel.replay.matching.lanes import current_lane
from spanreel.replay.matching.matching import MissReason
from spanreel.replay.matching.outcome import Ending, compare_form, compare_outcome, lenient_outcome
from spanreel.replay.playing.play import Play
from spanreel.replay.playing.recorded_input import recorded_arguments
from spanreel.session import Run
from spanreel.snapshot import snapshot


def begin_run(play: Play, run: LiveRun, request: RunRequest) -> Mapping[str, Json] | None:
    """Find the recorded run that a run is; a root run gets its recorded arguments."""
    play.check(run)
    counts = run.parent is None or play.is_apart(run.parent)
    play.lanes[run.id] = current_lane()
    role = play.casting.cast(run, play.as_recorded(_arguments(request)) if counts else None)
    if role is None:
        hint = play.casting.expected(run)
        play.miss(run, Event(Happening.MISSED, Subject.RUN, run.path, run.agent.name, detail=hint))
    play.ledger.tell(Event(Happening.RUN_STARTED, Subject.RUN, role.path, run.agent.name, recorded_id=role.recorded_id))
    if run.parent is not None:
        return None
    try:
        return play.models.arguments(role, _recorded_arguments(play, role, request))
    except LookupError as missing:
        play.ledger.refuse(str(missing))


def end_run(play: Play, run: LiveRun, result: RunResult | None, error: BaseException | None) -> None:
    """Compare a run's outcome, unless it was us who ended it."""
    ending = Ending(
        result,
        error,
        describe_error(error, {}).message if error is not None else None,
        result is not None and snapshot(result.value).opaque,
    )
    lives = [_placed(redact, ending) for redact in play.placeholders.ways] or [ending]
    with play.ledger.lock:
        role = play.casting.end(run)
        if role is None or role.run is None or play.ledger.stop_of(play.casting.root(run)):
            return
        play.ledger.tell(_ended(play, run, role, lives))


def _ended(play: Play, run: LiveRun, role: Role, lives: list[Ending]) -> Event:
    """The event of a run's end; ``lives`` are how it ended by each way of placing placeholders."""
    assert role.run is not None
    see = play.ids.translated if play.ids is not None else lambda value: value
    compared = [compare_outcome(play.session, role.run, live, see) for live in lives]
    difference, uncompared = next((one for one in compared if one[0] is None), compared[0])
    ended = Event(Happening.RUN_ENDED, Subject.RUN, role.path, run.agent.name, recorded_id=role.run.id)
    if difference is not None and play.known is not None:
        blurred = play.placeholders.blurred
        if compare_outcome(play.session, role.run, lives[-1], blurred)[0] is None:
            return replace(ended, reason=MissReason.KEYLESS.value, uncompared=("outcome",))
    if difference is not None and play.casting.root(run) in play.models.live:
        words = told(difference) or {}
        difference = compare_form(play.session, role.run, lives[0])[0]
        if difference is None:
            said = f"the outcome of {role.path} is worded differently: {contrast(words)}"
            ended = replace(ended, reason=REWORDED, detail=said)
    is_same = difference is None and ended.reason is None and lives[0].error is None and not uncompared
    lenient = lenient_outcome(play.session, role.run, lives[0].result) if is_same else ()
    return replace(ended, difference=told(difference), uncompared=uncompared, lenient=lenient)


def _placed(redact: Redact, ending: Ending) -> Ending:
    if ending.error is not None:
        return replace(ending, said=redact_value(redact, names.ERROR_MESSAGE, ending.said))
    if ending.result is None:
        return ending
    output = redact_value(redact, names.OUTPUT_MESSAGES, list(ending.result.output))
    value = redact_value(redact, names.RUN_RESULT, snapshot(ending.result.value).value)
    result = RunResult(tuple(output) if isinstance(output, list) else (), value, ending.result.status)
    return replace(ending, result=result)


def _recorded_arguments(play: Play, role: Role, request: RunRequest) -> Mapping[str, Json] | None:
    recorded = recorded_arguments(role.run) if role.run is not None else None
    if role.run is None or recorded is None:
        return None
    _note_changes(play, role.run, request, recorded)
    return recorded


def _note_changes(play: Play, run: Run, request: RunRequest, recorded: Mapping[str, Json]) -> None:
    if run.agent.name not in (None, request.agent.name):
        play.ledger.note(f"the agent of {run.path} was recorded as {run.agent.name!r}, now {request.agent.name!r}")
    given = _arguments(request)
    live = {name: given[name] for name in recorded if name in given}
    found = first_difference(canonical(recorded), play.as_recorded(live)) if live else None
    if found is not None:
        said = contrast(told(found) or {})
        play.ledger.note(f"{run.path} was given the recorded input, not the caller's: {found.pointer}: {said}")


def _arguments(request: RunRequest) -> dict[str, Any]:
    given: Any = request.arguments() if callable(request.arguments) else request.arguments
    return dict(given)
