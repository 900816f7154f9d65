"""The agents whose recordings by others are replayed: one clerk in five libraries, at two tools of its own.

Each takes where the model is. Those written by hand also take what is put around their tools and their run: the
decorators of whoever records, or nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import spanreel
from spanreel import testing

QUESTION = "Where is it warm, Paris or Rome? Book a room there."
INSTRUCTIONS = "You are a travel clerk."
ANSWER = "Rome it is; the room is booked."
Around = Callable[[Callable[..., Any]], Callable[..., Any]]

RAN: list[str] = []
"""Which tools have run: none in a replay."""


def script() -> list[testing.Scripted]:
    """What the model says: two tools at once, one more, an answer."""
    both = [testing.tool_call("weather", {"city": city}, id=f"call_{city}") for city in ("Paris", "Rome")]
    return [
        testing.answer("I look both up.", tool_calls=both),
        testing.tool_call("book", {"city": "Rome", "nights": 2}, id="call_book"),
        testing.text(ANSWER),
    ]


def weather(city: str) -> str:
    """The weather of a city."""
    RAN.append("weather")
    return f"{city}: {len(city) * 5} degrees"


def book(city: str, nights: int) -> dict[str, Any]:
    """Book a room."""
    RAN.append("book")
    return {"city": city, "nights": nights, "room": 7}


def _plain(tool: Callable[..., Any]) -> Callable[..., Any]:
    return tool


_SCHEMAS: dict[str, Any] = {
    "weather": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "book": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "nights": {"type": "integer"}},
        "required": ["city", "nights"],
    },
}


def _decorated(around: Around) -> dict[str, Callable[..., Any]]:
    return {tool.__name__: around(spanreel.tool()(tool)) for tool in (weather, book)}


def openai_loop(base_url: str, around: Around = _plain, run: Around = _plain) -> str:
    """A loop on the OpenAI SDK, with decorated tools."""
    import openai

    tools = _decorated(around)
    offered: Any = [
        {"type": "function", "function": {"name": name, "description": tool.__doc__, "parameters": _SCHEMAS[name]}}
        for name, tool in (("weather", weather), ("book", book))
    ]

    def answer(question: str) -> str:
        messages: Any = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": question}]
        with openai.OpenAI(base_url=base_url, api_key="none") as client:
            while True:
                asked = client.chat.completions.create(
                    model="gpt-4.1", messages=messages, tools=offered, temperature=0.3
                )
                message: Any = asked.choices[0].message
                messages.append(message.model_dump(exclude_none=True))
                if not message.tool_calls:
                    return str(message.content)
                for call in message.tool_calls:
                    result = tools[call.function.name](**json.loads(call.function.arguments))
                    said = result if isinstance(result, str) else json.dumps(result)
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": said})

    return str(run(spanreel.run(agent="clerk")(answer))(QUESTION))


def anthropic_loop(base_url: str, around: Around = _plain, run: Around = _plain) -> str:
    """A loop on Anthropic's SDK, with decorated tools."""
    import anthropic

    tools = _decorated(around)
    offered: Any = [
        {"name": name, "description": tool.__doc__, "input_schema": _SCHEMAS[name]}
        for name, tool in (("weather", weather), ("book", book))
    ]

    def answer(question: str) -> str:
        messages: Any = [{"role": "user", "content": question}]
        with anthropic.Anthropic(base_url=base_url.removesuffix("/v1"), api_key="none") as client:
            while True:
                message = client.messages.create(
                    model="claude-sonnet-5-5", system=INSTRUCTIONS, messages=messages, tools=offered, max_tokens=500
                )
                said: Any = [part.model_dump(exclude_none=True) for part in message.content]
                messages.append({"role": "assistant", "content": said})
                calls = [part for part in message.content if part.type == "tool_use"]
                if not calls:
                    return "".join(part.text for part in message.content if part.type == "text")
                results = []
                for call in calls:
                    result = tools[call.name](**call.input)
                    told = result if isinstance(result, str) else json.dumps(result)
                    results.append({"type": "tool_result", "tool_use_id": call.id, "content": told})
                messages.append({"role": "user", "content": results})

    return str(run(spanreel.run(agent="clerk")(answer))(QUESTION))


def openai_agents(base_url: str, around: Around = _plain, run: Around = _plain) -> str:
    """An agent of the OpenAI Agents SDK; its tools are its own, and need nothing around them."""
    from agents import Agent, ModelSettings, OpenAIResponsesModel, Runner, function_tool
    from openai import AsyncOpenAI

    async def work() -> str:
        async with AsyncOpenAI(base_url=base_url, api_key="none") as client:
            agent = Agent(
                name="clerk",
                instructions=INSTRUCTIONS,
                model=OpenAIResponsesModel("gpt-4.1", client),
                model_settings=ModelSettings(temperature=0.3),
                tools=[function_tool(weather), function_tool(book)],
            )
            return str((await Runner.run(agent, QUESTION)).final_output)

    return asyncio.run(work())


def langgraph(base_url: str, around: Around = _plain, run: Around = _plain) -> str:
    """An agent of LangChain, which is a graph of LangGraph."""
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    model: Any = ChatOpenAI(model="gpt-4.1", base_url=base_url, api_key="none", temperature=0.3)
    agent = create_agent(model, tools=[weather, book], system_prompt=INSTRUCTIONS, name="clerk")
    return str(agent.invoke({"messages": [{"role": "user", "content": QUESTION}]})["messages"][-1].content)


def pydantic_ai(base_url: str, around: Around = _plain, run: Around = _plain) -> str:
    """An agent of PydanticAI."""
    from openai import AsyncOpenAI
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async def work() -> str:
        async with AsyncOpenAI(base_url=base_url, api_key="none") as client:
            agent = Agent(
                OpenAIChatModel("gpt-4.1", provider=OpenAIProvider(openai_client=client)),
                name="clerk",
                instructions=INSTRUCTIONS,
                model_settings={"temperature": 0.3},
                tools=[weather, book],
            )
            return str((await agent.run(QUESTION)).output)

    return asyncio.run(work())


CLERKS: dict[str, Callable[..., str]] = {
    clerk.__name__: clerk for clerk in (openai_loop, anthropic_loop, openai_agents, langgraph, pydantic_ai)
}
