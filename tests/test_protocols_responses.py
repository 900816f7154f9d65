"""OpenAI responses: what each form of request, answer and stream is in canonical form, and back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from exchange_cases import events_of
from spanreel.model import Answer, Error, ErrorCategory, Operation, Request, Usage
from spanreel.protocols import openai_responses
from spanreel.protocols.residue import same


def read_request(**body: Any) -> Request:
    """Read a request, and check that it is written as it was."""
    request = openai_responses.read_request(json.dumps(body).encode(), Operation.CHAT)
    assert json.loads(openai_responses.write_request(request)) == body
    return request


def read_input(*items: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Read the input of a request."""
    return read_request(input=list(items)).messages


def read_body(**body: Any) -> Answer:
    """Read an answer, and check that it is written as it was."""
    answer = openai_responses.read_response(json.dumps(body).encode(), 200)
    assert same(json.loads(openai_responses.write_response(answer)), body)
    return answer


def read_output(*items: dict[str, Any]) -> list[dict[str, Any]]:
    """Read the output of an answer."""
    answer = read_body(output=list(items), status="completed")
    assert all(openai_responses.join(openai_responses.split(plain)).messages for plain in (answer,))
    parts: list[dict[str, Any]] = answer.messages[0]["parts"]
    return parts


def stream_of(*events: Any) -> bytes:
    """The bytes of a stream."""
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()


def join(*events: Any) -> Answer:
    """Join a stream, and check that it is split as it was."""
    stream = stream_of(*events)
    answer = openai_responses.join([(5.0, stream)])
    again = openai_responses.split(answer)
    assert events_of(b"".join(piece for _, piece in again)) == events_of(stream)
    assert openai_responses.join(again) == answer
    return answer


def event(kind: str, number: int, **fields: Any) -> dict[str, Any]:
    """One event."""
    return {"type": f"response.{kind}", "sequence_number": number, **fields}


MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "status": "completed",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []}],
}
MESSAGE_PART = {
    "type": "text",
    "content": "Hello",
    "provider_fields": {"logprobs": [], "$item": {"id": "msg_1", "status": "completed"}},
}
CALL = {
    "id": "fc_1",
    "type": "function_call",
    "status": "completed",
    "call_id": "call_1",
    "name": "f",
    "arguments": '{"a":1}',
}
CALL_PART = {
    "type": "tool_call",
    "id": "call_1",
    "name": "f",
    "arguments": {"a": 1},
    "provider_fields": {"id": "fc_1", "status": "completed"},
}
THOUGHT = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "First"}, {"type": "summary_text", "text": "Then"}],
    "encrypted_content": "gAAA",
}
THOUGHT_PARTS = [
    {
        "type": "reasoning",
        "content": "First",
        "provider_fields": {"$item": {"id": "rs_1", "encrypted_content": "gAAA"}},
    },
    {"type": "reasoning", "content": "Then"},
]


# -- requests --------------------------------------------------------------------------------------------------------


def test_a_request_is_read_whole() -> None:
    request = read_request(
        model="gpt-5",
        instructions="Be brief.",
        input="Weather?",
        tools=[
            {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True},
            {"type": "web_search", "size": "low"},
            {"type": "function"},
            {"type": "function", "name": "bare", "description": None},
        ],
        tool_choice={"type": "function", "name": "f"},
        max_output_tokens=100,
        reasoning={"effort": "low", "summary": "auto"},
        text={"format": {"type": "json_object"}, "verbosity": "low"},
        previous_response_id="resp_0",
        conversation={"id": "conv_1"},
        stream=True,
        store=False,
    )
    assert request == Request(
        operation=Operation.CHAT,
        model="gpt-5",
        instructions=({"type": "text", "content": "Be brief."},),
        messages=({"role": "user", "parts": [{"type": "text", "content": "Weather?"}]},),
        tools=(
            {
                "type": "function",
                "name": "f",
                "description": "d",
                "parameters": {"type": "object"},
                "provider_fields": {"strict": True},
            },
            {"type": "web_search", "size": "low"},
            {"type": "other", "value": {"type": "function"}},
            {"type": "function", "name": "bare", "provider_fields": {"description": None}},
        ),
        settings={
            "max_tokens": 100,
            "tool_choice": {"type": "function", "name": "f"},
            "previous_response_id": "resp_0",
            "conversation_id": "conv_1",
            "reasoning_effort": "low",
            "response_format": {"type": "json_object"},
        },
        stream=True,
        provider_fields={
            "$forms": {"conversation_id": "object", "input": "text"},
            "reasoning": {"summary": "auto"},
            "text": {"verbosity": "low"},
            "store": False,
        },
    )


