"""Makes `strands.otlp.jsonl` and `strands_latest.otlp.jsonl`: the librarian as an agent of Strands 1.62.

``PYTHONPATH=src:tests python tests/golden/strands_dump.py > tests/golden/strands.otlp.jsonl``; the other one with
``OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental,gen_ai_tool_definitions``.
"""

from __future__ import annotations

import contextlib
from typing import Any

from openai import AsyncOpenAI
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from strands import Agent, tool
from strands.models.openai import OpenAIModel

from golden import librarian

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(librarian.Lines()))
trace.set_tracer_provider(provider)


def find_book(title: str) -> dict[str, Any]:
    """Look a book up in the catalogue."""
    return {"status": "success", "content": [{"json": librarian.find_book(title)}]}


def reserve(title: str) -> str:
    """Reserve a book."""
    return librarian.reserve(title)


client: Any = AsyncOpenAI(**{**librarian.CLIENT, "http_client": librarian.asynchronous()})
agent = Agent(
    model=OpenAIModel(client=client, model_id="gpt-5", params={"temperature": 0.3}),
    name="librarian",
    system_prompt="You are a librarian.",
    tools=[tool(find_book), tool(reserve)],
    trace_attributes={"session.id": "visit-1", "user.id": "reader-9"},
    callback_handler=None,
)
for question in librarian.QUESTIONS:
    with contextlib.suppress(Exception):
        agent(question)
