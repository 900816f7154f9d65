"""Whether an offline replay of a session can be exact: what stands in the way, where, and what to do; call by call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from spanreel.model import Fidelity, Status, ToolKind
from spanreel.session import Eligibility, ModelCall, Reason, Run, Session, ToolCall, was_made_up

_RUNS_ITSELF = (ToolKind.AGENT, ToolKind.HANDOFF, ToolKind.PROVIDER)
"""Kinds of tool calls that a replay does not answer: their insides are replayed, or the provider runs them."""

_CAPTURE = "record again with content (SPANREEL_CAPTURE=full)"
_LIMITS = "record again with higher limits (SPANREEL_MAX_SPAN_BYTES, OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT)"
_POLICY = "record again with a policy that leaves this field, or consent to placeholders (--serve-redacted)"

_MODELS = "record again with an instrumentation of the model's client beside the framework's, or with spanreel"

_THEIRS = {
    _CAPTURE: "let its instrumentation record content, or record with spanreel",
    _LIMITS: "raise its recorder's limits (OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT, OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT), "
    "or record with spanreel",
    _POLICY: "redact in a way that keeps equal values equal: spanreel's policies digest",
}
"""The same, where another recorder wrote it."""

_DECORATE = "decorate the tool with @spanreel.tool and the agent around it with @spanreel.run, and record again"
_REMEDIES = {Fidelity.ABSENT: _CAPTURE, Fidelity.TRUNCATED: _LIMITS, Fidelity.REDACTED: _POLICY}


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What stands in the way: its kind (equal for alike ones), its JSON pointer in the document, and what to do."""

    kind: str
    place: str
    reason: str
    remedy: str | None = None


NOTHING = Obstacle("no call recorded", "/runs", "no call was recorded: there is nothing to answer with")


class Outcome(StrEnum):
    """What an offline replay does where the call comes again."""

    ANSWERED = "answered"
    """From the recording."""
    INSIDE = "inside"
    """Nothing by itself: what happens inside is replayed, or stands in a model's answer already."""
    IN_DOUBT = "in doubt"
    """The recording lacks something that it takes."""
    LIVE = "live"
    """It would really run, so that an offline replay is refused."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a replay will do with one call: which call (its id), at which JSON pointer, and why it is in doubt."""

    call: str
    name: str
    place: str
    outcome: Outcome
    reason: str | None = None


def judge(session: Session) -> Eligibility:
    """The reasons, each at its JSON pointer in the document; none: eligible."""
    found = find_obstacles(session)
    reasons = [_reason(one) for number in sorted(found) for one in found[number]]
    if _is_empty(session.runs):
        reasons.append(_reason(NOTHING))
    return Eligibility(eligible=not reasons, reasons=reasons)


def judge_run(session: Session, run: Run) -> Eligibility:
    """As `judge`, for a replay of one run: it and the runs inside it."""
    inside = list(_inside(session, run))
    reasons = [_reason(obstacle) for number, _ in inside for obstacle in _judge_in(session, number)]
    if _is_empty(one for _, one in inside):
        reasons.append(_reason(NOTHING))
    return Eligibility(eligible=not reasons, reasons=reasons)


def find_obstacles(session: Session) -> dict[int, list[Obstacle]]:
    """What stands in the way of each run, by its number in the document; runs that nothing stops are left out."""
    judged = ((number, list(_judge_in(session, number))) for number in range(len(session.runs)))
    return {number: obstacles for number, obstacles in judged if obstacles}


def forecast(session: Session, only: Run | None = None) -> Iterator[Forecast]:
    """What an offline replay (of one run and those inside it, else of all) does with each call, as they stand."""
    for number, run in _inside(session, only):
        obstacles = list(_judge_in(session, number))
        for place, call in _places(run, f"/runs/{number}"):
            mine = [one for one in obstacles if one.place == place or one.place.startswith(f"{place}/")]
            yield _forecast(call, place, mine)


