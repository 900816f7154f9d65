"""What a model call cost in US dollars, where its recorder says so; nothing is worked out here."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from spanreel.model import Json
from spanreel_collector.dialects import values
from spanreel_collector.span import Attributes

FIELD: Final = "cost_usd"
"""What of an answer's own fields the cost is kept under."""
_PLAIN = ("operation.cost", "llm.cost.total", "gen_ai.cost.total_cost", "gen_ai.usage.cost", FIELD)
"""Of pydantic-ai and Logfire, OpenInference, LiteLLM, OpenLIT, Claude Code."""
_DETAILS: Final = "langfuse.observation.cost_details"
"""Whose total is the sum of the others, where nobody gave it."""
_LISTED: Final = {
    _DETAILS: "total",
    "mlflow.llm.cost": "total_cost",
    "braintrust.metrics": "estimated_cost",
}
_HALVES: Final = (("llm.cost.prompt", "llm.cost.completion"), ("gen_ai.usage.input_cost", "gen_ai.usage.output_cost"))
"""Of OpenInference and Laminar, where they tell no total."""
_METADATA: Final = "ai.response.providerMetadata"
_GATEWAYS: Final = (("gateway", "cost"), ("openrouter", "usage", "cost"))
"""Where those tell it that stand between the AI SDK and its models."""
_MASTRA, _DOLLARS = "costContext", "USD"


def reported(attributes: Attributes) -> float | None:
    """The cost that a span's attributes tell; None where they tell none, or one that cannot be."""
    return next((cost for told in _told(attributes) if (cost := _dollars(told)) is not None), None)


def of_answer(fields: Mapping[str, Json]) -> float | None:
    """What a call cost, by its answer's own fields: as its recorder says, else as OpenRouter or Perplexity does."""
    cost = fields.get(FIELD)
    if isinstance(cost, int | float):
        return cost
    usage = fields.get("usage")
    if not isinstance(usage, dict) or "cost" not in usage:
        return None
    said = usage["cost"]
    return _dollars(_member(said, "total_cost") if isinstance(said, dict) else said)


def _told(attributes: Attributes) -> Iterator[Json]:
    """What attributes tell of a cost, the most exact first."""
    for key in _PLAIN:
        if key in attributes:
            yield attributes[key]
    for key, total in _LISTED.items():
        if key in attributes:
            yield values.members(attributes[key]).get(total)
    for asked, answered in _HALVES:
        if asked in attributes or answered in attributes:
            yield _sum((attributes.get(asked), attributes.get(answered)))
    if _DETAILS in attributes:
        yield _sum(values.members(attributes[_DETAILS]).values())
    if _METADATA in attributes:
        metadata = values.members(attributes[_METADATA])
        for path in _GATEWAYS:
            yield functools.reduce(_member, path, metadata)


def _sum(told: Iterable[Json]) -> float:
    return math.fsum(cost for one in told if (cost := amount(one)) is not None)


def _member(value: Json, name: str) -> Json:
    return value.get(name) if isinstance(value, dict) else None


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
