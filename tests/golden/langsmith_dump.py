"""Makes `langsmith.otlp.jsonl`: the librarian, recorded by LangSmith's decorator and its wrapping of the OpenAI client.

``LANGSMITH_TRACING=true LANGSMITH_OTEL_ENABLED=true LANGSMITH_OTEL_ONLY=true LANGSMITH_API_KEY=none \\
PYTHONPATH=src:tests python tests/golden/langsmith_dump.py > tests/golden/langsmith.otlp.jsonl``
"""

from __future__ import annotations

from typing import Any

import langsmith
import openai
from langsmith.wrappers import wrap_openai
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from golden import librarian

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(librarian.Lines()))
trace.set_tracer_provider(provider)
client: Any = wrap_openai(openai.OpenAI(**librarian.CLIENT))
TOOLS: Any = {
    "find_book": langsmith.traceable(run_type="tool", name="find_book")(librarian.find_book),
    "reserve": langsmith.traceable(run_type="tool", name="reserve")(librarian.reserve),
}
GIVEN: list[Any] = []


def ask(question: str) -> str:
    del question  # it is the last of the messages
    messages, settings = GIVEN
    return librarian.answer(messages, client.chat.completions.create, TOOLS, **settings)


ask_recorded: Any = langsmith.traceable(run_type="chain", name="librarian")(ask)


def recorded(question: str, messages: list[Any], **settings: Any) -> str:
    GIVEN[:] = [messages, settings]
    return str(ask_recorded(question, langsmith_extra={"metadata": {"session_id": "visit-1", "user_id": "reader-9"}}))


librarian.converse(recorded)
langsmith.Client().flush()
