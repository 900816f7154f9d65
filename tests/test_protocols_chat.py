"""OpenAI chat completions: what each form of request, answer and stream is in canonical form, and back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from exchange_cases import events_of
from spanreel.model import Answer, Error, ErrorCategory, Operation, Request, Usage
from spanreel.protocols import as_asked, openai_chat


def read_request(**body: Any) -> Request:
    """Read a request, and check that it is written as it was."""
    request = openai_chat.read_request(json.dumps(body).encode(), Operation.CHAT)
    assert json.loads(openai_chat.write_request(request)) == body
    return request


def read_message(message: dict[str, Any]) -> dict[str, Any]:
    """Read one message of a request."""
    return read_request(messages=[message]).messages[0]


def read_answer(message: dict[str, Any], **choice: Any) -> dict[str, Any]:
    """Read the only message of an answer, and check that it is written as it was."""
    body: dict[str, Any] = {"id": "c", "object": "chat.completion", "created": 0, "model": "m"}
    body["choices"] = [{"index": 0, **choice}]
    body["choices"][0] |= {"message": message, "logprobs": None}
    body["choices"][0].setdefault("finish_reason", "stop")
    answer = openai_chat.read_response(json.dumps(body).encode(), 200)
    assert json.loads(openai_chat.write_response(answer)) == body
    return answer.messages[0]


def stream_of(*chunks: Any, done: bool = True) -> bytes:
    """The bytes of a stream."""
    data = [json.dumps(chunk) for chunk in chunks] + (["[DONE]"] if done else [])
    return "".join(f"data: {text}\n\n" for text in data).encode()


def join(*chunks: Any, done: bool = True) -> Answer:
    """Join a stream, and check that it is split as it was."""
    stream = stream_of(*chunks, done=done)
    answer = openai_chat.join([(5.0, stream)])
    again = openai_chat.split(answer)
    assert events_of(b"".join(piece for _, piece in again)) == events_of(stream)
    assert openai_chat.join(again) == answer
    return answer


def delta(index: int = 0, finish_reason: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chunk with one choice."""
    return {"id": "c", "choices": [{"index": index, "delta": fields, "finish_reason": finish_reason}]}


# -- requests --------------------------------------------------------------------------------------------------------


def test_a_request_is_read_whole() -> None:
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
    function = {"name": "get_weather", "description": "The weather.", "parameters": parameters, "strict": True}
    request = read_request(
        model="gpt-4o",
        messages=[
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": "Weather?", "name": "ann"},
        ],
        tools=[{"type": "function", "function": function}, {"type": "custom", "custom": {"name": "shell"}}],
        tool_choice="auto",
        temperature=0.5,
        max_completion_tokens=100,
        stop="END",
        n=2,
        response_format={"type": "json_object"},
        stream=True,
        stream_options={"include_usage": True},
        prompt_cache_key="k",
    )
    assert request == Request(
        operation=Operation.CHAT,
        model="gpt-4o",
        messages=(
            {
                "role": "system",
                "parts": [{"type": "text", "content": "Be brief."}],
                "provider_fields": {"role": "developer"},
            },
            {"role": "user", "parts": [{"type": "text", "content": "Weather?"}], "name": "ann"},
        ),
        tools=(
            {
                "type": "function",
                "name": "get_weather",
                "description": "The weather.",
                "parameters": parameters,
                "provider_fields": {"function": {"strict": True}},
            },
            {"type": "custom", "custom": {"name": "shell"}},
        ),
        settings={
            "temperature": 0.5,
            "max_tokens": 100,
            "stop_sequences": ["END"],
            "choice_count": 2,
            "tool_choice": "auto",
            "response_format": {"type": "json_object"},
        },
        stream=True,
        provider_fields={
            "$forms": {"max_tokens": "max_completion_tokens", "stop_sequences": "text"},
            "stream_options": {"include_usage": True},
            "prompt_cache_key": "k",
        },
    )


def test_content_that_is_no_text_is_read_by_what_it_is() -> None:
    content = [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": "https://a.test/b.png", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
        {"type": "image_url", "image_url": {"url": "data:image/svg+xml,<svg/>"}},
        {"type": "video_url", "video_url": {"url": "https://a.test/b.mp4"}},
        {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "mp3"}},
        {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}},
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,QUJD", "filename": "a.pdf"}},
        {"type": "refusal", "refusal": "No."},
        {"type": "file", "file": {"file_data": "no data URL"}},
        {"type": "file", "file": {}},
        {"type": "something_new", "something_new": 1},
        {"type": "text", "text": None},
        "odd",
    ]
    assert read_message({"role": "user", "content": content})["parts"] == [
        {"type": "text", "content": "Look:"},
        {
            "type": "uri",
            "modality": "image",
            "uri": "https://a.test/b.png",
            "provider_fields": {"image_url": {"detail": "low"}},
        },
        {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "QUJD"},
        {"type": "uri", "modality": "image", "uri": "data:image/svg+xml,<svg/>"},
        {"type": "uri", "modality": "video", "uri": "https://a.test/b.mp4"},
        {"type": "blob", "modality": "audio", "mime_type": "audio/mpeg", "content": "QUJD"},
        {"type": "blob", "modality": "audio", "mime_type": "audio/wav", "content": "QUJD"},
        {"type": "file", "modality": "document", "file_id": "file-1"},
        {
            "type": "blob",
            "modality": "document",
            "mime_type": "application/pdf",
            "content": "QUJD",
            "provider_fields": {"file": {"filename": "a.pdf"}},
        },
        {"type": "refusal", "content": "No.", "provider_fields": {"$form": "content"}},
        {"type": "other", "value": {"type": "file", "file": {"file_data": "no data URL"}}},
        {"type": "other", "value": {"type": "file", "file": {}}},
        {"type": "something_new", "something_new": 1},
        {"type": "other", "value": {"type": "text", "text": None}},
        {"type": "other", "value": "odd"},
    ]


