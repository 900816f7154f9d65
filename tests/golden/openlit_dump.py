"""Makes `openlit.otlp.jsonl`: the librarian on the OpenAI SDK, recorded by OpenLIT 1.45, events beside spans.

``PYTHONPATH=src:tests python tests/golden/openlit_dump.py > tests/golden/openlit.otlp.jsonl``
"""

from __future__ import annotations

from typing import Any

import openai
import openlit
from opentelemetry import _logs, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from golden import librarian, log_lines

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(librarian.Lines()))
trace.set_tracer_provider(provider)
_logs.set_logger_provider(log_lines.provider())
# Its price list would come over the network.
openlit.init(
    application_name="library", pricing_json="none", disable_metrics=True, disabled_instrumentors=["httpx", "requests"]
)
client = openai.OpenAI(**librarian.CLIENT)
tracer = trace.get_tracer("library")
TOOLS: Any = {"find_book": librarian.find_book, "reserve": librarian.reserve}


def recorded(question: str, messages: list[Any], **settings: Any) -> str:
    with tracer.start_as_current_span("visit", attributes={"question": question}):
        return librarian.answer(messages, client.chat.completions.create, TOOLS, **settings)


librarian.converse(recorded)
