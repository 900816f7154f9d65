"""LiteLLM's callback, of 1.110: embeddings, answers that only ask for tools, and calls on a span of the caller's."""

from __future__ import annotations

import json
from typing import Any

from otlp_lines import Span, only_run, session, span
from spanreel import conventions as names
from spanreel.model import Fidelity

LITELLM = "litellm"
USER = {"role": "user", "content": "Soup!"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "order", "input": {"dish": "soup"}}
ANSWER = {"type": "message", "role": "assistant", "model": "claude", "stop_reason": "end_turn"}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "served"}]}


def raw(number: int, parent: int, identity: str, messages: list[dict[str, Any]], content: list[dict[str, Any]]) -> Span:
    """A raw exchange with Anthropic, as Python shows it."""
    body = {
        "messages": messages,
        "system": [{"type": "text", "text": "Serve."}],
        "content": content,
        "id": identity,
        **ANSWER,
    }
    told = {f"llm.anthropic.{key}": repr(value) if isinstance(value, list) else value for key, value in body.items()}
    return span(number, "raw_gen_ai_request", told, parent, seconds=1)


def parts(*found: dict[str, Any], role: str) -> dict[str, Any]:
    return {"role": role, "parts": list(found)}


def test_the_last_of_several_calls_on_the_callers_span_is_one_call_under_whatever_id() -> None:
    text = {"type": "text", "content": "Enjoy."}
    called = {"type": "tool_call", "id": "toolu_1", "name": "order", "arguments": {"dish": "soup"}}
    served = {"type": "tool_call_response", "id": "toolu_1", "response": "served"}
    asked = [
        parts({"type": "text", "content": "Serve."}, role="system"),
        parts({"type": "text", "content": "Soup!"}, role="user"),
        parts(called, role="assistant"),
        parts(served, role="tool"),
    ]
    last = {
        names.OPERATION: "chat",
        names.REQUEST_MODEL: "claude",
        names.RESPONSE_ID: "chatcmpl-made-up",
        "litellm.call_id": "1",
        names.INPUT_MESSAGES: json.dumps(asked),
        names.OUTPUT_MESSAGES: json.dumps([parts(text, role="assistant")]),
    }
    one = session(
        span(1, "request", last, seconds=9),
        raw(2, 1, "msg_1", [USER], [CALL]),
        raw(
            3,
            1,
            "msg_2",
            [USER, {"role": "assistant", "content": [CALL]}, RESULT],
            [{"type": "text", "text": "Enjoy."}],
        ),
        scope=LITELLM,
    )
    run = only_run(one)
    assert [(call.response_id, call.model) for call in run.model_calls()] == [("msg_1", None), ("msg_2", "claude")]
    assert [call.result for call in run.tool_calls()] == ["served"]


def test_embeddings_are_no_turn() -> None:
    told = {
        names.OPERATION: "embedding",
        names.REQUEST_MODEL: "embed",
        names.USAGE_INPUT_TOKENS: 8,
        "litellm.call_id": "1",
    }
    inner = {"llm.None.model": "embed", "llm.None.input": "['Soup!']"}
    run = only_run(session(span(1, "litellm_request", told), span(2, "raw_gen_ai_request", inner, 1), scope=LITELLM))
    assert [(call.operation, call.model) for call in run.side_calls] == [("embeddings", "embed")]
    assert not run.turns


def test_embeddings_that_only_the_raw_exchange_tells_are_such() -> None:
    inner = {"llm.None.model": "embed", "llm.None.input": "['Soup!']"}
    run = only_run(session(span(1, "raw_gen_ai_request", inner), scope=LITELLM))
    assert [(call.operation, call.model) for call in run.side_calls] == [("embeddings", "embed")]


def test_an_answer_that_only_asks_for_a_tool_is_told_by_the_names_of_old() -> None:
    told = {
        names.OPERATION: "chat",
        names.REQUEST_MODEL: "gpt",
        "litellm.call_id": "1",
        names.INPUT_MESSAGES: json.dumps([parts({"type": "text", "content": "Soup!"}, role="user")]),
        names.OUTPUT_MESSAGES: json.dumps([{"role": "assistant", "parts": [], "finish_reason": "tool_calls"}]),
        "gen_ai.completion.0.function_call.name": "order",
        "gen_ai.completion.0.function_call.arguments": '{"dish": "soup"}',
    }
    one = session(span(1, "litellm_request", told), scope=LITELLM)
    (call,) = only_run(one).model_calls()
    (answer,) = (one.messages[ref] for ref in call.output)
    assert [(part["name"], part["arguments"]) for part in answer.parts] == [("order", {"dish": "soup"})]
    assert call.fidelity["output"] is Fidelity.RECONSTRUCTED
