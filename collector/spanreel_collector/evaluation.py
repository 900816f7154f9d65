"""What evaluators say of a run or a call, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from spanreel.frozen import dataclass
from spanreel.model import Json


class Scope(StrEnum):
    """What an evaluation is of."""

    SPAN = "span"
    """What its span is, or holds: a call or a run."""
    AROUND = "around"
    """What its span stands in, and not what the evaluator did inside its own span."""
    TRACE = "trace"
    """The run that the trace is of."""
    SESSION = "session"
    """The whole conversation."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation, as in `spanreel.session.Evaluation`; ``time`` is nanoseconds since 1970, 0 where unknown."""

    name: str | None = None
    score: float | None = None
    label: str | None = None
    explanation: str | None = None
    error_type: str | None = None
    evaluator: str | None = None
    response_id: str | None = None
    time: int = 0
    fields: Mapping[str, Json] = field(default_factory=dict)
    scope: Scope = Scope.SPAN


Told = tuple[str | None, Evaluation]
"""An evaluation, and the span that it stands on or names."""
