"""Makes `pydantic_ai_old.otlp.jsonl` and `pydantic_ai.otlp.jsonl`: the librarian as an agent of pydantic-ai.

``PYTHONPATH=src:tests python tests/golden/pydantic_ai_dump.py 1 > tests/golden/pydantic_ai_old.otlp.jsonl`` and
``... 5 > tests/golden/pydantic_ai.otlp.jsonl``, with pydantic-ai-slim 1.107: the number is the format's.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from openai import AsyncOpenAI
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from golden import librarian

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(librarian.Lines()))
settings: Any = {"tracer_provider": provider, "version": int(sys.argv[1])}
client: Any = AsyncOpenAI(**{**librarian.CLIENT, "http_client": librarian.asynchronous()})
make: Any = Agent  # of the releases that took `instrument`
agent = make(
    OpenAIChatModel("gpt-5", provider=OpenAIProvider(openai_client=client)),
    name="librarian",
    instructions="You are a librarian.",
    model_settings={"temperature": 0.3},
    instrument=InstrumentationSettings(**settings),
)


def find_book(title: str) -> dict[str, Any]:
    """Look a book up in the catalogue."""
    return librarian.find_book(title)


def reserve(title: str) -> str:
    """Reserve a book."""
    try:
        return librarian.reserve(title)
    except LookupError as error:
        raise ModelRetry(str(error)) from error


for tool in (find_book, reserve):
    agent.tool_plain(tool)
history: Any = None
for question in librarian.QUESTIONS:
    with contextlib.suppress(Exception):
        history = agent.run_sync(question, message_history=history).all_messages()