@pytest.mark.parametrize(
    ("content", "parts", "kept"),
    [
        ("hello", [{"type": "text", "content": "hello"}], {}),
        ([{"type": "text", "text": "hello"}], [{"type": "text", "content": "hello"}], {"$form": "list"}),
        ("", [], {"content": ""}),
        ([], [], {"content": []}),
        (None, [], {}),
        (7, [], {"content": 7}),
    ],
)
def test_the_form_of_content_is_remembered_not_its_text(content: Any, parts: list[Any], kept: dict[str, Any]) -> None:
    message = read_message({"role": "user", "content": content})
    assert message["parts"] == parts
    assert message.get("provider_fields", {}) == kept


def test_tool_calls_and_their_results_are_parts() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    request = read_request(
        messages=[
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "42"},
            {"role": "tool", "tool_call_id": "call_1", "name": "f", "content": [{"type": "text", "text": "42"}]},
        ]
    )
    assert request.messages == (
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "call_1", "name": "f", "arguments": {"a": 1}}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_1", "response": "42"}]},
        {
            "role": "tool",
            "name": "f",
            "parts": [{"type": "tool_call_response", "id": "call_1", "response": [{"type": "text", "text": "42"}]}],
        },
    )


@pytest.mark.parametrize(
    ("text", "arguments", "kept"),
    [
        ('{"a":1,"b":[1,2]}', {"a": 1, "b": [1, 2]}, None),
        ('{"a": 1, "b": [1, 2]}', {"a": 1, "b": [1, 2]}, "spaced"),
        ('{\n  "a": 1\n}', {"a": 1}, '{\n  "a": 1\n}'),
        ('{"a":1', '{"a":1', None),
        ("", "", None),
        ('"text"', '"text"', None),
        ("NaN", "NaN", None),
        ("null", None, None),
    ],
)
def test_arguments_are_parsed_and_written_as_they_stood(text: str, arguments: Any, kept: str | None) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": text}}
    (part,) = read_message({"role": "assistant", "content": None, "tool_calls": [call]})["parts"]
    assert part["arguments"] == arguments
    assert part.get("provider_fields", {}).get("$arguments") == kept


def test_arguments_that_were_changed_are_written_as_they_are_now() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{\n"a": 1}'}}
    message = read_message({"role": "assistant", "content": None, "tool_calls": [call]})
    for changed in ({"a": 2}, {"a": True}):
        message["parts"][0]["arguments"] = changed
        written = json.loads(openai_chat.write_request(Request(Operation.CHAT, None, (message,))))
        assert json.loads(written["messages"][0]["tool_calls"][0]["function"]["arguments"]) == changed
    message["parts"][0]["provider_fields"]["$arguments"] = "no JSON"
    written = json.loads(openai_chat.write_request(Request(Operation.CHAT, None, (message,))))
    assert written["messages"][0]["tool_calls"][0]["function"]["arguments"] == '{"a":true}'


def test_the_legacy_function_api_is_read_like_tools() -> None:
    request = read_request(
        messages=[
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "42"},
        ],
        functions=[{"name": "f", "parameters": {"type": "object"}}],
        function_call="auto",
    )
    form = {"provider_fields": {"$form": "function_call"}}
    assert request.messages == (
        {"role": "assistant", "parts": [{"type": "tool_call", "name": "f", "arguments": {}, **form}]},
        {
            "role": "tool",
            "name": "f",
            "parts": [{"type": "tool_call_response", "response": "42"}],
            "provider_fields": {"role": "function"},
        },
    )
    assert request.tools[0]["name"] == "f"
    assert request.provider_fields == {"function_call": "auto"}


def test_custom_tools_take_text() -> None:
    call = {"id": "c", "type": "custom", "custom": {"name": "shell", "input": '{"not": "parsed"}'}}
    (part,) = read_message({"role": "assistant", "content": None, "tool_calls": [call]})["parts"]
    assert part == {
        "type": "tool_call",
        "id": "c",
        "name": "shell",
        "arguments": '{"not": "parsed"}',
        "provider_fields": {"type": "custom"},
    }


def test_tools_of_no_known_form_are_kept_as_they_came() -> None:
    tools = [{"type": "function", "name": "flat"}, {"type": "web_search", "size": "low"}, {"no": "type"}, "odd"]
    assert read_request(messages=[], tools=tools).tools == (
        {"type": "other", "value": {"type": "function", "name": "flat"}},
        {"type": "web_search", "size": "low"},
        {"type": "other", "value": {"no": "type"}},
        {"type": "other", "value": "odd"},
    )


def test_unknown_fields_are_kept_where_they_stood() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}", "x": 1}, "y": 2}
    text = {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}
    request = read_request(messages=[{"role": "assistant", "content": [text], "tool_calls": [call], "z": 3}], w=4)
    (message,) = request.messages
    assert message["parts"][0]["provider_fields"] == {"cache_control": {"type": "ephemeral"}}
    assert message["parts"][1]["provider_fields"] == {"function": {"x": 1}, "y": 2}
    assert message["provider_fields"] == {"$form": "list", "z": 3}
    assert request.provider_fields == {"w": 4}


