"""LangChain's agent on LangGraph."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI

from contract.scenario import Scenario, Streaming, Task


def _tell(task: Task, what: str) -> None:
    if task.tell is not None:
        task.tell(what)


class _Callbacks(BaseCallbackHandler):
    run_inline = True  # else an asynchronous agent calls them from a thread, in no order

    def __init__(self, task: Task) -> None:
        self._task = task

    def on_chat_model_start(self, *_: Any, **__: Any) -> None:
        _tell(self._task, "model starts")

    def on_llm_end(self, *_: Any, **__: Any) -> None:
        _tell(self._task, "model ends")

    def on_tool_start(self, serialized: Any, *_: Any, **__: Any) -> None:
        _tell(self._task, f"tool {serialized['name']} starts")

    def on_tool_error(self, error: BaseException, **__: Any) -> None:
        _tell(self._task, f"tool fails: {error}")


class _Middleware(AgentMiddleware[Any, Any]):
    def __init__(self, task: Task) -> None:
        super().__init__()
        self._task = task

    def before_model(self, state: Any, runtime: Any) -> None:
        _tell(self._task, "before the model")

    def after_agent(self, state: Any, runtime: Any) -> None:
        _tell(self._task, f"after the agent: {state['messages'][-1].content}")


def build(task: Task) -> Any:
    """An agent on clients of its own."""
    transport = task.provider.transport("httpx2")
    model = ChatOpenAI(
        model="gpt-5",
        api_key="none",
        base_url="http://model.test/v1",
        http_client=httpx2.Client(transport=transport),
        http_async_client=httpx2.AsyncClient(transport=transport),
    )
    tools = [StructuredTool.from_function(tool) for tool in task.tools]
    return create_agent(model, tools, system_prompt=task.instructions, name=task.agent, middleware=[_Middleware(task)])


def asked(task: Task) -> tuple[Any, Any]:
    """The input and the config."""
    return {"messages": [("user", task.question)]}, {"callbacks": [_Callbacks(task)]}


def plain(task: Task) -> str:
    return str(build(task).invoke(*asked(task))["messages"][-1].content)


async def asynchronous(task: Task) -> str:
    return str((await build(task).ainvoke(*asked(task)))["messages"][-1].content)


def open_stream(task: Task) -> Any:
    return build(task).stream(*asked(task), stream_mode="messages")


def open_async_stream(task: Task) -> Any:
    return build(task).astream(*asked(task), stream_mode="messages")


def seen(item: Any) -> Any:
    """The text of the model, and of all else what it is; tools in parallel end in any order."""
    message, _about = item
    if message.type == "AIMessageChunk" and message.content:
        return message.content
    return (message.type, [call["args"] for call in getattr(message, "tool_calls", ())])


def items(stream: Any) -> Iterator[Any]:
    return map(seen, stream)


async def async_items(stream: Any) -> AsyncIterator[Any]:
    async for item in stream:
        yield seen(item)


SCENARIO = Scenario(
    name="langgraph",
    distribution="langgraph",
    protocol="openai_chat",
    plain=plain,
    asynchronous=asynchronous,
    streaming=Streaming(open_stream, items, lambda stream: stream.close()),
    async_streaming=Streaming(open_async_stream, async_items, lambda stream: stream.aclose()),
    targets=(
        "langgraph.pregel.main:Pregel.stream",
        "langgraph.pregel.main:Pregel.astream",
        "langchain_core.tools.base:BaseTool.run",
    ),
)
