"""Laminar, AgentOps, Braintrust and Spring AI: the kinds, inputs and outputs that their SDKs put on spans."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otlp_lines import Span, only_run, session, sessions, span

INDEXED = {
    "gen_ai.request.model": "gpt-5",
    "gen_ai.prompt.0.role": "user",
    "gen_ai.prompt.0.content": "Weather?",
    "gen_ai.completion.0.role": "assistant",
    "gen_ai.completion.0.content": "Sunny.",
    "gen_ai.usage.prompt_tokens": 3,
    "gen_ai.usage.completion_tokens": 2,
}
LAMINAR = [
    span(1, "clerk", {"lmnr.span.type": "DEFAULT", "lmnr.span.input": '"Weather?"', "lmnr.span.output": '"Sunny."'}),
    span(2, "look", {"lmnr.span.type": "TOOL", "lmnr.span.input": '{"city": "Rome"}', "lmnr.span.output": '"25"'}, 1),
    span(3, "openai.chat", {"lmnr.span.type": "LLM", **INDEXED}, 1),
]
AGENTOPS = [
    span(
        1,
        "clerk.agent",
        {
            "agentops.span.kind": "agent",
            "agent.name": "clerk",
            "agentops.entity.input": '"Weather?"',
            "agentops.entity.output": '"Sunny."',
        },
    ),
    span(
        2,
        "look.tool",
        {
            "agentops.span.kind": "tool",
            "tool.name": "look",
            "tool.parameters": '{"city": "Rome"}',
            "tool.result": '"25"',
        },
        1,
    ),
    span(3, "openai.chat", {"agentops.span.kind": "llm", **INDEXED}, 1),
]
CHOICES = [{"index": 0, "message": {"role": "assistant", "content": "Sunny."}, "finish_reason": "stop"}]
BRAINTRUST = [
    span(
        1,
        "clerk",
        {
            "braintrust.span_attributes": '{"type": "task", "name": "clerk"}',
            "braintrust.input_json": '"Weather?"',
            "braintrust.output_json": '"Sunny."',
        },
    ),
    span(
        2,
        "look",
        {
            "braintrust.span_attributes": '{"type": "tool"}',
            "braintrust.input_json": '{"city": "Rome"}',
            "braintrust.output_json": '"25"',
        },
        1,
    ),
    span(
        3,
        "Chat Completion",
        {
            "braintrust.span_attributes": '{"type": "llm"}',
            "braintrust.input_json": json.dumps([{"role": "user", "content": "Weather?"}]),
            "braintrust.output_json": json.dumps(CHOICES),
            "braintrust.metadata": '{"model": "gpt-5", "provider": "openai"}',
            "braintrust.metrics": '{"prompt_tokens": 3, "completion_tokens": 2}',
        },
        1,
    ),
]


def text(one: Any, indexes: list[int]) -> list[str]:
    return [str(part["content"]) for index in indexes for part in one.messages[index].parts]


@pytest.mark.parametrize("spans", [LAMINAR, AGENTOPS, BRAINTRUST], ids=["laminar", "agentops", "braintrust"])
def test_runs_calls_and_tools_are_read(spans: list[Span]) -> None:
    one = session(*spans, scope="vendor")
    run = only_run(one)
    (model,), (tool,) = list(run.model_calls()), list(run.tool_calls())
    assert (text(one, run.input), text(one, run.output)) == (["Weather?"], ["Sunny."])
    assert (text(one, model.input), text(one, model.output)) == (["Weather?"], ["Sunny."])
    assert model.model == "gpt-5"
    assert (one.usage.input_tokens, one.usage.output_tokens) == (3, 2)
    assert (tool.name, tool.arguments, tool.result) == ("look", {"city": "Rome"}, "25")


def test_an_agent_of_agentops_has_its_name_and_a_function_of_laminars_has_none() -> None:
    assert only_run(session(*AGENTOPS, scope="agentops")).agent.name == "clerk"
    assert only_run(session(*LAMINAR, scope="lmnr")).agent.name is None


def test_scores_and_evaluations_are_neither_runs_nor_calls() -> None:
    assert sessions(span(1, "judge", {"lmnr.span.type": "EVALUATOR", "lmnr.span.input": '"x"'}), scope="lmnr") == []


def test_spring_ais_tools_stand_between_its_calls() -> None:
    """spring-projects/spring-ai#1174: tools are spans of an operation called `framework`."""
    model = {"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.request.model": "gpt-5"}
    framework = {"gen_ai.operation.name": "framework", "gen_ai.system": "spring_ai"}
    look = {
        "spring.ai.kind": "tool_call",
        "spring.ai.tool.definition.name": "look",
        "spring.ai.tool.definition.description": "Looks.",
        "spring.ai.tool.definition.schema": '{"type": "object"}',
        "spring.ai.tool.call.arguments": '{"city": "Rome"}',
        "spring.ai.tool.call.result": '"25 degrees"',
    }
    client = {"spring.ai.kind": "chat_client", "spring.ai.chat.client.conversation.id": "desk-7"}
    one = session(
        span(1, "spring_ai chat_client", {**framework, **client}, seconds=9),
        span(2, "chat gpt-5", {**model, "gen_ai.prompt": '["Weather?"]', "gen_ai.usage.input_tokens": "20"}, 1),
        span(3, "tool_call look", {**framework, **look}, 1),
        span(4, "call_advisor", {**framework, "spring.ai.kind": "advisor"}, 1),
        span(5, "chat gpt-5", {**model, "gen_ai.prompt": '["Weather?"]', "gen_ai.completion": '["Sunny."]'}, 4),
        scope="org.springframework.boot",
    )
    run = only_run(one)
    (tool,) = run.tool_calls()
    assert (one.key.value, one.usage.input_tokens, len(list(run.model_calls()))) == ("desk-7", 20, 2)
    assert (tool.name, tool.arguments, tool.result) == ("look", {"city": "Rome"}, "25 degrees")
    assert text(one, run.output) == ["Sunny."]