def test_what_is_overridden_is_written_not_what_was_kept() -> None:
    request = read_request(messages=[{"role": "user", "content": ""}], stream=False, tools=[], stop="a")
    changed = replace(
        request,
        stream=True,
        tools=({"type": "function", "name": "f"},),
        messages=({**request.messages[0], "parts": [{"type": "text", "content": "hello"}]},),
        settings={"stop_sequences": ["b", "c"]},
    )
    assert json.loads(openai_chat.write_request(changed)) == {
        "messages": [{"role": "user", "content": "hello"}],
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "stop": ["b", "c"],
        "stream": True,
    }


def test_a_request_of_another_protocol_is_written_in_this_ones_words() -> None:
    request = Request(
        Operation.CHAT,
        "m",
        instructions=({"type": "text", "content": "Be brief."},),
        messages=(
            {
                "role": "user",
                "parts": [
                    {"type": "tool_call_response", "id": "a", "response": {"ok": True}},
                    {"type": "tool_call_response", "id": "b", "response": "fine"},
                    {"type": "text", "content": "one"},
                    {"type": "text", "content": "two"},
                ],
            },
            {
                "role": "assistant",
                "parts": [{"type": "reasoning", "content": "Hm"}, {"type": "reasoning", "content": "."}],
            },
            {"role": "user", "parts": [{"type": "uri", "modality": "document", "uri": "https://a.test/b.pdf"}]},
        ),
    )
    assert json.loads(openai_chat.write_request(request))["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "tool", "tool_call_id": "a", "content": '{"ok":true}'},
        {"role": "tool", "tool_call_id": "b", "content": "fine"},
        {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
        {"role": "assistant", "content": None, "reasoning_content": "Hm."},
        {"role": "user", "content": [{"type": "file", "file": {"file_data": "https://a.test/b.pdf"}}]},
    ]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"[]", "openai_chat request is of type list, expected an object"),
        (b"{}", "openai_chat request: messages is of type NoneType, expected a list"),
        (b'{"messages": ["hello"]}', "openai_chat request: messages/0 is of type str, expected an object"),
        (b"{", "openai_chat request is not JSON: "),
        (b"\xff", "openai_chat request is not JSON: "),
    ],
)
def test_a_body_that_is_no_request_is_told_with_its_place(body: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        openai_chat.read_request(body, Operation.CHAT)


# -- answers ---------------------------------------------------------------------------------------------------------


def test_an_answer_is_read_whole() -> None:
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 17,
        "model": "gpt-4o-2024",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hi.", "refusal": None, "annotations": []},
                "logprobs": {"content": [{"token": "Hi."}]},
                "finish_reason": "stop",
            },
            {
                "index": 1,
                "message": {"role": "assistant", "content": "Ho."},
                "logprobs": None,
                "finish_reason": "length",
            },
        ],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "total_tokens": 15,
            "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 3},
        },
        "system_fingerprint": "fp",
    }
    answer = openai_chat.read_response(json.dumps(body).encode(), 200)
    assert answer == Answer(
        response_id="chatcmpl-1",
        model="gpt-4o-2024",
        messages=(
            {
                "role": "assistant",
                "parts": [{"type": "text", "content": "Hi."}],
                "finish_reason": "stop",
                "provider_fields": {
                    "refusal": None,
                    "annotations": [],
                    "$choice": {"logprobs": {"content": [{"token": "Hi."}]}},
                },
            },
            {"role": "assistant", "parts": [{"type": "text", "content": "Ho."}], "finish_reason": "length"},
        ),
        usage=Usage(10, 5, cache_read_tokens=4, reasoning_tokens=3),
        provider_fields={
            "created": 17,
            "usage": {"prompt_tokens_details": {"audio_tokens": 0}},
            "system_fingerprint": "fp",
        },
    )
    assert json.loads(openai_chat.write_response(answer)) == body


@pytest.mark.parametrize(
    ("message", "parts"),
    [
        (
            {"role": "assistant", "content": "4", "reasoning_content": "2+2"},
            [{"type": "reasoning", "content": "2+2"}, {"type": "text", "content": "4"}],
        ),
        (
            {"role": "assistant", "content": "4", "reasoning": "2+2"},
            [
                {"type": "reasoning", "content": "2+2", "provider_fields": {"$field": "reasoning"}},
                {"type": "text", "content": "4"},
            ],
        ),
        ({"role": "assistant", "content": None, "refusal": "No."}, [{"type": "refusal", "content": "No."}]),
        (
            {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            [{"type": "text", "content": "a"}, {"type": "text", "content": "b"}],
        ),
        (
            {"role": "assistant", "content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": "b"}]},
            [{"type": "thinking", "thinking": []}, {"type": "text", "content": "b"}],
        ),
        ({}, []),
    ],
)
def test_what_a_model_may_say_is_parts(message: dict[str, Any], parts: list[Any]) -> None:
    assert read_answer(message)["parts"] == parts


@pytest.mark.parametrize(
    ("raw", "canonical"),
    [
        ("stop", "stop"),
        ("STOP", "stop"),
        ("tool_calls", "tool_call"),
        ("function_call", "tool_call"),
        ("content_filter", "content_filter"),
        ("length", "length"),
        ("end_turn", "stop"),
        ("brand_new", "brand_new"),
        ("", None),
        (None, None),
    ],
)
def test_finish_reasons_have_one_name_each(raw: str | None, canonical: str | None) -> None:
    assert read_answer({"role": "assistant", "content": "x"}, finish_reason=raw).get("finish_reason") == canonical


