"""The Anthropic SDK's own tool runner."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import anthropic
import httpx2

from contract.scenario import Ability, Scenario, Streaming, Task

ASK: dict[str, Any] = {"model": "claude-of-the-script", "max_tokens": 99}


def arguments(task: Task, decorate: Callable[..., Any]) -> dict[str, Any]:
    """What a tool runner is given."""
    messages = [{"role": "user", "content": task.question}]
    return {**ASK, "system": task.instructions, "messages": messages, "tools": [decorate(tool) for tool in task.tools]}


def runner(task: Task, **options: Any) -> Any:
    http = httpx2.Client(transport=task.provider.transport("httpx2"))
    client = anthropic.Anthropic(api_key="none", base_url="http://model.test", http_client=http)
    return client.beta.messages.tool_runner(**arguments(task, anthropic.beta_tool), **options)


def async_runner(task: Task, **options: Any) -> Any:
    http = httpx2.AsyncClient(transport=task.provider.transport("httpx2"))
    client = anthropic.AsyncAnthropic(api_key="none", base_url="http://model.test", http_client=http)
    return client.beta.messages.tool_runner(**arguments(task, asynchronous_tool), **options)


def asynchronous_tool(tool: Callable[..., Any]) -> Any:
    """The asynchronous runner takes coroutine functions; a plain one is made such, called where it is."""
    if inspect.iscoroutinefunction(tool):
        return anthropic.beta_async_tool(tool)

    async def called(**named: Any) -> Any:
        return tool(**named)

    plain = anthropic.beta_tool(tool)
    return anthropic.beta_async_tool(
        called, name=plain.name, description=plain.description, input_schema=plain.input_schema
    )


def text_of(message: Any) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def plain(task: Task) -> str:
    return text_of(runner(task).until_done())


async def asynchronous(task: Task) -> str:
    return text_of(await async_runner(task).until_done())


def items(running: Any) -> Iterator[Any]:
    for stream in running:
        for event in stream:
            yield event.text if event.type == "text" else (event.type,)


async def async_items(running: Any) -> AsyncIterator[Any]:
    async for stream in running:
        async for event in stream:
            yield event.text if event.type == "text" else (event.type,)


SCENARIO = Scenario(
    name="anthropic_runner",
    distribution="anthropic",
    protocol="anthropic_messages",
    plain=plain,
    asynchronous=asynchronous,
    streaming=Streaming(lambda task: runner(task, stream=True), items, lambda running: running.close()),
    async_streaming=Streaming(
        lambda task: async_runner(task, stream=True), async_items, lambda running: running.close()
    ),
    named=False,
    targets=("anthropic.lib.tools._beta_runner:BaseSyncToolRunner.__run__",),
    absent={
        Ability.HOOKS: "the tool runner has none",
        Ability.PARALLEL_TOOLS: "the tool runner calls one tool after the other",
        Ability.TOOLS_IN_THREADS: "the tool runner calls tools where it runs",
    },
)