@pytest.mark.parametrize(
    "observed",
    [
        {"langfuse.observation.type": "generation"},
        {"langfuse.observation.type": "GENERATION"},
        {},
    ],
)
def test_langfuses_generations_need_not_say_their_type_and_may_count_in_the_conventions_names(
    observed: dict[str, str],
) -> None:
    """langfuse/langfuse#11135."""
    attributes = {
        **observed,
        "langfuse.observation.model.name": "gpt-5",
        "langfuse.observation.input": "Weather?",
        "langfuse.observation.output": "Sunny.",
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 3,
    }
    one = session(span(1, "answer", attributes), scope="my.app")
    (model,) = only_run(one).model_calls()
    assert (model.model, text(one, model.input), text(one, model.output)) == ("gpt-5", ["Weather?"], ["Sunny."])
    assert (one.usage.input_tokens, one.usage.output_tokens) == (12, 3)


def test_what_mlflow_encoded_twice_is_read() -> None:
    """mlflow/mlflow#18767 and #24090."""
    asked = {"model": "gpt-5", "messages": [{"role": "user", "content": "Weather?"}]}
    counts = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    attributes = {
        "mlflow.spanType": json.dumps(json.dumps("CHAT_MODEL")),
        "mlflow.spanInputs": json.dumps(json.dumps(asked)),
        "mlflow.spanOutputs": json.dumps(json.dumps({"choices": CHOICES})),
        "mlflow.chat.tokenUsage": json.dumps(json.dumps(counts)),
    }
    one = session(span(1, "chat", attributes), scope="mlflow")
    (model,) = only_run(one).model_calls()
    assert (model.model, text(one, model.input), text(one, model.output)) == ("gpt-5", ["Weather?"], ["Sunny."])
    assert (one.usage.input_tokens, one.usage.output_tokens) == (3, 2)
