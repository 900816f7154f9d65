"""A recording marked with what happened in its replay: what is matched, covered, missed, stopped. Judges nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from spanreel.replay.matching.events import Event, Happening, Subject
from spanreel.replay.matching.naming import name_of
from spanreel.replay.matching.recording import Recording
from spanreel.replay.matching.slots import ModelSlot, Slot
from spanreel.session import Run


@dataclass(eq=False)
class Facts:
    """The recording marked with what happened."""

    recording: Recording
    events: Sequence[Event]
    slots: dict[str, Slot] = field(default_factory=dict)
    served: list[Event] = field(default_factory=list)
    misses: list[Event] = field(default_factory=list)
    runs: dict[str, Run] = field(default_factory=dict)
    stopped: set[str] = field(default_factory=set)
    parents: dict[str, str] = field(default_factory=dict)
    live: set[str] = field(default_factory=set)
    """The root runs in which the model was live from some call on."""
    live_tools: list[Event] = field(default_factory=list)

    def named(self, call_id: str) -> str:
        """A recorded call by name."""
        return name_of(self.slots[call_id])

    def root_of(self, event: Event) -> str:
        """The root run of the recorded run or call that an event tells of."""
        run = self.runs.get(event.recorded_id or "")
        slot = self.slots.get(event.recorded_id or "")
        if run is None and slot is not None:
            run = slot.run
        return self.root(run) if run is not None else ""

    def root(self, run: Run) -> str:
        """The root run of a run, as far as the replay goes."""
        found = run.id
        while found in self.parents and found not in {root.id for root in self.recording.roots}:
            found = self.parents[found]
        last = self.runs.get(found, run)
        return "" if last.implicit and last.parent is None else found


def gather(recording: Recording, events: Sequence[Event]) -> Facts:
    """Mark a fresh recording with the events of its replay."""
    facts = Facts(recording, events)
    facts.runs = {run.id: run for run in recording.session.runs}
    facts.parents = {run.id: run.parent.run for run in recording.session.runs if run.parent is not None}
    for scope in recording.all_scopes():
        for slot in scope.slots:
            facts.slots[slot.call.id] = slot
    # Root runs may go on side by side; within one, what came first stays first.
    order = {run.id: number for number, run in enumerate(recording.session.runs)}
    facts.events = sorted(events, key=lambda event: order.get(facts.root_of(event), len(order)))
    for event in facts.events:
        if event.happening in (Happening.SERVED, Happening.LET_THROUGH) and event.recorded_id in facts.slots:
            facts.served.append(event)
            slot = facts.slots[event.recorded_id]
            slot.spent = True
            if isinstance(slot, ModelSlot):
                slot.served = max(slot.served, event.attempt + 1)
            elif event.happening is Happening.SERVED:
                recording.cover(slot)
        elif event.happening is Happening.LIVE and event.subject is Subject.MODEL:
            facts.live.add(facts.root_of(event))
        elif event.happening is Happening.LIVE:
            facts.live_tools.append(event)
            if event.recorded_id in facts.slots:
                facts.slots[event.recorded_id].spent = True
        elif event.happening is Happening.MISSED:
            facts.misses.append(event)
            facts.stopped.add(facts.root_of(event))
        elif event.happening is Happening.REFUSED:
            facts.stopped |= {facts.root(run) for run in recording.session.runs} | {""}
    return facts
