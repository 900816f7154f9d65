"""Makes `logfire.otlp.jsonl`: the librarian as an agent of the OpenAI Agents SDK, recorded by Logfire 5.4.

``PYTHONPATH=src:tests python tests/golden/logfire_dump.py > tests/golden/logfire.otlp.jsonl``
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import logfire
from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, Runner, function_tool, trace
from openai import AsyncOpenAI
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from golden import librarian

processors = [SimpleSpanProcessor(librarian.Lines())]
logfire.configure(send_to_logfire=False, console=False, additional_span_processors=processors)
logfire.instrument_openai_agents()


def find_book(title: str) -> str:
    """Look a book up in the catalogue."""
    return json.dumps(librarian.find_book(title))


def reserve(title: str) -> str:
    """Reserve a book."""
    return librarian.reserve(title)


client: Any = AsyncOpenAI(**{**librarian.CLIENT, "http_client": librarian.asynchronous()})
agent = Agent(
    name="librarian",
    instructions="You are a librarian.",
    model=OpenAIChatCompletionsModel("gpt-5", client),
    model_settings=ModelSettings(temperature=0.3),
    tools=[function_tool(find_book), function_tool(reserve)],
)


async def main() -> None:
    history: list[Any] = []
    for question in librarian.QUESTIONS:
        history.append({"role": "user", "content": question})
        with contextlib.suppress(Exception), trace("visit", group_id="visit-1"):
            history = (await Runner.run(agent, history)).to_input_list()


asyncio.run(main())