def test_what_the_assistant_did_in_a_row_is_one_message() -> None:
    messages = read_input(
        {"role": "developer", "content": "Be brief."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
        THOUGHT,
        MESSAGE,
        CALL,
        {"type": "function_call_output", "call_id": "call_1", "output": "42"},
        {"role": "assistant", "content": "It is 42."},
        {"role": "user", "content": "Thanks."},
    )
    assert messages == (
        {
            "role": "system",
            "parts": [{"type": "text", "content": "Be brief."}],
            "provider_fields": {"role": "developer"},
        },
        {
            "role": "user",
            "parts": [{"type": "text", "content": "Weather?"}],
            "provider_fields": {"$form": "list", "type": "message"},
        },
        {"role": "assistant", "parts": [*THOUGHT_PARTS, MESSAGE_PART, CALL_PART]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_1", "response": "42"}]},
        {
            "role": "assistant",
            "parts": [
                {
                    "type": "text",
                    "content": "It is 42.",
                    "provider_fields": {"$item": {"$form": "text", "$absent": ["type"]}},
                }
            ],
        },
        {"role": "user", "parts": [{"type": "text", "content": "Thanks."}]},
    )


def test_an_answer_fed_back_is_the_same_message() -> None:
    """So that a session stores once what is said once."""
    (message,) = read_input(THOUGHT, MESSAGE, CALL)
    assert message["parts"] == read_output(THOUGHT, MESSAGE, CALL)


def test_content_that_is_no_text_is_read_by_what_it_is() -> None:
    content = [
        {"type": "input_image", "image_url": "https://a.test/b.png", "detail": "low"},
        {"type": "input_image", "image_url": "data:image/png;base64,QUJD"},
        {"type": "input_image", "file_id": "file-1"},
        {"type": "input_file", "file_data": "data:application/pdf;base64,QUJD", "filename": "a.pdf"},
        {"type": "input_file", "file_url": "https://a.test/b.pdf"},
        {"type": "input_file", "file_id": "file-2"},
        {"type": "input_file"},
        {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}},
        {"type": "input_audio", "input_audio": None},
        {"type": "refusal", "refusal": "No."},
        "odd",
    ]
    (message,) = read_input({"role": "user", "content": content})
    assert message["parts"] == [
        {"type": "uri", "modality": "image", "uri": "https://a.test/b.png", "provider_fields": {"detail": "low"}},
        {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "QUJD"},
        {"type": "file", "modality": "image", "file_id": "file-1"},
        {
            "type": "blob",
            "modality": "document",
            "mime_type": "application/pdf",
            "content": "QUJD",
            "provider_fields": {"filename": "a.pdf"},
        },
        {"type": "uri", "modality": "document", "uri": "https://a.test/b.pdf"},
        {"type": "file", "modality": "document", "file_id": "file-2"},
        {"type": "input_file"},
        {"type": "blob", "modality": "audio", "mime_type": "audio/wav", "content": "QUJD"},
        {"type": "input_audio", "input_audio": None},
        {"type": "refusal", "content": "No."},
        {"type": "other", "value": "odd"},
    ]


@pytest.mark.parametrize("content", ["", [], None, 7, [{"type": "input_text", "text": "x", "more": 1}]])
def test_odd_content_is_written_as_it_was(content: Any) -> None:
    read_input({"role": "user", "content": content})
    read_input({"role": "assistant", "content": content})


@pytest.mark.parametrize(
    ("item", "call", "output"),
    [
        (
            {"type": "custom_tool_call", "id": "c", "call_id": "call_1", "name": "shell", "input": "ls"},
            {"id": "call_1", "name": "shell", "arguments": "ls"},
            {"type": "custom_tool_call_output", "call_id": "call_1", "output": "a b"},
        ),
        (
            {"type": "computer_call", "id": "c", "call_id": "call_1", "actions": [{"type": "screenshot"}]},
            {"id": "call_1", "name": "computer", "arguments": {"actions": [{"type": "screenshot"}]}},
            {"type": "computer_call_output", "call_id": "call_1", "output": {"type": "computer_screenshot"}},
        ),
        (
            {"type": "local_shell_call", "id": "c", "call_id": "call_1", "action": {"command": ["ls"]}},
            {"id": "call_1", "name": "local_shell", "arguments": {"action": {"command": ["ls"]}}},
            {"type": "local_shell_call_output", "id": "call_1", "output": "a b"},
        ),
        (
            {"type": "apply_patch_call", "id": "c", "call_id": "call_1", "operation": {"type": "delete_file"}},
            {"id": "call_1", "name": "apply_patch", "arguments": {"operation": {"type": "delete_file"}}},
            {"type": "apply_patch_call_output", "call_id": "call_1", "output": None, "status": "failed"},
        ),
    ],
)
def test_every_tool_of_the_client_is_a_tool_call(
    item: dict[str, Any], call: dict[str, Any], output: dict[str, Any]
) -> None:
    assistant, tool = read_input(item, output)
    (part,) = assistant["parts"]
    assert {key: part[key] for key in ("id", "name", "arguments")} == call
    assert tool["role"] == "tool"
    assert tool["parts"][0]["id"] == "call_1"
    assert tool["parts"][0]["response"] == output["output"]


@pytest.mark.parametrize(
    ("item", "name", "result"),
    [
        ({"type": "web_search_call", "id": "ws", "action": {"type": "search"}}, "web_search", None),
        ({"type": "file_search_call", "id": "fs", "queries": ["x"], "results": None}, "file_search", None),
        ({"type": "file_search_call", "id": "fs", "results": [{"text": "y"}]}, "file_search", [{"text": "y"}]),
        ({"type": "code_interpreter_call", "id": "ci", "code": "1", "outputs": []}, "code_interpreter", []),
        ({"type": "image_generation_call", "id": "ig", "result": "QUJD"}, "image_generation", "QUJD"),
        ({"type": "mcp_call", "id": "m", "name": "add", "arguments": "{}", "output": "3"}, "add", "3"),
    ],
)
def test_every_tool_of_the_provider_is_a_server_tool_call(item: dict[str, Any], name: str, result: Any) -> None:
    call, *response = read_output(item)
    assert (call["type"], call["id"], call["name"]) == ("server_tool_call", item["id"], name)
    assert [list(part["server_tool_call_response"].values())[1] for part in response] == (
        [] if result is None else [result]
    )


def test_calls_and_results_are_read_however_they_stand() -> None:
    (part,) = read_output({**CALL, "arguments": '{"a": 1}'})
    assert part["arguments"] == {"a": 1}
    assert part["provider_fields"]["$arguments"] == "spaced"
    (part,) = read_output({"type": "function_call", "name": None})
    assert part["arguments"] is None
    (message,) = read_input({"type": "function_call_output", "output": ["a list"]})
    assert message["parts"] == [
        {"type": "tool_call_response", "response": ["a list"], "provider_fields": {"$absent": ["call_id"]}}
    ]
    odd = [
        {"type": "server_tool_call", "id": "m", "name": "add", "server_tool_call": {"type": "mcp_call"}},
        {"type": "server_tool_call_response", "id": "m", "server_tool_call_response": "no object"},
    ]
    answer = Answer(messages=({"role": "assistant", "parts": odd},))
    assert json.loads(openai_responses.write_response(answer))["output"] == [{"type": "mcp_call"}]


def test_other_items_are_kept_as_they_came() -> None:
    items: list[dict[str, Any]] = [
        {"type": "mcp_list_tools", "id": "l", "tools": []},
        {"type": "compaction", "encrypted_content": "x"},
    ]
    assert read_output(*items) == items
    assert read_output({"type": "text", "x": 1}, {"no": "type"}) == [
        {"type": "other", "value": {"type": "text", "x": 1}},
        {"type": "other", "value": {"no": "type"}},
    ]
    approval = {"type": "mcp_approval_response", "approve": True, "approval_request_id": "a"}
    assert read_input({"type": "item_reference", "id": "i"}, approval) == (
        {"role": "assistant", "parts": [{"type": "item_reference", "id": "i"}]},
        {"role": "user", "parts": [approval], "provider_fields": {"$form": "item"}},
    )


def test_a_reasoning_may_hold_texts_of_its_own_or_none() -> None:
    texts = [{"type": "reasoning_text", "text": "Hm", "x": 1}]
    (part,) = read_output({"type": "reasoning", "id": "r", "summary": [], "content": texts})
    assert part["content"] == "Hm"
    (part,) = read_output({"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "x"})
    assert part == {
        "type": "reasoning",
        "content": "",
        "provider_fields": {"$item": {"id": "r", "encrypted_content": "x"}},
    }
    (part,) = read_output({"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": ""}]})
    assert part["content"] == ""
    (part,) = read_output({"type": "reasoning", "id": "r", "summary": ["odd"]})
    assert part == {"type": "other", "value": {"type": "reasoning", "id": "r", "summary": ["odd"]}}


def test_messages_next_to_each_other_stay_apart() -> None:
    other = {
        **MESSAGE,
        "id": "msg_2",
        "content": [*MESSAGE["content"], {"type": "refusal", "refusal": "No."}, {"odd": 1}],
    }
    parts = read_output(MESSAGE, other)
    assert [part["type"] for part in parts] == ["text", "text", "refusal", "other"]
    empty = {"type": "message", "role": "assistant", "content": []}
    assert read_output(empty, MESSAGE)[0] == empty


def test_what_is_overridden_is_written_not_what_was_kept() -> None:
    request = read_request(input=None, stream=False, tools=[], instructions=None)
    changed = replace(
        request,
        stream=True,
        instructions=({"type": "text", "content": "Be"}, {"type": "text", "content": "brief."}),
        messages=({"role": "user", "parts": [{"type": "text", "content": "hello"}]},),
        tools=({"type": "function", "name": "f"},),
    )
    assert json.loads(openai_responses.write_request(changed)) == {
        "instructions": "Be\n\nbrief.",
        "input": [{"role": "user", "content": "hello"}],
        "tools": [{"type": "function", "name": "f"}],
        "stream": True,
    }
    text = read_request(input="one")
    more = ({"role": "user", "parts": [{"type": "text", "content": "x"}, {"type": "text", "content": "y"}]},)
    assert json.loads(openai_responses.write_request(replace(text, messages=more)))["input"] == [
        {"role": "user", "content": [{"type": "input_text", "text": "x"}, {"type": "input_text", "text": "y"}]}
    ]


def test_messages_of_another_protocol_are_written_in_this_ones_words() -> None:
    messages = (
        {
            "role": "user",
            "parts": [
                {"type": "tool_call_response", "id": "a", "response": None},
                {"type": "text", "content": "and"},
            ],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "b", "response": {"ok": True}}]},
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "Hm"},
                {"type": "text", "content": "One"},
                {"type": "server_tool_call", "id": "s", "name": "search", "server_tool_call": {"type": "theirs"}},
                {"type": "server_tool_call_response", "id": "s", "server_tool_call_response": {}},
                {"type": "server_tool_call_response", "id": "t", "server_tool_call_response": {}},
                {"type": "text", "content": "Two"},
                {"type": "tool_call", "id": "c", "name": "f", "arguments": {}},
            ],
        },
    )
    text = {"type": "output_text", "annotations": []}
    written = json.loads(openai_responses.write_request(Request(Operation.CHAT, None, messages)))
    assert written["input"] == [
        {"type": "function_call_output", "call_id": "a", "output": "null"},
        {"role": "user", "content": "and"},
        {"type": "function_call_output", "call_id": "b", "output": {"ok": True}},
        {"type": "reasoning", "id": "rs_0", "summary": [{"type": "summary_text", "text": "Hm"}]},
        {
            "type": "message",
            "role": "assistant",
            "id": "msg_1",
            "status": "completed",
            "content": [{**text, "text": "One"}],
        },
        {
            "type": "message",
            "role": "assistant",
            "id": "msg_2",
            "status": "completed",
            "content": [{**text, "text": "Two"}],
        },
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    ]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"[]", "openai_responses request is of type list, expected an object"),
        (b"{}", "openai_responses request: none of input, prompt, instructions, "),
        (b'{"input": 7}', "openai_responses request: input is of type int, expected text or a list"),
        (b'{"input": [7]}', "openai_responses request: input/0 is of type int, expected an object"),
    ],
)
def test_a_body_that_is_no_request_is_told_with_its_place(body: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        openai_responses.read_request(body, Operation.CHAT)


# -- answers ---------------------------------------------------------------------------------------------------------


def test_an_answer_is_read_whole() -> None:
    answer = read_body(
        id="resp_1",
        object="response",
        created_at=17,
        status="completed",
        error=None,
        incomplete_details=None,
        instructions=None,
        metadata={},
        model="gpt-5",
        output=[MESSAGE],
        parallel_tool_calls=True,
        temperature=1.0,
        tool_choice="auto",
        tools=[],
        top_p=None,
        usage={
            "input_tokens": 10,
            "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1},
            "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 3},
            "total_tokens": 15,
        },
        store=True,
    )
    assert answer == Answer(
        response_id="resp_1",
        model="gpt-5",
        messages=({"role": "assistant", "parts": [MESSAGE_PART], "finish_reason": "stop"},),
        usage=Usage(10, 5, 4, 1, 3),
        provider_fields={"created_at": 17, "temperature": 1.0, "store": True},
    )


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"status": "completed", "output": [MESSAGE]}, "stop"),
        ({"status": "completed", "output": [MESSAGE, CALL]}, "tool_call"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": []}, "length"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}, "output": []}, "content_filter"),
        ({"status": "incomplete", "incomplete_details": {"reason": "new"}, "output": []}, "new"),
        ({"status": "incomplete", "incomplete_details": None, "output": []}, None),
        ({"status": "failed", "error": {"code": "server_error", "message": "no"}, "output": []}, "error"),
        ({"status": "in_progress", "output": []}, None),
    ],
)
def test_finish_reasons_have_one_name_each(fields: dict[str, Any], reason: str | None) -> None:
    (message,) = read_body(**fields).messages
    assert message.get("finish_reason") == reason


