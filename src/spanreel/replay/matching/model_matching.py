"""Which recorded model call a live request is: its counterpart among those whose predecessors have been made, exactly.

Works on one `RecordedScope`, whose lock the player holds. What to do about a miss is left to the player.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from spanreel.detectors.finding import MASK
from spanreel.model import Fidelity, Json, Request, Status
from spanreel.replay.changing.changes import Volatile
from spanreel.replay.changing.volatile import settled
from spanreel.replay.comparing.canonical import NOTHING, Difference, first_difference, text
from spanreel.replay.comparing.identity import identity
from spanreel.replay.comparing.leniencies import leniencies
from spanreel.replay.comparing.placeholders import blur_json
from spanreel.replay.comparing.sharing import shared_fields
from spanreel.replay.comparing.value_map import ValueMap
from spanreel.replay.matching.matching import MASKED, Match, Miss, MissReason, Tier
from spanreel.replay.matching.recording import RecordedScope
from spanreel.replay.matching.slots import LOST, ModelSlot, precedes


@dataclass(frozen=True, slots=True)
class LiveModel:
    """A live model request; ``foreign`` where the recording was not written by us, or in another protocol.

    ``apart``, ``known`` and ``ids`` as of tools. ``volatile`` is what differs by itself.
    """

    request: Request
    protocol: str
    foreign: bool = False
    apart: bool = False
    known: frozenset[str] | None = None
    volatile: tuple[Volatile, ...] = ()
    ids: ValueMap | None = None
    met: dict[str, dict[str, str]] = field(default_factory=dict)
    """The new pairs of ids by which it is equal to a recorded call, by that call's id."""


def match_model(scope: RecordedScope, live: LiveModel) -> Match | Miss:
    """Find a model request's counterpart, or the next attempt of the one that failed, and use it up."""
    asked = identity(live.request)
    slots = [slot for slot in scope.models if not slot.covered]
    for slot in slots:
        if 0 < slot.served < slot.attempts:
            difference, uncompared = _compare(slot, asked, live)
            if difference is None:
                return _take_model(slot, asked, uncompared, live)
    left = [slot for slot in slots if not slot.spent]
    # What runs beside its run's own thread or task may come earlier than it happened to come when it was recorded.
    ready = left if live.apart else [slot for slot in left if not any(precedes(one, slot) for one in left)]
    compared = [(slot, *_compare(slot, asked, live)) for slot in ready]
    equal = [(slot, uncompared) for slot, difference, uncompared in compared if difference is None]
    if equal:
        first, uncompared = equal[0]
        others = [slot for slot, _ in equal[1:] if slot.outcome != first.outcome]
        masked = bool(others) and MASK in text(asked)
        return _take_model(
            first, asked, uncompared, live, ambiguous=any(masked or not precedes(first, slot) for slot in others)
        )
    return _missed_model(slots, ready, asked, live)


def _take_model(
    slot: ModelSlot, asked: dict[str, Json], uncompared: tuple[str, ...], live: LiveModel, *, ambiguous: bool = False
) -> Match | Miss:
    if live.ids is not None:
        live.ids.learn(live.met.get(slot.call.id, {}))
    attempt, slot.served, slot.spent = slot.served, slot.served + 1, True
    last = slot.served == slot.attempts
    if last and slot.call.status is Status.UNFINISHED and not slot.call.output:
        return Miss(MissReason.NO_RESULT, slot)
    if last and slot.answer_lost and slot.call.status is not Status.CANCELLED:
        return Miss(MissReason.LOSSY, slot)
    if slot.call.fidelity.get("input") is Fidelity.REDACTED and MASK in text(asked):
        uncompared = (*uncompared, MASKED)
    lenient = leniencies(slot.identity, asked) if _is_shared(slot, live) else ()
    return Match(slot, Tier.EXACT, ambiguous, uncompared=uncompared, attempt=attempt, lenient=lenient)


def _is_shared(slot: ModelSlot, live: LiveModel) -> bool:
    """Whether the recording is written in other conventions than the request."""
    return live.foreign or (slot.call.protocol or live.protocol) != live.protocol


def _missed_model(
    slots: Sequence[ModelSlot], ready: Sequence[ModelSlot], asked: dict[str, Json], live: LiveModel
) -> Miss:
    for slot in slots:
        if not slot.spent and slot not in ready and _compare(slot, asked, live)[0] is None:
            return Miss(MissReason.TOO_EARLY, slot)
    for slot in ready if live.known is not None else ():
        if _compare(slot, asked, live, blurred=True)[0] is None:
            return Miss(MissReason.KEYLESS, slot)
    whole = [slot for slot in ready if not slot.lossy]
    if whole:
        nearest = max(whole, key=lambda slot: _likeness(slot.identity, asked))
        return Miss(MissReason.DIVERGED, nearest, _compare(nearest, asked, live)[0])
    if ready:
        return Miss(MissReason.LOSSY, ready[0])
    used = [slot for slot in slots if _compare(slot, asked, live)[0] is None]
    return Miss(MissReason.EXHAUSTED, used[-1]) if used else Miss(MissReason.UNKNOWN)


def _compare(
    slot: ModelSlot, asked: dict[str, Json], live: LiveModel, *, blurred: bool = False
) -> tuple[Difference | None, tuple[str, ...]]:
    """The first difference in what the recording has whole, and the names of the fields that it has not."""
    if slot.lossy:
        return Difference("", NOTHING, NOTHING), ()
    recorded, asked = dict(slot.identity), dict(asked)
    uncompared = [name for name in ("tools", "settings", "provider_fields") if slot.call.fidelity.get(name) in LOST]
    for name in uncompared:
        del recorded[name], asked[name]
    if slot.call.fidelity.get("instructions") in LOST:
        uncompared.append("instructions")
        recorded["messages"], asked["messages"] = _talk(recorded["messages"]), _talk(asked["messages"])
    if _is_shared(slot, live):
        recorded, asked = shared_fields(recorded, asked, uncompared)
    if live.volatile:
        before = recorded, asked
        recorded, asked = settled(recorded, live.volatile), settled(asked, live.volatile)
        uncompared += _volatile_differences(before, (recorded, asked))
    if blurred and live.known is not None:
        recorded, asked = blur_json(recorded, live.known), blur_json(asked, live.known)
    if live.ids is not None:
        asked = {name: live.ids.translated(value) for name, value in asked.items()}
    for name, value in recorded.items():
        found = first_difference(value, asked[name], f"/{name}")
        if found is not None:
            pairs = live.ids.pairs(recorded, asked) if live.ids is not None else None
            if pairs is None:
                return found, tuple(uncompared)
            live.met[slot.call.id] = pairs
            return None, (*uncompared, "ids that are made anew")
    return None, tuple(uncompared)


def _volatile_differences(before: tuple[Json, Json], after: tuple[Json, Json]) -> list[str]:
    """Where the two sides differed in nothing but what differs by itself: told, since it was not compared."""
    found = first_difference(*before)
    return [f"volatile {found.pointer}"] if found is not None and first_difference(*after) is None else []


def _talk(messages: list[dict[str, Json]]) -> list[dict[str, Json]]:
    return messages[1:] if messages and messages[0]["role"] == "system" else messages


def _likeness(recorded: dict[str, Json], asked: dict[str, Json]) -> tuple[int, int]:
    same = 0
    for one, other in zip(recorded["messages"], asked["messages"], strict=False):
        if first_difference(one, other) is not None:
            break
        same += 1
    others = ("model", "tools", "settings", "provider_fields")
    return same, sum(1 for name in others if first_difference(recorded[name], asked[name]) is None)
