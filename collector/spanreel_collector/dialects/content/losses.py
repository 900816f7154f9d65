"""How whole values are that other writers took something out of, or cut off, by the marks that they left."""

from __future__ import annotations

from collections.abc import Iterable

from spanreel.loss_markers import find_loss
from spanreel.model import GRAVITY, Fidelity, Json, Message

_MEDIA = ("blob", "uri", "file")


def state(value: Json) -> Fidelity:
    """How whole a value is by the marks in it: whole, redacted, or (graver) truncated; however deep it is nested."""
    return find_loss(value) or Fidelity.WHOLE


def graver(*states: Fidelity) -> Fidelity:
    """The gravest of these."""
    return max(states, key=GRAVITY.index)


def media_in(messages: Iterable[Message]) -> int:
    """How much binary content messages hold, or name: some writers leave it out, with nothing in its place."""
    return sum(part.get("type") in _MEDIA for message in messages for part in message.get("parts") or ())