def test_a_failed_response_is_an_error() -> None:
    answer = read_body(status="failed", output=[], error={"code": "rate_limit_exceeded", "message": "slow"})
    assert answer.error == Error(ErrorCategory.MODEL, "rate_limit_exceeded", "slow")


@pytest.mark.parametrize("output", [None, [7], "text"])
def test_an_output_of_another_form_is_kept(output: Any) -> None:
    answer = read_body(output=output)
    assert len(openai_responses.split(answer)) == 3
    assert answer.messages == ()
    put_in = replace(answer, messages=({"role": "assistant", "parts": [{"type": "text", "content": "Hi"}]},))
    assert json.loads(openai_responses.write_response(put_in))["output"][0]["content"][0]["text"] == "Hi"


def test_failures_are_read_and_written() -> None:
    body = b'{"error":{"message":"no","type":"invalid_request_error","param":"tools","code":null}}'
    answer = openai_responses.read_response(body, 400)
    assert answer.error == Error(ErrorCategory.MODEL, "invalid_request_error", "no")
    assert openai_responses.write_response(answer) == body
    assert openai_responses.split(answer) == [(0.0, body)]
    with pytest.raises(ValueError, match="openai_responses response is not JSON"):
        openai_responses.read_response(b"<html>", 200)


# -- streams ---------------------------------------------------------------------------------------------------------

