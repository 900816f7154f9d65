"""What a model call cost in US dollars, where its recorder says so; nothing is worked out here."""

from __future__ import annotations

import math
from typing import Final

from spanreel.model import Json
from spanreel_collector.dialects import values
from spanreel_collector.span import Attributes

FIELD: Final = "cost_usd"
"""What of an answer's own fields the cost is kept under."""
_PLAIN = ("operation.cost", "llm.cost.total", "gen_ai.cost.total_cost", "gen_ai.usage.cost", FIELD)
"""Of pydantic-ai and Logfire, OpenInference, LiteLLM, OpenLIT, Claude Code."""
_LISTED = {"langfuse.observation.cost_details": "total", "mlflow.llm.cost": "total_cost"}
_MASTRA, _DOLLARS = "costContext", "USD"
_TELLING = (*_PLAIN, *_LISTED)


def reported(attributes: Attributes) -> float | None:
    """The cost that a span's attributes tell; None where they tell none, or one that cannot be."""
    for key in _TELLING:
        if key in attributes:
            total = _LISTED.get(key)
            return _dollars(attributes[key] if total is None else values.members(attributes[key]).get(total))
    return None


def of_mastra(attributes: Attributes) -> float | None:
    """The cost that Mastra's attributes of a span tell, where it is in dollars."""
    told = values.members(attributes.get(_MASTRA))
    return _dollars(told.get("estimatedCost")) if told.get("costUnit") == _DOLLARS else None


def amount(value: Json) -> float | None:
    """The number, as text too."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return value if known else None


def _dollars(value: Json) -> float | None:
    """The cost; nothing is what recorders write that know no price."""
    cost = amount(value)
    return cost if cost is not None and cost > 0 else None
