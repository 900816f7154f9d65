"""What a replay amounts to: PASS, FAIL or INCONCLUSIVE, from the recording and what happened, and from nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from spanreel.model import Json
from spanreel.replay.changing.changes import Price
from spanreel.replay.judging.facts import Facts, gather
from spanreel.replay.judging.reasons import (
    attempt_reasons,
    is_due,
    is_inconclusive,
    open_reasons,
    order_reasons,
    unused_reasons,
    what_went_past,
)
from spanreel.replay.judging.run_outcomes import RunOutcome, outcomes_of
from spanreel.replay.judging.tallies import Count, cost, count, is_replaced, tokens
from spanreel.replay.matching.events import REWORDED, Event, Happening, Subject, describe
from spanreel.replay.matching.matching import MissReason
from spanreel.replay.matching.naming import name_of
from spanreel.replay.matching.recording import Recording
from spanreel.replay.matching.slots import ModelSlot, ToolSlot
from spanreel.session import Run, Session

REPORT: Final = "spanreel.replay/1"


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
    lenient: Mapping[str, int] = field(default_factory=dict)
    """The conventions in which a recording of others was allowed to differ, and how often it did."""

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
    unused = [slot for slot in left if is_due(slot) and facts.root(slot.run) not in facts.stopped]
    order = order_reasons(facts)
    ambiguous = tuple(sorted(facts.named(event.recorded_id or "") for event in facts.served if event.ambiguous))
    stale = tuple(dict.fromkeys(facts.named(event.recorded_id or "") for event in facts.served if event.stale))
    runs = outcomes_of(facts)
    failures = [
        *(describe(event) for event in facts.misses if not is_inconclusive(facts, event)),
        *(
            describe(event)
            for event in events
            if event.happening is Happening.RUN_ENDED and event.difference is not None
        ),
        *unused_reasons(facts, unused, runs),
        *open_reasons(facts, runs),
        *attempt_reasons(facts),
        *order,
        *(describe(event) for event in events if event.happening is Happening.ANSWERED and event.detail),
        *(describe(event) for event in events if event.happening is Happening.RAISED),
        *complaints,
    ]
    doubts = [
        *(describe(event) for event in facts.misses if is_inconclusive(facts, event)),
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
            if event.happening is Happening.RUN_ENDED and event.reason == MissReason.KEYLESS
        ),
    ]
    past = what_went_past(facts, failures)
    verdict = Verdict.NOT_INTERCEPTED if past else Verdict.FAIL if failures else Verdict.INCONCLUSIVE
    if not (past or failures or doubts):
        verdict = Verdict.PASS
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
        redacted=tuple(sorted(facts.named(event.recorded_id or "") for event in facts.served if event.redacted)),
        uncompared=_counted(name for event in events for name in event.uncompared),
        runs=tuple(runs),
        tokens=tokens(facts),
        cost=cost(facts, prices or {}),
        live_tools=tuple(describe(event) for event in facts.live_tools),
        stale=stale,
        changed=_changed(facts),
        notes=tuple(
            dict.fromkeys(sorted(event.detail or "" for event in events if event.happening is Happening.NOTED))
        ),
        lenient=_counted(name for event in events for name in event.lenient),
    )


def _counted(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


def _changed(facts: Facts) -> tuple[str, ...]:
    told = (Happening.CHANGED, Happening.EDITED)
    found = [describe(event) for event in facts.events if event.happening in told]
    worded = [event.detail or "" for event in facts.events if event.reason == REWORDED]
    return tuple(dict.fromkeys([*found, *worded]))


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