PART = {"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []}
HERE = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "m",
    "output": [MESSAGE],
}
BEGUN = {**RESPONSE, "status": "in_progress", "output": []}
TEXT_EVENTS = [
    event("created", 0, response=BEGUN),
    event("output_item.added", 1, output_index=0, item={**MESSAGE, "status": "in_progress", "content": []}),
    event("content_part.added", 2, **HERE, part={**PART, "text": ""}),
    event("output_text.delta", 3, **HERE, delta="Hel", logprobs=[], obfuscation="x1"),
    event("output_text.delta", 4, **HERE, delta="lo", logprobs=[], obfuscation="y2"),
    event("output_text.done", 5, **HERE, text="Hello", logprobs=[]),
    event("content_part.done", 6, **HERE, part=PART),
    event("output_item.done", 7, output_index=0, item=MESSAGE),
]


def test_a_stream_is_joined_into_the_plain_answer() -> None:
    answer = join(*TEXT_EVENTS, event("completed", 8, response=RESPONSE))
    plain = openai_responses.read_response(json.dumps(RESPONSE).encode(), 200)
    assert replace(answer, streamed=False, chunks=()) == plain
    assert (answer.streamed, answer.complete) == (True, True)
    assert answer.chunks == (
        [5.0, "response.created", {"sequence_number": True, "response": {"status": "in_progress", "output": []}}],
        [
            5.0,
            "response.output_item.added",
            {"sequence_number": True, "output_index": 0, "item": {"status": "in_progress", "content": []}},
        ],
        [
            5.0,
            "response.content_part.added",
            {"sequence_number": True, "item_id": True, "output_index": 0, "content_index": 0, "part": {"text": ""}},
        ],
        [
            5.0,
            "response.output_text.delta",
            {
                "sequence_number": True,
                "item_id": True,
                "output_index": 0,
                "content_index": 0,
                "delta": 3,
                "logprobs": [],
                "obfuscation": "x1",
            },
        ],
        [5.0, "response.output_text.delta", {"delta": 2, "obfuscation": "y2"}],
        [
            5.0,
            "response.output_text.done",
            {
                "sequence_number": True,
                "item_id": True,
                "output_index": 0,
                "content_index": 0,
                "text": True,
                "logprobs": [],
            },
        ],
        [
            5.0,
            "response.content_part.done",
            {"sequence_number": True, "item_id": True, "output_index": 0, "content_index": 0, "part": {}},
        ],
        [5.0, "response.output_item.done", {"sequence_number": True, "output_index": 0, "item": {}}],
        [5.0, "response.completed", {"sequence_number": True, "response": {}}],
    )


