"""Which recorded call a live call is: each is used up once, exact or not at all, never by likeness and never by order.

Works on one `RecordedScope`, whose lock the player holds. What to do about a miss is left to the player.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from spanreel.detectors.finding import MASK
from spanreel.digest import blur
from spanreel.model import Fidelity, Json, Status
from spanreel.replay.comparing.canonical import NOTHING, Difference, canonical_arguments, first_difference, text
from spanreel.replay.comparing.value_map import ValueMap
from spanreel.replay.matching.mcp_requests import is_required
from spanreel.replay.matching.recording import RecordedScope
from spanreel.replay.matching.slots import Slot, ToolSlot, precedes
from spanreel.snapshot import snapshot

MASKED: Final = "what was masked"
"""The name of what redaction has left no trace of: any value there is equal to the recorded one."""


class Tier(StrEnum):
    """How a call was matched, strictest first; a tier is tried over all that is left before a looser one."""

    CALL_ID = "call_id"
    """The same tool call id, and equal arguments."""
    EXACT = "exact"
    """Equal arguments, or an equal request."""
    NORMALISED = "normalised"
    """Arguments that are equal in the tool's normal form."""
    POSITIONAL = "positional"
    """The call that the model's answer asks for, with other arguments: only where a policy says so."""
    REPEATED = "repeated"
    """The last result of equal arguments, given once more: only where the tool is pure."""
    STATIC = "static"
    """A fixed answer of a policy."""
    ELSEWHERE = "elsewhere"
    """An equal call of another session."""


class MissReason(StrEnum):
    """Why a live call has no counterpart."""

    DIVERGED = "diverged"
    """Something like it was recorded; the difference says where it became another."""
    EXHAUSTED = "exhausted"
    """It was recorded, and has been used as often as it was."""
    UNKNOWN = "unknown"
    """Nothing of its kind is left in the recording."""
    TOO_EARLY = "too_early"
    """It was recorded, after a call that has not been made yet."""
    LOSSY = "lossy"
    """The recording lost too much of the call to know it again, or of its result to serve it."""
    KEYLESS = "keyless"
    """It may be a recorded one: what would tell is a digest whose key is not here."""
    NO_CASE = "no_case"
    """None of the policy's fixed answers is for it."""
    NO_RESULT = "no_result"
    """The recording ended before the call did."""
    NOT_KEPT = "not_kept"
    """The call had a result, and the recording has nothing of it."""
    BROKEN_OFF = "broken_off"
    """Its caller broke it off when it was recorded, and now does not."""


@dataclass(frozen=True, slots=True)
class Match:
    """A live call found. ``skipped`` are recorded calls that came before it and have not been made.

    ``ambiguous``: an equal call at the same time had another outcome. ``uncompared`` are the fields of the request that
    the recording does not have whole, ``lenient`` the conventions in which it differs, being of others. ``attempt`` is
    the attempt to serve, from 0.
    """

    slot: Slot
    tier: Tier
    ambiguous: bool = False
    skipped: tuple[Slot, ...] = ()
    uncompared: tuple[str, ...] = ()
    attempt: int = 0
    lenient: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Miss:
    """A live call not found, with the recorded call that is most like it and the first difference from that."""

    reason: MissReason
    nearest: Slot | None = None
    difference: Difference | None = None


@dataclass(frozen=True, slots=True)
class LiveTool:
    """A live tool call, as far as matching is concerned; ``runs`` where it is let through, and needs no result.

    ``apart``: made in another thread or task than its run, so that its place among the others is nobody's intention.
    ``known`` are the ids of the keys whose digests can be compared, None where all can. ``form`` gives the text of
    arguments in the tool's normal form; ``raw``: arguments are compared as they came, defaults not filled.
    ``positional``: the recorded call of its id is it, whatever the arguments. ``ids`` maps ids that are made anew.
    ``pure``: asked once more than it was, its last result is given again.
    """

    name: str
    arguments: Any
    call_id: str | None = None
    runs: bool = False
    apart: bool = False
    known: frozenset[str] | None = None
    form: Callable[[Json], str] | None = None
    raw: bool = False
    positional: bool = False
    ids: ValueMap | None = None
    pure: bool = False


def first_match(attempts: Iterable[Callable[[], Match | Miss]]) -> Match | Miss:
    """The first match; where there is none, the miss that says most: that a key is missing, else the first."""
    misses = []
    for attempt in attempts:
        found = attempt()
        if isinstance(found, Match):
            return found
        misses.append(found)
    return next((miss for miss in misses if miss.reason is MissReason.KEYLESS), misses[0])


