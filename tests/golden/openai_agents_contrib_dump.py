"""Makes `openai_agents_contrib.otlp.jsonl`: the librarian on the openai-agents SDK, recorded by OpenTelemetry's own
instrumentation of it, `opentelemetry-instrumentation-openai-agents-v2` 0.1.0.

``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=span_only \\
PYTHONPATH=src:tests python tests/golden/openai_agents_contrib_dump.py > tests/golden/openai_agents_contrib.otlp.jsonl``
"""

from __future__ import annotations

import sys
from typing import Any

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
from openai import AsyncOpenAI
from opentelemetry.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from golden import librarian

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(librarian.Lines()))
OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)


@function_tool
def find_book(title: str) -> dict[str, Any]:
    """Look a book up in the catalogue."""
    return librarian.find_book(title)


@function_tool
def reserve(title: str) -> str:
    """Reserve a book."""
    return librarian.reserve(title)


client: Any = AsyncOpenAI(**{**librarian.CLIENT, "http_client": librarian.asynchronous()})
agent = Agent(
    name="librarian",
    instructions="You are a librarian.",
    model=OpenAIChatCompletionsModel("gpt-5", client),
    tools=[find_book, reserve],
)
history: Any = []
for question in librarian.QUESTIONS:
    try:
        history = Runner.run_sync(agent, [*history, {"role": "user", "content": question}]).to_input_list()
    except Exception as error:  # noqa: BLE001 - whatever it makes of the provider's refusal
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