@pytest.mark.parametrize(
    "last", [{**RESPONSE, "output": []}, {key: RESPONSE[key] for key in RESPONSE if key != "output"}]
)
def test_an_output_that_the_last_event_leaves_out_is_taken_from_the_others(last: dict[str, Any]) -> None:
    assert join(*TEXT_EVENTS, event("completed", 8, response=last)).messages[0]["parts"] == [MESSAGE_PART]


@pytest.mark.parametrize(("length", "text"), [(1, None), (2, None), (3, None), (4, "Hel"), (5, "Hello"), (8, "Hello")])
def test_a_stream_that_was_cut_off_holds_what_came(length: int, text: str | None) -> None:
    answer = join(*TEXT_EVENTS[:length])
    assert not answer.complete
    parts = [part for message in answer.messages for part in message["parts"] if part["type"] == "text"]
    assert [part["content"] for part in parts if part["content"]] == ([text] if text else [])


def test_every_text_that_comes_in_pieces_is_joined() -> None:
    items: list[dict[str, Any]] = [
        {**THOUGHT, "content": [{"type": "reasoning_text", "text": "Hm."}]},
        CALL,
        {"type": "custom_tool_call", "id": "ct", "call_id": "c2", "name": "shell", "input": "ls"},
        {"type": "mcp_call", "id": "mc", "name": "add", "arguments": "{}", "output": None},
        {"type": "code_interpreter_call", "id": "ci", "code": "1+1", "outputs": []},
        {**MESSAGE, "content": [{"type": "refusal", "refusal": "No."}]},
    ]
    events = [event("created", 0, response=BEGUN)]

    def send(kind: str, **fields: Any) -> None:
        events.append(event(kind, len(events), **fields))

    for index, item in enumerate(items):
        bare = {key: item[key] for key in ("id", "type", "name", "call_id", "encrypted_content", "role") if key in item}
        send("output_item.added", output_index=index, item=bare)
    for piece in ("Fir", "st"):
        send("reasoning_summary_text.delta", item_id="rs_1", output_index=0, summary_index=0, delta=piece)
    send("reasoning_summary_part.done", item_id="rs_1", output_index=0, summary_index=1, part=THOUGHT["summary"][1])
    send("reasoning_text.delta", item_id="rs_1", output_index=0, content_index=0, delta="Hm.")
    send("function_call_arguments.delta", item_id="fc_1", output_index=1, delta='{"a"')
    send("function_call_arguments.delta", item_id="fc_1", output_index=1, delta=":1}")
    send("custom_tool_call_input.delta", item_id="ct", output_index=2, delta="ls")
    send("mcp_call_arguments.delta", item_id="mc", output_index=3, delta="{}")
    send("code_interpreter_call_code.delta", item_id="ci", output_index=4, delta="1+")
    send("code_interpreter_call_code.done", item_id="ci", output_index=4, code="1+1")
    send("refusal.delta", item_id="msg_1", output_index=5, content_index=0, delta="No.")
    answer = join(*events)
    said = [(part["type"], part.get("content", part.get("arguments"))) for part in answer.messages[0]["parts"]]
    assert said == [
        ("reasoning", "First"),
        ("reasoning", "Then"),
        ("reasoning", "Hm."),
        ("tool_call", {"a": 1}),
        ("tool_call", "ls"),
        ("server_tool_call", None),
        ("server_tool_call", None),
        ("refusal", "No."),
    ]
    done = join(*events, event("completed", len(events), response={**RESPONSE, "output": items}))
    assert [part["type"] for part in done.messages[0]["parts"]][-1] == "refusal"


