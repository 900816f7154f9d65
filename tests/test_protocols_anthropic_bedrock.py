"""Anthropic messages in Bedrock's invoke: by their own SDK, and by botocore."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import anthropic
import boto3
import pytest
from botocore.config import Config

import spanreel
from spanreel import testing
from spanreel.model import Operation
from spanreel.protocols import anthropic as messages
from spanreel.protocols import bedrock_invoke, recognise
from spanreel.protocols.anthropic import bedrock
from spanreel.protocols.frames import read_frames, write_frame
from spanreel_collector import convert_files

MODEL = "us.anthropic.claude-v1:0"
WORDS = "one two three"
HEADERS = ((":event-type", "chunk"), (":content-type", "application/json"), (":message-type", "event"))
EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [], "usage": {"input_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "one two "}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "three"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
    {"type": "message_stop", "amazon-bedrock-invocationMetrics": {"inputTokenCount": 1}},
]


def framed(event: dict[str, Any], **padding: str) -> bytes:
    """An event as Bedrock sends it."""
    data = json.dumps(event, separators=(",", ":")).encode()
    payload = {"bytes": base64.b64encode(data).decode(), **padding}
    return write_frame(HEADERS, json.dumps(payload, separators=(",", ":")).encode())


def test_a_stream_is_joined_and_split_as_it_came() -> None:
    frames = [framed(event, p="abc"[: number % 3 + 1]) for number, event in enumerate(EVENTS)]
    answer = bedrock.join([(float(number), frame) for number, frame in enumerate(frames)])
    assert answer.complete
    assert answer.messages[0]["parts"] == [{"type": "text", "content": WORDS}]
    again = bedrock.split(answer)
    assert [piece for _, piece in again] == frames
    assert bedrock.join(again) == answer


@pytest.mark.parametrize(
    "other",
    [
        write_frame((), b""),
        write_frame(HEADERS, b"{}"),
        write_frame(HEADERS, b'{"bytes":"?"}'),
        write_frame(HEADERS, b'{"bytes":"AA=="}'),
        b"no frame",
    ],
)
def test_frames_of_another_kind_are_kept_as_they_came(other: bytes) -> None:
    body = framed(EVENTS[0]) + other
    answer = bedrock.join([(0.0, body)])
    assert b"".join(piece for _, piece in bedrock.split(answer)) == body


def test_a_stream_that_was_none_is_framed() -> None:
    answer = messages.read_response(b'{"id":"m","role":"assistant","content":[{"type":"text","text":"one two"}]}', 200)
    body = b"".join(piece for _, piece in bedrock.split(answer))
    assert all(frame.headers == HEADERS for frame in read_frames([(0.0, body)]))
    assert bedrock.join([(0.0, body)]).messages[0]["parts"] == [{"type": "text", "content": "one two"}]


def test_models_of_others_are_of_another_protocol() -> None:
    path = "/model/us.anthropic.claude-v1%3A0/invoke"
    assert recognise("POST", path) == (bedrock, Operation.CHAT)
    assert recognise("POST", f"{path}-with-response-stream") == (bedrock, Operation.CHAT)
    assert recognise("POST", "/model/amazon.titan-v1/invoke") == (bedrock_invoke, Operation.CHAT)
    assert recognise("POST", "/chain/invoke") is None


def _sdk(root: str, use: Callable[[Any], Any]) -> Any:
    account: Any = {"aws_access_key": "k", "aws_secret_key": "k", "aws_region": "us-east-1"}
    with anthropic.AnthropicBedrock(base_url=root, max_retries=0, **account) as client:
        return use(client.messages)


def _boto(root: str, use: Callable[[Any], Any]) -> Any:
    account = {"aws_access_key_id": "k", "aws_secret_access_key": "k", "region_name": "us-east-1"}
    once = Config(retries={"max_attempts": 1})
    with closing(boto3.client("bedrock-runtime", endpoint_url=root, config=once, **account)) as client:
        return use(client)


ASKED: dict[str, Any] = {"max_tokens": 9, "messages": [{"role": "user", "content": "Count."}]}
BODY = json.dumps({**ASKED, "anthropic_version": "bedrock-2023-05-31"})


def _invoked(client: Any) -> Any:
    return json.loads(client.invoke_model(modelId=MODEL, body=BODY)["body"].read())["content"]


def _events(client: Any) -> list[Any]:
    stream = client.invoke_model_with_response_stream(modelId=MODEL, body=BODY)["body"]
    return [json.loads(event["chunk"]["bytes"]).get("type") for event in stream]


WAYS: dict[str, Callable[[str], Any]] = {
    "sdk": lambda root: _sdk(root, lambda asked: asked.create(model=MODEL, **ASKED).content[0].text),
    "sdk-stream": lambda root: _sdk(
        root, lambda asked: [event.type for event in asked.create(model=MODEL, stream=True, **ASKED)]
    ),
    "botocore": lambda root: _boto(root, _invoked),
    "botocore-stream": lambda root: _boto(root, _events),
}


@pytest.mark.parametrize("way", WAYS)
def test_calls_are_recorded_and_answered_again(way: str, tmp_path: Path) -> None:
    ask, file = WAYS[way], tmp_path / "traces.jsonl"
    with testing.ScriptedProvider([testing.text(WORDS)] * 2) as provider:
        root = provider.base_url.removesuffix("/v1")
        plain = ask(root)
        spanreel.instrument(settings=spanreel.read_settings({"SPANREEL_FILE": str(file), "SPANREEL_LOG": "off"}))
        try:
            said = ask(root)
            assert spanreel.flush()
        finally:
            spanreel.uninstrument()
    assert said == plain
    (session,) = convert_files([str(file)]).sessions
    (call,) = session.runs[0].model_calls()
    assert (call.protocol, call.model, call.provider) == ("anthropic_bedrock", MODEL, "aws.bedrock")
    assert call.streamed is way.endswith("stream")
    assert session.messages[call.output[0]].parts == [{"type": "text", "content": WORDS}]
    with spanreel.replay(session) as playing:
        assert ask("http://127.0.0.1:9") == said
    assert str(playing.verdict) == "PASS"
