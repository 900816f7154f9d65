"""A model behind an in-process transport, saying what it is told to say: for tests of what passes on the wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx2
import openai

USAGE = {
    "prompt_tokens": 9,
    "completion_tokens": 2,
    "total_tokens": 11,
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 1},
}


def completion(text: str = "Hello.", **message: Any) -> dict[str, Any]:
    """A plain chat completion."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": "stop"}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-served",
        "choices": [choice],
        "usage": USAGE,
    }


def calls(*asked: tuple[str, str, dict[str, Any]]) -> dict[str, Any]:
    """An answer that asks for tools: (id, name, arguments)."""
    made = [
        {"id": id_, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for id_, name, arguments in asked
    ]
    answer = completion("", tool_calls=made)
    answer["choices"][0]["message"]["content"] = None
    answer["choices"][0]["finish_reason"] = "tool_calls"
    return answer


def chunks(*texts: str) -> list[bytes]:
    """The events of a streamed chat completion."""

    def event(choices: list[Any], **more: Any) -> bytes:
        body = {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "gpt-served",
            "choices": choices,
        }
        return f"data: {json.dumps({**body, **more})}\n\n".encode()

    deltas = [
        event([{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}]) for text in texts
    ]
    stop = event([{"index": 0, "delta": {}, "finish_reason": "stop"}])
    return [*deltas, stop, event([], usage=USAGE), b"data: [DONE]\n\n"]


class Pieces(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """A body in pieces, to be had once; ``hold`` is awaited before the second, ``fail`` raised there."""

    def __init__(self, pieces: list[bytes], hold: asyncio.Event | None = None, fail: Exception | None = None) -> None:
        self.pieces, self.hold, self.fail = iter(enumerate(pieces)), hold, fail

    def __iter__(self) -> Iterator[bytes]:
        for number, piece in self.pieces:
            if number == 1 and self.fail:
                raise self.fail
            yield piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for number, piece in self.pieces:
            if number == 1 and self.fail:
                raise self.fail
            if number == 1 and self.hold:
                await self.hold.wait()
            yield piece


class Model:
    """What the transport answers; keeps what it was asked."""

    def __init__(self, answer: Callable[[dict[str, Any]], Any] | None = None) -> None:
        self.answer = answer
        self.asked: list[bytes] = []
        self.hold: asyncio.Event | None = None
        self.fail: Exception | None = None

    def respond(self, request: httpx2.Request) -> httpx2.Response:
        """The response to one request: plain or streamed, as it asks."""
        self.asked.append(request.content)
        body = json.loads(request.content)
        if self.answer is not None and (answer := self.answer(body)) is not None:
            if isinstance(answer, Exception):
                raise answer
            if isinstance(answer, httpx2.Response):
                return answer
            return httpx2.Response(200, json=answer, headers={"x-request-id": "req-1"})
        if body.get("stream"):
            stream = Pieces(chunks("Hel", "lo", "."), self.hold, self.fail)
            return httpx2.Response(200, stream=stream, headers={"content-type": "text/event-stream; charset=utf-8"})
        return httpx2.Response(200, json=completion(), headers={"x-ratelimit-remaining-requests": "41"})

    def client(self, **options: Any) -> openai.OpenAI:
        """A synchronous SDK client of this model."""
        http = httpx2.Client(transport=httpx2.MockTransport(self.respond))
        return openai.OpenAI(api_key="sk-client", base_url="http://model.test/v1", http_client=http, **options)

    def async_client(self, **options: Any) -> openai.AsyncOpenAI:
        """An asynchronous SDK client of this model."""

        async def respond(request: httpx2.Request) -> httpx2.Response:
            return self.respond(request)

        http = httpx2.AsyncClient(transport=httpx2.MockTransport(respond))
        return openai.AsyncOpenAI(api_key="sk-client", base_url="http://model.test/v1", http_client=http, **options)


ASK: dict[str, Any] = {"model": "gpt-asked", "messages": [{"role": "user", "content": "Say hello."}]}
