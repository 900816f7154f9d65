"""What is recorded: one call of each library, small, with a long history and tools, and streamed; and a growing loop.

The provider is in process: a transport that answers with prepared bytes, in which only a counter changes.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import httpx2

CHUNKS = 200
TURNS = 50
SMALL, LARGE, STREAM, LOOP = "small", "41 messages, 8 tools", "200 chunks", "loop"
WORKLOADS = (SMALL, LARGE, STREAM)

INSTRUCTIONS = "You care for customers of a book shop. " * 20
QUESTIONS = [f"Where is my order {number}? " * 10 for number in range(20)]
ANSWERS = [f"Order {number} is late, and I am sorry for it. " * 10 for number in range(20)]
SCHEMA = {"type": "object", "properties": {name: {"type": "string"} for name in ("order", "reason", "note")}}
TOOL_NAMES = [f"tool_{number}" for number in range(8)]
USAGE = {"prompt_tokens": 900, "completion_tokens": 200, "total_tokens": 1100}
MARK = "answer number"

Call = Callable[[str], Any]
"""One call of a library that asks this question last."""


def question(number: int) -> str:
    """What is asked last: something new each time, as in a conversation."""
    return f"And order {number}, where is that one?"


# -- the provider ----------------------------------------------------------------------------------------------------


def _chat() -> tuple[bytes, list[bytes]]:
    text = f"{MARK} @@ " + "word " * 200
    head = {"id": "chatcmpl-@@", "created": 1, "model": "gpt-5"}
    message = {"role": "assistant", "content": text}
    plain = {**head, "object": "chat.completion", "usage": USAGE}
    plain["choices"] = [{"index": 0, "message": message, "finish_reason": "stop"}]

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {**head, "object": "chat.completion.chunk", "choices": [choice]}

    words = [f"{MARK} @@ ", *["word "] * (CHUNKS - 1)]
    events = [chunk({"role": "assistant", "content": word}) for word in words]
    events += [chunk({}, "stop"), {**chunk({}), "choices": [], "usage": USAGE}]
    lines = [f"data: {json.dumps(event)}\n\n".encode() for event in events]
    return json.dumps(plain).encode(), [*lines, b"data: [DONE]\n\n"]


def _messages() -> tuple[bytes, list[bytes]]:
    usage = {"input_tokens": 900, "output_tokens": 200}
    message = {"id": "msg_@@", "type": "message", "role": "assistant", "model": "claude", "stop_sequence": None}
    text = {"type": "text", "text": f"{MARK} @@ " + "word " * 200}
    plain = {**message, "content": [text], "stop_reason": "end_turn", "usage": usage}
    words = [f"{MARK} @@ ", *["word "] * (CHUNKS - 1)]
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": w}} for w in words),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]
    return json.dumps(plain).encode(), [f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events]


class _Body(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        yield from self._pieces

    async def __aiter__(self) -> Any:
        for piece in self._pieces:
            yield piece


def transport(prepared: tuple[bytes, list[bytes]]) -> httpx2.MockTransport:
    """Answers every request, whole or in pieces as it asks."""
    numbers = itertools.count()
    plain, pieces = prepared

    def respond(request: httpx2.Request) -> httpx2.Response:
        number = b"%d" % next(numbers)
        if b'"stream":true' in request.content:
            body = _Body(piece.replace(b"@@", number) for piece in pieces)
            return httpx2.Response(200, stream=body, headers={"content-type": "text/event-stream"})
        content = plain.replace(b"@@", number)
        return httpx2.Response(200, content=content, headers={"content-type": "application/json"})

    return httpx2.MockTransport(respond)


# -- the libraries ---------------------------------------------------------------------------------------------------


def history(size: str) -> list[dict[str, str]]:
    """The messages before the last question: 40 beside the system's, or none."""
    if size != LARGE:
        return [{"role": "system", "content": "Be brief."}]
    messages = [{"role": "system", "content": INSTRUCTIONS}]
    for asked, answered in zip(QUESTIONS, ANSWERS, strict=True):
        messages += [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]
    return messages


def chat_tools(size: str) -> dict[str, Any]:
    """The tools, as chat completions take them; none but for the large call."""
    tools = [
        {"type": "function", "function": {"name": name, "description": "Does it.", "parameters": SCHEMA}}
        for name in TOOL_NAMES
    ]
    return {"tools": tools} if size == LARGE else {}


def functions(size: str) -> list[Callable[..., str]]:
    """The tools, as functions."""

    def make(name: str) -> Callable[..., str]:
        def tool(order: str, reason: str, note: str) -> str:
            """Does it."""
            return f"{order}{reason}{note}"

        tool.__name__ = tool.__qualname__ = name
        return tool

    return [make(name) for name in TOOL_NAMES] if size == LARGE else []


def _openai(size: str) -> Call:
    import openai

    http = httpx2.Client(transport=transport(_chat()))
    client: Any = openai.OpenAI(api_key="none", base_url="http://model.test/v1", http_client=http)
    messages, tools = history(size), chat_tools(size)

    def plain(asked: str) -> None:
        client.chat.completions.create(model="gpt-5", messages=[*messages, _user(asked)], **tools)

    def streamed(asked: str) -> None:
        for _ in client.chat.completions.create(model="gpt-5", messages=[*messages, _user(asked)], stream=True):
            pass

    return streamed if size == STREAM else plain


