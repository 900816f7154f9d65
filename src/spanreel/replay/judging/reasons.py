"""Why a replay is no PASS, in sentences: what went past it, what was not as recorded, what was not made again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from spanreel.model import Status
from spanreel.replay.judging.facts import Facts
from spanreel.replay.judging.run_outcomes import RunOutcome
from spanreel.replay.matching.events import Event, Happening, Subject, describe
from spanreel.replay.matching.matching import MissReason
from spanreel.replay.matching.mcp_requests import is_required
from spanreel.replay.matching.naming import name_of
from spanreel.replay.matching.slots import ModelSlot, Slot
from spanreel.session import Run

OF_THE_RECORDING: Final = (
    MissReason.LOSSY,
    MissReason.KEYLESS,
    MissReason.NO_RESULT,
    MissReason.NOT_KEPT,
    MissReason.BROKEN_OFF,
)
"""Why a call has no counterpart, where that says nothing about the agent."""


def is_inconclusive(facts: Facts, event: Event) -> bool:
    """Whether a miss says something about the recording only."""
    if event.reason in OF_THE_RECORDING:
        return True
    run = next((run for run in facts.recording.session.runs if run.id == event.recorded_id), None)
    beyond = event.reason in (MissReason.UNKNOWN, MissReason.EXHAUSTED)
    return run is not None and run.status is Status.UNFINISHED and beyond


def is_due(slot: Slot) -> bool:
    """Whether a recorded call has to be made again; what was blocked or broken off may end before its point."""
    return is_required(slot) and slot.call.status not in (
        Status.BLOCKED,
        Status.INTERRUPTED,
        Status.CANCELLED,
        Status.UNFINISHED,
    )


def what_went_past(facts: Facts, failures: Sequence[str]) -> list[str]:
    """What was not intercepted: what was refused, or that nothing at all came."""
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


def order_reasons(facts: Facts) -> list[str]:
    """Calls that came before those that came before them when they were recorded."""
    found = []
    for event in facts.served:
        late = [name for name in event.skipped if facts.slots[name].spent]
        if late:
            names = ", ".join(facts.named(name) for name in late)
            found.append(
                f"order differs from the recording: {facts.named(event.recorded_id or '')} came before {names}"
            )
    return sorted(found)


def unused_reasons(facts: Facts, unused: Sequence[Slot], runs: Sequence[RunOutcome]) -> list[str]:
    """Recorded calls, and whole runs, that were not made again; a run may have made no call at all."""
    idle = {run.id: run for run in runs if run.outcome == "not started"}
    due = {slot.run.id for slot in unused} | {one for one in idle if _made_no_call(facts, facts.runs[one])}
    reasons = [
        f"{run.path} of agent {run.agent!r} was recorded and did not run" for run in idle.values() if run.id in due
    ]
    return reasons + [f"{name_of(slot)} was recorded and was not made" for slot in unused if slot.run.id not in idle]


def _made_no_call(facts: Facts, run: Run) -> bool:
    """Whether a run made no call, and came to its end; where its agent's model is live, it may not be wanted now."""
    called = any(slot.run.id == run.id for slot in facts.slots.values())
    return not called and run.status in (Status.OK, Status.ERROR) and facts.root(run) not in facts.live


def open_reasons(facts: Facts, runs: Sequence[RunOutcome]) -> list[str]:
    """The runs that began, were not stopped, and had no end: their process was ended, or they were left alone."""
    recorded = facts.runs
    return [
        f"{run.path} of agent {run.agent!r} had not ended when the replay did"
        for run in runs
        if run.outcome == "stopped"
        and facts.root(recorded[run.id]) not in facts.stopped
        and recorded[run.id].status is not Status.UNFINISHED
    ]


def attempt_reasons(facts: Facts) -> list[str]:
    """Model calls that were given up earlier than when they were recorded."""
    return [
        f"{name_of(slot)} was tried {slot.attempts} times when it was recorded, now {slot.served}"
        for slot in facts.slots.values()
        if isinstance(slot, ModelSlot) and 0 < slot.served < slot.attempts and facts.root(slot.run) not in facts.stopped
    ]