@pytest.mark.parametrize(
    "odd",
    [
        {"type": "response.brand_new", "delta": "x", "nested": {"a": [1]}},
        {"type": "response.output_text.delta", "output_index": 9, "content_index": 0, "delta": "x"},
        {"type": "response.output_text.delta", "output_index": -1, "content_index": 0, "delta": "x"},
        {"type": "response.output_text.delta", "output_index": 1, "content_index": -1, "delta": "x"},
        {"type": "response.output_text.delta", "output_index": 1, "content_index": 10**9, "delta": "x"},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": None, "delta": "x"},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": None},
        {"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": "something else"},
        {"type": "response.content_part.added", "output_index": 0, "content_index": None, "part": None},
        {"type": "response.output_item.added", "output_index": 0, "item": None},
        {"type": "response.in_progress", "response": None, "sequence_number": None},
        {"type": "response.output_text.annotation.added", **HERE, "annotation": {"type": "url_citation"}},
    ],
)
def test_odd_events_are_kept_and_hurt_nobody(odd: dict[str, Any]) -> None:
    answer = join(*TEXT_EVENTS, odd, event("completed", 9, response=RESPONSE))
    assert answer.messages[0]["parts"] == [MESSAGE_PART]


def test_what_is_no_event_of_the_protocol_is_kept_too() -> None:
    stream = b": ping\n\ndata: {}\n\ndata: [1]\n\nevent: x\ndata: {}\n\ndata: broken\n\n" + stream_of(*TEXT_EVENTS)
    answer = openai_responses.join([(0.0, stream)])
    assert b"".join(piece for _, piece in openai_responses.split(answer)).startswith(stream[:50])
    with pytest.raises(ValueError, match="holds no event"):
        openai_responses.join([])


