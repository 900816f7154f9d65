"""What a replay amounts to: PASS, FAIL or INCONCLUSIVE, from the recording and what happened, and from nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from spanreel.model import Json, Status
from spanreel.replay.changes import Price
from spanreel.replay.events import REWORDED, Event, Happening, Subject, describe
from spanreel.replay.facts import Facts, gather
from spanreel.replay.matching import Reason
from spanreel.replay.mcp_requests import is_required
from spanreel.replay.naming import name_of
from spanreel.replay.recording import Recording
from spanreel.replay.slots import ModelSlot, Slot, ToolSlot
from spanreel.replay.tallies import Count, cost, count, is_replaced, tokens
from spanreel.session import Run, Session

REPORT: Final = "spanreel.replay/1"
OF_THE_RECORDING: Final = (Reason.LOSSY, Reason.KEYLESS, Reason.NO_RESULT, Reason.NOT_KEPT, Reason.BROKEN_OFF)
"""Why a call has no counterpart, where that says nothing about the agent."""


class Verdict(StrEnum):
    """What a replay amounts to."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    """Nothing differs, but the recording cannot vouch for it."""
    NOT_INTERCEPTED = "NOT INTERCEPTED"
    """Something went, or would have gone, past the replay."""

    @property
    def exit_code(self) -> int:
        """What the command line ends with."""
        return {Verdict.PASS: 0, Verdict.FAIL: 1, Verdict.INCONCLUSIVE: 2, Verdict.NOT_INTERCEPTED: 4}[self]


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How one recorded run fared: ``same``, ``differs``, ``reworded``, ``stopped``, ``not compared``, ``not started``.

    ``reworded``: a live model said it in other words, and the outcome is of the same form.
    """

    path: str
    id: str
    agent: str | None
    outcome: str
    difference: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """A replay's report; ``reasons`` in the order of weight, the first being the headline."""

    schema: str
    session: str
    revision: int
    run: str | None
    verdict: Verdict
    reasons: tuple[str, ...]
    first_divergence: Mapping[str, Json] | None
    misses: int
    model_calls: Count
    tool_calls: Count
    tiers: Mapping[str, int]
    unused: tuple[str, ...]
    order: tuple[str, ...]
    ambiguous: tuple[str, ...]
    redacted: tuple[str, ...]
    uncompared: Mapping[str, int]
    runs: tuple[RunOutcome, ...]
    tokens: Mapping[str, Mapping[str, int]]
    cost: Mapping[str, float] | None = None
    """US dollars, as far as they are known."""
    live_tools: tuple[str, ...] = ()
    """The tool calls that ran for real: each effect that the replay had on the world."""
    stale: tuple[str, ...] = ()
    """The calls answered from the recording after a write that was not as recorded."""
    changed: tuple[str, ...] = ()
    """What the replay was told to change, and what came of it."""
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """What the command line ends with."""
        return self.verdict.exit_code


def judge(
    session: Session,
    run: Run | None,
    events: Sequence[Event],
    complaints: Iterable[str] = (),
    prices: Mapping[str, Price] | None = None,
) -> Report:
    """The report of a replay; ``complaints`` are further reasons to fail (the command's own exit code)."""
    facts = gather(Recording(session, run), events)
    events = facts.events
    left = [slot for slot in facts.slots.values() if not (slot.spent or slot.covered)]
    left = [slot for slot in left if not is_replaced(facts, slot)]
    unused = [slot for slot in left if _required(slot) and facts.root(slot.run) not in facts.stopped]
    order = _order(facts)
    ambiguous = tuple(_sorted(facts.named(event.recorded_id or "") for event in facts.served if event.ambiguous))
    stale = tuple(dict.fromkeys(facts.named(event.recorded_id or "") for event in facts.served if event.stale))
    runs = _outcomes(facts)
    failures = [
        *(describe(event) for event in facts.misses if not _inconclusive(facts, event)),
        *(
            describe(event)
            for event in events
            if event.happening is Happening.RUN_ENDED and event.difference is not None
        ),
        *_unused_reasons(unused, runs),
        *_open_reasons(facts, runs),
        *_attempt_reasons(facts),
        *order,
        *(describe(event) for event in events if event.happening is Happening.ANSWERED and event.detail),
        *(describe(event) for event in events if event.happening is Happening.RAISED),
        *complaints,
    ]
    doubts = [
        *(describe(event) for event in facts.misses if _inconclusive(facts, event)),
        *(
            f"{name} had an equal call beside it with another outcome; which is which cannot be told"
            for name in ambiguous
        ),
        *(describe(event) for event in events if event.happening is Happening.UNANSWERED),
        *(describe(event) for event in facts.live_tools if event.reason),
        *(f"{name} was answered from the recording after a write that was not as recorded" for name in stale),
        *(
            f"the outcome of {event.path} cannot be compared: the key of its digests is not here"
            for event in events
            if event.happening is Happening.RUN_ENDED and event.reason == Reason.KEYLESS
        ),
    ]
    past = _past(facts, failures)
    verdict = Verdict.NOT_INTERCEPTED if past else Verdict.FAIL if failures else Verdict.INCONCLUSIVE
    if not (past or failures or doubts):
        verdict = Verdict.PASS
    uncompared = Counter(name for event in events for name in event.uncompared)
    return Report(
        schema=REPORT,
        session=session.id,
        revision=session.revision,
        run=run.id if run is not None else None,
        verdict=verdict,
        reasons=tuple(dict.fromkeys([*past, *failures, *doubts])),
        first_divergence=_first_divergence(events),
        misses=len(facts.misses),
        model_calls=count(facts, ModelSlot, Subject.MODEL, unused),
        tool_calls=count(facts, ToolSlot, Subject.TOOL, unused),
        tiers=dict(sorted(Counter(event.tier for event in events if event.tier and event.attempt == 0).items())),
        unused=tuple(name_of(slot) for slot in unused),
        order=tuple(order),
        ambiguous=ambiguous,
        redacted=tuple(_sorted(facts.named(event.recorded_id or "") for event in facts.served if event.redacted)),
        uncompared=dict(sorted(uncompared.items())),
        runs=tuple(runs),
        tokens=tokens(facts),
        cost=cost(facts, prices or {}),
        live_tools=tuple(describe(event) for event in facts.live_tools),
        stale=stale,
        changed=_changed(facts),
        notes=tuple(
            dict.fromkeys(_sorted(event.detail or "" for event in events if event.happening is Happening.NOTED))
        ),
    )


