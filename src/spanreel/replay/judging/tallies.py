"""What a replay's calls amount to in numbers: calls by their fate, tokens, and money where prices are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spanreel.replay.changing.changes import Price
from spanreel.replay.judging.facts import Facts
from spanreel.replay.matching.events import Event, Happening, Subject
from spanreel.replay.matching.slots import ModelSlot, Slot
from spanreel.session import Usage

TOKENS = ("input_tokens", "output_tokens")
MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Count:
    """Calls of one kind. ``not_reached`` are those of a run that was ended; ``covered`` are inside served tools.

    ``live`` are calls that went to the model or the tool itself; ``replaced`` recorded ones in whose place they came.
    """

    recorded: int = 0
    matched: int = 0
    missed: int = 0
    unused: int = 0
    not_reached: int = 0
    covered: int = 0
    live: int = 0
    replaced: int = 0


def is_replaced(facts: Facts, slot: Slot) -> bool:
    """Whether a live model was asked in the place of a recorded answer."""
    return isinstance(slot, ModelSlot) and facts.root(slot.run) in facts.live


def count(facts: Facts, kind: type[Slot], subject: Subject, unused: Sequence[Slot]) -> Count:
    """The calls of a kind."""
    slots = [slot for slot in facts.slots.values() if isinstance(slot, kind)]
    left = [slot for slot in slots if not (slot.spent or slot.covered)]
    replaced = sum(1 for slot in left if is_replaced(facts, slot))
    idle = sum(1 for slot in unused if isinstance(slot, kind))
    return Count(
        recorded=len(slots),
        matched=sum(1 for slot in slots if slot.spent),
        missed=sum(1 for event in facts.misses if event.subject is subject),
        unused=idle,
        not_reached=len(left) - idle - replaced,
        covered=sum(1 for slot in slots if slot.covered and not slot.spent),
        live=sum(1 for event in facts.events if event.happening is Happening.LIVE and event.subject is subject),
        replaced=replaced,
    )


def tokens(facts: Facts) -> dict[str, dict[str, int]]:
    """Tokens as recorded, as served again, as used live; ``delta`` is what the replay used more than the recording."""
    models = _models(facts)
    sides = {
        "recorded": _sum([_used(slot.call.usage) for slot in models]),
        "served": _sum([_used(slot.call.usage) for slot in models if slot.spent]),
        "live": _sum(
            [event.tokens for event in facts.events if event.happening is Happening.ANSWERED and event.tokens]
        ),
    }
    recorded, served, live = sides.values()
    return {**sides, "delta": {name: served[name] + live[name] - recorded[name] for name in TOKENS}}


def cost(facts: Facts, prices: Mapping[str, Price]) -> dict[str, float] | None:
    """US dollars as recorded and live: what the recording says, else by the prices given; nothing is guessed.

    A side on which a model has no price is left out; None where both are.
    """
    events, session = facts.events, facts.recording.session
    models = [slot.call.model or "" for slot in _models(facts)]
    asked = [event.name or "" for event in events if event.happening is Happening.LIVE and _is_model(event)]
    found: dict[str, float] = {}
    if session.cost is not None and facts.recording.whole:
        found["recorded"] = session.cost.usd
    elif models and all(model in prices for model in models):
        found["recorded"] = sum(
            _priced(_used(slot.call.usage), prices[slot.call.model or ""]) for slot in _models(facts)
        )
    if asked and all(model in prices for model in asked):
        answered = [event for event in events if event.happening is Happening.ANSWERED and event.name in prices]
        found["live"] = sum(_priced(event.tokens or {}, prices[event.name or ""]) for event in answered)
    if len(found) == 2:
        found["delta"] = found["live"] - found["recorded"]
    return {name: round(usd, 9) for name, usd in found.items()} or None


def _is_model(event: Event) -> bool:
    return event.subject is Subject.MODEL


def _models(facts: Facts) -> list[ModelSlot]:
    return [slot for slot in facts.slots.values() if isinstance(slot, ModelSlot)]


def _used(usage: Usage | None) -> dict[str, int]:
    return {name: getattr(usage, name) or 0 for name in TOKENS} if usage is not None else {}


def _sum(used: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return {name: sum(one.get(name, 0) for one in used) for name in TOKENS}


def _priced(used: Mapping[str, int], price: Price) -> float:
    return (used.get("input_tokens", 0) * price.input + used.get("output_tokens", 0) * price.output) / MILLION