def test_a_choice_without_a_message_is_an_empty_message() -> None:
    body = {"choices": [{"index": 0, "finish_reason": "content_filter", "content_filter_results": {"hate": {}}}]}
    answer = openai_chat.read_response(json.dumps(body).encode(), 200)
    assert [(message["parts"], message["finish_reason"]) for message in answer.messages] == [([], "content_filter")]
    assert json.loads(openai_chat.write_response(answer)) == body
    assert events_of(openai_chat.split(answer)[0][1])[0]["choices"][0]["finish_reason"] == "content_filter"
    answer.messages[0]["parts"].append({"type": "text", "content": "since put in"})
    assert json.loads(openai_chat.write_response(answer))["choices"][0]["message"]["content"] == "since put in"


@pytest.mark.parametrize(
    "choices", [None, [None], "x", [{"message": {"tool_calls": [None]}}], [{"message": {"tool_calls": ["x"]}}]]
)
def test_choices_of_another_form_are_kept_and_can_be_streamed(choices: Any) -> None:
    answer = openai_chat.read_response(json.dumps({"choices": choices}).encode(), 200)
    assert json.loads(openai_chat.write_response(answer)) == {"choices": choices}
    assert openai_chat.split(answer)[-1][1] == b"data: [DONE]\n\n"


def test_a_reason_that_was_changed_is_written_as_it_is_now() -> None:
    body = {"choices": [{"message": {"content": "x"}, "finish_reason": "STOP"}]}
    (message,) = openai_chat.read_response(json.dumps(body).encode(), 200).messages
    written = json.loads(openai_chat.write_response(Answer(messages=({**message, "finish_reason": "length"},))))
    assert written["choices"][0]["finish_reason"] == "length"


def test_an_answer_with_nothing_but_its_text_is_made_up_for_the_sdk() -> None:
    answer = Answer(
        messages=({"role": "assistant", "parts": [{"type": "text", "content": "Hi"}]},), usage=Usage(1, 2, 1, 0)
    )
    assert json.loads(openai_chat.write_response(answer)) == {
        "id": "spanreel-replayed",
        "object": "chat.completion",
        "created": 0,
        "model": "unknown",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hi"},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 1,
            "completion_tokens": 2,
            "total_tokens": 3,
            "prompt_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 0},
        },
    }


def test_parts_of_another_protocol_are_said_as_far_as_this_one_can() -> None:
    parts = [
        {"type": "server_tool_call", "id": "s", "name": "search", "server_tool_call": {}},
        {"type": "server_tool_call_response", "id": "s", "server_tool_call_response": {}},
        {"type": "text", "content": "One."},
        {"type": "text", "content": " Two.", "provider_fields": {"annotations": []}},
        {"type": "tool_call", "id": "c", "name": "f", "arguments": {}},
    ]
    body = json.loads(openai_chat.write_response(Answer(messages=({"role": "assistant", "parts": parts},))))
    assert body["choices"][0]["message"] == {
        "role": "assistant",
        "content": "One. Two.",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    }
    assert body["choices"][0]["finish_reason"] == "tool_calls"


def test_usage_that_a_stream_did_not_ask_for_is_not_written() -> None:
    body = {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 4}}
    answer = openai_chat.read_response(json.dumps(body).encode(), 200)
    asked = as_asked(openai_chat, Request(Operation.CHAT, "m", stream=True), answer)
    assert "usage" not in json.loads(openai_chat.write_response(asked))


@pytest.mark.parametrize("usage", [{}, {"total": 3}, {"prompt_tokens": "3"}, 3, "none"])
def test_usage_that_counts_nothing_we_know_is_no_usage_and_is_kept(usage: Any) -> None:
    body = {"id": "i", "model": "m", "object": "chat.completion", "created": 1, "choices": [], "usage": usage}
    answer = openai_chat.read_response(json.dumps(body).encode(), 200)
    assert answer.usage is None
    assert json.loads(openai_chat.write_response(answer)) == body


def test_a_list_of_calls_after_something_else_in_its_place_is_joined() -> None:
    deltas = [{"tool_calls": {"a": 1}}, {"tool_calls": [None]}, {"tool_calls": [{"index": 0, "id": "c"}]}]
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    stream = b"".join(b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in chunks)
    answer = openai_chat.join([(0.0, stream)])
    assert events_of(b"".join(piece for _, piece in openai_chat.split(answer))) == chunks


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (
            429,
            b'{"error":{"message":"slow down","type":"requests","param":null,"code":"rate_limit_exceeded"}}',
            Error(ErrorCategory.MODEL, "requests", "slow down"),
        ),
        (400, b'{"error":{"message":"no","code":1210}}', Error(ErrorCategory.MODEL, "1210", "no")),
        (404, b'{"error":"not found"}', Error(ErrorCategory.MODEL, "404", "not found")),
        (404, b'{"detail":"Not Found"}', Error(ErrorCategory.MODEL, "404", "Not Found")),
        (400, b'[{"error":{"message":"bad","status":"INVALID"}}]', Error(ErrorCategory.MODEL, "INVALID", "bad")),
        (504, b"<html>timeout</html>", Error(ErrorCategory.TIMEOUT, "504", "<html>timeout</html>")),
        (500, b"", Error(ErrorCategory.MODEL, "500", None)),
        (502, b"\xff\xfe", Error(ErrorCategory.MODEL, "502", "\ufffd\ufffd")),
        (500, b"{}", Error(ErrorCategory.MODEL, "500", None)),
    ],
)
def test_a_failure_is_read_whatever_its_body_and_written_again(status: int, body: bytes, error: Error) -> None:
    answer = openai_chat.read_response(body, status)
    assert (answer.status, answer.error, answer.messages) == (status, error, ())
    written = openai_chat.write_response(answer)
    assert written == body or json.loads(written) == json.loads(body)
    assert openai_chat.split(answer) == [(0.0, written)]


