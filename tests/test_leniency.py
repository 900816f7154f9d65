"""What strangers write a little otherwise than the conventions say, and means the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otlp_lines import GENAI, TRACE, agent, chat, only_run, said, session, sessions
from spanreel import conventions as names
from spanreel.model import Status

ASKED = [said("user", "Weather?")]
ANSWERED = said("assistant", "Sunny.")


@pytest.mark.parametrize(
    "identity",
    ["None", "undefined", "NULL", " ", "unknown", "[object Object]", "0" * 32, "00000000-0000-0000-0000-000000000000"],
)
def test_what_stands_for_no_id_joins_no_sessions(identity: str) -> None:
    spans = [agent(number, "clerk", trace=f"{number:032x}", also={"session.id": identity}) for number in (1, 2)]
    assert [one.key.kind for one in sessions(*spans, scope=GENAI)] == ["trace", "trace"]


def test_a_number_is_an_id_of_a_session() -> None:
    assert session(agent(1, "clerk", also={"session.id": 42}), scope=GENAI).key.value == "42"


def test_an_id_that_is_none_leaves_the_next_one_its_place() -> None:
    also = {names.CONVERSATION_ID: "None", "session.id": "desk-7"}
    assert session(agent(1, "clerk", also=also), scope=GENAI).key.value == "desk-7"
    assert session(agent(1, "clerk", also={"session.id": "None"}), scope=GENAI).key.value == TRACE


@pytest.mark.parametrize(
    ("told", "counted"),
    [
        ({"input_tokens": -1, "output_tokens": 3}, {"output_tokens": 3}),
        (
            {"input_tokens": 5, "output_tokens": 2, "reasoning.output_tokens": 12},
            {"input_tokens": 5, "output_tokens": 14, "reasoning_tokens": 12},
        ),
        (
            {"input_tokens": 5, "output_tokens": 14, "reasoning.output_tokens": 12},
            {"input_tokens": 5, "output_tokens": 14, "reasoning_tokens": 12},
        ),
    ],
)
def test_tokens_have_one_form_whoever_counted(told: dict[str, int], counted: dict[str, int]) -> None:
    also = {f"gen_ai.usage.{name}": count for name, count in told.items()}
    one = session(chat(1, ASKED, ANSWERED, also=also), scope=GENAI)
    assert one.usage.model_dump(exclude_none=True) == counted


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": [{"type": "text", "text": "Weather?"}]}],
        {"role": "user", "content": "Weather?"},
        {"role": "user", "parts": [{"type": "text", "content": "Weather?"}]},
    ],
)
def test_messages_in_a_providers_form_or_a_lone_one_lose_nothing(messages: Any) -> None:
    one = session(chat(1, json.dumps(messages), ANSWERED), scope=GENAI)
    (call,) = only_run(one).model_calls()
    assert [one.messages[index].parts for index in call.input] == [[{"type": "text", "content": "Weather?"}]]


@pytest.mark.parametrize("key", ["response", "result", "content", "output"])
@pytest.mark.parametrize("arguments", [{"city": "Rome"}, '{"city": "Rome"}', json.dumps('{"city": "Rome"}')])
def test_arguments_and_results_are_read_however_they_are_written(key: str, arguments: Any) -> None:
    asks = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "look", "arguments": arguments}]}
    told = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", key: "25 degrees"}]}
    one = session(chat(1, ASKED, asks), chat(3, [*ASKED, asks, told], ANSWERED), scope=GENAI)
    (call,) = only_run(one).tool_calls()
    assert (call.arguments, call.result) == ({"city": "Rome"}, "25 degrees")


@pytest.mark.parametrize("code", [2, "2", "STATUS_CODE_ERROR", "ERROR"])
def test_a_status_is_read_by_number_and_by_name(code: Any) -> None:
    assert session({**agent(1, "clerk"), "status": {"code": code}}, scope=GENAI).status is Status.ERROR


def test_a_status_that_nobody_knows_costs_no_span() -> None:
    assert session({**agent(1, "clerk"), "status": {"code": "BAD"}}, scope=GENAI).status is Status.OK


def test_a_tool_whose_name_is_no_text_costs_no_session() -> None:
    asks = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "look", "arguments": {}}]}
    also = {names.TOOL_DEFINITIONS: json.dumps([{"type": "function", "name": [], "parameters": {}}])}
    (call,) = only_run(session(chat(1, ASKED, asks, also=also), scope=GENAI)).tool_calls()
    assert call.name == "look"