def _changed(facts: Facts) -> tuple[str, ...]:
    told = (Happening.CHANGED, Happening.EDITED)
    found = [describe(event) for event in facts.events if event.happening in told]
    worded = [event.detail or "" for event in facts.events if event.reason == REWORDED]
    return tuple(dict.fromkeys([*found, *worded]))


def _inconclusive(facts: Facts, event: Event) -> bool:
    """Whether a miss says something about the recording only."""
    if event.reason in OF_THE_RECORDING:
        return True
    run = next((run for run in facts.recording.session.runs if run.id == event.recorded_id), None)
    beyond = event.reason in (Reason.UNKNOWN, Reason.EXHAUSTED)
    return run is not None and run.status is Status.UNFINISHED and beyond


def _required(slot: Slot) -> bool:
    """Whether a recorded call has to be made again; what was blocked or broken off may end before its point."""
    return is_required(slot) and slot.call.status not in (
        Status.BLOCKED,
        Status.INTERRUPTED,
        Status.CANCELLED,
        Status.UNFINISHED,
    )


def _past(facts: Facts, failures: Sequence[str]) -> list[str]:
    found = [describe(event) for event in facts.events if event.happening is Happening.REFUSED]
    models = [slot for slot in facts.slots.values() if isinstance(slot, ModelSlot)]
    crossed = facts.misses or any(event.subject in (Subject.MODEL, Subject.TOOL) for event in facts.events)
    if models and not crossed and not found:
        hint = f" ({failures[-1]})" if any(event.happening is Happening.RAISED for event in facts.events) else ""
        found.append(
            f"no call reached the replay, while {len(models)} model call{'s' * (len(models) > 1)} "
            f"{'were' if len(models) > 1 else 'was'} recorded: nothing called the agent, "
            f"or its client is one that spanreel does not wrap{hint}"
        )
    return found


def _order(facts: Facts) -> list[str]:
    found = []
    for event in facts.served:
        late = [name for name in event.skipped if facts.slots[name].spent]
        if late:
            names = ", ".join(facts.named(name) for name in late)
            found.append(
                f"order differs from the recording: {facts.named(event.recorded_id or '')} came before {names}"
            )
    return _sorted(found)


def _unused_reasons(unused: Sequence[Slot], runs: Sequence[RunOutcome]) -> list[str]:
    idle = {run.id: run for run in runs if run.outcome == "not started"}
    reasons = [
        f"{run.path} of agent {run.agent!r} was recorded and did not run"
        for run in idle.values()
        if any(slot.run.id == run.id for slot in unused)
    ]
    return reasons + [f"{name_of(slot)} was recorded and was not made" for slot in unused if slot.run.id not in idle]


def _open_reasons(facts: Facts, runs: Sequence[RunOutcome]) -> list[str]:
    """The runs that began, were not stopped, and had no end: their process was ended, or they were left alone."""
    recorded = facts.runs
    return [
        f"{run.path} of agent {run.agent!r} had not ended when the replay did"
        for run in runs
        if run.outcome == "stopped"
        and facts.root(recorded[run.id]) not in facts.stopped
        and recorded[run.id].status is not Status.UNFINISHED
    ]


def _attempt_reasons(facts: Facts) -> list[str]:
    return [
        f"{name_of(slot)} was tried {slot.attempts} times when it was recorded, now {slot.served}"
        for slot in facts.slots.values()
        if isinstance(slot, ModelSlot) and 0 < slot.served < slot.attempts and facts.root(slot.run) not in facts.stopped
    ]


def _outcomes(facts: Facts) -> list[RunOutcome]:
    started = {event.recorded_id for event in facts.events if event.happening is Happening.RUN_STARTED}
    ended = {event.recorded_id: event for event in facts.events if event.happening is Happening.RUN_ENDED}
    found = []
    for scope in facts.recording.all_scopes():
        for run in scope.runs:
            if (
                run.implicit
                or run is scope.lead
                or (all(slot.covered for slot in scope.slots) and run.id not in started)
            ):
                continue
            event = ended.get(run.id)
            if event is not None and event.reason == REWORDED:
                outcome = REWORDED
            elif event is None:
                outcome = "stopped" if facts.root(run) in facts.stopped or run.id in started else "not started"
            elif event.difference is not None:
                outcome = "differs"
            else:
                outcome = "not compared" if "outcome" in event.uncompared else "same"
            found.append(RunOutcome(run.path, run.id, run.agent.name, outcome, event.difference if event else None))
    return found


def _first_divergence(events: Sequence[Event]) -> Mapping[str, Json] | None:
    for event in events:
        missed = event.happening is Happening.MISSED
        if missed or (event.happening is Happening.RUN_ENDED and event.difference is not None):
            return {
                "subject": str(event.subject),
                "path": event.path,
                "name": event.name,
                "number": event.number,
                "reason": event.reason or "outcome",
                "nearest": event.nearest,
                **(event.difference or {}),
                "text": describe(event),
            }
    return None


def _sorted(names: Iterable[str]) -> list[str]:
    return sorted(names)
