"""Models behind real sockets of this machine, and the proof that nothing connected: for tests of what goes live."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import httpx2

from spanreel.testing.provider import Reply
from spanreel.testing.server import LoopbackServer

Answer = Callable[[dict[str, Any]], Any]
"""What a model says to a request: the body of a completion, a whole response, or an exception for a lost connection."""

_models: dict[str, tuple[Answer, list[bytes], float]] = {}
_numbers = itertools.count()
_reached: list[str] | None = None


def serve(answer: Answer, asked: list[bytes], gap: float = 0.0) -> str:
    """The base URL of a model; ``asked`` gets what it is asked, ``gap`` are the milliseconds between chunks."""
    name = str(next(_numbers))
    _models[name] = answer, asked, gap
    return f"http://127.0.0.1:{_server().port}/{name}/v1"


@contextmanager
def offline() -> Iterator[list[str]]:
    """Whatever tries to reach anything inside the block, by any library, is put on the list and fails the test."""
    global _reached  # noqa: PLW0603 - an audit hook cannot be taken away, only told to sleep
    _watch()
    found: list[str] = []
    _reached = found
    try:
        yield found
    finally:
        _reached = None
    assert found == []


@cache
def _watch() -> None:
    def see(event: str, arguments: tuple[Any, ...]) -> None:
        if _reached is not None and event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
            _reached.append(f"{event} {arguments[1:]!r}")

    sys.addaudithook(see)


@cache
def _server() -> LoopbackServer:
    return LoopbackServer(_reply)  # for as long as the process lasts, as its clients' connections do


def _reply(_method: str, path: str, _headers: Mapping[str, str], body: bytes) -> Reply:
    answer, asked, gap = _models[path.split("/")[1]]
    asked.append(body)
    read = json.loads(body)
    said = answer(read)
    if isinstance(said, httpx2.Response):
        headers = {name: value for name, value in said.headers.items() if name.lower() != "content-length"}
        return Reply(said.status_code, headers, (said.content,))
    if read.get("stream"):
        return Reply(200, {"content-type": "text/event-stream"}, tuple(_chunks(said)), hold=gap)
    return Reply(200, {"content-type": "application/json"}, (json.dumps(said).encode(),))


def _chunks(completion: dict[str, Any]) -> Iterator[bytes]:
    """A completion as a stream: text and the arguments of tool calls in pieces, usage in a chunk of its own."""
    (choice,) = completion["choices"]
    message = choice["message"]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": message.get("content") and ""}]
    deltas += [{"content": piece} for piece in _pieces(message.get("content") or "")]
    for index, call in enumerate(message.get("tool_calls") or ()):
        named = {**call["function"], "arguments": ""}
        deltas.append({"tool_calls": [{**call, "index": index, "function": named}]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            for piece in _pieces(call["function"]["arguments"])
        ]
    head = {**{key: completion[key] for key in ("id", "created", "model")}, "object": "chat.completion.chunk"}
    for delta in deltas:
        yield _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    yield _event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]})
    yield _event({**head, "choices": [], "usage": completion["usage"]})
    yield b"data: [DONE]\n\n"


def _pieces(text: str) -> list[str]:
    return [text[start : start + 7] for start in range(0, len(text), 7)]


def _event(chunk: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(chunk)}\n\n".encode()
