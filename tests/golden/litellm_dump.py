"""Makes `litellm.otlp.jsonl`: the librarian on LiteLLM, recorded by its OpenTelemetry callback.

``LITELLM_LOCAL_MODEL_COST_MAP=true \\
PYTHONPATH=src:tests python tests/golden/litellm_dump.py > tests/golden/litellm.otlp.jsonl``
"""

from __future__ import annotations

from typing import Any

import litellm
import openai
from litellm.integrations.opentelemetry import OpenTelemetry, OpenTelemetryConfig
from opentelemetry import trace

from golden import librarian

litellm.suppress_debug_info = True
litellm.callbacks = [OpenTelemetry(config=OpenTelemetryConfig(exporter=librarian.Lines()))]
client = openai.OpenAI(**librarian.CLIENT)
tracer = trace.get_tracer("library")
TOOLS: Any = {"find_book": librarian.find_book, "reserve": librarian.reserve}


def create(**settings: Any) -> Any:
    return litellm.completion(client=client, **{**settings, "model": "openai/gpt-4o"}, num_retries=0)


def recorded(question: str, messages: list[Any], **settings: Any) -> str:
    with tracer.start_as_current_span("visit", attributes={"question": question}):
        return librarian.answer(messages, create, TOOLS, **settings)


librarian.converse(recorded)
