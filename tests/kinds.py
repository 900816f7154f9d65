"""The kinds of agent of the acceptance suite, on one interface: tools as plain functions, a model as a script.

Their models stand behind real sockets (`loopback`), so that an answer from the recording and a live one are two things.
"""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import AsyncIterable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import agents
import httpx2
import openai
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import SystemMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

import spanreel
from loopback import offline, serve
from recording import recording
from spanreel.otlp_file import FileExporter
from spanreel.replay.judging.verdict import Report
from spanreel.session import Session
from spanreel_collector.conversion.convert import convert_files

Tool = Callable[..., Any]


def script(*answers: dict[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A model that answers by how many answers it finds in the conversation."""

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        number: int = sum(message["role"] == "assistant" for message in body["messages"])
        return answers[number]

    return answer


@dataclass
class Scene:
    """An agent's surroundings: its model, its tools, what it is told."""

    answer: Callable[[dict[str, Any]], Any]
    tools: Sequence[Tool] = ()
    instructions: str = "Be brief."
    question: str = "Go."
    name: str = "care"
    before: Callable[[], Any] | None = None
    """What the agent's code does by itself, inside its run, before it asks the model."""
    streams: bool = False
    gap: float = 0.0
    """Milliseconds between the chunks of a stream."""
    asked: list[bytes] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)
    """What came in as a stream: pieces of text, and of the arguments of tool calls."""

    def client(self) -> openai.OpenAI:
        """The SDK's client of its model."""
        return openai.OpenAI(api_key="sk-client", base_url=self.url, max_retries=2)

    def async_client(self) -> openai.AsyncOpenAI:
        """The same, asynchronous."""
        return openai.AsyncOpenAI(api_key="sk-client", base_url=self.url, max_retries=2)

    @functools.cached_property
    def url(self) -> str:
        """Where its model is."""
        return serve(self.answer, self.asked, self.gap)

    def begin(self) -> None:
        """What comes before the model, once a run."""
        if self.before is not None:
            self.before()


def hand_written(scene: Scene) -> str:
    """A loop of one's own on the OpenAI SDK, its tools decorated."""
    tools = {tool.__name__: spanreel.tool()(tool) for tool in scene.tools}
    definitions: list[Any] = [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
        for name in tools
    ]

    @spanreel.run(agent=scene.name)
    def loop(question: str) -> str:
        scene.begin()
        messages: list[Any] = [
            {"role": "system", "content": scene.instructions},
            {"role": "user", "content": question},
        ]
        with scene.client() as client:
            while True:
                message = _ask(client, scene, messages, definitions)
                messages.append(message)
                if not message.get("tool_calls"):
                    return message["content"] or ""
                for call in message["tool_calls"]:
                    try:
                        result = tools[call["function"]["name"]](**json.loads(call["function"]["arguments"]))
                    except Exception as error:  # noqa: BLE001 - the model hears of whatever went wrong
                        result = f"{type(error).__name__}: {error}"
                    text = result if isinstance(result, str) else json.dumps(result)
                    messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})

    return loop(scene.question)


def _ask(client: openai.OpenAI, scene: Scene, messages: list[Any], definitions: list[Any]) -> dict[str, Any]:
    asked: dict[str, Any] = {"model": "gpt-5", "messages": messages, "tools": definitions or openai.omit}
    if not scene.streams:
        said: dict[str, Any] = client.chat.completions.create(**asked).choices[0].message.to_dict()
        return said
    message: dict[str, Any] = {"role": "assistant", "content": None}
    made: list[Any] = []
    for chunk in client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}):
        for delta in [choice.delta for choice in chunk.choices]:
            if delta.content:
                scene.heard.append(delta.content)
                message["content"] = (message["content"] or "") + delta.content
            for call in delta.tool_calls or ():
                if call.id:
                    made.append(call.model_dump(include={"id", "type", "function"}))
                elif call.function and call.function.arguments:
                    scene.heard.append(call.function.arguments)
                    made[-1]["function"]["arguments"] += call.function.arguments
    return {**message, "tool_calls": made} if made else message


def openai_agents(scene: Scene) -> str:
    """The OpenAI Agents SDK."""
    agents.set_tracing_disabled(True)
    return asyncio.run(_run_sdk(scene))


async def _run_sdk(scene: Scene) -> str:
    begun = False

    def instructions(_context: Any, _agent: Any) -> str:
        nonlocal begun
        if not begun:
            scene.begin()
        begun = True
        return scene.instructions

    async with scene.async_client() as client:
        agent = agents.Agent(
            name=scene.name,
            instructions=instructions,
            model=agents.OpenAIChatCompletionsModel("gpt-5", client),
            model_settings=agents.ModelSettings(include_usage=True),
            tools=[agents.function_tool(tool, strict_mode=False) for tool in scene.tools],
        )
        if not scene.streams:
            return str((await agents.Runner.run(agent, scene.question)).final_output)
        result = agents.Runner.run_streamed(agent, scene.question)
        async for event in result.stream_events():
            if event.type == "raw_response_event" and isinstance(piece := getattr(event.data, "delta", None), str):
                scene.heard.append(piece)
        return str(result.final_output)