def test_a_failure_that_was_never_a_body_is_written_as_one() -> None:
    assert json.loads(openai_chat.write_response(Answer(status=503))) == {
        "error": {"message": None, "type": "503", "param": None, "code": None}
    }


def test_a_gateway_may_fail_with_status_200() -> None:
    body = {"error": {"message": "upstream is down", "code": 502}, "user_id": "u"}
    answer = openai_chat.read_response(json.dumps(body).encode(), 200)
    assert answer.error == Error(ErrorCategory.MODEL, "502", "upstream is down")
    assert json.loads(openai_chat.write_response(answer)) == body


def test_an_answer_that_is_no_json_object_is_told() -> None:
    with pytest.raises(ValueError, match="openai_chat response is not JSON"):
        openai_chat.read_response(b"<html>", 200)


# -- streams ---------------------------------------------------------------------------------------------------------


def test_a_stream_is_joined_into_the_plain_answer() -> None:
    answer = join(
        delta(role="assistant", content="", refusal=None),
        delta(content="Hel"),
        delta(content="lo"),
        delta(finish_reason="stop"),
        {"id": "c", "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}},
    )
    assert answer.messages == (
        {
            "role": "assistant",
            "parts": [{"type": "text", "content": "Hello"}],
            "finish_reason": "stop",
            "provider_fields": {"refusal": None},
        },
    )
    assert (answer.streamed, answer.complete, answer.usage) == (True, True, Usage(1, 2))
    assert answer.chunks == (
        [
            5.0,
            {
                "id": "c",
                "choices": [
                    {"finish_reason": None, "delta": {"role": "assistant", "content": 0, "refusal": None}, "index": 0}
                ],
            },
        ],
        [5.0, {"choices": [{"delta": {"content": 3}, "index": 0}]}],
        [5.0, {"choices": [{"delta": {"content": 2}, "index": 0}]}],
        [5.0, {"choices": [{"finish_reason": "stop", "delta": {}, "index": 0}]}],
        [5.0, {"usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}, "choices": []}],
        [5.0, {"$event": {"data": "[DONE]"}}],
    )


def test_parallel_tool_calls_are_joined_by_index_or_by_id() -> None:
    calls = [
        {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}},
        {"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": '{"x"'}},
        {"index": 0, "function": {"arguments": "{}"}},
        {"index": 1, "function": {"arguments": ": 1}", "name": "g"}},
    ]
    parts = [
        {"type": "tool_call", "id": "a", "name": "f", "arguments": {}},
        {
            "type": "tool_call",
            "id": "b",
            "name": "g",
            "arguments": {"x": 1},
            "provider_fields": {"$arguments": "spaced"},
        },
    ]
    answer = join(*(delta(tool_calls=[call]) for call in calls), delta(finish_reason="tool_calls"))
    assert answer.messages[0]["parts"] == parts
    without_index = [
        {key: value for key, value in calls[position].items() if key != "index"} for position in (0, 2, 1, 3)
    ]
    answer = join(*(delta(tool_calls=[call]) for call in without_index), delta(finish_reason="tool_calls"))
    assert answer.messages[0]["parts"] == parts


def test_calls_that_are_all_numbered_0_are_told_by_their_ids() -> None:
    calls = [
        {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"x":1}'}},
        {"index": 0, "id": "b", "type": "function", "function": {"name": "g", "arguments": '{"y"'}},
        {"index": 0, "id": "b", "function": {"arguments": ":2}"}},
    ]
    answer = join(*(delta(tool_calls=[call]) for call in calls), delta(finish_reason="tool_calls"))
    assert answer.messages[0]["parts"] == [
        {"type": "tool_call", "id": "a", "name": "f", "arguments": {"x": 1}},
        {"type": "tool_call", "id": "b", "name": "g", "arguments": {"y": 2}},
    ]


# huggingface/smolagents#1958, BerriAI/litellm#33678: whole calls, one after the other, all numbered 0 or not at all.
@pytest.mark.parametrize("beside", [{"index": 0}, {}, {"index": 0, "id": ""}, {"id": None}])
@pytest.mark.parametrize("names", ["ffg", "fgf"])
def test_calls_without_ids_are_told_by_their_arguments(beside: dict[str, Any], names: str) -> None:
    pieces: list[tuple[str | None, Any]] = [
        (names[0], '{"x":1}'),
        (names[1], '{"x"'),
        (names[1], ":2}"),  # some repeat the name with every piece
        (None, ""),
        (names[2], ""),
        (names[2], '{"x":3}'),
        (names[2], ""),
    ]
    calls = [{**beside, "function": {"name": name, "arguments": piece}} for name, piece in pieces]
    answer = join(*(delta(tool_calls=[call]) for call in calls), delta(finish_reason="tool_calls"))
    told = [(part["name"], part["arguments"]) for part in answer.messages[0]["parts"]]
    assert told == [(name, {"x": number}) for number, name in enumerate(names, 1)]


def test_an_id_that_is_another_for_each_piece_begins_no_call() -> None:
    calls = [
        {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}},
        {"index": 0, "id": "b", "function": {"name": None, "arguments": '{"x"'}},
        {"index": 0, "id": "c", "function": {"arguments": ":1}"}},
    ]
    answer = join(*(delta(tool_calls=[call]) for call in calls), delta(finish_reason="tool_calls"))
    assert [(part["name"], part["arguments"]) for part in answer.messages[0]["parts"]] == [("f", {"x": 1})]


