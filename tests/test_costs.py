"""What recorders say that a model call cost: kept with the call, summed up for the session, never sent to an agent."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from otlp_lines import agent, chat, model, only_run, ours, said, session, span
from spanreel.replay.comparing.identity import answer_of
from spanreel.session import Cost, Session

HI, HO = said("user", "Hi"), said("assistant", "Ho")


def told(**attributes: Any) -> Session:
    also = {key.replace("__", "."): value for key, value in attributes.items()}
    return session(agent(1, "clerk", seconds=9), chat(2, [HI], HO, 1, also=also), chat(3, [HI], HO, 1), scope="demo")


@pytest.mark.parametrize(
    "attributes",
    [
        {"operation.cost": 0.25},
        {"operation.cost": "0.25"},
        {"llm.cost.total": 0.25},
        {"gen_ai.cost.total_cost": 0.25},
        {"gen_ai.usage.cost": 0.25},
        {"mlflow.llm.cost": json.dumps({"input_cost": 0.2, "total_cost": 0.25})},
        {"llm.cost.prompt": 0.2, "llm.cost.completion": 0.05},
        {"gen_ai.usage.input_cost": 0.2, "gen_ai.usage.output_cost": 0.05},
        {"braintrust.metrics": json.dumps({"tokens": 12, "estimated_cost": 0.25})},
        {"ai.response.providerMetadata": json.dumps({"gateway": {"routing": {}, "cost": "0.25"}})},
        {"ai.response.providerMetadata": json.dumps({"openrouter": {"usage": {"cost": 0.25, "totalTokens": 3}}})},
        {"gen_ai.usage.cost": 0, "operation.cost": 0.25},
    ],
    ids=str,
)
def test_what_a_recorder_says_of_a_calls_cost_is_the_sessions(attributes: dict[str, Any]) -> None:
    one = told(**attributes)
    assert one.cost == Cost(usd=0.25, source="reported")
    first, second = only_run(one).model_calls()
    assert (first.provider_fields, second.provider_fields) == ({"cost_usd": 0.25}, {})


def test_costs_are_summed_up_and_only_those_of_calls() -> None:
    cost = {"operation.cost": 0.1}
    spans = [agent(1, "clerk", seconds=9, also=cost), chat(2, [HI], HO, 1, also=cost), chat(3, [HI], HO, 1, also=cost)]
    assert session(*spans, scope="demo").cost == Cost(usd=0.2, source="reported")


@pytest.mark.parametrize("cost", [0.0, -1.0, "free", float("nan"), True])
def test_a_cost_that_is_none_stays_unknown(cost: Any) -> None:
    assert told(**{"gen_ai.usage.cost": cost}).cost is None


def test_langfuses_cost_is_the_total_of_its_details() -> None:
    attributes = {
        "langfuse.observation.type": "generation",
        "langfuse.observation.input": json.dumps([{"role": "user", "content": "Hi"}]),
        "langfuse.observation.output": json.dumps({"role": "assistant", "content": "Ho"}),
        "langfuse.observation.cost_details": json.dumps({"input": 0.1, "output": 0.2, "total": 0.3}),
    }
    assert session(span(1, "ChatOpenAI", attributes), scope="langfuse-sdk").cost == Cost(usd=0.3, source="reported")


@pytest.mark.parametrize(("unit", "usd"), [("USD", 0.5), ("EUR", None)])
def test_mastras_cost_is_that_of_a_generation_where_it_is_in_dollars(unit: str, usd: float | None) -> None:
    context = {"provider": "openai", "estimatedCost": 0.5, "costUnit": unit}
    attributes = {
        "mastra.span.type": "model_generation",
        "mastra.attributes": {"model": "gpt-5", "costContext": context},
        "mastra.model_generation.input": json.dumps({"messages": [{"role": "user", "content": "Hi"}]}),
        "mastra.model_generation.output": json.dumps({"text": "Ho"}),
    }
    one = session(span(1, "llm: 'gpt-5'", attributes), scope="@mastra/otel-exporter")
    assert (one.cost and one.cost.usd) == usd


def test_langfuses_cost_without_a_total_is_the_sum_of_its_details() -> None:
    attributes = {
        "langfuse.observation.type": "generation",
        "langfuse.observation.input": json.dumps([{"role": "user", "content": "Hi"}]),
        "langfuse.observation.output": json.dumps({"role": "assistant", "content": "Ho"}),
        "langfuse.observation.cost_details": json.dumps({"input": 0.125, "output": 0.25}),
    }
    assert session(span(1, "ChatOpenAI", attributes), scope="langfuse-sdk").cost == Cost(usd=0.375, source="reported")


@pytest.mark.parametrize("said", [0.25, {"input_tokens_cost": 0.2, "total_cost": 0.25}])
def test_what_a_provider_says_in_its_answer_is_the_calls_cost(said: Any) -> None:
    """OpenRouter and Perplexity write it beside the tokens."""
    record = model([HI], HO)
    assert record.answer is not None
    answer = replace(record.answer, provider_fields={"usage": {"cost": said}})
    one = session(ours(1, replace(record, answer=answer)))
    assert one.cost == Cost(usd=0.25, source="reported")


def test_a_cost_is_no_part_of_the_answer_that_a_replay_gives() -> None:
    one = told(**{"operation.cost": 0.25})
    assert "cost_usd" not in answer_of(one, next(only_run(one).model_calls())).provider_fields
