"""How fast sessions are replayed: replays a second, and the time that an answered call takes beside the agent's own.

An agent by hand on the OpenAI SDK: ten model calls and ten tool calls a session. ``bare`` is the same agent on a
transport that answers from memory and with tools that do nothing, so that the difference is what replay adds. Both take
turns in one process.

    replay.py [--sessions N] [--rounds N] [--jobs N]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx2
import openai

import spanreel
from spanreel.replay.batch import play_all
from spanreel.replay.runner import Options

TURNS = 10
CALLS = 2 * TURNS
DEFINITION: Any = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
ENTRY = "replay_agent:answer"
"""This module under a name of its own: an entry is imported, and a script is ``__main__``."""


def answered(turn: int) -> dict[str, Any]:
    """What the model says in this turn: another call of the tool, or, in the last, that it is done."""
    message: dict[str, Any] = {"role": "assistant", "content": "done" if turn == TURNS - 1 else None}
    if turn < TURNS - 1:
        function = {"name": "look", "arguments": json.dumps({"number": turn})}
        message["tool_calls"] = [{"id": f"c{turn}", "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "stop" if turn == TURNS - 1 else "tool_calls"}
    return {"id": "r", "object": "chat.completion", "created": 1, "model": "gpt-5", "choices": [choice]}


def transport() -> httpx2.MockTransport:
    """A model in memory."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        turn = sum(one["role"] == "assistant" for one in json.loads(request.content)["messages"])
        return httpx2.Response(200, json=answered(turn))

    return httpx2.MockTransport(answer)


CLIENT = openai.OpenAI(
    base_url="http://127.0.0.1:9/v1", api_key="none", http_client=httpx2.Client(transport=transport())
)


@spanreel.tool()
def look(number: int) -> str:
    """A tool that does nothing."""
    return f"seen {number}"


@spanreel.run(agent="looker")
def answer(question: str) -> str:
    """The agent."""
    said: list[Any] = [{"role": "user", "content": question}]
    look(-1)
    while True:
        message = CLIENT.chat.completions.create(model="gpt-5", messages=said, tools=[DEFINITION]).choices[0].message
        said.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return message.content or ""
        for call in message.tool_calls:
            result = look(**json.loads(call.function.arguments))  # type: ignore[union-attr]
            said.append({"role": "tool", "tool_call_id": call.id, "content": result})


def write_sessions(folder: Path, count: int) -> list[tuple[str, str | None]]:
    """The documents of so many sessions, each with a question of its own."""
    files: list[tuple[str, str | None]] = []
    for number in range(count):
        file = folder / f"{number:05}.json"
        file.write_text(json.dumps(document(number)))
        files.append((str(file), None))
    return files


def document(number: int) -> dict[str, Any]:
    """A session as a recording of the agent has it."""
    messages: list[dict[str, Any]] = [{"role": "user", "parts": [{"type": "text", "content": f"question {number}"}]}]
    turns: list[dict[str, Any]] = []
    run = {
        "id": "run",
        "trace_id": "t",
        "path": "root",
        "agent": {"name": "looker"},
        "entrypoint": {"arguments": {"question": f"question {number}"}},
        "result": "done",
        "turns": turns,
    }
    turns.append({"index": 0, "tool_calls": [tool(-1, None)]})
    for turn in range(TURNS):
        said = list(range(len(messages)))
        last = turn == TURNS - 1
        asked = {"type": "tool_call", "id": f"c{turn}", "name": "look", "arguments": {"number": turn}}
        messages.append({"role": "assistant", "parts": [{"type": "text", "content": "done"} if last else asked]})
        call = {
            "id": f"m{turn}",
            "protocol": "openai_chat",
            "model": "gpt-5",
            "input": said,
            "output": [len(messages) - 1],
            "tools": [0],
            "finish_reasons": ["stop" if last else "tool_calls"],
            "started_at": f"2026-03-01T10:{turn:02}:10Z",
            "ended_at": f"2026-03-01T10:{turn:02}:20Z",
        }
        turns.append({"index": turn + 1, "model_call": call, "tool_calls": [] if last else [tool(turn, f"m{turn}")]})
        part = {"type": "tool_call_response", "id": f"c{turn}", "response": f"seen {turn}"}
        messages.append({"role": "tool", "parts": [part]})
    return {
        "schema": "spanreel.session/1",
        "id": f"session-{number:05}",
        "key": {"kind": "trace", "value": "t"},
        "messages": messages,
        "tools": [{"type": "function", "name": "look", "parameters": {"type": "object"}}],
        "runs": [run],
    }


def tool(number: int, asked_by: str | None) -> dict[str, Any]:
    """A recorded call of the tool."""
    second = "00" if number < 0 else "30"
    minute = max(number, 0)
    return {
        "id": f"t{number}",
        "call_id": f"c{number}" if asked_by else None,
        "name": "look",
        "arguments": {"number": number},
        "result": f"seen {number}",
        "requested_by": {"model_call": asked_by, "position": 0} if asked_by else None,
        "started_at": f"2026-03-01T10:{minute:02}:{second}Z",
        "ended_at": f"2026-03-01T10:{minute:02}:{int(second) + 5:02}Z",
    }


def main() -> None:
    """Print medians, and whether the reports were the same in every round."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    sys.modules["replay_agent"] = sys.modules["__main__"]
    bare: list[float] = []
    replayed: list[float] = []
    reports: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        files = write_sessions(Path(folder), given.sessions)
        for _ in range(given.rounds):
            start = time.perf_counter()
            for number in range(given.sessions):
                answer(f"question {number}")
            bare.append(time.perf_counter() - start)
            start = time.perf_counter()
            made = list(play_all(files, Options(entry=ENTRY), jobs=given.jobs))
            replayed.append(time.perf_counter() - start)
            reports.add(json.dumps(sorted((one.name, one.report) for one in made), sort_keys=True))
    passed = sum(one.verdict == "PASS" for one in made)
    took, alone = statistics.median(replayed), statistics.median(bare)
    print(f"{given.sessions} sessions of {CALLS} calls, {given.jobs} at once, medians of {given.rounds} rounds")
    print(f"  bare      {given.sessions / alone:8.1f} runs a second")
    print(f"  replayed  {given.sessions / took:8.1f} runs a second, {passed} PASS")
    print(f"  added     {(took - alone) / given.sessions / CALLS * 1000:8.3f} ms an answered call")
    print(f"  reports   {'the same in every round' if len(reports) == 1 else 'DIFFER BETWEEN ROUNDS'}")


if __name__ == "__main__":
    main()
