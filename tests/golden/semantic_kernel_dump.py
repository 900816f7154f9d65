"""Makes `semantic_kernel.otlp.jsonl`: the librarian as an agent of Semantic Kernel 1.45, its messages in log records.

``SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true \\
PYTHONPATH=src:tests python tests/golden/semantic_kernel_dump.py > tests/golden/semantic_kernel.otlp.jsonl``
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from typing import Any

from openai import AsyncOpenAI
from opentelemetry import trace
from opentelemetry.sdk._logs import LoggingHandler
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from semantic_kernel.agents import ChatCompletionAgent, ChatHistoryAgentThread
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.functions import kernel_function

from golden import librarian, log_lines

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(librarian.Lines()))
trace.set_tracer_provider(provider)
handler = LoggingHandler(logger_provider=log_lines.provider())
handler.addFilter(logging.Filter("semantic_kernel"))
logging.getLogger().addHandler(handler)
logging.getLogger().setLevel(logging.INFO)


class Library:
    """The tools, as a plugin."""

    @kernel_function(description="Look a book up in the catalogue.")  # type: ignore[untyped-decorator] # in no environment of ours
    def find_book(self, title: str) -> str:
        return json.dumps(librarian.find_book(title))

    @kernel_function(description="Reserve a book.")  # type: ignore[untyped-decorator] # the same
    def reserve(self, title: str) -> str:
        return librarian.reserve(title)


async def converse() -> None:
    client: Any = AsyncOpenAI(**{**librarian.CLIENT, "http_client": librarian.asynchronous()})
    agent = ChatCompletionAgent(
        service=OpenAIChatCompletion(ai_model_id="gpt-5", async_client=client),
        name="librarian",
        instructions="You are a librarian.",
        plugins=[Library()],
    )
    thread: Any = ChatHistoryAgentThread(thread_id="visit-1")
    for question in librarian.QUESTIONS:
        try:
            thread = (await agent.get_response(question, thread=thread)).thread
        except Exception as error:  # noqa: BLE001 - whatever it makes of the provider's refusal
            sys.stderr.write(f"{type(error).__name__}: {error}\n")


asyncio.run(converse())
