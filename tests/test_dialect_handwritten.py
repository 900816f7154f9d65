"""Spans that were written by hand, or by libraries on the way to the conventions, as public reports show them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otlp_lines import (
    BEGAN,
    GENAI,
    agent,
    asks,
    attribute_list,
    called,
    chat,
    only_run,
    said,
    session,
    sessions,
    span,
    told,
    tool,
)
from spanreel import conventions as names

HAND = "my.app"
ASKED = [said("user", "Weather?")]
ANSWERED = said("assistant", "Sunny.")
WORDS, ANSWER = [{"type": "text", "content": "Weather?"}], [{"type": "text", "content": "Sunny."}]
CONTENT = {names.INPUT_MESSAGES: json.dumps(ASKED), names.OUTPUT_MESSAGES: json.dumps([ANSWERED])}


def exchange(attributes: dict[str, Any], name: str = "ask") -> tuple[list[Any], list[Any]]:
    """What the only model call of a lone span was asked and answered."""
    one = session(span(1, name, attributes), scope=HAND)
    (call,) = only_run(one).model_calls()
    return [one.messages[index].parts for index in call.input], [one.messages[index].parts for index in call.output]


@pytest.mark.parametrize(
    "word", ["chat", "Chat", "completion", "chat.completions", "generate_text", "responses", "llm"]
)
def test_a_model_call_is_known_by_other_words_for_it(word: str) -> None:
    attributes = {names.OPERATION: word, names.REQUEST_MODEL: "gpt-5", **CONTENT}
    assert exchange(attributes) == ([WORDS], [ANSWER])


def test_an_operation_of_ones_own_that_a_model_answered_is_a_model_call() -> None:
    attributes = {names.OPERATION: "classify", names.REQUEST_MODEL: "gpt-5", names.RESPONSE_ID: "r1", **CONTENT}
    assert exchange(attributes) == ([WORDS], [ANSWER])


def test_an_operation_of_ones_own_that_says_nothing_of_an_answer_only_groups() -> None:
    assert sessions(span(1, "plan", {names.OPERATION: "plan", names.REQUEST_MODEL: "gpt-5"}), scope=HAND) == []


@pytest.mark.parametrize(
    "content",
    [
        CONTENT,
        {"gen_ai.prompt": "Weather?", "gen_ai.completion": "Sunny."},
        {"gen_ai.prompt": '["Weather?"]', "gen_ai.completion": '["Sunny."]'},
        {"gen_ai.prompt": json.dumps([{"role": "user", "content": "Weather?"}]), "gen_ai.completion": "Sunny."},
        {
            "gen_ai.prompt.0.role": "user",
            "gen_ai.prompt.0.content": "Weather?",
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.content": "Sunny.",
        },
        {
            "gen_ai.request.messages": json.dumps([{"role": "user", "content": "Weather?"}]),
            "gen_ai.response.text": json.dumps(["Sunny."]),
        },
    ],
)
@pytest.mark.parametrize("named", [{}, {names.OPERATION: "chat"}])
def test_messages_under_older_names_are_read_whether_or_not_an_operation_is_named(
    content: dict[str, Any], named: dict[str, str]
) -> None:
    """langfuse/langfuse#11505 and spring-projects/spring-ai#1174."""
    assert exchange({**named, names.REQUEST_MODEL: "gpt-5", **content}) == ([WORDS], [ANSWER])


def test_what_sentry_says_that_an_answer_asks_of_tools_is_asked() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"city": "Rome"}'}}
    one = session(
        span(1, "chat", {names.OPERATION: "chat", "gen_ai.response.tool_calls": json.dumps([call])}), scope=HAND
    )
    (found,) = only_run(one).tool_calls()
    assert (found.call_id, found.name, found.arguments) == ("c1", "look", {"city": "Rome"})


def test_a_tool_that_names_no_operation_is_joined_to_the_call_that_asked_for_it() -> None:
    attributes = {
        names.TOOL_NAME: "look",
        names.TOOL_CALL_ID: "c1",
        "gen_ai.tool.input": "{}",
        "gen_ai.tool.output": "25 degrees",
    }
    one = session(
        agent(1, "clerk"), chat(2, ASKED, asks(called("look", {}, "c1")), 1), span(3, "look", attributes, 1), scope=HAND
    )
    (found,) = only_run(one).tool_calls()
    assert (found.call_id, found.arguments, found.result) == ("c1", {}, "25 degrees")


def test_a_request_to_a_server_with_nothing_of_a_model_is_no_call() -> None:
    assert sessions(span(1, "GET /", {"http.route": "/", "gen_ai.system": "openai"}), scope=HAND) == []


