"""The whole circle through the command line, with an agent that knows only `spanreel.run` and `spanreel.tool`.

Small enough to run in every environment: today's libraries, and the oldest that are permitted.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spanreel import load_sessions, testing
from spanreel.model import Status

pytestmark = pytest.mark.slow

AGENT = """
import json, os, sys
from pathlib import Path
import openai
import spanreel

@spanreel.tool(side_effect=True)
def refund(order: int, amount: float = 10.0) -> str:
    with Path(os.environ["LEDGER"]).open("a") as ledger:
        ledger.write(f"{order} {amount}\\n")
    return f"refunded {amount}"

@spanreel.run(agent="care")
def answer(question: str) -> str:
    client = openai.OpenAI(max_retries=0)
    prompt = os.environ.get("PROMPT", "Be kind.")
    messages = [{"role": "system", "content": prompt}, {"role": "user", "content": question}]
    tools = [{"type": "function", "function": {"name": "refund", "parameters": {"type": "object"}}}]
    while True:
        stream = client.chat.completions.create(model="gpt-5", messages=messages, tools=tools, stream=True)
        text, calls = "", {}
        for chunk in stream:
            for choice in chunk.choices:
                text += choice.delta.content or ""
                for part in choice.delta.tool_calls or ():
                    call = calls.setdefault(part.index, {"id": "", "name": "", "arguments": ""})
                    call["id"] += part.id or ""
                    call["name"] += part.function.name or ""
                    call["arguments"] += part.function.arguments or ""
        if not calls:
            return text
        functions = [{"name": call["name"], "arguments": call["arguments"]} for call in calls.values()]
        asked = [{"id": c["id"], "type": "function", "function": f} for c, f in zip(calls.values(), functions)]
        messages.append({"role": "assistant", "content": text or None, "tool_calls": asked})
        for call in calls.values():
            result = refund(**json.loads(call["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})

print(answer(sys.argv[1]))
"""

SCRIPT = [testing.tool_call("refund", {"order": 17, "amount": 12.5}), testing.text("Done: 12.5 is on its way.")]


class Circle:
    """A folder with the agent in it, and the commands that one runs there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.agent = folder / "agent.py"
        self.agent.write_text(AGENT)
        self.ledger = folder / "ledger.txt"
        self.traces = folder / "traces.jsonl"
        self.session = folder / "session.json"

    def spanreel(self, *words: str | Path, base_url: str, **environment: str) -> subprocess.CompletedProcess[str]:
        # The port 9 of loopback is closed: whatever would leave for a model there fails.
        settings = {"OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "none", "LEDGER": str(self.ledger)}
        return subprocess.run(
            [sys.executable, "-m", "spanreel", *words],
            env={**os.environ, **settings, **environment},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    def record(self) -> None:
        with testing.ScriptedProvider(SCRIPT) as provider:
            command = ("run", "--", sys.executable, self.agent, "Where is my money?")
            done = self.spanreel(*command, base_url=provider.base_url, SPANREEL_FILE=str(self.traces))
        assert done.stdout == "Done: 12.5 is on its way.\n", done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr
        done = self.spanreel("convert", self.traces, "--out", self.session, base_url="")
        assert done.returncode == 0, done.stderr

    def replay(self, **environment: str) -> subprocess.CompletedProcess[str]:
        command = ("replay", self.session, "--", sys.executable, self.agent, "Something else?")
        return self.spanreel(*command, base_url="http://127.0.0.1:9/v1", **environment)


@pytest.fixture(scope="module")
def circle(tmp_path_factory: pytest.TempPathFactory) -> Circle:
    made = Circle(tmp_path_factory.mktemp("circle"))
    made.record()
    return made


def test_a_recorded_run_becomes_a_session_with_two_turns(circle: Circle) -> None:
    (session,) = load_sessions(circle.session)
    (run,) = session.runs
    assert (run.agent.name, run.status, len(run.turns)) == ("care", Status.OK, 2)
    (call,) = run.turns[0].tool_calls
    assert (call.name, call.arguments, call.result) == ("refund", {"order": 17, "amount": 12.5}, "refunded 12.5")
    assert [call.streamed for call in run.model_calls()] == [True, True]


def test_a_session_is_shown_to_people(circle: Circle) -> None:
    done = circle.spanreel("show", circle.session, base_url="")
    assert done.returncode == 0, done.stderr
    for word in ("care", "refund", "gpt-5"):
        assert word in done.stdout


def test_the_same_agent_replays_offline_with_the_recorded_input_and_nothing_happens_again(circle: Circle) -> None:
    done = circle.replay()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Done: 12.5 is on its way.\n" in done.stdout
    assert "PASS" in done.stdout + done.stderr
    assert circle.ledger.read_text() == "17 12.5\n"


def test_a_changed_prompt_fails_and_the_report_names_it(circle: Circle, tmp_path: Path) -> None:
    done = circle.replay(PROMPT="Be strict.")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "FAIL" in done.stdout + done.stderr
    assert "Be strict." in done.stdout + done.stderr
    assert circle.ledger.read_text() == "17 12.5\n"
