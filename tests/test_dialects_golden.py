"""Golden sessions of the dialects that have no page of tests for all of theirs; what their dumps brought to light."""

from __future__ import annotations

import json
from typing import Any

import pytest

from golden_sessions import converted_and_agreed
from otlp_lines import GENAI, asks, called, chat, converted, only_run, request, said, session, span, told
from spanreel import conventions as names
from spanreel.model import Fidelity

CONTRIB = "opentelemetry.instrumentation.openai_agents"
ORDER = called("order", {"dish": "soup"}, "call_1")


@pytest.mark.parametrize(
    "name",
    [
        *("openlit", "semantic_kernel", "crewai_own", "anthropic_mcp", "anthropic_mcp_content"),
        *("openai_agents_contrib", "anvia"),
    ],
)
def test_a_recorded_agent_comes_out_as_agreed(name: str) -> None:
    """`tests/golden/*_dump.py` make the dumps; `SPANREEL_GOLDEN=write` writes the sessions anew."""
    found, agreed = converted_and_agreed(f"{name}.otlp.jsonl", name)
    assert found == agreed


def test_kitarus_own_records_come_out_as_agreed() -> None:
    found, agreed = converted_and_agreed("kitaru.session.jsonl", "kitaru")
    assert found == agreed


def system_beside(*messages: dict[str, Any], **also: Any) -> dict[str, Any]:
    return {
        names.OPERATION: "chat",
        names.SYSTEM_INSTRUCTIONS: json.dumps([{"type": "text", "content": "Serve."}]),
        names.INPUT_MESSAGES: json.dumps(messages),
        **also,
    }


def test_instructions_that_stand_among_the_messages_too_are_told_once() -> None:
    one = session(span(1, "chat gpt-5", system_beside(said("system", "Serve."), said("user", "Soup!"))), scope=GENAI)
    (call,) = only_run(one).model_calls()
    assert [one.messages[index].role for index in call.input] == ["system", "user"]


def test_a_system_message_of_other_words_is_no_repetition() -> None:
    one = session(span(1, "chat gpt-5", system_beside(said("system", "Be quick."), said("user", "Soup!"))), scope=GENAI)
    (call,) = only_run(one).model_calls()
    assert [one.messages[index].role for index in call.input] == ["system", "system", "user"]


def test_an_answer_told_without_its_tool_calls_gets_them_from_the_next_request() -> None:
    both = {"role": "assistant", "parts": [{"type": "text", "content": "At once."}, ORDER]}
    one = session(
        chat(1, [said("user", "Soup!")], said("assistant", "At once.")),
        chat(2, [said("user", "Soup!"), both, told("call_1", "served")], said("assistant", "Here.")),
        scope=GENAI,
    )
    run = only_run(one)
    first, last = run.model_calls()
    assert one.messages[first.output[0]].parts == both["parts"]
    assert (first.fidelity, last.fidelity) == ({"output": Fidelity.RECONSTRUCTED}, {})
    assert [call.result for call in run.tool_calls()] == ["served"]


@pytest.mark.parametrize(
    "later",
    [
        [said("user", "Soup!"), {"role": "assistant", "parts": [{"type": "text", "content": "No."}, ORDER]}],
        [said("user", "Bread!"), {"role": "assistant", "parts": [{"type": "text", "content": "At once."}, ORDER]}],
        [said("user", "Soup!"), said("assistant", "At once."), said("user", "Now!")],
    ],
)
def test_an_answer_stays_as_it_was_told_where_the_next_request_repeats_another(later: list[Any]) -> None:
    calls = (chat(1, [said("user", "Soup!")], said("assistant", "At once.")), chat(2, later, asks(ORDER)))
    one = session(*calls, scope=GENAI)
    first = next(call for run in one.runs for call in run.model_calls())
    assert (one.messages[first.output[0]].parts, first.fidelity) == (said("assistant", "At once.")["parts"], {})


def test_contribs_requests_to_chat_completions_are_whole_and_results_are_told_once() -> None:
    result = {"type": "tool_call_response", "id": "call_1", "result": "served"}
    answered = {"role": "tool", "parts": [{"type": "text", "content": "served"}, result]}
    asked = [said("system", "Serve."), said("user", "Soup!"), asks(ORDER), answered]
    one = session(span(1, "chat gpt-5", system_beside(*asked)), scope=CONTRIB)
    (call,) = only_run(one).model_calls()
    assert "input" not in call.fidelity
    assert one.messages[call.input[-1]].parts == [{"type": "tool_call_response", "id": "call_1", "response": "served"}]


def test_contribs_requests_to_the_responses_api_lack_all_but_the_users_words() -> None:
    one = session(span(1, "chat gpt-5", system_beside(said("user", "Soup!"))), scope=CONTRIB)
    (call,) = only_run(one).model_calls()
    assert call.fidelity["input"] is Fidelity.TRUNCATED


def test_a_crews_task_is_told_in_the_words_that_its_inputs_filled_in() -> None:
    attributes = {
        "crew_tasks": json.dumps(
            [{"id": "t", "description": "Where is {title}?"}, {"id": "u", "description": "Write."}]
        ),
        "crew_tasks_output": json.dumps([{"id": "t", "description": "Where is Momo?", "output": "Here."}]),
        "crew_output": "Here.",
    }
    one = session(span(1, "Crew Execution", attributes), scope="crewai.telemetry")
    run = only_run(one)
    assert [one.messages[index].parts[0]["content"] for index in run.input] == ["Where is Momo?", "Write."]


def test_what_anvia_says_of_a_failure_is_its_message() -> None:
    failed = {
        "anvia.tool.name": "order",
        "anvia.tool.args": "{}",
        "anvia.tool.error": "No soup.",
        "error.type": "Error",
    }
    (one,) = converted(
        request(
            span(1, "agent.waiter", {"anvia.agent.name": "waiter", "anvia.run.error": "Closed."}),
            span(2, "tool.order", failed, 1),
            scope="@anvia/otel",
        )
    ).sessions
    run = only_run(one)
    (call,) = run.tool_calls()
    assert call.error is not None
    assert run.error is not None
    assert (call.error.type, call.error.message, run.error.message) == ("Error", "No soup.", "Closed.")


def test_a_servers_call_that_only_an_application_stands_around_is_no_session() -> None:
    served = {names.OPERATION: "execute_tool", names.TOOL_NAME: "order", "mcp.method.name": "tools/call"}
    conversion = converted(
        request(
            span(1, "POST /mcp", {}, kind=2),
            span(2, "tools/call order", served, 1, kind=2),
            scope="mcp-python-sdk",
        )
    )
    assert conversion.sessions == ()


def test_a_chain_that_is_all_there_is_in_an_application_is_the_run() -> None:
    kind = {"openinference.span.kind": "CHAIN"}
    chain = {**kind, "input.value": "Soup!", "output.value": "Here."}
    one = session(
        span(1, "POST /chat", {}, seconds=9),
        span(2, "Pipeline.run", chain, 1),
        span(3, "Agent.run", kind, 2),
        scope="openinference.instrumentation.haystack",
    )
    assert only_run(one).id == "0000000000000002"


@pytest.mark.parametrize(
    "key", ["gen_ai.thread.id", "conversation.id", "traceloop.association.properties.chat_id", "group_id"]
)
def test_a_conversation_is_known_by_whatever_its_writer_calls_it(key: str) -> None:
    one = session(chat(1, [said("user", "Soup!")], said("assistant", "Here."), also={key: "desk-7"}), scope=GENAI)
    assert (one.key.kind, one.key.value) == ("conversation", "desk-7")
