"""How whole values are that other writers took something out of, or cut off, by the marks that they left."""

from __future__ import annotations

from typing import Final

from spanreel.loss_markers import find_loss
from spanreel.model import Fidelity, Json

GRAVITY: Final = (Fidelity.WHOLE, Fidelity.RECONSTRUCTED, Fidelity.REDACTED, Fidelity.TRUNCATED, Fidelity.ABSENT)
"""How fields came to us, the gravest last."""


def state(value: Json) -> Fidelity:
    """How whole a value is by the marks in it: whole, redacted, or (graver) truncated; however deep it is nested."""
    return find_loss(value) or Fidelity.WHOLE


def graver(*states: Fidelity) -> Fidelity:
    """The gravest of these."""
    return max(states, key=GRAVITY.index)
