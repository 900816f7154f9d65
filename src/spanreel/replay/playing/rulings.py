"""What a tool's policy makes of a call that was looked for in the recording. Decides; the player tells, and acts."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from spanreel.model import Json, Status
from spanreel.player import Live
from spanreel.point import RecordedError, ToolRequest, ToolResult
from spanreel.replay.changing.tool_policies import Choice, History, OnMiss, Passthrough, Static, ToolPolicies
from spanreel.replay.comparing.canonical import canonical_arguments, text
from spanreel.replay.matching.answers import tool_answer
from spanreel.replay.matching.events import FORBIDDEN, Event, Happening, describe, told
from spanreel.replay.matching.matching import Match, Miss, MissReason, Tier
from spanreel.replay.matching.naming import name_of
from spanreel.session import Session, ToolCall

GENUINE = (MissReason.DIVERGED, MissReason.EXHAUSTED, MissReason.UNKNOWN, MissReason.NO_CASE)
"""Why a call is not in the recording, where it is not the recording's fault."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A tool call, the policy for it, its canonical arguments, and what was found in the recording.

    ``writes``: it is known to change something in the world. ``event`` says where it was made.
    """

    request: ToolRequest
    arguments: Json
    choice: Choice
    writes: bool
    found: Match | Miss
    event: Event


@dataclass(frozen=True, slots=True)
class Ruling:
    """What is told, and what is answered; an answer that is None ends the run."""

    event: Event
    answer: ToolResult | RecordedError | Live | None


def rule(policies: ToolPolicies, asked: Asked, others: Sequence[Session]) -> Ruling | None:
    """The ruling; None where the call is answered with its match. What was blocked when it was recorded stays blocked.

    ``others`` are the sessions that wider scopes look into.
    """
    found, policy = asked.found, asked.choice.policy
    recorded = found.slot.call if isinstance(found, Match) else None
    if recorded is not None and recorded.status is Status.BLOCKED:
        return None
    if isinstance(policy, Passthrough):
        return _run(asked)
    if isinstance(policy, Static):
        case = next((case for case in policy.cases if case.fits(asked.arguments)), None)
        if case is None:
            return _unmatched(policies, asked, Miss(MissReason.NO_CASE), others)
        event = replace(asked.event, recorded_id=recorded.id if recorded else None, tier=Tier.STATIC.value)
        failure = RecordedError("RuntimeError", case.error) if case.error is not None else None
        return Ruling(event, failure or ToolResult(copy.deepcopy(case.result)))
    return _unmatched(policies, asked, found, others) if isinstance(found, Miss) else None


def missed(event: Event, miss: Miss) -> Event:
    """The event of a call that has no counterpart."""
    nearest = miss.nearest
    return replace(
        event,
        happening=Happening.MISSED,
        reason=miss.reason.value,
        difference=told(miss.difference),
        nearest=name_of(nearest) if nearest is not None else None,
        detail=None if nearest is not None else "nothing of its kind is left there",
    )


def _unmatched(policies: ToolPolicies, asked: Asked, miss: Miss, others: Sequence[Session]) -> Ruling:
    """Only a genuine miss reaches what the policy says of one."""
    event = missed(asked.event, miss)
    if miss.reason in GENUINE:
        elsewhere = _elsewhere(asked, others)
        if elsewhere is not None:
            return Ruling(replace(asked.event, tier=Tier.ELSEWHERE.value), tool_answer(elsewhere, imported=True))
        if asked.choice.on_miss is OnMiss.PASSTHROUGH:
            return _run(asked, miss)
        if asked.choice.on_miss is OnMiss.ERROR_RESULT:
            return Ruling(replace(event, happening=Happening.UNANSWERED), ToolResult(f"error: {describe(event)}"))
    return Ruling(event, None)


def _run(asked: Asked, miss: Miss | None = None) -> Ruling:
    if not asked.choice.may_run(changes_the_world=asked.writes):
        return Ruling(replace(asked.event, happening=Happening.MISSED, reason=FORBIDDEN), None)
    recorded = asked.found.slot.call.id if isinstance(asked.found, Match) and miss is None else None
    reason = miss.reason.value if miss is not None else None
    return Ruling(replace(asked.event, happening=Happening.LIVE, recorded_id=recorded, reason=reason), Live())


def _elsewhere(asked: Asked, others: Sequence[Session]) -> ToolCall | None:
    """The newest equal call that succeeded, in the other sessions that the policy looks into."""
    policy = asked.choice.policy
    if not isinstance(policy, History) or policy.scope == "baseline":
        return None
    key = text(asked.arguments)
    equal = [call for call in _calls(others, asked.request.name) if text(canonical_arguments(call.arguments)) == key]
    return max(equal, key=lambda call: call.started_at or "", default=None)


def _calls(sessions: Sequence[Session], name: str) -> Iterator[ToolCall]:
    for session in sessions:
        for run in session.runs:
            yield from (call for call in run.tool_calls() if call.name == name and call.status is Status.OK)