def test_all_that_comes_in_pieces_is_joined() -> None:
    answer = join(
        delta(
            role="assistant", reasoning_content="Let ", reasoning_details=[{"type": "text", "text": "Let ", "index": 0}]
        ),
        delta(reasoning_content="me.", reasoning_details=[{"type": "text", "text": "me.", "index": 0}]),
        delta(content="A"),
        delta(content="B", annotations=[{"n": 1}], token_id=7),
        delta(annotations=[{"n": 2}], token_id=8, extra={"x": "1", "y": [1]}),
        delta(extra={"x": "2", "y": [2], "z": None}, audio={"id": "au", "data": "QU", "transcript": "A"}),
        delta(audio={"id": "au", "data": "JD", "expires_at": 9}, function_call={"name": "f", "arguments": "{"}),
        delta(function_call={"arguments": "}"}),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "text": "AB", "logprobs": {"content": [1]}}]},
        {"choices": [{"index": 0, "delta": {}, "text": "C", "logprobs": {"content": [2, 3], "refusal": None}}]},
        {"choices": [{"index": 0, "delta": {}, "logprobs": {"content": None, "refusal": [4]}}]},
    )
    (message,) = answer.messages
    assert message["parts"] == [
        {"type": "reasoning", "content": "Let me."},
        {"type": "text", "content": "AB"},
        {"type": "tool_call", "name": "f", "arguments": {}, "provider_fields": {"$form": "function_call"}},
    ]
    assert message["provider_fields"] == {
        "reasoning_details": [{"type": "text", "text": "Let me."}],
        "annotations": [{"n": 1}, {"n": 2}],
        "token_id": 8,
        "extra": {"x": "12", "y": [1, 2], "z": None},
        "audio": {"id": "au", "data": "QUJD", "transcript": "A", "expires_at": 9},
        "$choice": {"text": "ABC", "logprobs": {"content": [1, 2, 3], "refusal": [4]}},
    }


def test_content_may_come_as_lists() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}
    thought = {"type": "reasoning", "content": "Hm", "provider_fields": {"$form": "content"}}
    answer = join(delta(content=""), delta(content=[thinking]), delta(content="Yes"), delta(content=""))
    assert answer.messages[0]["parts"] == [thought, {"type": "text", "content": "Yes"}]
    answer = join(delta(content="Yes"), delta(content=[thinking]))
    assert answer.messages[0]["parts"] == [{"type": "text", "content": "Yes"}, thought]


@pytest.mark.parametrize("thought", ["Hm", [{"type": "text", "text": "H"}, {"type": "text", "text": "m"}]])
def test_thoughts_in_content_are_reasoning(thought: Any) -> None:
    message = {"role": "assistant", "content": [{"type": "thinking", "thinking": thought, "closed": True}]}
    body = {"model": "m", "messages": [message]}
    request = openai_chat.read_request(json.dumps(body).encode(), Operation.CHAT)
    (part,) = request.messages[0]["parts"]
    assert (part["type"], part["content"]) == ("reasoning", "Hm")
    assert json.loads(openai_chat.write_request(request)) == body


@pytest.mark.parametrize("thought", [[], [{"type": "reference"}], [{"type": "text", "text": "a", "own": 1}], 1, None])
def test_thoughts_that_are_no_text_are_kept_as_they_came(thought: Any) -> None:
    entry = {"type": "thinking", "thinking": thought}
    assert read_message({"role": "assistant", "content": [entry]})["parts"] == [entry]
    assert join(delta(content=[entry])).messages[0]["parts"] == [entry]


def test_lists_of_content_in_pieces_are_put_together_and_stand_in_no_chunk() -> None:
    def thinks(text: str) -> dict[str, Any]:
        return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}

    def says(text: str) -> dict[str, Any]:
        return {"type": "text", "text": text}

    reference = {"type": "reference", "reference_ids": [1]}
    contents: list[Any] = ["", "", [thinks("the key ")], [thinks("is"), says("fi")], [says("n")], "a", "l", "l", "y"]
    contents += [[reference], "see", [thinks("once ")], [thinks("more")], [{"type": "text", "text": "x", "own": 1}], ""]
    chunks = [delta(content=content) for content in contents]
    answer = join(*chunks)
    assert [part.get("content") for part in answer.messages[0]["parts"]] == [
        *("the key is", "finally", None, "see", "once more", "x")
    ]
    assert not [text for text in ("key", "once") if text in json.dumps(answer.chunks)]
    assert openai_chat.join(openai_chat.split(answer)) == answer
    begun = join(delta(content="o"), delta(content="n"), delta(content="e"), delta(content=[says(" two"), thinks("?")]))
    assert [part["content"] for part in begun.messages[0]["parts"]] == ["one two", "?"]


