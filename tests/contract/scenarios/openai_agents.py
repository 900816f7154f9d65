"""The OpenAI Agents SDK."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import agents
import httpx2
import openai
from agents import Agent, RunHooks, Runner, RunResultStreaming

from contract.scenario import Ability, Scenario, Streaming, Task


class _Hooks(RunHooks[Any]):
    def __init__(self, task: Task) -> None:
        self._task = task

    def _tell(self, what: str) -> None:
        if self._task.tell is not None:
            self._task.tell(what)

    async def on_agent_start(self, context: Any, agent: Any) -> None:
        self._tell(f"agent {agent.name} starts")

    async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
        self._tell(f"agent ends: {output}")

    async def on_llm_start(self, context: Any, agent: Any, system_prompt: Any, input_items: Any) -> None:
        self._tell("model starts")

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        self._tell("model ends")

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        self._tell(f"tool {tool.name} starts")

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        self._tell(f"tool ends: {result}")


def build(task: Task) -> Agent[Any]:
    """An agent on a client of its own."""
    agents.set_tracing_disabled(True)
    http = httpx2.AsyncClient(transport=task.provider.transport("httpx2"))
    client = openai.AsyncOpenAI(api_key="none", base_url="http://model.test/v1", http_client=http)
    return Agent(
        name=task.agent,
        instructions=task.instructions,
        model=agents.OpenAIChatCompletionsModel("gpt-5", client),
        model_settings=agents.ModelSettings(include_usage=True),
        tools=[agents.function_tool(tool) for tool in task.tools],
    )


def plain(task: Task) -> str:
    """`Runner.run_sync` makes an event loop for itself, and leaves it open."""
    import asyncio

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return str(Runner.run_sync(build(task), task.question, hooks=_Hooks(task)).final_output)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


async def asynchronous(task: Task) -> str:
    return str((await Runner.run(build(task), task.question, hooks=_Hooks(task))).final_output)


def open_stream(task: Task) -> RunResultStreaming:
    return Runner.run_streamed(build(task), task.question, hooks=_Hooks(task))


async def items(stream: RunResultStreaming) -> AsyncIterator[Any]:
    async for event in stream.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            yield event.data.delta
        else:
            yield (event.type,)


async def close(stream: RunResultStreaming) -> None:
    """Cancelling is how this SDK closes a stream; its work ends with it."""
    stream.cancel()
    async for _ in stream.stream_events():
        pass


SCENARIO = Scenario(
    name="openai_agents",
    distribution="openai-agents",
    protocol="openai_chat",
    plain=plain,
    asynchronous=asynchronous,
    async_streaming=Streaming(open_stream, items, close),
    targets=("agents.run:AgentRunner.run", "agents.run:AgentRunner.run_streamed"),
    absent={
        Ability.STREAM: "it streams in asyncio only",
        Ability.NEVER_READ: "a streamed run works in the background, read or not",
    },
)