def _inside(session: Session, run: Run | None) -> Iterator[tuple[int, Run]]:
    """The run and those inside it, each with its number in the document; all runs where none is asked for."""
    inside: set[str] = set()
    for number, one in enumerate(session.runs):
        if run is None or one.id == run.id or (one.parent is not None and one.parent.run in inside):
            inside.add(one.id)
            yield number, one


def _judge_in(session: Session, number: int) -> Iterator[Obstacle]:
    """What stands in the way of this run, with what to do where its recorder is not ours."""
    # What others redacted looks alike, whatever it was; what we redacted has a placeholder of its own.
    foreign = session.origin == "imported" and session.redaction.policy is None
    lost = (*_LOST, Fidelity.REDACTED) if foreign else _LOST
    run, place = session.runs[number], f"/runs/{number}"
    if run.fidelity.get(_MODEL_CALLS) is Fidelity.ABSENT:
        yield Obstacle(
            "no model call recorded",
            place,
            f"agent {run.agent.name!r} called tools, and no call of its model was recorded: nothing can answer it",
            _MODELS,
        )
    for obstacle in _judge_run(session, run, place, lost):
        if session.origin == "imported" and obstacle.remedy in _THEIRS:
            yield replace(obstacle, remedy=_THEIRS[obstacle.remedy])
        else:
            yield obstacle


_FRAMEWORKS = re.compile(
    r"openai[._-]agents|pydantic[._-]ai|crewai|smolagents|strands|agent[._-]framework|autogen|adk\b"
    r"|llama[._-]?index|agno\b|semantic[._-]kernel"
)
"""Recorders of frameworks whose agents all have a model; an agent by hand may have none."""
_MODEL_CALLS = "model_calls"


def mark_missing_models(session: Session) -> None:
    """Mark the runs whose model's calls a recorder has left out that knows agents and tools only."""
    scopes = session.source.get("scopes")
    if session.origin != "imported" or not isinstance(scopes, list):
        return
    if not any(_FRAMEWORKS.search(str(scope)) for scope in scopes):
        return
    for run in session.runs:
        called = run.agent.name is not None and any(call.executed for call in run.tool_calls())
        if called and not any(True for _, one in _inside(session, run) for _ in one.model_calls()):
            run.fidelity[_MODEL_CALLS] = Fidelity.ABSENT


def _forecast(call: ModelCall | ToolCall, place: str, obstacles: list[Obstacle]) -> Forecast:
    name = call.name if isinstance(call, ToolCall) else call.model or call.operation
    outcome = Outcome.ANSWERED
    if any(one.kind == _UNSEEN for one in obstacles):
        outcome = Outcome.LIVE
    elif obstacles:
        outcome = Outcome.IN_DOUBT
    elif isinstance(call, ToolCall) and (call.kind in _RUNS_ITSELF or not call.executed):
        outcome = Outcome.INSIDE
    return Forecast(call.id, name, place, outcome, "; ".join(one.reason for one in obstacles) or None)


def _places(run: Run, place: str) -> Iterator[tuple[str, ModelCall | ToolCall]]:
    for number, turn in enumerate(run.turns):
        if turn.model_call is not None:
            yield f"{place}/turns/{number}/model_call", turn.model_call
        for index, call in enumerate(turn.tool_calls):
            yield f"{place}/turns/{number}/tool_calls/{index}", call
    for number, side_call in enumerate(run.side_calls):
        yield f"{place}/side_calls/{number}", side_call
    for number, call in enumerate(run.loose_tool_calls):
        yield f"{place}/loose_tool_calls/{number}", call


def _is_empty(runs: Iterable[Run]) -> bool:
    return not any(True for run in runs for _ in (*run.model_calls(), *run.tool_calls()))


def _reason(obstacle: Obstacle) -> Reason:
    return Reason(place=obstacle.place, reason=obstacle.reason, remedy=obstacle.remedy)


# -- one run ---------------------------------------------------------------------------------------------------------

_UNSEEN = "a tool was called that nothing recorded"


_LOST = (Fidelity.TRUNCATED, Fidelity.ABSENT)
"""States of which too little is left to know a call again."""


