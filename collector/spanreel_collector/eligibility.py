"""Whether an offline replay of a session can be exact, and what stands in the way: place, reason, remedy."""

from __future__ import annotations

from collections.abc import Iterator

from spanreel.model import Fidelity, Status, ToolKind
from spanreel.session import Eligibility, ModelCall, Reason, Run, Session, ToolCall

_RUNS_ITSELF = (ToolKind.AGENT, ToolKind.HANDOFF, ToolKind.PROVIDER)
"""Kinds of tool calls that a replay does not answer: their insides are replayed, or the provider runs them."""

_CAPTURE = "record again with content (SPANREEL_CAPTURE=full)"
_LIMITS = "record again with higher limits (SPANREEL_MAX_SPAN_BYTES, OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT)"
_POLICY = "record again with a policy that digests or leaves this field, or consent to the placeholder"

_REMEDIES = {Fidelity.ABSENT: _CAPTURE, Fidelity.TRUNCATED: _LIMITS, Fidelity.REDACTED: _POLICY}


def judge(session: Session) -> Eligibility:
    """The reasons, each at its JSON pointer in the document; none: eligible."""
    reasons = [reason for number, run in enumerate(session.runs) for reason in _judge_run(run, f"/runs/{number}")]
    if not any(True for run in session.runs for _ in (*run.model_calls(), *run.tool_calls())):
        reasons.append(Reason(place="/runs", reason="no call was recorded: there is nothing to answer with"))
    return Eligibility(eligible=not reasons, reasons=reasons)


def _judge_run(run: Run, place: str) -> Iterator[Reason]:
    if run.status is Status.UNFINISHED:
        yield Reason(place=place, reason="the run never finished: the recording ends in the middle")
    for number, turn in enumerate(run.turns):
        last = number == len(run.turns) - 1 and run.status is Status.OK
        if turn.model_call is not None:
            yield from _judge_model_call(turn.model_call, f"{place}/turns/{number}/model_call")
        for index, call in enumerate(turn.tool_calls):
            told = run.sees_tools and not call.executed  # by the framework, which says it again
            if not told:
                yield from _judge_tool_call(call, f"{place}/turns/{number}/tool_calls/{index}", last=last)
    for number, side_call in enumerate(run.side_calls):
        yield from _judge_model_call(side_call, f"{place}/side_calls/{number}")
    for number, call in enumerate(run.loose_tool_calls):
        yield from _judge_tool_call(call, f"{place}/loose_tool_calls/{number}", last=False)


def _judge_model_call(call: ModelCall, place: str) -> Iterator[Reason]:
    if call.status is Status.UNFINISHED:
        yield Reason(place=place, reason="the model call never finished")
    for field in ("input", "instructions"):
        state = call.fidelity.get(field)
        if state in (Fidelity.TRUNCATED, Fidelity.ABSENT):
            reason = f"{field} {state.value}: a live request cannot be known again"
            yield Reason(place=f"{place}/{field}", reason=reason, remedy=_REMEDIES[state])
    for field in ("output", "arguments"):
        state = call.fidelity.get(field)
        if state in _REMEDIES:
            reason = f"{field} of the answer {state.value}"
            yield Reason(place=f"{place}/{field}", reason=reason, remedy=_REMEDIES[state])


def _judge_tool_call(call: ToolCall, place: str, *, last: bool) -> Iterator[Reason]:
    if call.kind in _RUNS_ITSELF:
        return
    if not call.executed:
        # A request that nobody answered, in the last answer of a run that ended well, is how some frameworks give
        # their output. One that no recorded model call made happened before the recording began.
        if call.status is Status.UNFINISHED and not last:
            yield Reason(place=place, reason=f"tool {call.name!r} was asked for, and nothing tells what came of it")
        elif call.status is not Status.UNFINISHED and call.requested_by is not None:
            reason = f"tool {call.name!r} was called, but nothing recorded it: in a replay it would really run"
            yield Reason(place=place, reason=reason, remedy="decorate the tool with @spanreel.tool and record again")
        return
    if call.status is Status.UNFINISHED:
        yield Reason(place=place, reason=f"tool {call.name!r} never finished: there is no result to answer with")
    for field in ("arguments", "result"):
        state = call.fidelity.get(field)
        lossy = (Fidelity.TRUNCATED, Fidelity.ABSENT) if field == "arguments" else tuple(_REMEDIES)
        if state in lossy:
            reason = f"tool {call.name!r}: {field} {state.value}"
            yield Reason(place=f"{place}/{field}", reason=reason, remedy=_REMEDIES[state])
