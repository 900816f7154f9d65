"""OpenAI's legacy completions: read, written again, streamed; and by their SDK, recorded and answered again."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import openai
import pytest

import spanreel
from exchange_cases import events_of, pieces_of
from spanreel import testing
from spanreel.model import Operation, Usage
from spanreel.protocols import completions, is_exchange, openai_chat, recognise
from spanreel.protocols.residue import same
from spanreel_collector import convert_files

REQUESTS: dict[str, dict[str, Any]] = {
    "one prompt": {"model": "m", "prompt": "Count.", "max_tokens": 5, "stop": "\n", "stream": True, "echo": True},
    "several": {"model": "m", "prompt": ["One", "Two"], "n": 2, "best_of": 3, "stop": ["a", "b"], "logprobs": 2},
    "a list of one": {"model": "m", "prompt": ["One"], "suffix": "end", "logit_bias": {"5": -1}, "user": "u"},
    "tokens": {"model": "m", "prompt": [1, 2, 3], "seed": 4},
    "lists of tokens": {"model": "m", "prompt": [[1, 2], [3]], "stream_options": {"include_usage": True}},
    "nothing": {"model": "m", "prompt": None, "temperature": None},
    "empty": {"model": "m", "prompt": "", "future": {"a": [1]}},
}
ANSWER: dict[str, Any] = {
    "id": "cmpl-1",
    "object": "text_completion",
    "created": 7,
    "model": "m-1",
    "system_fingerprint": "fp",
    "choices": [
        {
            "text": "one two",
            "index": 0,
            "logprobs": {"tokens": ["one", " two"], "token_logprobs": [-0.1, -2.0], "text_offset": [0, 3]},
            "finish_reason": "length",
        },
        {"text": "", "index": 1, "logprobs": None, "finish_reason": "content_filter", "content_filter_results": {}},
    ],
    "usage": {
        "prompt_tokens": 3,
        "completion_tokens": 4,
        "total_tokens": 7,
        "completion_tokens_details": {"reasoning_tokens": 1},
    },
}


def line(choices: list[Any], **fields: Any) -> bytes:
    """An event of a stream."""
    told = {"id": "cmpl-1", "object": "text_completion", "created": 7, "model": "m-1", "choices": choices, **fields}
    return f"data: {json.dumps(told)}\n\n".encode()


STREAM = b"".join(
    (
        line(
            [{"text": "one", "index": 0, "logprobs": {"tokens": ["one"], "top_logprobs": None}, "finish_reason": None}]
        ),
        line([{"text": "uno", "index": 1, "logprobs": None, "finish_reason": None}]),
        line([{"text": " two", "index": 0, "logprobs": {"tokens": [" two"]}, "finish_reason": None}]),
        line([{"text": "", "index": 1, "logprobs": None, "finish_reason": "stop", "stop_reason": 128}]),
        line([{"text": "", "index": 0, "logprobs": None, "finish_reason": "length"}]),
        line([], usage={"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}),
        b"data: [DONE]\n\n",
    )
)


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_is_written_as_it_was_read(name: str) -> None:
    body = json.dumps(REQUESTS[name]).encode()
    request = completions.read_request(body, Operation.CHAT)
    written = completions.write_request(request)
    assert same(json.loads(written), REQUESTS[name])
    assert completions.read_request(written, Operation.CHAT) == request


def test_a_prompt_is_what_a_user_says() -> None:
    request = completions.read_request(json.dumps(REQUESTS["several"]).encode(), Operation.CHAT)
    assert [part["content"] for message in request.messages for part in message["parts"]] == ["One", "Two"]
    assert request.settings == {"choice_count": 2, "stop_sequences": ["a", "b"]}
    request = completions.read_request(json.dumps(REQUESTS["one prompt"]).encode(), Operation.CHAT)
    assert request.stream
    assert request.settings == {"max_tokens": 5, "stop_sequences": ["\n"]}
    assert completions.read_request(json.dumps(REQUESTS["tokens"]).encode(), Operation.CHAT).messages == ()


def test_a_plain_answer_is_written_as_it_was_read() -> None:
    answer = completions.read_response(json.dumps(ANSWER).encode(), 200)
    assert [message["parts"] for message in answer.messages] == [[{"type": "text", "content": "one two"}], []]
    assert answer.finish_reasons == ["length", "content_filter"]
    assert (answer.response_id, answer.model, answer.usage) == ("cmpl-1", "m-1", Usage(3, 4, reasoning_tokens=1))
    written = completions.write_response(answer)
    assert same(json.loads(written), ANSWER)
    assert completions.read_response(written, 200) == answer


@pytest.mark.parametrize("size", [1, 97, 10_000])
def test_a_stream_is_split_as_it_was_joined(size: int) -> None:
    answer = completions.join(pieces_of(STREAM, size))
    assert answer.complete
    assert [message["parts"][0]["content"] for message in answer.messages] == ["one two", "uno"]
    assert answer.finish_reasons == ["length", "stop"]
    assert answer.usage == Usage(3, 4)
    again = completions.split(answer)
    assert same(events_of(b"".join(piece for _, piece in again)), events_of(STREAM))
    assert completions.join(again) == answer
    assert "two" not in json.dumps(answer.chunks)
    plain = completions.read_response(completions.write_response(answer), 200)
    assert (plain.messages, plain.usage) == (answer.messages, answer.usage)


def test_a_stream_cut_off_is_not_complete() -> None:
    for length in range(1, len(STREAM) - len(b"data: [DONE]\n\n"), 23):
        answer = completions.join(pieces_of(STREAM[:length]))
        assert completions.join(completions.split(answer)) == answer
        assert not answer.complete or answer.finish_reasons == ["length", "stop"]


def test_a_failure_is_written_as_it_was_read() -> None:
    body = b'{"error":{"message":"no","type":"invalid_request_error","param":null,"code":null}}'
    answer = completions.read_response(body, 400)
    assert answer.error is not None
    assert completions.write_response(answer) == body
    assert completions.split(answer) == [(0.0, body)]
    with pytest.raises(ValueError, match="no event"):
        completions.join([])


@pytest.mark.parametrize(
    "choices",
    [
        [1],
        [{"text": None, "index": 0}],
        [{"text": "a", "index": -1, "logprobs": {"tokens": 1, "text_offset": None}}],
        "x",
    ],
)
def test_odd_choices_are_kept(choices: Any) -> None:
    body = {"id": "c", "object": "text_completion", "created": 1, "model": "m", "choices": choices}
    answer = completions.read_response(json.dumps(body).encode(), 200)
    assert same(json.loads(completions.write_response(answer)), body)
    stream = f"data: {json.dumps(body, separators=(',', ':'))}\n\ndata: no JSON\n\n".encode()
    answer = completions.join([(1.0, stream)])
    assert b"".join(piece for _, piece in completions.split(answer)) == stream


def test_what_has_been_put_in_since_is_written() -> None:
    answer = completions.join(pieces_of(STREAM))
    answer = deepcopy(answer)
    answer.messages[0]["parts"][0]["content"] = "changed since"
    answer.messages[0]["finish_reason"] = "stop"
    body = json.loads(completions.write_response(answer))
    assert body["choices"][0]["text"] == "changed since"
    assert body["choices"][0]["finish_reason"] == "stop"
    assert completions.join(completions.split(answer)).messages[0]["parts"][0]["content"] == "changed since"


def test_the_chat_ends_as_completions_do_and_is_none() -> None:
    assert recognise("POST", "/v1/completions") == (completions, Operation.CHAT)
    assert recognise("POST", "/openai/deployments/d/completions") == (completions, Operation.CHAT)
    assert recognise("POST", "/v1/chat/completions") == (openai_chat, Operation.CHAT)
    assert is_exchange(Operation.CHAT, b'{"prompt": "a"}', completions)
    assert not is_exchange(Operation.CHAT, b'{"query": "a"}', completions)
    assert not is_exchange(Operation.CHAT, b'{"messages": []}', completions)
    assert recognise("POST", "/v1/agents/completions") == (openai_chat, Operation.CHAT)
    assert recognise("POST", "/v1/fim/completions") is None
    with pytest.raises(ValueError, match="prompt"):
        completions.read_request(b'{"model": "m"}', Operation.CHAT)


def _plain(client: openai.OpenAI) -> Any:
    return client.completions.create(model="m", prompt="Count.").choices[0].text


def _streamed(client: openai.OpenAI) -> Any:
    return "".join(
        chunk.choices[0].text for chunk in client.completions.create(model="m", prompt="Count.", stream=True)
    )


@pytest.mark.parametrize("way", [_plain, _streamed], ids=lambda way: way.__name__)
def test_calls_are_recorded_and_answered_again(way: Callable[[openai.OpenAI], Any], tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    with testing.ScriptedProvider([testing.text("one two three")]) as provider:
        spanreel.instrument(settings=spanreel.read_settings({"SPANREEL_FILE": str(file), "SPANREEL_LOG": "off"}))
        try:
            said = way(openai.OpenAI(api_key="k", base_url=provider.base_url, max_retries=0))
            assert spanreel.flush()
        finally:
            spanreel.uninstrument()
    assert said == "one two three"
    (session,) = convert_files([str(file)]).sessions
    (call,) = session.runs[0].model_calls()
    assert (call.protocol, call.model, call.streamed) == ("openai_completions", "m", way is _streamed)
    assert session.messages[call.input[0]].parts == [{"type": "text", "content": "Count."}]
    assert session.messages[call.output[0]].parts == [{"type": "text", "content": said}]
    with spanreel.replay(session) as playing:
        assert way(openai.OpenAI(api_key="k", base_url="http://127.0.0.1:9/v1", max_retries=0)) == said
    assert str(playing.verdict) == "PASS"