def _judge_run(session: Session, run: Run, place: str, lost: tuple[Fidelity, ...]) -> Iterator[Obstacle]:
    if run.status is Status.UNFINISHED:
        yield Obstacle("run unfinished", place, "the run never finished: the recording ends in the middle")
    for number, turn in enumerate(run.turns):
        last = number == len(run.turns) - 1 and run.status is Status.OK
        waits = number == len(run.turns) - 1 and run.status is Status.INTERRUPTED
        if turn.model_call is not None:
            yield from _judge_model_call(turn.model_call, f"{place}/turns/{number}/model_call", lost)
        for index, call in enumerate(turn.tool_calls):
            # By the framework, which says it again, or by whoever looked for a tool that there is not. What waits for
            # whoever goes on with an interrupted run has not run.
            told = not call.executed and (run.sees_tools or was_made_up(session, run, call))
            if not told and not (waits and not call.executed and call.status is Status.UNFINISHED):
                yield from _judge_tool_call(call, f"{place}/turns/{number}/tool_calls/{index}", lost, last=last)
    for number, side_call in enumerate(run.side_calls):
        yield from _judge_model_call(side_call, f"{place}/side_calls/{number}", lost)
    for number, call in enumerate(run.loose_tool_calls):
        yield from _judge_tool_call(call, f"{place}/loose_tool_calls/{number}", lost, last=False)


def _judge_model_call(call: ModelCall, place: str, lost: tuple[Fidelity, ...]) -> Iterator[Obstacle]:
    if call.status is Status.UNFINISHED:
        yield Obstacle("model call unfinished", place, "the model call never finished")
    told = all(call.fidelity.get(field) is Fidelity.RECONSTRUCTED for field in ("input", "output"))
    if told and (call.usage is None or call.fidelity.get("usage") is Fidelity.ABSENT):
        reason = "no span tells of this model call, only what stands around it: a live request cannot be known again"
        yield Obstacle("model call without a span", place, reason, _MODELS)
    for field in ("input", "instructions"):
        state = call.fidelity.get(field)
        if state is not None and state in lost:
            reason = f"{field} {state.value}: a live request cannot be known again"
            yield Obstacle(f"model call's {field} {state.value}", f"{place}/{field}", reason, _REMEDIES[state])
    for field in ("output", "arguments"):
        state = call.fidelity.get(field)
        if state in _REMEDIES:
            reason = f"{field} of the answer {state.value}"
            yield Obstacle(f"model call's {field} {state.value}", f"{place}/{field}", reason, _REMEDIES[state])


def _judge_tool_call(call: ToolCall, place: str, lost: tuple[Fidelity, ...], *, last: bool) -> Iterator[Obstacle]:
    if call.kind in _RUNS_ITSELF:
        return
    if not call.executed:
        # A request that nobody answered, in the last answer of a run that ended well, is how some frameworks give
        # their output, or hand over: whom they hand over to is told the answer. One that no recorded model call made
        # happened before the recording began.
        if call.status is Status.UNFINISHED and not last:
            reason = f"tool {call.name!r} was asked for, and nothing tells what came of it"
            yield Obstacle("a tool was asked for, and nothing tells what came of it", place, reason)
        elif call.status is not Status.UNFINISHED and call.requested_by is not None and not last:
            reason = f"tool {call.name!r} was called, but nothing recorded it: in a replay it would really run"
            yield Obstacle(_UNSEEN, place, reason, _DECORATE)
        return
    if call.status is Status.UNFINISHED:
        reason = f"tool {call.name!r} never finished: there is no result to answer with"
        yield Obstacle("tool call unfinished", place, reason)
    raised = (
        call.status in (Status.ERROR, Status.CANCELLED) and call.error is not None and call.error.message is not None
    )
    for field in ("arguments", "result"):
        state = call.fidelity.get(field)
        if field == "result" and raised and state is Fidelity.ABSENT:
            continue  # the failure is what comes of it
        if state is not None and state in (lost if field == "arguments" else _REMEDIES):
            reason = f"tool {call.name!r}: {field} {state.value}"
            yield Obstacle(f"tool call's {field} {state.value}", f"{place}/{field}", reason, _REMEDIES[state])
