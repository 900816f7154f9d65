"""Makes `haystack.otlp.jsonl`: the librarian's first request, to an agent of Haystack's, by its own tracing.

``HAYSTACK_TELEMETRY_ENABLED=false HAYSTACK_CONTENT_TRACING_ENABLED=true OPENAI_API_KEY=none \\
PYTHONPATH=src:tests python tests/golden/haystack_dump.py > tests/golden/haystack.otlp.jsonl``
"""

from __future__ import annotations

import openai
from haystack import Pipeline, tracing
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import Tool
from haystack_integrations.tracing.opentelemetry import OpenTelemetryTracer
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from golden import librarian

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(librarian.Lines()))
tracing.enable_tracing(OpenTelemetryTracer(provider.get_tracer("library")))
tracing.tracer.is_content_tracing_enabled = True
generator = OpenAIChatGenerator(model="gpt-5", generation_kwargs={"temperature": 0.3})
generator.warm_up()
generator.client = openai.OpenAI(**librarian.CLIENT)
functions = (librarian.find_book, librarian.reserve)
tools = [
    Tool(function.__name__, offered["function"]["description"], librarian.SCHEMA, function)
    for function, offered in zip(functions, librarian.TOOLS, strict=True)
]
agent = Agent(
    chat_generator=generator,
    tools=tools,
    system_prompt="You are a librarian.",
    raise_on_tool_invocation_failure=False,
)
pipeline = Pipeline()
pipeline.add_component("librarian", agent)
pipeline.run({"librarian": {"messages": [ChatMessage.from_user(librarian.QUESTIONS[0])]}})
