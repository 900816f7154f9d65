"""pydantic-ai: `run_sync`, `run`, `run_stream_sync` and `run_stream_events`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pydantic_ai import Agent, AgentRunResultEvent, PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta
from pydantic_ai.capabilities import AbstractCapability

from contract.scenario import Scenario, Streaming, Task
from pydantic_models import model_of


@dataclass
class _Hooks(AbstractCapability[Any]):
    task: Task

    def _tell(self, what: str) -> None:
        if self.task.tell is not None:
            self.task.tell(what)

    async def before_run(self, ctx: Any) -> None:
        self._tell("run starts")

    async def after_run(self, ctx: Any, *, result: Any) -> Any:
        self._tell(f"run ends: {result.output}")
        return result

    async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> Any:
        self._tell("model starts")
        try:
            return await handler(request_context)
        finally:
            self._tell("model ends")

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        self._tell(f"tool {call.tool_name} starts")
        result = await handler(args)
        self._tell(f"tool ends: {result}")
        return result


def build(task: Task) -> Agent[Any, Any]:
    return Agent(
        model_of(task.provider),
        name=task.agent,
        instructions=task.instructions,
        tools=task.tools,
        capabilities=[_Hooks(task)],
    )


@contextmanager
def _loop() -> Iterator[None]:
    """The event loop that the synchronous ways make where there is none, and leave open."""
    made = asyncio.new_event_loop()
    asyncio.set_event_loop(made)
    try:
        yield
    finally:
        asyncio.set_event_loop(None)
        made.close()


def plain(task: Task) -> str:
    with _loop():
        return str(build(task).run_sync(task.question).output)


async def asynchronous(task: Task) -> str:
    return str((await build(task).run(task.question)).output)


def stream_sync(task: Task) -> Iterator[str]:
    with _loop(), build(task).run_stream_sync(task.question) as streamed:
        yield from streamed.stream_text(delta=True, debounce_by=None)


@dataclass
class _Events:
    """``async with agent.run_stream_events(...) as events``, in steps."""

    manager: Any
    events: Any


async def open_events(task: Task) -> _Events:
    manager = build(task).run_stream_events(task.question)
    return _Events(manager, await manager.__aenter__())


async def items(stream: _Events) -> AsyncIterator[Any]:
    try:
        async for event in stream.events:
            yield shown(event)
    finally:
        await close(stream)


def shown(event: Any) -> Any:
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return event.part.content
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return event.delta.content_delta
    if isinstance(event, AgentRunResultEvent):
        return ("result", event.result.output)
    return (type(event).__name__,)


async def close(stream: _Events) -> None:
    await stream.manager.__aexit__(None, None, None)


SCENARIO = Scenario(
    name="pydantic_ai",
    distribution="pydantic-ai-slim",
    protocol="openai_chat",
    plain=plain,
    asynchronous=asynchronous,
    streaming=Streaming(stream_sync, iter, lambda stream: stream.close()),
    async_streaming=Streaming(open_events, items, close),
    targets=("pydantic_ai.agent:Agent.iter", "pydantic_ai.tool_manager:ToolManager.__init__"),
)
