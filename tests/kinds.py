"""The kinds of agent of the acceptance suite, on one interface: tools as plain functions, a model as a script."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import agents
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

import spanreel
from recording import recording
from spanreel.otlp_file import FileExporter
from spanreel.session import Session
from spanreel_collector.convert import convert_files
from wire_server import Model, completion

Tool = Callable[..., Any]


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
    first: Sequence[Tool] = ()
    """Tools that the agent's code calls by itself before it asks the model."""
    asked: list[bytes] = field(default_factory=list)

    def model(self) -> Model:
        made = Model(self.answer)
        made.asked = self.asked
        return made


def hand_written(scene: Scene) -> str:
    """A loop of one's own on the OpenAI SDK, its tools decorated."""
    tools = {tool.__name__: spanreel.tool()(tool) for tool in scene.tools}
    first = [spanreel.tool()(tool) for tool in scene.first]

    @spanreel.run(agent="hand")
    def loop(question: str) -> str:
        for tool in first:
            tool()
        client = scene.model().client()
        messages: list[Any] = [
            {"role": "system", "content": scene.instructions},
            {"role": "user", "content": question},
        ]
        definitions: list[Any] = [
            {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
            for name in tools
        ]
        while True:
            message = (
                client.chat.completions.create(model="gpt-5", messages=messages, tools=definitions or openai_omit())
                .choices[0]
                .message
            )
            messages.append(message.to_dict())
            if not message.tool_calls:
                return message.content or ""
            for call in message.tool_calls:
                try:
                    result = tools[call.function.name](**json.loads(call.function.arguments))  # type: ignore[union-attr]
                except Exception as error:  # noqa: BLE001 - the model hears of whatever went wrong
                    result = f"{type(error).__name__}: {error}"
                text = result if isinstance(result, str) else json.dumps(result)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})

    return loop(scene.question)


def openai_omit() -> Any:
    """No tools at all."""
    import openai

    return openai.omit


def openai_agents(scene: Scene) -> str:
    """The OpenAI Agents SDK."""
    agents.set_tracing_disabled(True)
    agents.set_default_openai_api("chat_completions")
    agents.set_default_openai_client(scene.model().async_client(), use_for_tracing=False)
    agent = agents.Agent(
        name="sdk",
        instructions=scene.instructions,
        model="gpt-5",
        tools=[agents.function_tool(tool, strict_mode=False) for tool in scene.tools],
    )
    return str(asyncio.run(_run(agent, scene)).final_output)


async def _run(agent: Any, scene: Scene) -> Any:
    return await agents.Runner.run(agent, scene.question)


def pydantic_ai(scene: Scene) -> str:
    """pydantic-ai, whose agents tell the model of a failure only where the tool asks for it."""
    provider = OpenAIProvider(openai_client=scene.model().async_client())
    agent = Agent(
        OpenAIChatModel("gpt-5", provider=provider),
        name="care",
        instructions=scene.instructions,
        tools=[_asking_again(tool) for tool in scene.tools],
        retries=5,
    )
    return asyncio.run(agent.run(scene.question)).output


def _asking_again(tool: Tool) -> Tool:
    @functools.wraps(tool)
    def asking(*args: Any, **kwargs: Any) -> Any:
        try:
            return tool(*args, **kwargs)
        except TimeoutError as error:
            raise ModelRetry(str(error)) from error

    return asking


KINDS: tuple[Callable[[Scene], str], ...] = (hand_written, openai_agents, pydantic_ai)


def record(work: Callable[[], Any], folder: Path, **settings: Any) -> Session:
    """Run something, and convert what was recorded, through a file of OTLP, into its one session."""
    file = folder / "traces.jsonl"
    file.unlink(missing_ok=True)
    with recording(**settings) as rec:
        work()
    FileExporter(str(file)).export(rec.spans)
    found = convert_files([str(file)])
    assert found.faults == ()
    (session,) = found.sessions
    return session