def _anthropic(size: str) -> Call:
    import anthropic

    http = httpx2.Client(transport=transport(_messages()))
    client: Any = anthropic.Anthropic(api_key="none", base_url="http://model.test", http_client=http)
    system, *messages = history(size)
    given: dict[str, Any] = {"model": "claude", "max_tokens": 1000, "system": system["content"]}
    if size == LARGE:
        given["tools"] = [{"name": name, "description": "Does it.", "input_schema": SCHEMA} for name in TOOL_NAMES]

    def plain(asked: str) -> None:
        client.messages.create(messages=[*messages, _user(asked)], **given)

    def streamed(asked: str) -> None:
        for _ in client.messages.create(messages=[*messages, _user(asked)], stream=True, **given):
            pass

    return streamed if size == STREAM else plain


def _langchain(size: str) -> Call:
    from langchain.agents import create_agent
    from langchain_core.tools import StructuredTool
    from langchain_openai import ChatOpenAI

    http = httpx2.Client(transport=transport(_chat()))
    model: Any = ChatOpenAI(
        model="gpt-5", api_key="none", base_url="http://model.test/v1", http_client=http, stream_usage=True
    )
    tools = [StructuredTool.from_function(tool) for tool in functions(size)]
    system, *messages = history(size)
    agent: Any = create_agent(model, tools, system_prompt=system["content"])

    def plain(asked: str) -> None:
        agent.invoke({"messages": [*messages, _user(asked)]})

    def streamed(asked: str) -> None:
        for _ in agent.stream({"messages": [_user(asked)]}, stream_mode="messages"):
            pass

    return streamed if size == STREAM else plain


def _openai_agents(size: str) -> Call:
    import agents
    import openai

    # What the SDK itself would send to OpenAI is no part of a call; peers that stand on its tracing keep that.
    agents.tracing.get_trace_provider()
    http = httpx2.AsyncClient(transport=transport(_chat()))
    client = openai.AsyncOpenAI(api_key="none", base_url="http://model.test/v1", http_client=http)
    system, *messages = history(size)
    agent: Any = agents.Agent(
        name="clerk",
        instructions=system["content"],
        model=agents.OpenAIChatCompletionsModel("gpt-5", client),
        tools=[agents.function_tool(tool) for tool in functions(size)],
        model_settings=agents.ModelSettings(include_usage=True),
    )

    def given(asked: str) -> Any:
        return [*messages, _user(asked)]

    async def plain(asked: str) -> None:
        await agents.Runner.run(agent, given(asked))

    async def streamed(asked: str) -> None:
        async for _ in agents.Runner.run_streamed(agent, given(asked)).stream_events():
            pass

    return _in_loop(streamed if size == STREAM else plain)


def _pydantic_ai(size: str) -> Call:
    import openai
    from pydantic_ai import Agent, Tool
    from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    http = httpx2.AsyncClient(transport=transport(_chat()))
    client = openai.AsyncOpenAI(api_key="none", base_url="http://model.test/v1", http_client=http)
    system, *messages = history(size)
    agent: Any = Agent(
        OpenAIChatModel("gpt-5", provider=OpenAIProvider(openai_client=client)),
        name="clerk",
        instructions=system["content"],
        tools=[Tool(tool) for tool in functions(size)],
    )
    before: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart(message["content"])])
        if message["role"] == "user"
        else ModelResponse(parts=[TextPart(message["content"])])
        for message in messages
    ]

    async def plain(asked: str) -> None:
        await agent.run(asked, message_history=before)

    async def streamed(asked: str) -> None:
        async with agent.run_stream(asked, message_history=before) as result:
            async for _ in result.stream_text(delta=True, debounce_by=None):
                pass

    return _in_loop(streamed if size == STREAM else plain)


def _user(asked: str) -> dict[str, str]:
    return {"role": "user", "content": asked}


def _in_loop(call: Callable[[str], Awaitable[None]]) -> Call:
    """The call in an event loop that stays, as in a server."""
    loop = asyncio.new_event_loop()
    return lambda asked: loop.run_until_complete(call(asked))


LIBRARIES: dict[str, Callable[[str], Call]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "langchain": _langchain,
    "openai-agents": _openai_agents,
    "pydantic-ai": _pydantic_ai,
}


def prepare(library: str) -> None:
    """What keeps a library from reaching out by itself."""
    os.environ.update(OPENAI_API_KEY="none", LANGSMITH_TRACING="false")
    if library == "openai-agents":
        import agents

        agents.set_trace_processors([])


def growing() -> Sequence[Callable[[], None]]:
    """The calls of one run of an agent of TURNS turns, on openai: each with the history of all before it."""
    import openai

    http = httpx2.Client(transport=transport(_chat()))
    client: Any = openai.OpenAI(api_key="none", base_url="http://model.test/v1", http_client=http)
    messages: list[Any] = history(SMALL)
    tools = chat_tools(LARGE)

    def call(number: int) -> None:
        messages.append(_user(question(number) * 5))
        answer = client.chat.completions.create(model="gpt-5", messages=messages, **tools)
        messages.append(answer.choices[0].message.to_dict())

    return [lambda number=number: call(number) for number in range(TURNS)]  # type: ignore[misc]