def test_texts_in_what_is_a_providers_own_are_put_together_and_stand_in_no_chunk() -> None:
    def says(text: str) -> dict[str, Any]:
        return delta(
            thinking_blocks=[{"type": "thinking", "thinking": text}],
            provider_specific_fields={"inner": {"reasoning": text, "number": 5}},
        )

    answer = join(says("the key"), says(" is"), says(" this"), delta(thinking_blocks=[{"signature": "S"}]))
    assert answer.messages[0]["provider_fields"]["thinking_blocks"] == [
        {"type": "thinking", "thinking": "the key is this", "signature": "S"}
    ]
    assert "key" not in json.dumps(answer.chunks)


def test_what_a_chunk_repeats_of_all_before_it_is_recorded_by_its_length() -> None:
    """As Perplexity streams, each chunk with the message so far beside its delta."""
    chunks = []
    for so_far, piece in (("", ""), ("Paris", "Paris"), ("Paris is", " is"), ("Paris is it.", " it."), ("other", "")):
        message = {"role": "assistant", "content": so_far}
        chunks.append({"choices": [{"index": 0, "message": message, "delta": {"content": piece}}]})
    answer = join(*chunks)
    assert answer.messages[0]["parts"] == [{"type": "text", "content": "Paris is it."}]
    assert "Paris" not in json.dumps(answer.chunks)


def test_a_message_in_the_place_of_a_delta_is_added_to() -> None:
    whole = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "one"}}]}
    answer = join(whole, delta(content=" two"))
    assert answer.messages[0]["parts"] == [{"type": "text", "content": "one two"}]
    assert openai_chat.join(openai_chat.split(answer)) == answer


def test_several_choices_are_messages_in_their_order() -> None:
    answer = join(delta(1, content="b"), delta(0, content="a"), delta(1, "stop"), delta(0, "length"))
    assert [(message["parts"][0]["content"], message["finish_reason"]) for message in answer.messages] == [
        ("a", "length"),
        ("b", "stop"),
    ]


@pytest.mark.parametrize(
    "odd",
    [
        {"choices": None},
        {"choices": [None]},
        {"choices": [{"delta": None}]},
        {"choices": [{"delta": {"tool_calls": [None]}}]},
        {"choices": [{"delta": {"tool_calls": [{"function": None}]}}]},
        {"choices": [{"delta": {"content": 7}}]},
        {"choices": [{"delta": {"audio": {"data": "QU"}}}, {"delta": {"audio": 7}}]},
        {"choices": [{"logprobs": {"content": 7}}]},
        {"no": "choices"},
        {},
        [],
        None,
    ],
)
def test_odd_chunks_are_kept_and_hurt_nobody(odd: Any) -> None:
    answer = join(delta(content="Hel"), odd, delta(content="lo"), delta(finish_reason="stop"))
    assert answer.complete
    assert answer.finish_reasons == ["stop"]


def test_comments_line_ends_and_foreign_events_pass() -> None:
    chunk = json.dumps(delta(content="Hi"))
    first = f": keepalive\r\n\r\ndata:{chunk}\r\n\r\n\r\n"
    stream = f"{first}event: ping\r\ndata: x\r\n\r\nid: 1\ndata: a\ndata: b\n\ndata: [DONE]\r\r"
    answer = openai_chat.join([(1.0, stream.encode())])
    assert answer.messages[0]["parts"] == [{"type": "text", "content": "Hi"}]
    assert answer.complete
    written = b"".join(piece for _, piece in openai_chat.split(answer)).decode()
    compact = json.dumps(delta(content="Hi"), separators=(",", ":"))
    assert (
        written
        == f": keepalive\n\ndata: {compact}\n\nevent: ping\ndata: x\n\nid: 1\ndata: a\ndata: b\n\ndata: [DONE]\n\n"
    )


def test_times_are_those_at_which_an_event_was_complete() -> None:
    stream = stream_of(delta(content="Hi"))
    half = len(stream) // 2
    answer = openai_chat.join([(1.0, stream[:half]), (2.00049, stream[half:-1]), (3.0, stream[-1:])])
    assert [chunk[0] for chunk in answer.chunks] == [2.0, 3.0]
    assert [time for time, _ in openai_chat.split(answer)] == [2.0, 3.0]


@pytest.mark.parametrize(
    ("stream", "complete"),
    [
        (stream_of(delta(content="Hi"), done=False), False),
        (stream_of(delta(content="Hi"), delta(finish_reason="stop"), done=False), True),
        (stream_of(delta(content="Hi"), delta(finish_reason="stop"), done=False) + b'data: {"usa', False),
        (stream_of(delta(content="Hi"), done=False) + b"data: [DONE]", True),
        (stream_of(delta(content="Hi"), {"error": {"message": "overloaded"}}, done=False), True),
        (stream_of(delta(0, content="Hi"), delta(1, content="Ho"), delta(0, "stop"), done=False), False),
    ],
)
def test_whether_a_stream_is_complete(stream: bytes, complete: bool) -> None:
    assert openai_chat.join([(0.0, stream)]).complete is complete


def test_an_error_inside_a_stream_is_the_answers_error() -> None:
    answer = join(delta(content="Hi"), {"error": {"message": "overloaded", "type": "server_error"}}, done=False)
    assert answer.error == Error(ErrorCategory.MODEL, "server_error", "overloaded")
    assert answer.messages[0]["parts"] == [{"type": "text", "content": "Hi"}]


def test_groq_says_the_usage_under_its_own_name() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    assert join(delta(content="Hi"), {"choices": [], "x_groq": {"usage": usage}}).usage == Usage(3, 4)


