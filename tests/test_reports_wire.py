"""Public bug reports of neighbouring tools about what clients and providers put on the wire."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import requests

import spanreel
from recording import recorded_in
from spanreel import testing
from spanreel.protocols import openai_chat, protocol_named
from spanreel_collector import convert_files

HALF = "half of an emoji: \ud83d, and more"
KNOWN = "half of an emoji: \ufffd, and more"
PATHS = {"openai_chat": "chat/completions", "openai_responses": "responses", "anthropic_messages": "messages"}


def spoken(name: str, stream: bool, body: bytes) -> list[str]:
    """The texts of an answer as it was given to a client."""
    protocol = protocol_named(name)
    answer = protocol.join([(0.0, body)]) if stream else protocol.read_response(body, 200)
    return [part["content"] for message in answer.messages for part in message["parts"]]


# mlflow/mlflow#24123, openai/openai-agents-python#4983: JSON may hold half a surrogate pair as its escape, `json` reads
# and writes it, and a text that was cut in an emoji stands in every request of the conversation after it.
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("protocol", PATHS)
def test_half_of_an_emoji_costs_no_call_its_content(protocol: str, stream: bool, tmp_path: Path) -> None:
    said = {"role": "user", "content": HALF}
    asked = {"model": "m", "max_tokens": 9, "stream": stream}
    asked |= {"input": [said]} if protocol == "openai_responses" else {"messages": [said]}

    def ask(root: str) -> bytes:
        return requests.post(f"{root}/{PATHS[protocol]}", json=asked, timeout=60).content

    file = tmp_path / "traces.jsonl"
    with testing.ScriptedProvider([testing.text(HALF)]) as provider:
        answer = recorded_in(file, lambda: ask(provider.base_url))
        assert provider.requests[0].request is not None
        assert provider.requests[0].request.messages[0]["parts"] == [{"type": "text", "content": HALF}]
    assert spoken(protocol, stream, answer) == [HALF]
    (session,) = convert_files([str(file)]).sessions
    call = session.runs[0].turns[0].model_call
    assert call is not None
    texts = [session.messages[at].parts[0]["content"] for at in (*call.input, *call.output)]
    assert (texts, call.response_model, call.complete) == ([KNOWN, KNOWN], "m", True)
    with spanreel.replay(session) as playing:
        assert spoken(protocol, stream, ask("http://127.0.0.1:9/v1")) == [KNOWN]
    assert str(playing.verdict) == "PASS"


def test_an_emoji_that_is_cut_between_two_chunks_is_whole_in_the_session(tmp_path: Path) -> None:
    halves = [{"content": "so "}, {"content": "\ud83d"}, {"content": "\ude00"}, {"content": " be it"}]
    chunks = [{"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta}]} for delta in halves]
    chunks += [{"id": "c", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]
    body = b"".join(b"data: %s\n\n" % json.dumps(chunk).encode() for chunk in chunks) + b"data: [DONE]\n\n"
    answer = openai_chat.join([(0.0, body)])
    assert openai_chat.join(openai_chat.split(answer)) == answer
    assert json.loads(json.dumps(answer.messages[0]["parts"])) == [{"type": "text", "content": "so \U0001f600 be it"}]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_json_with_a_mark_of_its_order_is_json(encoding: str) -> None:
    body = {"id": "c", "object": "chat.completion", "model": "m", "choices": [{"message": {"content": "h\xe9"}}]}
    answer = openai_chat.read_response(json.dumps(body, ensure_ascii=False).encode(encoding), 200)
    assert answer.messages[0]["parts"] == [{"type": "text", "content": "h\xe9"}]