def match_tool(scope: RecordedScope, live: LiveTool) -> Match | Miss:
    """Find a tool call's counterpart and use it up."""
    schema = None if live.raw else scope.schemas.get(live.name)
    arguments = canonical_arguments(live.arguments, schema)
    arguments = arguments if live.ids is None else live.ids.translated(arguments)
    alike = [slot for slot in scope.tools if slot.call.name == live.name and not slot.covered]
    key = _raw(live.arguments) if live.raw else text(arguments)
    equal = [
        slot
        for slot in alike
        if not slot.lossy and (_raw(slot.call.arguments) if live.raw else slot.key(schema)) == key
    ]
    left = [slot for slot in equal if not slot.spent]
    named = [slot for slot in alike if live.call_id is not None and slot.call.call_id == live.call_id]
    by_id = [slot for slot in left if slot in named]
    if by_id:
        return _take_tool(scope, by_id[0], Tier.CALL_ID, live)
    normal = [] if left or live.form is None else _equal_in_form(alike, schema, live.form, arguments)
    if live.ids is not None and not (left or normal):
        normal = _equal_by_ids(alike, schema, live.ids, arguments)
    # An id that stands for one recorded call is that call; with other arguments it has become another one.
    if len(named) == 1 and not named[0].spent and named[0] not in normal:
        if live.positional:
            return _take_tool(scope, named[0], Tier.POSITIONAL, live)
        return _missed_tool(scope, named, arguments, live)
    if left:
        # Calls that are equal only since something was masked in them may have come in another order.
        rivals = [slot for slot in left if MASK in key or not precedes(left[0], slot)]
        ambiguous = any(slot.outcome != left[0].outcome for slot in rivals)
        return _take_tool(scope, left[0], Tier.EXACT, live, ambiguous=ambiguous)
    if normal:
        chosen = next((slot for slot in normal if slot in named), normal[0])
        if live.ids is not None:
            live.ids.learn(live.ids.pairs(chosen.arguments(schema), arguments) or {})
        return _take_tool(scope, chosen, Tier.NORMALISED, live)
    if equal and live.pure and equal[-1].call.status is Status.OK:
        again = _take_tool(scope, equal[-1], Tier.REPEATED, live)
        return replace(again, skipped=()) if isinstance(again, Match) else again
    if equal:
        return Miss(MissReason.EXHAUSTED, equal[-1])
    renamed = [
        slot
        for slot in scope.tools
        if live.call_id is not None and slot.call.call_id == live.call_id and not slot.spent
    ]
    if not alike and renamed:
        return Miss(MissReason.DIVERGED, renamed[0], Difference("/name", renamed[0].call.name, live.name))
    return _missed_tool(scope, [slot for slot in alike if not slot.spent], arguments, live)


def _raw(arguments: Any) -> str:
    return text(snapshot(arguments).value)


def _equal_in_form(
    alike: Sequence[ToolSlot], schema: Json, form: Callable[[Json], str], arguments: Json
) -> list[ToolSlot]:
    key = form(arguments)
    return [slot for slot in alike if not (slot.spent or slot.lossy) and form(slot.arguments(schema)) == key]


def _equal_by_ids(alike: Sequence[ToolSlot], schema: Json, ids: ValueMap, arguments: Json) -> list[ToolSlot]:
    left = [slot for slot in alike if not (slot.spent or slot.lossy)]
    return [slot for slot in left if ids.pairs(slot.arguments(schema), arguments) is not None]


def _take_tool(
    scope: RecordedScope, slot: ToolSlot, tier: Tier, live: LiveTool, *, ambiguous: bool = False
) -> Match | Miss:
    slot.spent = True
    call, result = slot.call, slot.call.fidelity.get("result")
    serves = not live.runs and call.status is not Status.CANCELLED  # what was broken off has nothing to be served
    if serves and call.status is Status.UNFINISHED:
        return Miss(MissReason.NO_RESULT, slot)
    if serves and result is Fidelity.ABSENT and call.error is None:
        return Miss(MissReason.NOT_KEPT, slot)
    if serves and slot.result_lost:
        return Miss(MissReason.LOSSY, slot)
    before = () if live.apart else scope.tools
    skipped = tuple(
        one for one in before if not (one.spent or one.covered) and precedes(one, slot) and is_required(one)
    )
    masked = call.fidelity.get("arguments") is Fidelity.REDACTED and MASK in text(canonical_arguments(call.arguments))
    return Match(slot, tier, ambiguous, skipped, (MASKED,) if masked else ())


def _missed_tool(scope: RecordedScope, candidates: Sequence[ToolSlot], arguments: Json, live: LiveTool) -> Miss:
    schema = scope.schemas
    if (known := live.known) is not None:
        key = blur(text(arguments), known)
        for slot in candidates:
            if not slot.lossy and blur(slot.key(schema.get(slot.call.name)), known) == key:
                return Miss(MissReason.KEYLESS, slot)
    whole = [slot for slot in candidates if not slot.lossy]
    if not whole:
        return Miss(MissReason.LOSSY, candidates[0]) if candidates else Miss(MissReason.UNKNOWN)
    nearest = max(whole, key=lambda slot: _shared(slot.arguments(schema.get(slot.call.name)), arguments))
    recorded = nearest.arguments(schema.get(nearest.call.name))
    return Miss(MissReason.DIVERGED, nearest, first_difference(recorded, arguments))


def _shared(recorded: Json, live: Json) -> int:
    if not isinstance(recorded, dict) or not isinstance(live, dict):
        return 0
    return sum(1 for key in recorded if first_difference(recorded[key], live.get(key, NOTHING)) is None)
