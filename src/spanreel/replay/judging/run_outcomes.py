"""How recorded runs fared in a replay, each by itself. Whether that amounts to PASS is decided in `verdict`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spanreel.model import Json
from spanreel.replay.judging.facts import Facts
from spanreel.replay.matching.events import REWORDED, Happening
from spanreel.replay.matching.recording import RecordedScope
from spanreel.session import Run


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


def outcomes_of(facts: Facts) -> list[RunOutcome]:
    """How every recorded run fared."""
    started = {event.recorded_id for event in facts.events if event.happening is Happening.RUN_STARTED}
    ended = {event.recorded_id: event for event in facts.events if event.happening is Happening.RUN_ENDED}
    found = []
    for scope in facts.recording.all_scopes():
        for run in scope.runs:
            if run.implicit or run is scope.lead or (run.id not in started and not _is_due(facts, scope, run)):
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


def _is_due(facts: Facts, scope: RecordedScope, run: Run) -> bool:
    """Whether a recorded run has to be made again; of others' recordings, not one that asked nothing of anybody.

    What others call an agent's run may be no more than a span around something.
    """
    if scope.slots:
        return not all(slot.covered for slot in scope.slots)
    ours = facts.recording.session.origin != "imported"
    return ours and run.agent.name is not None and run.id not in facts.recording.covered