def test_moonshot_says_the_usage_in_its_choice() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": usage}]}
    assert join(delta(content="Hi"), last).usage == Usage(3, 4)


@pytest.mark.parametrize(
    ("told", "counted"),
    [
        # xAI: thoughts beside the completion; all others: in it.
        (
            {"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 300}},
            (None, 309, None, None, 300),
        ),
        (
            {"prompt_tokens": 5, "completion_tokens": 90, "total_tokens": 125, "reasoning_tokens": 30},
            (5, 120, None, None, 30),
        ),
        (
            {"prompt_tokens": 5, "completion_tokens": 90, "total_tokens": 95, "reasoning_tokens": 30},
            (5, 90, None, None, 30),
        ),
        ({"prompt_tokens": 5.0, "completion_tokens": 9.0, "cached_tokens": 1.5}, (5, 9, None, None, None)),
        # Gateways that hand Anthropic's count of the input through: without what the cache read and wrote.
        (
            {"prompt_tokens": 3, "completion_tokens": 1, "cached_tokens": 100, "cache_creation_input_tokens": 20},
            (123, 1, 100, 20, None),
        ),
        ({"prompt_tokens": 120, "completion_tokens": 1, "cached_tokens": 100}, (120, 1, 100, None, None)),
    ],
)
def test_parts_that_are_more_than_the_whole_are_counted_beside_it(
    told: dict[str, Any], counted: tuple[int | None, ...]
) -> None:
    assert join(delta(content="Hi"), {"choices": [], "usage": told}).usage == Usage(*counted)


def test_nothing_at_all_is_no_stream() -> None:
    for pieces in ([], [(0.0, b"")], [(0.0, b"\r\n\n")]):
        with pytest.raises(ValueError, match="holds no event"):
            openai_chat.join(pieces)


def test_a_text_that_was_redacted_since_is_split_as_it_is_now() -> None:
    answer = join(delta(content="My key"), delta(content=" is s"), delta(content="ecret"), delta(finish_reason="stop"))
    for text in ("My key is <secret, of which there is a digest>", "My"):
        message = {**answer.messages[0], "parts": [{"type": "text", "content": text}]}
        again = openai_chat.join(openai_chat.split(replace(answer, messages=(message,))))
        assert "".join(part["content"] for part in again.messages[0]["parts"]) == text
        assert len(again.chunks) == len(answer.chunks)


@pytest.mark.parametrize("chunks", [([1, {"choices": []}],), ([1],), (["x", {}],), ([1, 2],), ([1, {"$event": 3}],)])
def test_chunks_that_do_not_add_up_to_the_answer_are_not_used(chunks: Any) -> None:
    message = {"role": "assistant", "parts": [{"type": "text", "content": "Hi"}], "finish_reason": "stop"}
    answer = openai_chat.join(openai_chat.split(Answer(messages=(message,), chunks=chunks)))
    assert answer.messages[0]["parts"] == [{"type": "text", "content": "Hi"}]


def test_an_answer_without_chunks_is_cut_as_the_provider_would() -> None:
    parts = [
        {"type": "reasoning", "content": "Hm ok"},
        {"type": "text", "content": "It is"},
        {"type": "tool_call", "id": "c", "name": "f", "arguments": {"city": "Reykjavik"}},
        {"type": "tool_call", "id": "d", "name": "g", "arguments": "x", "provider_fields": {"type": "custom"}},
        {"type": "tool_call", "name": "h", "arguments": {}, "provider_fields": {"$form": "function_call"}},
    ]
    message = {
        "role": "assistant",
        "parts": parts,
        "finish_reason": "tool_call",
        "provider_fields": {"annotations": []},
    }
    stream = b"".join(piece for _, piece in openai_chat.split(Answer("c", "m", (message,), Usage(1, 2))))
    chunks = events_of(stream)
    assert [chunk["choices"][0]["delta"] for chunk in chunks[:-2]] == [
        {"role": "assistant", "content": None, "annotations": []},
        {"reasoning_content": "Hm"},
        {"reasoning_content": " ok"},
        {"content": "It"},
        {"content": " is"},
        {"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"city":"Reykjav'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": 'ik"}'}}]},
        {"tool_calls": [{"index": 1, "id": "d", "type": "custom", "custom": {"name": "g", "input": ""}}]},
        {"tool_calls": [{"index": 1, "custom": {"input": "x"}}]},
        {"function_call": {"name": "h", "arguments": "{}"}},
        {},
    ]
    assert chunks[-3]["choices"][0]["finish_reason"] == "tool_calls"
    assert chunks[-2] == {
        "object": "chat.completion.chunk",
        "id": "c",
        "created": 0,
        "model": "m",
        "choices": [],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
    }
    assert chunks[-1] == "data: [DONE]"
    assert openai_chat.join([(0.0, stream)]).messages == (message,)


def test_content_that_is_a_list_is_streamed_as_one() -> None:
    message = {"role": "assistant", "content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": "b"}]}
    answer = Answer(messages=(read_answer(message),))
    assert openai_chat.join(openai_chat.split(answer)).messages[0]["parts"] == answer.messages[0]["parts"]


def test_an_answer_whose_choices_are_none_is_split_all_the_same() -> None:
    answer = openai_chat.read_response(b'{"choices":true}', 200)
    assert json.loads(openai_chat.write_response(answer)) == {"choices": True}
    assert openai_chat.split(answer)
