"""An agent written by hand: a loop on the OpenAI SDK, its run and its tools decorated."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import openai

import spanreel
from contract.scenario import Ability, Scenario, Streaming, Task


class Loop:
    """The conversation of one run, and its tools; asking the model is left to the four ways below."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.tools: dict[str, Callable[..., Any]] = {tool.__name__: spanreel.tool()(tool) for tool in task.tools}
        definitions = [
            {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
            for name in self.tools
        ]
        self.request: dict[str, Any] = {
            "model": "gpt-5",
            "messages": [
                {"role": "system", "content": task.instructions},
                {"role": "user", "content": task.question},
            ],
            **({"tools": definitions} if definitions else {}),
        }

    def client(self) -> openai.OpenAI:
        http = httpx2.Client(transport=self.task.provider.transport("httpx2"))
        return openai.OpenAI(api_key="none", base_url="http://model.test/v1", http_client=http)

    def async_client(self) -> openai.AsyncOpenAI:
        http = httpx2.AsyncClient(transport=self.task.provider.transport("httpx2"))
        return openai.AsyncOpenAI(api_key="none", base_url="http://model.test/v1", http_client=http)

    def hear(self, message: Any) -> bool:
        """Take the model's message and call the tools that it asks for, at once, in threads; whether it did."""
        self.request["messages"].append(message.to_dict())
        calls = message.tool_calls or ()
        with ThreadPoolExecutor(8) as pool:
            # What is current does not pass into a pool by itself, nor does it have to: it is carried there.
            results = [pool.submit(self._call, call) for call in calls]
        for call, result in zip(calls, results, strict=True):
            self.request["messages"].append({"role": "tool", "tool_call_id": call.id, "content": result.result()})
        return bool(calls)

    def _call(self, call: Any) -> str:
        if self.task.tell is not None:
            self.task.tell(f"tool {call.function.name}")
        try:
            return str(self.tools[call.function.name](**json.loads(call.function.arguments)))
        except Exception as error:  # noqa: BLE001 - the model hears of whatever went wrong
            return f"{type(error).__name__}: {error}"


def plain(task: Task) -> str:
    loop = Loop(task)

    @spanreel.run(agent=task.agent)
    def run(question: str) -> str:
        while True:
            message = loop.client().chat.completions.create(**loop.request).choices[0].message
            if not loop.hear(message):
                return message.content or ""

    return run(task.question)


async def asynchronous(task: Task) -> str:
    loop = Loop(task)

    @spanreel.run(agent=task.agent)
    async def run(question: str) -> str:
        while True:
            completion = await loop.async_client().chat.completions.create(**loop.request)
            message = completion.choices[0].message
            if not await asyncio.to_thread(loop.hear, message):
                return message.content or ""

    return await run(task.question)


def open_stream(task: Task) -> Iterator[str]:
    loop = Loop(task)

    @spanreel.run(agent=task.agent)
    def run(question: str) -> Iterator[str]:
        asked = True
        while asked:
            with loop.client().chat.completions.stream(**loop.request) as stream:
                for event in stream:
                    if event.type == "content.delta":
                        yield event.delta
                message = stream.get_final_completion().choices[0].message
            asked = loop.hear(message)

    return run(task.question)


def open_async_stream(task: Task) -> AsyncIterator[str]:
    loop = Loop(task)

    @spanreel.run(agent=task.agent)
    async def run(question: str) -> AsyncIterator[str]:
        asked = True
        while asked:
            async with loop.async_client().chat.completions.stream(**loop.request) as stream:
                async for event in stream:
                    if event.type == "content.delta":
                        yield event.delta
                message = (await stream.get_final_completion()).choices[0].message
            asked = loop.hear(message)

    return run(task.question)


SCENARIO = Scenario(
    name="hand_written",
    distribution="openai",
    protocol="openai_chat",
    plain=plain,
    asynchronous=asynchronous,
    streaming=Streaming(open_stream, iter, lambda stream: stream.close()),
    async_streaming=Streaming(open_async_stream, aiter, lambda stream: stream.aclose()),
    absent={Ability.HOOKS: "there is no framework whose hooks it could have"},
)
