"""Public bug reports of neighbouring tools whose inputs are files among the shared cases: 002 and 044."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from conftest import cases
from recording import attribute, recording


def served() -> list[dict[str, Any]]:
    """The three answers of report 002."""
    return [json.loads(line) for line in cases("reports/002-raw-response.jsonl").read_text().splitlines()]


def client_of(answer: dict[str, Any]) -> openai.OpenAI:
    """An SDK client whose transport gives one of them."""

    def respond(_request: httpx2.Request) -> httpx2.Response:
        if answer["kind"] == "json":
            return httpx2.Response(200, json=answer["body"], headers=answer["headers"])
        lines = [event if isinstance(event, str) else json.dumps(event) for event in answer["events"]]
        content = "".join(f"data: {line}\n\n" for line in lines).encode()
        return httpx2.Response(200, content=content, headers={"content-type": "text/event-stream"})

    http = httpx2.Client(transport=httpx2.MockTransport(respond))
    return openai.OpenAI(api_key="k", base_url="http://model.test/v1", http_client=http)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_002_raw_responses_keep_headers_text_and_types(number: int) -> None:
    answer = served()[number]
    client, streams = client_of(answer), answer["kind"] == "sse"
    create: Any = client.chat.completions if "chat" in answer["path"] else client.responses
    asked: dict[str, Any] = {"messages": []} if "chat" in answer["path"] else {"input": "hi"}
    with recording() as rec:
        raw = create.with_raw_response.create(model="m", stream=streams, **asked)
        parsed = raw.parse()
        if streams:
            assert isinstance(parsed, openai.Stream)
            assert len(list(parsed)) == len([event for event in answer["events"] if event != "[DONE]"])
        else:
            assert raw.headers["x-ratelimit-remaining-requests"] == "41"
            assert parsed.choices[0].message.content == "Hello."
        span = rec.one("chat")
        assert attribute(span, "gen_ai.response.model") == "fake-gpt-1"
        assert "Hello." in attribute(span, "gen_ai.output.messages")
        assert attribute(span, "gen_ai.usage.input_tokens") == 9
        assert attribute(span, "gen_ai.usage.output_tokens") == 2
        assert attribute(span, "gen_ai.response.finish_reasons") == ("stop",)


AGENT = """
import sys, openai, spanreel

@spanreel.run(agent="demo")
def demo():
    messages = [{"role": "user", "content": sys.argv[1]}]
    return openai.OpenAI().chat.completions.create(model="fake-gpt-1", messages=messages).choices[0].message.content

print(demo())
"""


@pytest.mark.slow
def test_044_a_request_without_a_recording_fails_names_the_difference_and_reaches_no_network(tmp_path: Path) -> None:
    traces = cases("reports/044-miss-exit-code.jsonl")
    (tmp_path / "agent.py").write_text(AGENT)
    variables = {name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"}

    def spanreel(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "spanreel", *words]
        return subprocess.run(
            command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False, timeout=600
        )

    assert spanreel("convert", str(traces), "--out", "session.json").returncode == 0
    replay = ("replay", "session.json", "--report", "report.json", "--", sys.executable, "agent.py")
    unchanged = spanreel(*replay, "What value is frozen?")
    assert (unchanged.returncode, unchanged.stdout.splitlines()[0]) == (0, "Frozen answer")
    changed = spanreel(*replay, "What value is frozen NOW?")
    assert changed.returncode == 1
    assert "What value is frozen NOW?" in changed.stdout
    assert "/messages/0/parts/0/content" in changed.stdout
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["verdict"], report["misses"]) == ("FAIL", 1)
