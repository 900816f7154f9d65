"""Cohere's chat, first version."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from spanreel.model import Error, ErrorCategory, Operation, Request, Usage
from spanreel.protocols import is_exchange, recognise
from spanreel.protocols.cohere import first

CALL = {"name": "add", "parameters": {"a": 1}}
RESULT = {"call": CALL, "outputs": [{"sum": 1}]}


def read(**body: Any) -> Request:
    """Read a request, and check that it is written as it was."""
    request = first.read_request(json.dumps(body).encode(), Operation.CHAT)
    assert json.loads(first.write_request(request)) == body
    return request


def test_a_request_is_read_whole() -> None:
    request = read(
        model="command",
        message="And now?",
        preamble="Be brief.",
        chat_history=[
            {"role": "System", "message": "You add."},
            {"role": "USER", "message": "Add."},
            {"role": "CHATBOT", "message": "", "tool_calls": [CALL]},
            {"role": "TOOL", "tool_results": [RESULT]},
        ],
        tools=[
            {"name": "add", "description": "Adds.", "parameter_definitions": {"a": {"type": "int", "required": True}}}
        ],
        temperature=0.5,
        p=0.9,
        connectors=[{"id": "web-search"}],
        stream=True,
    )
    assert [(message["role"], [part["type"] for part in message["parts"]]) for message in request.messages] == [
        ("system", ["text"]),
        ("user", ["text"]),
        ("assistant", ["tool_call"]),
        ("tool", ["tool_call_response"]),
        ("user", ["text"]),
    ]
    assert request.settings == {"temperature": 0.5, "top_p": 0.9}
    assert request.tools[0]["parameters"]["properties"] == {"a": {"type": "int", "required": True}}
    assert (request.model, request.stream) == ("command", True)


@pytest.mark.parametrize("said", ["", "Add."])
def test_results_of_tools_are_the_last_message(said: str) -> None:
    request = read(model="m", message=said, tool_results=[RESULT], chat_history=[{"role": "USER", "message": "x"}])
    assert request.messages[-1]["role"] == "tool"
    assert request.messages[-1]["parts"][0]["response"] == [{"sum": 1}]


def test_a_conversation_of_another_protocol_is_written() -> None:
    messages = (
        {"role": "user", "parts": [{"type": "text", "content": "Add."}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "t", "name": "add", "arguments": {"a": 1}}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "t", "response": "1"}]},
    )
    written = json.loads(first.write_request(Request(Operation.CHAT, "m", messages)))
    assert written == {
        "model": "m",
        "message": "",
        "chat_history": [{"role": "USER", "message": "Add."}, {"role": "CHATBOT", "tool_calls": [CALL]}],
        "tool_results": [{"call": {}, "outputs": [{"result": "1"}]}],
    }


@pytest.mark.parametrize("body", [b"[]", b"{}", b'{"message":1}', b'{"message":"a","chat_history":[1]}'])
def test_what_is_no_request_is_refused_with_its_place(body: bytes) -> None:
    with pytest.raises(ValueError, match="cohere_chat_v1 request"):
        first.read_request(body, Operation.CHAT)


def test_an_answer_is_read_whole() -> None:
    counted = {"tokens": {"input_tokens": 3, "output_tokens": 2}, "billed_units": {"input_tokens": 1}, "x": 1}
    body = {
        "response_id": "r",
        "generation_id": "g",
        "text": "Well.",
        "tool_calls": [CALL],
        "finish_reason": "COMPLETE",
        "meta": counted,
    }
    answer = first.read_response(json.dumps(body).encode(), 200)
    assert (answer.response_id, answer.usage, answer.finish_reasons) == ("r", Usage(3, 2), ["tool_call"])
    assert [part["type"] for part in answer.messages[0]["parts"]] == ["text", "tool_call"]
    assert json.loads(first.write_response(answer)) == body


def test_a_failure_says_what_the_provider_said() -> None:
    answer = first.read_response(b'{"message":"no such model"}', 404)
    assert answer.error == Error(ErrorCategory.MODEL, "404", "no such model")
    assert json.loads(first.write_response(answer)) == {"message": "no such model"}


def lines() -> list[dict[str, Any]]:
    """A stream."""
    response = {"response_id": "r", "text": "It is so.", "tool_calls": [CALL], "finish_reason": "COMPLETE"}
    return [
        {"is_finished": False, "event_type": "stream-start", "generation_id": "g"},
        {"is_finished": False, "event_type": "text-generation", "text": "It is "},
        {"is_finished": False, "event_type": "text-generation", "text": "so."},
        {"is_finished": False, "event_type": "tool-calls-generation", "tool_calls": [CALL]},
        {"is_finished": True, "event_type": "stream-end", "response": response, "finish_reason": "COMPLETE"},
    ]


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_a_stream_is_joined_and_split_as_it_came(count: int) -> None:
    sent = lines()[:count]
    answer = first.join([(1.0, "".join(json.dumps(line) + "\n" for line in sent).encode())])
    again = first.split(answer)
    assert [json.loads(piece) for _, piece in again] == sent
    assert first.join(again) == answer
    assert answer.complete is (count == 5)
    assert answer.messages[0]["parts"][0]["content"] == ("It is " if count == 2 else "It is so.")
    assert "so." not in json.dumps(answer.chunks)


def test_what_was_redacted_since_is_redacted_in_the_stream_too() -> None:
    answer = first.join([(1.0, "".join(json.dumps(line) + "\n" for line in lines()).encode())])
    hidden = replace(answer, messages=({"role": "assistant", "parts": [{"type": "text", "content": "[gone]"}]},))
    body = b"".join(piece for _, piece in first.split(hidden))
    assert b"so." not in body
    assert b"[gone]" in body


def test_a_stream_that_says_nothing_is_none() -> None:
    with pytest.raises(ValueError, match="holds no line"):
        first.join([(0.0, b"\n")])


def test_a_chat_of_the_programs_own_at_its_path_is_none_of_coheres() -> None:
    assert recognise("POST", "/v1/chat") == (first, Operation.CHAT)
    assert is_exchange(Operation.CHAT, b'{"message":"hi","model":"command"}', first)
    assert not is_exchange(Operation.CHAT, b'{"message":"hi"}', first)
    assert not is_exchange(Operation.CHAT, b'{"messages":[],"model":"m"}', first)
