"""Makes `langfuse.otlp.jsonl`: the librarian, recorded by Langfuse's decorator and its OpenAI client.

``PYTHONPATH=src:tests python tests/golden/langfuse_dump.py > tests/golden/langfuse.otlp.jsonl``
"""

from __future__ import annotations

from typing import Any

from langfuse import Langfuse, observe, propagate_attributes
from langfuse.openai import OpenAI
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from golden import librarian

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(librarian.Lines()))
Langfuse(public_key="pk-lf-none", secret_key="none", base_url="http://127.0.0.1:1", tracer_provider=provider)
client: Any = OpenAI(**librarian.CLIENT)
TOOLS: Any = {
    "find_book": observe(name="find_book", as_type="tool")(librarian.find_book),
    "reserve": observe(name="reserve", as_type="tool")(librarian.reserve),
}


def ask(question: str) -> str:
    del question  # it is the last of the messages
    messages, settings = GIVEN
    return librarian.answer(messages, client.chat.completions.create, TOOLS, **settings)


ask_recorded: Any = observe(name="librarian", as_type="agent")(ask)


GIVEN: Any = ()


def recorded(question: str, messages: list[Any], **settings: Any) -> str:
    globals()["GIVEN"] = (messages, settings)
    with propagate_attributes(session_id="visit-1", user_id="reader-9", tags=["demo"], metadata={"branch": "north"}):
        return str(ask_recorded(question))


librarian.converse(recorded)
