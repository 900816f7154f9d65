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


def script(clerk: str = "") -> list[testing.Scripted]:
    """What the model says: two tools at once, one more, an answer; of the clerks that are about something, that."""
    booking = [testing.tool_call("book", {"city": "Rome", "nights": 2}, id="call_book"), testing.text(ANSWER)]
    if clerk.endswith("_failing"):
        looked_up = [testing.tool_call("station", {"city": city}, id=f"call_{city}") for city in ("Paris", "Rome")]
        return [*looked_up, *booking]
    if clerk == "openai_agents_handoff":
        return [testing.tool_call("transfer_to_booker", {}, id="call_over"), *booking]
    if clerk == "langgraph_handoff":
        return [testing.tool_call("weather", {"city": "Rome"}, id="call_Rome"), testing.text("Rome."), *booking]
    both = [testing.tool_call("weather", {"city": city}, id=f"call_{city}") for city in ("Paris", "Rome")]
    return [
        testing.answer("I look both up.", tool_calls=both),
        *booking,
    ]


def runs(clerk: str) -> list[str]:
    """The tools that run when it is recorded."""
    if clerk.endswith("_failing"):
        return ["station", "station", "book"]
    return {"openai_agents_handoff": ["book"], "langgraph_handoff": ["weather", "book"]}.get(
        clerk, ["weather", "weather", "book"]
    )


def weather(city: str) -> str:
    """The weather of a city."""
    RAN.append("weather")
    return f"{city}: {len(city) * 5} degrees"


def book(city: str, nights: int) -> dict[str, Any]:
    """Book a room."""
    RAN.append("book")
    return {"city": city, "nights": nights, "room": 7}


def station(city: str) -> str:
    """What the station of a city reads."""
    RAN.append("station")
    if city == "Paris":
        raise ValueError(f"no station in {city}")
    return f"{city}: 20 degrees"


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


def _sdk(base_url: str, tools: list[Any], *, streamed: bool = False, booker: bool = False) -> str:
    from agents import Agent, ModelSettings, OpenAIResponsesModel, Runner, function_tool
    from openai import AsyncOpenAI

    async def work() -> str:
        async with AsyncOpenAI(base_url=base_url, api_key="none") as client:
            model = OpenAIResponsesModel("gpt-4.1", client)
            settings = ModelSettings(temperature=0.3)
            other = Agent(name="booker", instructions="Book.", model=model, tools=[function_tool(book)])
            agent = Agent(
                name="clerk",
                instructions=INSTRUCTIONS,
                model=model,
                model_settings=settings,
                tools=[function_tool(tool) for tool in tools],
                handoffs=[other] if booker else [],
            )
            if not streamed:
                return str((await Runner.run(agent, QUESTION)).final_output)
            result = Runner.run_streamed(agent, QUESTION)
            async for _ in result.stream_events():
                pass
            return str(result.final_output)

    return asyncio.run(work())


def openai_agents(base_url: str, around: Around = _plain, run: Around = _plain) -> str:
    """An agent of the OpenAI Agents SDK; its tools are its own, and need nothing around them."""
    return _sdk(base_url, [weather, book])


def openai_agents_streamed(base_url: str, around: Around = _plain, run: Around = _plain) -> str:
    """The same, its model streaming."""
    return _sdk(base_url, [weather, book], streamed=True)


def openai_agents_failing(base_url: str, around: Around = _plain, run: Around = _plain) -> str:
    """One whose tool fails, which its model is told."""
    return _sdk(base_url, [station, book])


def openai_agents_handoff(base_url: str, around: Around = _plain, run: Around = _plain) -> str:
    """One that gives the word to another."""
    return _sdk(base_url, [], booker=True)


def _graph(base_url: str, tools: list[Any], name: str = "clerk", *, streaming: bool = False) -> Any:
    from langchain.agents import create_agent
    from langchain.agents.middleware import wrap_tool_call
    from langchain_core.messages import ToolMessage
    from langchain_openai import ChatOpenAI

    def telling(request: Any, handler: Callable[[Any], Any]) -> Any:
        try:
            return handler(request)
        except ValueError as error:
            return ToolMessage(f"It failed: {error}", tool_call_id=request.tool_call["id"], status="error")

    model: Any = ChatOpenAI(model="gpt-4.1", base_url=base_url, api_key="none", temperature=0.3, streaming=streaming)
    around: Any = [wrap_tool_call(telling)] if station in tools else []
    return create_agent(model, tools=tools, system_prompt=INSTRUCTIONS, name=name, middleware=around)


def _last(state: Any) -> str:
    return str(state["messages"][-1].content)


def _asked() -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": QUESTION}]}


def langgraph(base_url: str, around: Around = _plain, run: Around = _plain) -> str:
    """An agent of LangChain, which is a graph of LangGraph."""
    return _last(_graph(base_url, [weather, book]).invoke(_asked()))


def langgraph_streamed(base_url: str, around: Around = _plain, run: Around = _plain) -> str:
    """The same, its model streaming."""
    states = list(_graph(base_url, [weather, book], streaming=True).stream(_asked(), stream_mode="values"))
    return _last(states[-1])


def langgraph_failing(base_url: str, around: Around = _plain, run: Around = _plain) -> str:
    """One whose tool fails, which its model is told."""
    return _last(_graph(base_url, [station, book]).invoke(_asked()))


def langgraph_handoff(base_url: str, around: Around = _plain, run: Around = _plain) -> str:
    """Two of them, one after the other."""
    from langgraph.graph import START, MessagesState, StateGraph

    graph: Any = StateGraph(MessagesState)
    graph.add_node("clerk", _graph(base_url, [weather]))
    graph.add_node("booker", _graph(base_url, [book], "booker"))
    graph.add_edge(START, "clerk")
    graph.add_edge("clerk", "booker")
    return _last(graph.compile(name="office").invoke(_asked()))


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
    clerk.__name__: clerk
    for clerk in (
        openai_loop,
        anthropic_loop,
        openai_agents,
        openai_agents_streamed,
        openai_agents_failing,
        openai_agents_handoff,
        langgraph,
        langgraph_streamed,
        langgraph_failing,
        langgraph_handoff,
        pydantic_ai,
    )
}