@pytest.mark.parametrize(
    ("last", "error"),
    [
        (
            {"type": "error", "sequence_number": 8, "code": "server_error", "message": "no", "param": None},
            Error(ErrorCategory.MODEL, "server_error", "no"),
        ),
        (
            {"type": "error", "error": {"type": "overloaded", "message": "no"}},
            Error(ErrorCategory.MODEL, "overloaded", "no"),
        ),
        (
            event("failed", 8, response={**RESPONSE, "status": "failed", "error": {"code": "x", "message": "no"}}),
            Error(ErrorCategory.MODEL, "x", "no"),
        ),
    ],
)
def test_an_error_inside_a_stream_is_the_answers_error(last: dict[str, Any], error: Error) -> None:
    answer = join(*TEXT_EVENTS, last)
    assert (answer.error, answer.complete) == (error, True)


def test_a_text_that_was_redacted_since_is_split_as_it_is_now() -> None:
    answer = join(*TEXT_EVENTS, event("completed", 8, response=RESPONSE))
    for text in ("<name, of which there is a digest>", "H"):
        message = {**answer.messages[0], "parts": [{**MESSAGE_PART, "content": text}]}
        redacted = replace(answer, messages=(message,))
        stream = b"".join(piece for _, piece in openai_responses.split(redacted))
        assert b"Hello" not in stream
        again = openai_responses.join([(0.0, stream)])
        assert again.messages == redacted.messages
        assert len(again.chunks) == len(answer.chunks)


