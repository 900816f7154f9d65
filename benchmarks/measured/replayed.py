"""One way to replay an agent, measured in a process of its own, since some patch the SDK for everybody.

    replayed.py WAY SESSIONS ROUNDS JOBS      prints one line of JSON

The agent is a loop by hand on the OpenAI SDK: ten model calls and ten tool calls a session, over a transport that
answers from memory, so that what replaying adds is the difference to ``bare``.
"""

from __future__ import annotations

import importlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import httpx2
import openai

TURNS = 10
CALLS = 2 * TURNS
DEFINITION: Any = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
asked: list[str] = []
"""Who has been asked for real: the model, the tool."""

Look = Callable[..., str]
In = Callable[[int], AbstractContextManager[Any]]
"""What a session is recorded, or replayed, in."""


def look(number: int) -> str:
    """A tool that does nothing."""
    asked.append("tool")
    return f"seen {number}"


def answered(turn: int) -> dict[str, Any]:
    """What the model says in this turn: another call of the tool, or, in the last, that it is done."""
    message: dict[str, Any] = {"role": "assistant", "content": "done" if turn == TURNS - 1 else None}
    if turn < TURNS - 1:
        function = {"name": "look", "arguments": json.dumps({"number": turn})}
        message["tool_calls"] = [{"id": f"c{turn}", "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "stop" if turn == TURNS - 1 else "tool_calls"}
    return {"id": "r", "object": "chat.completion", "created": 1, "model": "gpt-5", "choices": [choice]}


def _respond(request: httpx2.Request) -> httpx2.Response:
    asked.append("model")
    turn = sum(one["role"] == "assistant" for one in json.loads(request.content)["messages"])
    return httpx2.Response(200, json=answered(turn))


def client() -> openai.OpenAI:
    """The SDK over a model in memory."""
    http = httpx2.Client(transport=httpx2.MockTransport(_respond))
    return openai.OpenAI(base_url="http://127.0.0.1:9/v1", api_key="none", http_client=http)


def agent(question: str, tool: Look, sdk: openai.OpenAI) -> str:
    """The agent."""
    said: list[Any] = [{"role": "user", "content": question}]
    tool(number=-1)
    while True:
        message = sdk.chat.completions.create(model="gpt-5", messages=said, tools=[DEFINITION]).choices[0].message
        said.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return message.content or ""
        for call in message.tool_calls:
            result = tool(**json.loads(call.function.arguments))  # type: ignore[union-attr]
            said.append({"role": "tool", "tool_call_id": call.id, "content": result})


def measure(
    run: Callable[[int], str], replaying: In, sessions: int, rounds: int, check: Callable[[], str | None]
) -> dict[str, Any]:
    """Bare and replayed runs in turns; what went live; whether every round came to the same."""
    bare: list[float] = []
    took: list[float] = []
    came_to: set[str] = set()
    live: dict[str, int] = {"model": 0, "tool": 0}
    for _ in range(rounds):
        start = time.perf_counter()
        for number in range(sessions):
            agent(f"question {number}", look, BARE)
        bare.append(time.perf_counter() - start)
        asked.clear()
        said = []
        start = time.perf_counter()
        for number in range(sessions):
            with replaying(number):
                said.append(run(number))
        took.append(time.perf_counter() - start)
        came_to.add(json.dumps([said, check()]))
        live = {name: asked.count(name) for name in live}
    return result(bare, took, sessions, live, same=len(came_to) == 1)


def result(
    bare: list[float], took: list[float], sessions: int, live: dict[str, int], *, same: bool, **more: Any
) -> dict[str, Any]:
    """The numbers of a way."""
    alone, replayed = statistics.median(bare), statistics.median(took)
    added = (replayed - alone) / sessions / CALLS * 1000
    return {
        "bare": sessions / alone,
        "replayed": sessions / replayed,
        "added": added,
        "spread": (max(took) - min(took)) / replayed,
        "live": live,
        "same": same,
        **more,
    }


BARE = client()


# -- the ways ----------------------------------------------------------------------------------------------------------


def spanreel(sessions: int, rounds: int, jobs: int, folder: Path) -> dict[str, Any]:
    """Ours, as ``spanreel replay FOLDER --jobs N`` does it: with the guard, and a report of each."""
    ours = importlib.import_module("spanreel")
    batch = importlib.import_module("spanreel.replay.running.batch")
    options = importlib.import_module("spanreel.replay.running.options")
    documents = importlib.import_module("measured.recorded_sessions")
    tool, sdk = ours.tool()(look), client()
    module: Any = sys.modules["__main__"]
    sys.modules["replayed_agent"] = module

    def answer(question: str) -> str:
        return agent(question, tool, sdk)

    module.answer = ours.run(agent="looker")(answer)
    files = documents.write_sessions(folder, sessions, TURNS)
    bare: list[float] = []
    took: list[float] = []
    reports: set[str] = set()
    live: dict[str, int] = {}
    passed = 0
    for _ in range(rounds):
        start = time.perf_counter()
        for number in range(sessions):
            agent(f"question {number}", look, BARE)
        bare.append(time.perf_counter() - start)
        asked.clear()
        start = time.perf_counter()
        made = list(batch.play_all(files, options.Options(entry="replayed_agent:answer"), jobs=jobs))
        took.append(time.perf_counter() - start)
        live = {name: asked.count(name) for name in ("model", "tool")}
        reports.add(json.dumps(sorted((one.name, one.report) for one in made), sort_keys=True))
        passed = sum(one.verdict == "PASS" for one in made)
    return result(bare, took, sessions, live, same=len(reports) == 1, passed=passed)


def agent_rewind(sessions: int, rounds: int, _jobs: int, folder: Path) -> dict[str, Any]:
    """agent-rewind, patching the SDK."""
    peer = importlib.import_module("rewind")
    peer.auto_patch("openai")
    tool, sdk = peer.tool(look), client()

    def run(number: int) -> str:
        return agent(f"question {number}", tool, sdk)

    for number in range(sessions):
        with peer.record(folder / f"{number}.rewind"):
            run(number)
    return measure(run, lambda number: peer.replay(folder / f"{number}.rewind"), sessions, rounds, lambda: None)


def agenttape(sessions: int, rounds: int, _jobs: int, folder: Path) -> dict[str, Any]:
    """agenttape, with its own interception of the SDK."""
    peer = importlib.import_module("agenttape")
    tool, sdk = peer.tool(look), client()

    def run(number: int) -> str:
        return agent(f"question {number}", tool, sdk)

    def within(mode: str) -> In:
        return lambda number: peer.use_cassette(folder / f"{number}.yaml", mode=mode)

    for number in range(sessions):
        with within("record")(number):
            run(number)
    return measure(run, within("none"), sessions, rounds, lambda: None)


def vcrpy(sessions: int, rounds: int, _jobs: int, folder: Path) -> dict[str, Any]:
    """vcrpy: what is on the wire, where it knows the client; tools run."""
    peer = importlib.import_module("vcr")
    sdk = client()

    def run(number: int) -> str:
        return agent(f"question {number}", look, sdk)

    made = peer.VCR(match_on=["method", "uri", "body"], record_mode="once")

    @contextmanager
    def within(number: int) -> Iterator[None]:
        with made.use_cassette(str(folder / f"{number}.yaml")) as cassette:
            yield
        kept.append(len(cassette))

    kept: list[int] = []
    for number in range(sessions):
        with within(number):
            run(number)
        if not kept[0]:
            break
    if not sum(kept):
        return {
            "cannot": "it has no stubs for httpx2, which openai 3 asks through: nothing was recorded, and all went live"
        }
    return measure(run, within, sessions, rounds, lambda: None)


WAYS = {"spanreel": spanreel, "agent-rewind": agent_rewind, "agenttape": agenttape, "vcrpy": vcrpy}


def main() -> None:
    """Measure one way."""
    name, sessions, rounds, jobs = sys.argv[1], *map(int, sys.argv[2:5])
    with tempfile.TemporaryDirectory() as folder, nullcontext():
        try:
            said = WAYS[name](sessions, rounds, jobs, Path(folder))
        except ImportError as error:
            said = {"cannot": f"it is not installed: {error}"}
        except Exception as error:  # noqa: BLE001 - what a peer cannot do is a result
            said = {"cannot": f"{type(error).__name__}: {error}"[:300]}
    print(json.dumps(said))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    main()
