"""Makes `autogen.otlp.jsonl`: the librarian and a porter as a team of AutoGen 0.7, which traces no models.

``PYTHONPATH=src:tests python tests/golden/autogen_dump.py > tests/golden/autogen.otlp.jsonl``
"""

from __future__ import annotations

import asyncio
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from golden import librarian

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(librarian.Lines()))
trace.set_tracer_provider(provider)
CAPABLE: Any = {"vision": False, "function_calling": True, "json_output": False, "family": "unknown"}
settings: Any = {**librarian.CLIENT, "http_client": librarian.asynchronous(), "temperature": 0.3}
model = OpenAIChatCompletionClient(model="gpt-5", model_info={**CAPABLE, "structured_output": False}, **settings)


async def find_book(title: str) -> dict[str, Any]:
    """Look a book up in the catalogue."""
    return librarian.find_book(title)


async def reserve(title: str) -> str:
    """Reserve a book."""
    return librarian.reserve(title)


async def main() -> None:
    clerk = AssistantAgent(
        "librarian",
        model,
        tools=[find_book, reserve],
        system_message="You are a librarian.",
        max_tool_iterations=5,
    )
    porter = AssistantAgent("porter", model, system_message="You are a porter.")
    team = RoundRobinGroupChat([clerk, porter], max_turns=2)
    await team.run(task=librarian.QUESTIONS[0])


asyncio.run(main())
