"""Recorded calls by name, as reports say them."""

from __future__ import annotations

from spanreel.replay.matching.slots import ModelSlot, Slot


def name_of(slot: Slot) -> str:
    """``model call 2 of root``, ``tool call 3 of root ('search')``."""
    if isinstance(slot, ModelSlot):
        return f"model call {slot.number} of {slot.run.path}"
    return f"tool call {slot.number} of {slot.run.path} ({slot.call.name!r})"
