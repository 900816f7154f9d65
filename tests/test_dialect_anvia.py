"""Anvia's spans, in the forms of its releases."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otlp_lines import Span, asks, called, converted, only_run, request, said, session, span, told
from spanreel.model import Fidelity, Status
from spanreel.session import Session

SCOPE = "@anvia/otel"
ORDER = called("order", {"dish": "soup"}, "call_1")
OLD_CALL = {
    "type": "tool_call",
    "id": "item_1",
    "callId": "call_1",
    "function": {"name": "order", "arguments": {"dish": "soup"}},
}
NEW_CALL = {"type": "tool-call", "toolCallId": "call_1", "toolName": "order", "input": {"dish": "soup"}}
USER = {"role": "user", "content": [{"type": "text", "text": "Soup!"}]}


def generation(number: int, given: Any, came: Any, parent: int | None = 1, **also: Any) -> Span:
    attributes = {"anvia.generation.turn": number, "anvia.generation.model": "gpt-5", **also}
    if given is not None:
        attributes["anvia.generation.input"] = json.dumps(given)
    if came is not None:
        attributes["anvia.generation.output"] = json.dumps(came)
    return span(number, f"model.turn.{number}", attributes, parent)


def run_of(attributes: dict[str, Any], **rest: Any) -> Span:
    return span(1, "agent.waiter", {"anvia.agent.name": "waiter", **attributes}, **rest)


def messages(one: Session, indexes: list[int]) -> list[dict[str, Any]]:
    return [{"role": one.messages[index].role, "parts": one.messages[index].parts} for index in indexes]


@pytest.mark.parametrize("call", [OLD_CALL, NEW_CALL])
def test_a_run_with_its_turns_and_tools_is_read(call: dict[str, Any]) -> None:
    answer = {
        "type": "tool_result",
        "id": "item_1",
        "callId": "call_1",
        "content": [{"type": "text", "text": "served"}],
    }
    history = [USER, {"role": "assistant", "content": [call]}, {"role": "tool", "content": [answer]}]
    usage = {"anvia.usage.input_tokens": 10, "anvia.usage.output_tokens": 2, "anvia.usage.cached_input_tokens": 4}
    one = session(
        run_of(
            {
                "anvia.agent.instructions": "Serve.",
                "anvia.run.prompt": json.dumps(USER),
                "anvia.run.history": "[]",
                "anvia.run.output": "Here.",
                "anvia.trace.session_id": "desk-7",
                "anvia.trace.user_id": "u-1",
                "anvia.trace.tags": ["inn"],
                "anvia.usage.input_tokens": 30,
            }
        ),
        generation(2, [USER], [call], **usage),
        span(
            3,
            "tool.order",
            {
                "anvia.tool.name": "order",
                "anvia.tool.args": '{"dish": "soup"}',
                "anvia.tool.result": "served",
                "anvia.tool.call": json.dumps(call),
                "anvia.tool.internal_call_id": "x",
            },
            1,
        ),
        generation(4, history, [{"type": "text", "text": "Here."}], **{"anvia.usage.input_tokens": 20}),
        scope=SCOPE,
    )
    run = only_run(one)
    assert (one.key.value, one.user_id, one.tags, one.usage.input_tokens) == ("desk-7", "u-1", ["inn"], 30)
    assert (run.agent.name, run.status) == ("waiter", Status.OK)
    assert messages(one, run.input) == [said("system", "Serve."), said("user", "Soup!")]
    first, last = run.model_calls()
    assert messages(one, first.input) == [said("system", "Serve."), said("user", "Soup!")]
    assert messages(one, first.output) == [asks(ORDER)]
    assert messages(one, last.input)[-1] == told("call_1", "served")
    assert first.usage is not None
    assert (first.usage.cache_read_tokens, first.model) == (4, "gpt-5")
    (order,) = run.tool_calls()
    assert (order.call_id, order.arguments, order.result, order.requested) == (
        "call_1",
        {"dish": "soup"},
        "served",
        {"dish": "soup"},
    )


def test_child_agents_are_runs_inside_their_tool() -> None:
    child = {"anvia.child_agent.id": "cook", "anvia.child_agent.name": "Cook", "anvia.parent_tool.name": "ask"}
    prompt = {"prompt": USER, "history": [{"role": "assistant", "content": [{"type": "text", "text": "Yes?"}]}]}
    one = session(
        run_of({"anvia.run.prompt": '"Soup!"'}),
        span(2, "tool.ask", {"anvia.tool.name": "ask", "anvia.tool.args": "{}", "anvia.tool.result": "done"}, 1),
        span(3, "Cook.run", {**child, "anvia.child_agent.text": "Cooked."}, 2),
        span(
            4,
            "Cook.model.turn.1",
            {**child, "anvia.child_agent.turn": 1, "anvia.generation.input": json.dumps(prompt)},
            3,
        ),
        span(5, "Cook.stir", {**child, "anvia.tool.name": "stir", "anvia.tool.args": "{}"}, 3),
        scope=SCOPE,
    )
    root, cook = one.runs
    (ask,) = root.tool_calls()
    assert (ask.run, cook.agent.name, cook.path) == (cook.id, "Cook", "root/Cook#0")
    assert messages(one, cook.output) == [said("assistant", "Cooked.")]
    (call,) = cook.model_calls()
    assert messages(one, call.input) == [said("assistant", "Yes?"), said("user", "Soup!")]
    assert [tool.name for tool in cook.tool_calls()] == ["stir"]


def test_safe_capture_leaves_calls_without_content() -> None:
    one = session(run_of({"anvia.run.max_turns": 2}), generation(2, None, None), scope=SCOPE)
    (call,) = only_run(one).model_calls()
    assert call.fidelity == {"input": Fidelity.ABSENT, "output": Fidelity.ABSENT}
    assert not one.replay.eligible


def test_values_cut_to_a_limit_are_truncated() -> None:
    cut = {"anvia.tool.name": "order", "anvia.tool.args": "<truncated>", "anvia.tool.result": '{"dish": "so'}
    one = session(run_of({}), span(2, "tool.order", cut, 1), scope=SCOPE)
    (call,) = only_run(one).tool_calls()
    assert call.fidelity == {"arguments": Fidelity.TRUNCATED, "result": Fidelity.TRUNCATED}


@pytest.mark.parametrize(
    ("named", "model"),
    [
        ({"anvia.generation.model": "default", "anvia.generation.default_model": "gpt-5"}, "gpt-5"),
        ({"anvia.generation.model": "a", "anvia.generation.model_id": "b"}, "b"),
        ({"anvia.generation.model": "default"}, None),
    ],
)
def test_the_model_is_the_one_that_was_named(named: dict[str, Any], model: str | None) -> None:
    one = session(run_of({}), generation(2, [USER], None, **named), scope=SCOPE)
    (call,) = only_run(one).model_calls()
    assert call.model == model


def test_a_failed_run_and_a_skipped_tool_are_told() -> None:
    one = session(
        run_of({"anvia.run.error": "no soup"}, status={"code": 2, "message": "no soup"}),
        span(2, "tool.order", {"anvia.tool.name": "order", "anvia.tool.args": "{}", "anvia.tool.skipped": True}, 1),
        scope=SCOPE,
    )
    run = only_run(one)
    (order,) = run.tool_calls()
    assert (run.status, run.error and run.error.message, order.status) == (Status.ERROR, "no soup", Status.BLOCKED)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
            {"type": "uri", "modality": "image", "uri": "https://example.org/a.png"},
        ),
        ({"type": "document", "source": {"type": "text", "text": "Menu"}}, {"type": "text", "content": "Menu"}),
        ({"type": "reasoning", "text": "Hm."}, {"type": "reasoning", "content": "Hm."}),
        ({"type": "other", "x": 1}, {"type": "other", "value": {"type": "other", "x": 1}}),
    ],
)
def test_content_of_all_kinds_becomes_parts(content: dict[str, Any], part: dict[str, Any]) -> None:
    one = session(run_of({}), generation(2, [{"role": "user", "content": [content]}], None), scope=SCOPE)
    (call,) = only_run(one).model_calls()
    assert messages(one, call.input) == [{"role": "user", "parts": [part]}]


def test_values_that_are_none_cost_nothing() -> None:
    odd = {"anvia.generation.input": "<failed to serialize>", "anvia.generation.output": "5", "anvia.tool.call": "[]"}
    conversion = converted(request(run_of({"anvia.run.prompt": "7"}), span(2, "model.turn.1", odd, 1), scope=SCOPE))
    assert conversion.faults == ()


def test_full_capture_tells_what_goes_to_the_provider_beside_the_agents_own() -> None:
    full: dict[str, Any] = {
        "anvia.generation.temperature": 0.5,
        "anvia.generation.additional_params": json.dumps({"seed": 7, "temperature": 0.9}),
        "anvia.generation.tool_definitions": json.dumps([{"name": "order", "description": "d", "parameters": {}}]),
        "anvia.generation.provider_tools": json.dumps([{"type": "web_search"}]),
    }
    one = session(run_of({}), generation(2, [USER], [NEW_CALL], **full), scope=SCOPE)
    (call,) = only_run(one).model_calls()
    assert call.settings == {"seed": 7, "temperature": 0.5}
    assert [one.tools[index].get("name") or one.tools[index]["type"] for index in call.tools] == ["order", "web_search"]
