"""Makes `agent_framework.otlp.jsonl`: the librarian as an agent of Microsoft's Agent Framework 1.23, then a workflow.

``PYTHONPATH=src:tests python tests/golden/agent_framework_dump.py > tests/golden/agent_framework.otlp.jsonl``
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from agent_framework import Agent
from agent_framework.observability import enable_instrumentation
from agent_framework.openai import OpenAIChatCompletionClient
from openai import AsyncOpenAI
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from golden import librarian

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(librarian.Lines()))
trace.set_tracer_provider(provider)
enable_instrumentation(enable_sensitive_data=True)


def find_book(title: str) -> str:
    """Look a book up in the catalogue."""
    return str(librarian.find_book(title))


def reserve(title: str) -> str:
    """Reserve a book."""
    return librarian.reserve(title)


async def main() -> None:
    client: Any = AsyncOpenAI(**{**librarian.CLIENT, "http_client": librarian.asynchronous()})
    model = OpenAIChatCompletionClient(model="gpt-5", async_client=client)
    agent = Agent(model, "You are a librarian.", name="librarian", tools=[find_book, reserve])
    session = agent.create_session()
    for question in librarian.QUESTIONS:
        with contextlib.suppress(Exception):
            await agent.run(question, session=session)


asyncio.run(main())
