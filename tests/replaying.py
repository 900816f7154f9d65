"""Session documents built by hand, and a live agent in miniature that asks a player, for the tests of replay."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

import spanreel
from spanreel.exchange import HttpAnswer, HttpRequest
from spanreel.model import Agent, Answer, Operation, Request, ToolKind
from spanreel.player import LiveRun
from spanreel.point import RunRequest, RunResult, ToolRequest
from spanreel.protocols import openai_chat
from spanreel.replay.judging.verdict import Report, judge
from spanreel.replay.playing.player import SessionPlayer
from spanreel.session import Session
from spanreel.session_files import read_session

TOOL = {
    "type": "function",
    "name": "search",
    "parameters": {
        "type": "object",
        "properties": {"q": {"type": "string"}, "limit": {"type": "integer", "default": 10}},
    },
}


@contextlib.contextmanager
def noted_naps() -> Iterator[list[float]]:
    """For how long whoever runs inside the block asks to sleep, as clients do before they try again; they do sleep."""
    naps: list[float] = []
    nap, nap_async = time.sleep, anyio.sleep

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        nap(seconds)

    async def sleep_async(seconds: float) -> None:
        naps.append(seconds)
        await nap_async(seconds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "sleep", sleep)
        patch.setattr(anyio, "sleep", sleep_async)
        yield naps


@spanreel.tool()
def pay(amount: int) -> str:
    """Here, where processes that a test starts can import it."""
    Path(os.environ.get("LEDGER", os.devnull)).write_text(f"paid {amount}")
    return "live"


def pay_in_child(amount: int) -> str:
    return pay(amount)


def text(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": content}]}


def asks(*calls: tuple[str, str, Any]) -> dict[str, Any]:
    """A message of the model that asks for tools: (call id, name, arguments)."""
    parts = [{"type": "tool_call", "id": one, "name": name, "arguments": value} for one, name, value in calls]
    return {"role": "assistant", "parts": parts}


def told(call_id: str, response: Any) -> dict[str, Any]:
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, "response": response}]}


def at(seconds: float) -> str:
    return f"2026-03-01T10:00:{seconds:012.9f}Z"


@dataclass
class Book:
    """A session in the making; ``clock`` moves by a second with each call that is given no times."""

    id: str = "session-1"
    messages: list[dict[str, Any]] = field(default_factory=list)
    tools: list[dict[str, Any]] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    clock: float = 0

    def run(self, path: str = "root", *, agent: str | None = "demo", **more: Any) -> dict[str, Any]:
        run = {
            "id": f"run-{len(self.runs)}",
            "trace_id": "t",
            "path": path,
            "agent": {"name": agent},
            "turns": [],
            **more,
        }
        self.runs.append(run)
        return run

    def model(
        self, run: dict[str, Any], said: list[dict[str, Any]], answer: dict[str, Any] | None, **more: Any
    ) -> dict[str, Any]:
        tools = more.pop("offered", [])
        call: dict[str, Any] = {
            "id": f"{run['id']}-model-{len(run['turns'])}",
            "protocol": "openai_chat",
            "model": "gpt-5",
            "input": [self._keep(self.messages, message) for message in said],
            "output": [self._keep(self.messages, answer)] if answer else [],
            "tools": [self._keep(self.tools, tool) for tool in tools],
            "usage": {"input_tokens": 10, "output_tokens": 2},
            **self._times(),
            **more,
        }
        run["turns"].append({"index": len(run["turns"]), "model_call": call, "tool_calls": []})
        return call

    def tool(self, run: dict[str, Any], name: str, arguments: Any, result: Any = None, **more: Any) -> dict[str, Any]:
        if not run["turns"]:
            run["turns"].append({"index": 0, "tool_calls": []})
        calls = run["turns"][-1]["tool_calls"]
        call: dict[str, Any] = {
            "id": f"{run['id']}-{name}-{len(run['turns'])}-{len(calls)}",
            "name": name,
            "arguments": arguments,
            "result": result,
            **self._times(),
            **more,
        }
        calls.append(call)
        return call

    def session(self) -> Session:
        document = {
            "schema": "spanreel.session/1",
            "id": self.id,
            "key": {"kind": "trace", "value": "t"},
            "messages": self.messages,
            "tools": self.tools,
            "runs": self.runs,
            **self.extra,
        }
        return read_session(json.dumps(document))

    def _times(self) -> dict[str, str]:
        self.clock += 1
        return {"started_at": at(self.clock), "ended_at": at(self.clock + 0.5)}

    def _keep(self, table: list[dict[str, Any]], entry: dict[str, Any]) -> int:
        if entry not in table:
            table.append(entry)
        return table.index(entry)


class Live:
    """A replayed agent in miniature."""

    def __init__(self, session: Session, run: str | None = None) -> None:
        self.session = session
        self.chosen = session.run(run) if run is not None else None
        self.player = SessionPlayer(session, self.chosen)
        self.started = 0

    def run(
        self,
        path: str = "root",
        *,
        agent: str | None = "demo",
        parent: LiveRun | None = None,
        inside: ToolRequest | None = None,
        arguments: Any = None,
    ) -> LiveRun:
        self.started += 1
        run = LiveRun(f"live-{self.started}", path, Agent(agent), parent.id if parent else None, inside)
        self.given = self.player.begin_run(run, RunRequest(run.agent, arguments=arguments or {}))
        return run

    def ask(self, run: LiveRun | None, said: list[dict[str, Any]], **more: Any) -> Answer:
        answer = self.ask_http(run, said, **more)
        pieces = [piece for _, piece in answer.pieces]
        if more.get("stream"):
            return openai_chat.join([(0.0, piece) for piece in pieces])
        return openai_chat.read_response(b"".join(pieces), answer.status)

    def ask_http(self, run: LiveRun | None, said: list[dict[str, Any]], **more: Any) -> HttpAnswer:
        asked: dict[str, Any] = {"model": "gpt-5", **more}
        request = Request(Operation.CHAT, messages=tuple(said), **asked)
        body = openai_chat.write_request(request)
        return self.send(run, body)

    def send(self, run: LiveRun | None, body: bytes) -> HttpAnswer:
        http = HttpRequest("POST", "http://127.0.0.1/v1/chat/completions", "127.0.0.1", "/v1/chat/completions", body)
        answer = self.player.answer_model(run, openai_chat, Operation.CHAT, http)
        assert isinstance(answer, HttpAnswer)
        return answer

    def call(self, run: LiveRun | None, name: str, arguments: Any, call_id: str | None = None, **more: Any) -> Any:
        answer = self.player.answer_tool(run, ToolRequest(name, arguments, call_id, **more))
        return getattr(answer, "value", answer)

    def end(self, run: LiveRun, value: Any = None, error: BaseException | None = None) -> None:
        self.player.end_run(run, None if error else RunResult(value=value), error)

    def report(self) -> Report:
        return judge(self.session, self.chosen, self.player.events)

    def through(self, run: LiveRun, name: str, arguments: Any, call_id: str | None = None) -> ToolRequest:
        """Call an agent as a tool: it is let through, and runs inside name the request."""
        request = ToolRequest(name, arguments, call_id, ToolKind.AGENT)
        assert self.player.answer_tool(run, request) is None
        return request


def quiet() -> contextlib.suppress:
    """Where a stop is expected and told of elsewhere."""
    from spanreel.errors import ReplayStop

    return contextlib.suppress(ReplayStop)
