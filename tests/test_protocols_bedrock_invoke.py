"""Bedrock's invoke: each maker's own API, by the bodies that its documentation and botocore show."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from contextlib import closing
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

import spanreel
from exchange_cases import pieces_of
from spanreel import testing
from spanreel.model import Answer, Operation, Usage
from spanreel.protocols import anthropic, bedrock_invoke, is_exchange, recognise
from spanreel.protocols.bedrock_invoke import embeddings
from spanreel.protocols.frames import read_frames, write_frame
from spanreel.protocols.residue import same
from spanreel_collector import convert_files

HEADERS = ((":event-type", "chunk"), (":content-type", "application/json"), (":message-type", "event"))
METRICS = {"inputTokenCount": 3, "outputTokenCount": 4, "invocationLatency": 9, "firstByteLatency": 5}
WORDS = "one two three"

# Who is asked, what, what is answered to it, and the same in pieces.
CALLS: dict[str, tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]] = {
    "amazon.titan-text": (
        {"inputText": "Count.", "textGenerationConfig": {"maxTokenCount": 9, "topP": 1, "stopSequences": ["|"]}},
        {
            "inputTextTokenCount": 3,
            "results": [{"tokenCount": 4, "outputText": WORDS, "completionReason": "FINISH"}],
        },
        [
            {"outputText": "one two", "index": 0, "totalOutputTextTokenCount": None, "completionReason": None},
            {
                "outputText": " three",
                "index": 0,
                "totalOutputTextTokenCount": 4,
                "completionReason": "FINISH",
                "inputTextTokenCount": 3,
            },
        ],
    ),
    "meta.llama3": (
        {"prompt": "<|user|>Count.", "max_gen_len": 9, "temperature": 0.5, "top_p": 0.9, "images": ["AAAA"]},
        {"generation": WORDS, "prompt_token_count": 3, "generation_token_count": 4, "stop_reason": "stop"},
        [
            {"generation": "one", "prompt_token_count": 3, "generation_token_count": 1, "stop_reason": None},
            {"generation": " two three", "prompt_token_count": None, "generation_token_count": 3, "stop_reason": None},
            {"generation": "", "prompt_token_count": None, "generation_token_count": 4, "stop_reason": "stop"},
        ],
    ),
    "mistral.mixtral": (
        {"prompt": "<s>[INST] Count. [/INST]", "max_tokens": 9, "top_k": 50, "stop": ["</s>"]},
        {"outputs": [{"text": WORDS, "stop_reason": "stop"}]},
        [
            {"outputs": [{"text": "one two", "stop_reason": None}]},
            {"outputs": [{"text": " three", "stop_reason": "stop"}]},
        ],
    ),
    "mistral.mistral-large": (
        {
            "messages": [{"role": "user", "content": "Count."}],
            "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
            "tool_choice": "any",
        },
        {"choices": [{"index": 0, "message": {"role": "assistant", "content": WORDS}, "stop_reason": "stop"}]},
        [
            {"choices": [{"index": 0, "message": {"role": "assistant", "content": "one two"}, "stop_reason": None}]},
            {"choices": [{"index": 0, "message": {"role": "assistant", "content": " three"}, "stop_reason": "stop"}]},
        ],
    ),
    "cohere.command-text": (
        {"prompt": "Count.", "p": 0.75, "k": 3, "max_tokens": 9, "num_generations": 1, "return_likelihoods": "NONE"},
        {
            "id": "g",
            "generations": [{"id": "c", "text": WORDS, "finish_reason": "COMPLETE", "likelihood": -0.1}],
            "prompt": "Count.",
        },
        [
            {"text": "one two", "is_finished": False, "index": 0},
            {"text": " three", "is_finished": False, "index": 0},
            {"finish_reason": "COMPLETE", "id": "g", "is_finished": True, "index": 0},
        ],
    ),
    "cohere.command-r": (
        {"message": "Count.", "chat_history": [{"role": "USER", "message": "Hi"}], "p": 0.9, "documents": [{"a": "b"}]},
        {
            "response_id": "r",
            "text": WORDS,
            "generation_id": "g",
            "chat_history": [{"role": "USER", "message": "Count."}],
            "finish_reason": "COMPLETE",
        },
        [
            {"is_finished": False, "event_type": "stream-start", "generation_id": "g"},
            {"is_finished": False, "event_type": "text-generation", "text": "one two"},
            {"is_finished": False, "event_type": "text-generation", "text": " three"},
            {
                "is_finished": True,
                "event_type": "stream-end",
                "response": {"response_id": "r", "text": WORDS, "finish_reason": "COMPLETE"},
                "finish_reason": "COMPLETE",
            },
        ],
    ),
    "ai21.j2": (
        {"prompt": "Count.", "maxTokens": 9, "numResults": 1, "stopSequences": ["#"], "countPenalty": {"scale": 0}},
        {
            "id": 1234,
            "prompt": {"text": "Count.", "tokens": [{"textRange": {"start": 0, "end": 3}, "topTokens": None}]},
            "completions": [{"data": {"text": WORDS, "tokens": []}, "finishReason": {"reason": "endoftext"}}],
        },
        [
            {"completions": [{"data": {"text": "one two", "tokens": [1]}, "finishReason": None}]},
            {"completions": [{"data": {"text": " three"}, "finishReason": {"reason": "endoftext"}}]},
        ],
    ),
    "ai21.jamba": (
        {"messages": [{"role": "user", "content": "Count."}], "n": 1, "max_tokens": 9},
        {
            "id": "chat-1",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": WORDS}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
            "meta": {"requestDurationMillis": 1},
        },
        [
            {"id": "c", "choices": [{"index": 0, "delta": {"role": "assistant"}, "finish_reason": None}]},
            {"id": "c", "choices": [{"index": 0, "delta": {"content": WORDS}, "finish_reason": None}]},
            {
                "id": "c",
                "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
            },
        ],
    ),
    "amazon.nova": (
        {
            "schemaVersion": "messages-v1",
            "system": [{"text": "Be brief."}],
            "messages": [{"role": "user", "content": [{"text": "Count."}]}],
            "inferenceConfig": {"max_new_tokens": 9, "top_p": 1, "topK": 4},
        },
        {
            "output": {"message": {"content": [{"text": WORDS}], "role": "assistant"}},
            "stopReason": "end_turn",
            "usage": {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7, "cacheReadInputTokenCount": 0},
        },
        [
            {"messageStart": {"role": "assistant"}},
            {"contentBlockDelta": {"delta": {"text": "one two"}, "contentBlockIndex": 0}},
            {"contentBlockDelta": {"delta": {"text": " three"}, "contentBlockIndex": 0}},
            {"contentBlockStop": {"contentBlockIndex": 0}},
            {"messageStop": {"stopReason": "end_turn"}},
            {"metadata": {"usage": {"inputTokens": 3, "outputTokens": 4}, "metrics": {}, "trace": {}}},
        ],
    ),
    "deepseek.r1": (
        {"prompt": "<|begin|>Count.", "max_tokens": 9, "temperature": 0.5},
        {"choices": [{"text": WORDS, "stop_reason": "stop"}]},
        [
            {"choices": [{"text": "one two", "stop_reason": None}]},
            {"choices": [{"text": " three", "stop_reason": "stop"}]},
        ],
    ),
    "openai.gpt-oss": (
        {"messages": [{"role": "user", "content": "Count."}], "max_completion_tokens": 9, "reasoning_effort": "low"},
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "openai.gpt-oss-20b-1:0",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": WORDS, "refusal": None},
                    "finish_reason": "stop",
                }
            ],
            "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
        },
        [
            {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": WORDS}}]},
            {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "service_tier": "default"},
        ],
    ),
    "arn:aws:bedrock:us-east-1:1:application-inference-profile/claude": (
        {
            "anthropic_version": "bedrock-2023-05-31",
            "max_tokens": 9,
            "messages": [{"role": "user", "content": "Count."}],
        },
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude",
            "content": [{"type": "text", "text": WORDS}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 3, "output_tokens": 4},
        },
        [
            {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [], "usage": {}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": WORDS}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}},
            {"type": "message_stop"},
        ],
    ),
    "anthropic.claude-v2": (
        {"prompt": "\n\nHuman: Count.\n\nAssistant:", "max_tokens_to_sample": 9, "stop_sequences": ["\n\nHuman:"]},
        {"type": "completion", "completion": WORDS, "stop_reason": "stop_sequence", "stop": "\n\nHuman:"},
        [
            {"type": "completion", "completion": "one two", "stop_reason": None, "stop": None},
            {"type": "completion", "completion": " three", "stop_reason": "stop_sequence", "stop": "\n\nHuman:"},
        ],
    ),
}
COUNTED = ("amazon.titan-text", "meta.llama3", "ai21.jamba", "amazon.nova", "openai.gpt-oss", "arn")
STREAMED = list(CALLS)


def framed(fields: dict[str, Any], **padding: str) -> bytes:
    """An event as Bedrock sends it."""
    data = base64.b64encode(json.dumps(fields, separators=(",", ":")).encode()).decode()
    return write_frame(HEADERS, json.dumps({"bytes": data, **padding}, separators=(",", ":")).encode())


def stream_of(name: str) -> list[bytes]:
    """The frames of a streamed answer, the last with what Bedrock adds to it."""
    *events, last = CALLS[name][2]
    events = [*events, {**last, "amazon-bedrock-invocationMetrics": METRICS}]
    return [framed(event, p="abcdef"[: 1 + number % 5]) for number, event in enumerate(events)]


def said(frames: list[bytes] | bytes) -> list[Any]:
    """What frames carry, with what pads them."""
    body = frames if isinstance(frames, bytes) else b"".join(frames)
    payloads = [json.loads(frame.payload) for frame in read_frames([(0.0, body)])]
    return [{**payload, "bytes": json.loads(base64.b64decode(payload["bytes"]))} for payload in payloads]


@pytest.mark.parametrize("name", CALLS)
def test_a_request_is_written_as_it_was_read(name: str) -> None:
    body = json.dumps(CALLS[name][0]).encode()
    request = bedrock_invoke.read_request(body, Operation.CHAT)
    assert "Count." in json.dumps(request.messages[-1]["parts"])
    assert request.messages[-1]["role"] == "user"
    written = bedrock_invoke.write_request(request)
    assert same(json.loads(written), CALLS[name][0])
    assert bedrock_invoke.read_request(written, Operation.CHAT) == request
    limits = ("max_tokens", "max_gen_len", "maxTokens", "max_new_tokens", "maxTokenCount")
    assert request.settings.get("max_tokens") == 9 or not any(f'"{limit}' in body.decode() for limit in limits)


@pytest.mark.parametrize("name", CALLS)
def test_a_plain_answer_is_written_as_it_was_read(name: str) -> None:
    answer = bedrock_invoke.read_response(json.dumps(CALLS[name][1]).encode(), 200)
    assert [message["parts"] for message in answer.messages] == [[{"type": "text", "content": WORDS}]]
    assert answer.finish_reasons == ["stop"]
    assert answer.error is None
    if name.startswith(COUNTED):
        assert answer.usage is not None
        assert (answer.usage.input_tokens, answer.usage.output_tokens) == (3, 4)
    written = bedrock_invoke.write_response(answer)
    assert same(json.loads(written), CALLS[name][1])
    assert bedrock_invoke.read_response(written, 200) == answer


@pytest.mark.parametrize("name", STREAMED)
@pytest.mark.parametrize("size", [1, 50, 100_000])
def test_a_stream_is_split_as_it_was_joined(name: str, size: int) -> None:
    frames = stream_of(name)
    answer = bedrock_invoke.join(pieces_of(b"".join(frames), size))
    assert answer.complete
    assert [message["parts"] for message in answer.messages] == [[{"type": "text", "content": WORDS}]]
    assert answer.finish_reasons == ["stop"]
    again = bedrock_invoke.split(answer)
    assert said(b"".join(piece for _, piece in again)) == said(frames)
    assert bedrock_invoke.join(again) == answer
    plain = bedrock_invoke.read_response(bedrock_invoke.write_response(answer), 200)
    assert (plain.messages, plain.usage, plain.finish_reasons) == (answer.messages, answer.usage, answer.finish_reasons)
    assert "two three" not in json.dumps(answer.chunks)


@pytest.mark.parametrize("name", STREAMED)
def test_a_stream_cut_off_or_with_frames_of_another_kind_is_kept(name: str) -> None:
    frames = stream_of(name)
    others = [
        write_frame((), b""),
        *(write_frame(HEADERS, one) for one in (b"{}", b'{"bytes":"?"}', b'{"bytes":"MQ=="}')),
    ]
    failure = write_frame(
        ((":exception-type", "throttlingException"), (":message-type", "exception")), b'{"message":"m"}'
    )
    for body in (b"".join(frames)[:-20], frames[0], *(frames[0] + other for other in [*others, b"no frame", failure])):
        answer = bedrock_invoke.join([(1.0, body)])
        again = bedrock_invoke.split(answer)
        assert b"".join(piece for _, piece in again) == body
        assert bedrock_invoke.join(again) == answer


@pytest.mark.parametrize("name", CALLS)
def test_what_has_been_put_in_since_is_written(name: str) -> None:
    request = bedrock_invoke.read_request(json.dumps(CALLS[name][0]).encode(), Operation.CHAT)
    request = deepcopy(request)  # those that were read before are the same
    request.messages[-1]["parts"][0]["content"] = "asked since"
    assert "asked since" in bedrock_invoke.write_request(request).decode()
    assert "Count." not in bedrock_invoke.write_request(request).decode()
    answer = bedrock_invoke.read_response(json.dumps(CALLS[name][1]).encode(), 200)
    answer = deepcopy(answer)
    answer.messages[0]["parts"][0]["content"] = "said since"
    answer.messages[0]["finish_reason"] = "length"
    again = bedrock_invoke.read_response(bedrock_invoke.write_response(answer), 200)
    assert again.messages[0]["parts"][0]["content"] == "said since"
    assert again.finish_reasons == ["length"]


def test_what_is_counted_beside_the_last_piece_counts_where_nothing_else_does() -> None:
    assert bedrock_invoke.join([(0.0, b"".join(stream_of("mistral.mixtral")))]).usage == Usage(3, 4)


def test_calls_of_tools_are_read_in_each_makers_form() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    events: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "message": {"role": "assistant", "content": ""}, "stop_reason": None}]},
        {"choices": [{"index": 0, "message": {"tool_calls": [call]}, "stop_reason": "tool_calls"}]},
    ]
    expected = {"type": "tool_call", "id": "c", "name": "f", "arguments": {"a": 1}}
    answer = bedrock_invoke.join([(0.0, b"".join(map(framed, events)))])
    assert answer.messages[0]["parts"][0].items() >= expected.items()
    assert answer.finish_reasons == ["tool_call"]
    assert said(b"".join(piece for _, piece in bedrock_invoke.split(answer))) == said([*map(framed, events)])
    used = {"toolUseId": "c", "name": "f", "input": {"a": 1}}
    nova = {"output": {"message": {"role": "assistant", "content": [{"toolUse": used}]}}}
    answer = bedrock_invoke.read_response(json.dumps(nova).encode(), 200)
    assert answer.messages[0]["parts"] == [expected]


@pytest.mark.parametrize(
    ("asked", "answered", "texts"),
    [
        ({"inputText": "a", "dimensions": 2}, {"embedding": [0.1, 0.2], "inputTextTokenCount": 3}, ["a"]),
        (
            {"texts": ["a", "b"], "input_type": "search_query"},
            {"id": "i", "embeddings": [[1], [2]], "texts": ["a"]},
            ["a", "b"],
        ),
        ({"inputImage": "AAAA"}, {"embedding": [0.5], "message": None}, []),
    ],
)
def test_embeddings_are_read_and_written(asked: dict[str, Any], answered: dict[str, Any], texts: list[str]) -> None:
    body = json.dumps(asked).encode()
    request = bedrock_invoke.read_request(body, Operation.EMBEDDINGS)
    assert [part["content"] for message in request.messages for part in message["parts"]] == texts
    assert same(json.loads(bedrock_invoke.write_request(request)), asked)
    answer = bedrock_invoke.read_response(json.dumps(answered).encode(), 200)
    assert answer.messages == ()
    assert same(json.loads(bedrock_invoke.write_response(answer)), answered)
    assert is_exchange(Operation.EMBEDDINGS, body, bedrock_invoke)


def test_vectors_that_were_made_for_anybody_are_written_and_what_is_no_text_is_refused() -> None:
    made = Answer(provider_fields={"data": [{"object": "embedding", "embedding": [0.5], "index": 0}]})
    request = bedrock_invoke.read_request(b'{"inputText": "a"}', Operation.EMBEDDINGS)
    answer = bedrock_invoke.as_asked(request, made)
    assert json.loads(bedrock_invoke.write_response(answer)) == {"embedding": [0.5]}
    assert bedrock_invoke.split(answer) == [(0.0, b'{"embedding":[0.5]}')]
    assert embeddings.join([(0.0, b'{"embedding":'), (1.0, b"[0.5]}")]).provider_fields == {"embedding": [0.5]}
    with pytest.raises(ValueError, match="texts"):
        bedrock_invoke.read_request(b'{"texts": [1]}', Operation.EMBEDDINGS)


def test_a_prompt_to_a_model_of_unknown_make_is_answered_as_openai_would() -> None:
    request = replace(bedrock_invoke.read_request(b'{"prompt": "a"}', Operation.CHAT), model="arn:imported")
    answer = anthropic.read_response(json.dumps(CALLS[list(CALLS)[-2]][1]).encode(), 200)
    body = json.loads(bedrock_invoke.write_response(bedrock_invoke.as_asked(request, answer)))
    assert body["choices"][0]["text"] == WORDS


def test_a_failure_is_written_as_it_was_read() -> None:
    body = {"message": "Too many tokens", "__type": "ThrottlingException"}
    answer = bedrock_invoke.read_response(json.dumps(body).encode(), 429)
    assert answer.error is not None
    assert answer.error.message == "Too many tokens"
    assert json.loads(bedrock_invoke.write_response(answer)) == body
    assert bedrock_invoke.split(answer) == [(0.0, bedrock_invoke.write_response(answer))]


def test_the_model_in_the_path_says_what_is_asked_for() -> None:
    ends = {"/invoke", "/invoke-with-response-stream"}
    assert {recognise("POST", f"/model/meta.llama3/{end}".replace("//", "/")) for end in ends} == {
        (bedrock_invoke, Operation.CHAT)
    }
    titan = recognise("POST", "/model/amazon.titan-embed-text-v2%3A0/invoke")
    assert titan == (bedrock_invoke, Operation.EMBEDDINGS)
    assert recognise("POST", "/model/stability.sd3-large-v1%3A0/invoke") is None
    assert recognise("POST", "/model/amazon.nova-canvas-v1%3A0/invoke") is None
    assert recognise("POST", "/chain/invoke") is None
    assert not is_exchange(Operation.CHAT, b'{"query": 1}', bedrock_invoke)
    with pytest.raises(ValueError, match="messages"):
        bedrock_invoke.read_request(b'{"query": 1}', Operation.CHAT)


def test_an_answer_made_for_anybody_is_framed_as_anthropic_would() -> None:
    answer = anthropic.read_response(json.dumps(CALLS[list(CALLS)[-2]][1]).encode(), 200)
    body = b"".join(piece for _, piece in bedrock_invoke.split(answer))
    assert bedrock_invoke.join([(0.0, body)]).messages[0]["parts"] == [{"type": "text", "content": WORDS}]


def _invoked(client: Any, model: str, body: str) -> Any:
    return json.loads(client.invoke_model(modelId=model, body=body)["body"].read())


def _events(client: Any, model: str, body: str) -> Any:
    stream = client.invoke_model_with_response_stream(modelId=model, body=body)["body"]
    return [json.loads(event["chunk"]["bytes"]) for event in stream]


def _ask(root: str, way: Callable[[Any, str, str], Any], name: str) -> Any:
    account = {"aws_access_key_id": "k", "aws_secret_access_key": "k", "region_name": "us-east-1"}
    once = Config(retries={"max_attempts": 1})
    with closing(boto3.client("bedrock-runtime", endpoint_url=root, config=once, **account)) as client:
        return way(client, name, json.dumps(CALLS[name][0]))


def _scripted(way: Callable[[Any, str, str], Any], name: str) -> Any:
    with testing.ScriptedProvider([testing.text(WORDS)]) as provider:
        return _ask(provider.base_url.removesuffix("/v1"), way, name)


@pytest.mark.parametrize("way", [_invoked, _events], ids=lambda way: way.__name__)
@pytest.mark.parametrize("name", [name for name in STREAMED if not name.startswith("arn")])
def test_calls_are_recorded_and_answered_again(name: str, way: Any, tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    without = _scripted(way, name)
    spanreel.instrument(settings=spanreel.read_settings({"SPANREEL_FILE": str(file), "SPANREEL_LOG": "off"}))
    try:
        given = _scripted(way, name)
        assert spanreel.flush()
    finally:
        spanreel.uninstrument()
    assert given == without
    (session,) = convert_files([str(file)]).sessions
    (call,) = session.runs[0].model_calls()
    expected = "anthropic_bedrock" if name.startswith("anthropic") else "bedrock_invoke"
    assert (call.protocol, call.model, call.provider) == (expected, name, "aws.bedrock")
    assert call.streamed is (way is _events)
    assert session.messages[call.output[0]].parts == [{"type": "text", "content": WORDS}]
    with spanreel.replay(session) as playing:
        assert _ask("http://127.0.0.1:9", way, name) == given
    assert str(playing.verdict) == "PASS"
