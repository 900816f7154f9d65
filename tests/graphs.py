"""What the tests of LangChain and LangGraph share: a scripted chat model in process, answers, an agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph

from spanreel import testing
from spanreel.model import Request

Script = Callable[[Request], Any]


def in_turn(*answers: Any) -> Script:
    """A model that answers by how many answers it finds in the conversation."""

    def answer(request: Request) -> Any:
        number = min(sum(message["role"] == "assistant" for message in request.messages), len(answers) - 1)
        return answers[number](request) if callable(answers[number]) else answers[number]

    return answer


def asks(*calls: tuple[str, str, dict[str, Any]]) -> Any:
    """An answer that asks for tools: (id, name, arguments)."""
    return testing.answer(tool_calls=[testing.tool_call(name, arguments, id_) for id_, name, arguments in calls])


def chat(script: Any, requests: list[Any] | None = None, **options: Any) -> ChatOpenAI:
    """A chat model whose provider answers from the script; ``requests`` gets what it is asked."""
    provider = testing.ScriptedProvider(script)
    if requests is not None:
        provider.requests = requests
    transport = provider.transport("httpx2")
    return ChatOpenAI(
        model="gpt-5",
        api_key="sk-none",
        base_url="http://model.test/v1",
        http_client=httpx2.Client(transport=transport),
        http_async_client=httpx2.AsyncClient(transport=transport),
        **{"max_retries": 0, **options},
    )


TWO = in_turn(
    asks(("call_1", "weather", {"city": "Paris"}), ("call_2", "weather", {"city": "Rome"})), testing.text("Sunny.")
)
"""Asks for the weather in two towns at once, then answers."""

ASKED = {"messages": [("user", "How is it?")]}


def agent(tools: Any = (), script: Any = TWO, **options: Any) -> Any:
    """An agent made by LangChain, named ``forecaster``."""
    requests = options.pop("requests", None)
    return create_agent(
        chat(script, requests), tools=list(tools), system_prompt="Be brief.", name="forecaster", **options
    )


def thread(name: str) -> dict[str, Any]:
    """A config that names a thread."""
    return {"configurable": {"thread_id": name}}


def line(name: str | None, state: Any = MessagesState, /, *, compiled: Any = None, **nodes: Any) -> Any:
    """A graph whose nodes come one after the other; ``compiled`` are options of its compiling."""
    graph: Any = StateGraph(state)
    before = START
    for node, does in nodes.items():
        graph.add_node(node, does)
        graph.add_edge(before, node)
        before = node
    return graph.compile(name=name, **compiled or {})