@pytest.mark.parametrize("chunks", [([1, "response.created", {}],), ([1],), (["x", "y", {}],), ([1, {"$event": 3}],)])
def test_chunks_that_do_not_add_up_to_the_answer_are_not_used(chunks: Any) -> None:
    message = {"role": "assistant", "parts": [MESSAGE_PART], "finish_reason": "stop"}
    answer = openai_responses.join(openai_responses.split(Answer(messages=(message,), chunks=chunks)))
    assert answer.messages == (message,)


def test_an_answer_without_chunks_is_cut_as_the_provider_would() -> None:
    citation = {"type": "url_citation", "url": "https://a.test"}
    cited = {
        **MESSAGE,
        "content": [{**PART, "annotations": [citation]}, {"type": "refusal", "refusal": "No."}, {"odd": 1}],
    }
    search = {"type": "web_search_call", "id": "ws", "status": "completed"}
    thought = {**THOUGHT, "content": [{"type": "reasoning_text", "text": "Hm"}]}
    body = {**RESPONSE, "output": [thought, search, cited, CALL, {"type": "compaction", "id": "x"}], "usage": None}
    answer = read_body(**body)
    events = events_of(b"".join(piece for _, piece in openai_responses.split(answer)))
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["type"].removeprefix("response.") for event in events] == [
        "created",
        "in_progress",
        "output_item.added",
        *["reasoning_summary_part.added", "reasoning_summary_text.delta"],
        *["reasoning_summary_text.done", "reasoning_summary_part.done"],
        *["reasoning_summary_part.added", "reasoning_summary_text.delta"],
        *["reasoning_summary_text.done", "reasoning_summary_part.done"],
        *["content_part.added", "reasoning_text.delta", "reasoning_text.done", "content_part.done"],
        "output_item.done",
        "output_item.added",
        *["web_search_call.in_progress", "web_search_call.searching", "web_search_call.completed"],
        "output_item.done",
        "output_item.added",
        *["content_part.added", "output_text.delta", "output_text.annotation.added"],
        *["output_text.done", "content_part.done"],
        *["content_part.added", "refusal.delta", "refusal.done", "content_part.done"],
        "output_item.done",
        "output_item.added",
        *["function_call_arguments.delta", "function_call_arguments.done"],
        "output_item.done",
        "output_item.added",
        "output_item.done",
        "completed",
    ]
    assert openai_responses.join(openai_responses.split(answer)).messages == answer.messages


def test_a_text_whose_item_no_event_began_is_a_message() -> None:
    events = [
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "Hm."},
        {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "Hel"},
        {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "lo."},
        {"type": "response.completed", "response": {"id": "r", "object": "response", "model": "m"}},
    ]
    stream = b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events)
    answer = openai_responses.join([(0.0, stream)])
    parts = [(part["type"], part["content"]) for part in answer.messages[0]["parts"]]
    assert parts == [("reasoning", "Hm."), ("text", "Hello.")]
    assert events_of(b"".join(piece for _, piece in openai_responses.split(answer))) == events


@pytest.mark.parametrize("status", ["incomplete", "failed", "cancelled"])
def test_the_last_event_says_how_it_ended(status: str) -> None:
    answer = read_body(status=status, output=[], incomplete_details={"reason": "max_output_tokens"})
    assert events_of(openai_responses.split(answer)[-1][1])[0]["type"] == f"response.{status}"


def test_pieces_that_do_not_say_of_which_item_they_are_belong_to_the_only_one() -> None:
    answer = join(
        {"type": "response.created", "response": {"id": "r", "model": "m", "status": "in_progress"}},
        {"type": "response.output_text.delta", "delta": "hel"},
        {"type": "response.output_text.delta", "delta": "lo"},
        {"type": "response.completed", "response": {"id": "r", "model": "m", "status": "completed", "output": None}},
    )
    assert answer.messages[0]["parts"][0]["content"] == "hello"