@pytest.mark.parametrize("named", [{}, {names.OPERATION: "chat"}])
def test_a_call_around_several_that_counts_their_tokens_together_is_their_run(named: dict[str, str]) -> None:
    """Arize-ai/openinference#3164, pydantic/pydantic-ai#3995, traceroot-ai/traceroot#1612: all was counted twice."""
    counted = ((113, 11), (56, 5), (57, 6))
    counts = [{"gen_ai.usage.input_tokens": given, "gen_ai.usage.output_tokens": came} for given, came in counted]
    asking = asks(called("look", {"city": "Rome"}, "c1"))
    outer = {**named, names.REQUEST_MODEL: "gpt-5", **CONTENT, **counts[0]}
    one = session(
        span(1, "handle", outer, seconds=9),
        chat(2, ASKED, asking, 1, also=counts[1]),
        tool(3, "look", {"city": "Rome"}, "25 degrees", 1, also={names.TOOL_CALL_ID: "c1"}),
        chat(4, [*ASKED, asking, told("c1", "25 degrees")], ANSWERED, 1, also=counts[2]),
        scope=GENAI,
    )
    run = only_run(one)
    assert (one.usage.input_tokens, one.usage.output_tokens) == (113, 11)
    assert [one.messages[index].parts for index in (*run.input, *run.output)] == [WORDS, ANSWER]
    assert [len(turn.tool_calls) for turn in run.turns] == [1, 0]


@pytest.mark.parametrize("kind", ["LLM", "llm"])
def test_openinferences_calls_by_hand_have_their_words_in_plain_values(kind: str) -> None:
    attributes = {
        "openinference.span.kind": kind,
        "llm.model_name": "gpt-5",
        "input.value": "Weather?",
        "output.value": "Sunny.",
    }
    assert exchange(attributes) == ([WORDS], [ANSWER])


@pytest.mark.parametrize("prefix", ["tool_calls.", "tool_calls.0.", "tool_calls.0.tool_call."])
def test_openinferences_calls_of_tools_are_read_without_their_index_or_name(prefix: str) -> None:
    """Arize-ai/phoenix#9410: a gateway wrote one call where a list belongs."""
    message = "llm.output_messages.0.message."
    attributes = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "gpt-5",
        f"{message}role": "assistant",
        f"{message}{prefix}id": "c1",
        f"{message}{prefix}function.name": "look",
        f"{message}{prefix}function.arguments": '{"city": "Rome"}',
    }
    (found,) = only_run(session(span(1, "llm", attributes), scope=HAND)).tool_calls()
    assert (found.call_id, found.name, found.arguments) == ("c1", "look", {"city": "Rome"})


def test_a_tools_values_under_a_librarys_own_name_are_read() -> None:
    """withastro/flue#568: what is no object stood under the library's name, which no backend reads."""
    attributes = {
        names.OPERATION: "execute_tool",
        names.TOOL_NAME: "look",
        names.TOOL_CALL_ID: "c1",
        names.TOOL_CALL_ARGUMENTS: "{}",
        "flue.tool.call.result": "25 degrees",
    }
    one = session(
        agent(1, "clerk"), chat(2, ASKED, asks(called("look", {}, "c1")), 1), span(3, "look", attributes, 1), scope=HAND
    )
    (found,) = only_run(one).tool_calls()
    assert (found.arguments, found.result) == ({}, "25 degrees")


def test_events_stand_in_the_order_of_their_numbers() -> None:
    """pydantic/pydantic-ai#4294."""
    spoken = [("user", 2, "And now?"), ("assistant", 1, "Sunny."), ("user", 0, "Weather?")]
    events = [
        {
            "timeUnixNano": str(BEGAN),
            "name": f"gen_ai.{role}.message",
            "attributes": attribute_list({"content": words, "gen_ai.message.index": number}),
        }
        for role, number, words in spoken
    ]
    one = session(chat(1, None, ANSWERED, events=events), scope=HAND)
    (call,) = only_run(one).model_calls()
    words = [part["content"] for index in call.input for part in one.messages[index].parts]
    assert words == ["Weather?", "Sunny.", "And now?"]


@pytest.mark.parametrize("kind", ["llm", "LLM"])
def test_what_is_sent_to_langsmith_by_hand_is_read_message_by_message(kind: str) -> None:
    attributes = {
        "langsmith.span.kind": kind,
        "gen_ai.system": "OpenAI",
        names.REQUEST_MODEL: "gpt-5",
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "Weather?",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "Sunny.",
    }
    assert exchange(attributes) == ([WORDS], [ANSWER])