def langgraph(scene: Scene) -> str:
    """An agent made by LangChain, which is a graph; its model hears of what goes wrong in a tool."""
    with httpx2.Client() as http:
        model = ChatOpenAI(
            model="gpt-5",
            api_key="sk-client",
            base_url=scene.url,
            http_client=http,
            streaming=scene.streams,
            stream_usage=scene.streams,
        )
        tools = [
            StructuredTool.from_function(tool, name=tool.__name__, description=tool.__doc__ or "A tool.")
            for tool in scene.tools
        ]
        graph: Any = create_agent(model, tools, middleware=[_Surroundings(scene)], name=scene.name)
        asked = {"messages": [("user", scene.question)]}
        if not scene.streams:
            return str(graph.invoke(asked)["messages"][-1].content)
        said = ""
        for way, given in graph.stream(asked, stream_mode=["messages", "values"]):
            if way == "values":
                said = str(given["messages"][-1].content)
                continue
            message = given[0]
            for piece in [message.content, *(one["args"] for one in getattr(message, "tool_call_chunks", ()))]:
                if piece and message.type == "AIMessageChunk":
                    scene.heard.append(piece)
        return said


class _Surroundings(AgentMiddleware[Any, Any, Any]):
    """What a scene does before the model is asked; failures of tools as texts for the model."""

    def __init__(self, scene: Scene) -> None:
        self.tools = []
        self._scene = scene

    def before_agent(self, state: Any, runtime: Any) -> None:
        self._scene.begin()

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return handler(request.override(system_message=SystemMessage(self._scene.instructions)))

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        try:
            return handler(request)
        except Exception as error:  # noqa: BLE001 - as in the loop written by hand
            told = f"{type(error).__name__}: {error}"
            return ToolMessage(told, tool_call_id=request.tool_call["id"], name=request.tool_call["name"])


def pydantic_ai(scene: Scene) -> str:
    """pydantic-ai, whose agents tell the model of a failure only where the tool asks for it."""
    return asyncio.run(_run_pydantic_ai(scene))


async def _run_pydantic_ai(scene: Scene) -> str:
    begun = False

    def instructions() -> str:
        nonlocal begun
        if not begun:
            scene.begin()
        begun = True
        return scene.instructions

    async def hear(_context: Any, events: AsyncIterable[Any]) -> None:
        async for event in events:
            given = getattr(event, {"part_start": "part", "part_delta": "delta"}.get(event.event_kind, ""), None)
            named = ("content", "args", "content_delta", "args_delta")
            piece = next((one for name in named if (one := getattr(given, name, None))), None)
            if isinstance(piece, str):
                scene.heard.append(piece)

    async with scene.async_client() as client:
        agent = Agent(
            OpenAIChatModel("gpt-5", provider=OpenAIProvider(openai_client=client)),
            name=scene.name,
            instructions=instructions,
            tools=[_asking_again(tool) for tool in scene.tools],
            retries=5,
        )
        return (await agent.run(scene.question, event_stream_handler=hear if scene.streams else None)).output


def _asking_again(tool: Tool) -> Tool:
    @functools.wraps(tool)
    def asking(*args: Any, **kwargs: Any) -> Any:
        try:
            return tool(*args, **kwargs)
        except TimeoutError as error:
            raise ModelRetry(str(error)) from error

    return asking


Kind = Callable[[Scene], str]

KINDS: tuple[Kind, ...] = (hand_written, openai_agents, langgraph, pydantic_ai)


def record_all(work: Callable[[], Any], folder: Path, **settings: Any) -> list[Session]:
    """Run something, and convert what was recorded, through a file of OTLP, into its sessions."""
    file = folder / "traces.jsonl"
    file.unlink(missing_ok=True)
    with recording(**settings) as rec:
        work()
    FileExporter(str(file)).export(rec.spans)
    found = convert_files([str(file)])
    assert found.faults == ()
    return list(found.sessions)


def record(work: Callable[[], Any], folder: Path, **settings: Any) -> Session:
    """`record_all`, of something that is one session."""
    (session,) = record_all(work, folder, **settings)
    return session


def play(session: Session, kind: Kind, scene: Scene, **more: Any) -> Report:
    """Replay an agent; its report. Nothing may be reached, and nothing asked."""
    scene.asked.clear()
    with offline(), spanreel.replay(session, check=False, **more) as playing:
        kind(scene)
    assert scene.asked == []
    assert playing.report is not None
    return playing.report
