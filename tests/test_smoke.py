"""What must work with the lowest versions that we promise: record by httpx, in a tree, and read the spans again."""

from __future__ import annotations

import json
from typing import Any

import httpx
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import spanreel

ANSWER = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "served",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
}


@spanreel.tool()
def look(name: str) -> str:
    return name.upper()


@spanreel.run(agent="smoke")
def work(question: str) -> str:
    def respond(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=ANSWER)

    with httpx.Client(transport=httpx.MockTransport(respond)) as client:
        body = {"model": "asked", "messages": [{"role": "user", "content": question}]}
        answer: dict[str, Any] = client.post("http://model.test/v1/chat/completions", json=body).json()
        with client.stream("POST", "http://model.test/v1/chat/completions", json=body) as response:
            response.read()
    look(question)
    return str(answer["choices"][0]["message"]["content"])


def test_the_same_tree_on_every_version() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    spanreel.instrument(tracer_provider=provider)
    try:
        assert work("hi") == "Hello."
    finally:
        spanreel.uninstrument()
    spans = exporter.get_finished_spans()
    ids = {span.context.span_id: span.name for span in spans if span.context}
    tree = [(ids[span.parent.span_id] if span.parent else None, span.name) for span in spans]
    assert tree == [
        ("invoke_agent smoke", "run_started"),
        ("agent_step 0", "chat asked"),
        ("invoke_agent smoke", "agent_step 0"),
        ("agent_step 1", "chat asked"),
        ("agent_step 1", "execute_tool look"),
        ("invoke_agent smoke", "agent_step 1"),
        (None, "invoke_agent smoke"),
    ]
    chat = spans[1].attributes or {}
    assert json.loads(str(chat["gen_ai.output.messages"]))[0]["parts"][0]["content"] == "Hello."
    assert chat["gen_ai.usage.output_tokens"] == 2
