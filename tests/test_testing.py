"""The scripted provider: what the real SDK gets from it, over a socket and in process."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import time
from typing import Any

import httpx
import httpx2
import openai
import pytest

from spanreel import testing
from spanreel.model import Answer, Error, ErrorCategory, Request, Usage
from spanreel.session import Session

ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "What is it?"}]}


def client(provider: testing.ScriptedProvider) -> openai.OpenAI:
    """The SDK with a transport in process."""
    http = httpx2.Client(transport=provider.transport("httpx2"))
    return openai.OpenAI(api_key="none", base_url="http://scripted/v1", http_client=http, max_retries=0)


def test_a_script_is_answered_in_order_and_the_requests_are_kept() -> None:
    script = [testing.tool_call("get_weather", {"city": "Paris"}), testing.text("It is sunny.")]
    with testing.ScriptedProvider(script) as provider, openai.OpenAI(base_url=provider.base_url, api_key="key") as sdk:
        first = sdk.chat.completions.create(**ASK)
        second = sdk.chat.completions.create(**ASK)
    assert first.model_dump(exclude_none=True) == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'},
                        }
                    ],
                },
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6},
    }
    assert second.choices[0].message.content == "It is sunny."
    asked = provider.requests[0]
    assert (asked.method, asked.path, json.loads(asked.body)) == ("POST", "/v1/chat/completions", ASK)
    assert asked.headers["authorization"] == "Bearer key"
    assert asked.request is not None
    assert asked.request.messages == ({"role": "user", "parts": [{"type": "text", "content": "What is it?"}]},)
    assert provider.exhausted == 0


def test_the_form_and_the_protocol_are_those_that_were_asked_for() -> None:
    provider = testing.ScriptedProvider([testing.answer("one two", reasoning="hm")] * 4)
    sdk = client(provider)
    chunks = list(sdk.chat.completions.create(**ASK, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "one two"
    *chunks, last = sdk.chat.completions.create(**ASK, stream=True, stream_options={"include_usage": True})
    assert (last.choices, last.usage.prompt_tokens, last.usage.completion_tokens) == ([], 3, 3)
    response = sdk.responses.create(model="m", input="hello")
    assert (response.id, response.output_text) == ("resp_3", "one two")
    with sdk.responses.stream(model="m", input="hello") as stream:
        assert stream.get_final_response().output_text == "one two"


def test_embeddings_are_spoken_too() -> None:
    answer = Answer(provider_fields={"data": [{"object": "embedding", "index": 0, "embedding": [1.0]}]})
    sdk = client(testing.ScriptedProvider([answer]))
    created = sdk.embeddings.create(model="e", input="x", encoding_format="float")
    assert (created.model, created.data[0].embedding) == ("e", [1.0])


def test_an_answer_may_hold_several_calls_and_how_it_ended() -> None:
    calls = [testing.tool_call("add", {"a": 1}), testing.tool_call("add", "no json", id="mine")]
    answer = testing.answer("Both.", tool_calls=calls, model="other", usage=Usage(7, 8), finish_reason="length")
    completion = client(testing.ScriptedProvider([answer])).chat.completions.create(**ASK)
    (choice,) = completion.choices
    assert [(call.id, call.function.arguments) for call in choice.message.tool_calls] == [
        ("call_1", '{"a":1}'),
        ("mine", "no json"),
    ]
    assert (choice.message.content, choice.finish_reason, completion.model) == ("Both.", "length", "other")
    assert completion.usage.total_tokens == 15


def test_a_refusal_is_a_refusal() -> None:
    completion = client(testing.ScriptedProvider([testing.answer(refusal="No.")])).chat.completions.create(**ASK)
    assert (completion.choices[0].message.refusal, completion.choices[0].message.content) == ("No.", None)


def test_a_function_may_answer_by_what_was_asked() -> None:
    def answer(request: Request) -> testing.Scripted:
        return testing.text(request.messages[-1]["parts"][0]["content"].upper())

    sdk = client(testing.ScriptedProvider(answer))
    assert [sdk.chat.completions.create(**ASK).choices[0].message.content for _ in range(2)] == ["WHAT IS IT?"] * 2
    sdk = client(testing.ScriptedProvider([answer, lambda request: Answer(model=request.model)]))
    assert sdk.chat.completions.create(**ASK).choices[0].message.content == "WHAT IS IT?"
    assert sdk.chat.completions.create(**ASK).choices == []


@pytest.mark.parametrize(
    ("scripted", "error"),
    [
        (testing.error(429, "slow down"), openai.RateLimitError),
        (testing.error(500, "broken"), openai.InternalServerError),
        (testing.error(504, "late"), openai.InternalServerError),
        (testing.error(400, "wrong", type="context_length_exceeded"), openai.BadRequestError),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_failure_is_raised_by_the_sdk(
    scripted: testing.Scripted, error: type[openai.APIStatusError], stream: bool
) -> None:
    assert scripted.answer.error is not None
    with pytest.raises(error, match=scripted.answer.error.message) as raised:
        client(testing.ScriptedProvider([scripted])).chat.completions.create(**ASK, stream=stream)
    assert raised.value.type == scripted.answer.error.type


def test_a_failure_may_tell_when_to_try_again() -> None:
    script = [testing.error(429, "slow down", retry_after_ms="1"), testing.text("fine")]
    provider = testing.ScriptedProvider(script)
    sdk = client(provider).with_options(max_retries=1)
    assert sdk.chat.completions.create(**ASK).choices[0].message.content == "fine"
    assert len(provider.requests) == 2
    with pytest.raises(ValueError, match="status 200 is no failure"):
        testing.error(200, "fine")


def test_beyond_the_end_of_the_script_is_an_error_that_says_so_and_is_not_tried_again() -> None:
    with testing.ScriptedProvider([testing.text("only")]) as provider:
        sdk = openai.OpenAI(base_url=provider.base_url, api_key="none", max_retries=5)
        sdk.chat.completions.create(**ASK)
        with pytest.raises(openai.InternalServerError, match="it has 1 answers, this is request 2"):
            sdk.chat.completions.create(**ASK)
        sdk.close()
    assert (provider.exhausted, len(provider.requests)) == (1, 2)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("in_process", [False, True])
def test_bodies_are_compressed_for_those_who_accept_it(stream: bool, in_process: bool) -> None:
    script = [testing.text("some words to compress")] * 2
    with testing.ScriptedProvider(script, gzip=True) as provider:
        http = httpx.Client(transport=provider.transport()) if in_process else httpx.Client(timeout=60)
        url = f"{provider.base_url}/chat/completions"
        with http, http.stream("POST", url, json={**ASK, "stream": stream}) as response:
            raw = b"".join(response.iter_raw())
        assert response.headers["content-encoding"] == "gzip"
        assert b"compress" in gzip.decompress(raw)
        plain = httpx.post(url, json={**ASK, "stream": stream}, headers={"accept-encoding": "identity"}, timeout=60)
        assert "content-encoding" not in plain.headers
        assert "compress" in plain.text


def test_a_compressed_stream_can_be_read_piece_by_piece() -> None:
    with testing.ScriptedProvider([testing.text("one two three", hold=150)], gzip=True) as provider:
        body = {**ASK, "stream": True}
        with httpx.stream("POST", f"{provider.base_url}/chat/completions", json=body, timeout=60) as response:
            pieces = response.iter_text()
            assert "three" not in next(text for text in pieces if text)
            assert "three" in "".join(pieces)


@pytest.mark.parametrize("in_process", [False, True])
def test_an_answer_may_take_its_time(in_process: bool) -> None:
    script = [testing.text("one two", delay=60, hold=30)]
    with testing.ScriptedProvider(script) as provider:
        sdk = client(provider) if in_process else openai.OpenAI(base_url=provider.base_url, api_key="none")
        started = time.monotonic()
        with sdk.chat.completions.create(**ASK, stream=True) as stream:
            times = [time.monotonic() - started for _ in stream]
        sdk.close()
    # Lower bounds, both from the beginning: a sleep is never shorter than asked for, and whoever reads may read late.
    assert times[0] > 0.05
    assert times[-1] > 0.1


async def test_an_async_client_is_answered_in_process_without_blocking_the_loop() -> None:
    slow = [testing.text("one two", delay=60_000), testing.text("one two", hold=60_000)]
    provider = testing.ScriptedProvider([*slow, testing.text("one two")])
    http = httpx2.AsyncClient(transport=provider.transport("httpx2"))
    sdk = openai.AsyncOpenAI(api_key="none", base_url="http://scripted/v1", http_client=http)

    async def ask() -> str:
        stream = await sdk.chat.completions.create(**ASK, stream=True)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    waiting = [asyncio.create_task(ask()) for _ in slow]
    while len(provider.requests) < len(slow):
        await asyncio.sleep(0.01)
    assert await ask() == "one two"
    assert not any(task.done() for task in waiting)  # one after the other they would be
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await http.aclose()


def test_the_library_of_a_transport_must_be_known() -> None:
    with pytest.raises(ValueError, match="no in-process transport for 'aiohttp'; there are some for httpx, httpx2"):
        testing.ScriptedProvider([]).transport("aiohttp")


def test_many_threads_get_an_answer_each() -> None:
    answers: list[str] = []
    with testing.ScriptedProvider([testing.text(str(number)) for number in range(40)]) as provider:
        sdk = openai.OpenAI(base_url=provider.base_url, api_key="none")

        def ask() -> None:
            answers.extend(sdk.chat.completions.create(**ASK).choices[0].message.content or "" for _ in range(5))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sdk.close()
    assert sorted(answers, key=int) == [str(number) for number in range(40)]


def test_a_client_may_close_a_stream_early() -> None:
    with testing.ScriptedProvider([testing.text("word " * 200, hold=1), testing.text("next")]) as provider:
        sdk = openai.OpenAI(base_url=provider.base_url, api_key="none")
        with sdk.chat.completions.create(**ASK, stream=True) as stream:
            next(iter(stream))
        assert sdk.chat.completions.create(**ASK).choices[0].message.content == "next"
        sdk.close()


def test_what_is_no_model_request_is_told() -> None:
    with testing.ScriptedProvider([testing.text("unused")]) as provider:
        root = provider.base_url
        assert (
            httpx.get(f"{root}/models", timeout=60).json()["error"]["message"]
            == "no model protocol is spoken at GET /v1/models"
        )
        wrong = httpx.post(f"{root}/chat/completions", json={"messages": "hello"}, timeout=60)
        assert wrong.status_code == 400
        assert "messages is of type str" in wrong.json()["error"]["message"]
    assert [asked.request for asked in provider.requests] == [None, None]


def test_a_protocol_may_be_spoken_at_any_path() -> None:
    provider = testing.ScriptedProvider([testing.text("hello")], protocol="openai_chat")
    http = httpx.Client(transport=provider.transport())
    assert http.post("http://scripted/llm/ask?x=1", json=ASK).json()["choices"][0]["message"]["content"] == "hello"
    assert provider.requests[0].path == "/llm/ask"
    assert http.get("http://scripted/llm/ask").status_code == 404
    with pytest.raises(ValueError, match="no protocol named 'nope'"):
        testing.ScriptedProvider([], protocol="nope")


def test_there_is_an_address_only_while_there_is_a_server() -> None:
    provider = testing.ScriptedProvider([])
    with pytest.raises(RuntimeError, match="inside `with ScriptedProvider"):
        _ = provider.base_url
    with provider:
        assert provider.base_url.startswith("http://127.0.0.1:")
    with pytest.raises(RuntimeError):
        _ = provider.base_url
    provider.__exit__(None, None, None)


def recorded() -> Session:
    """A session of two runs and three model calls, one of which never got an answer."""
    call = {"status": "ok", "model": "m", "response_model": "m-1", "protocol": "openai_chat"}
    first = {
        **call,
        "id": "1",
        "output": [0],
        "usage": {"input_tokens": 1, "output_tokens": 2},
        "started_at": "2026-01-01",
    }
    failed = {**call, "id": "2", "http_status": 429, "error": {"category": "model", "type": "slow", "message": "down"}}
    lost = {**call, "id": "3", "error": {"category": "model", "type": "ConnectError"}}
    message = {
        "role": "assistant",
        "parts": [{"type": "text", "content": "Recorded."}],
        "finish_reason": "stop",
        "provider_fields": {"annotations": []},
    }
    runs = [
        {"id": "a", "trace_id": "t", "turns": [{"index": 0, "model_call": {**first, "started_at": "2026-01-02"}}]},
        {
            "id": "b",
            "trace_id": "t",
            "turns": [
                {"index": 0, "model_call": {**failed, "started_at": "2026-01-01"}},
                {"index": 1, "model_call": lost},
            ],
        },
    ]
    document = {"id": "s", "key": {"kind": "trace", "value": "t"}, "messages": [message], "runs": runs}
    return Session.model_validate(document)


def test_a_recorded_session_is_a_script() -> None:
    failed, answered = testing.from_session(recorded())
    assert failed.answer == Answer(
        model="m-1", status=429, error=Error(ErrorCategory.MODEL, "slow", "down"), usage=None
    )
    assert answered.answer == Answer(
        model="m-1",
        messages=(
            {
                "role": "assistant",
                "parts": [{"type": "text", "content": "Recorded."}],
                "finish_reason": "stop",
                "provider_fields": {"annotations": []},
            },
        ),
        usage=Usage(1, 2),
    )
    assert testing.from_session(recorded(), run="a") == [answered]
    sdk = client(testing.ScriptedProvider([answered]))
    assert sdk.chat.completions.create(**ASK).choices[0].message.content == "Recorded."
