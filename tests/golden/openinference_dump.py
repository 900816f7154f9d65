"""Makes `openinference.otlp.jsonl`: an agent on the OpenAI SDK, recorded by OpenInference, before a canned provider.

Run it where openinference-instrumentation-openai and openai are installed:
``PYTHONPATH=src python tests/golden/openinference_dump.py > tests/golden/openinference.otlp.jsonl``
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Sequence
from typing import Any

import httpx
import openai
from openinference.instrumentation import OITracer, TraceConfig, using_attributes
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from spanreel.otlp_file import export_request

SCHEMA = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
TOOLS: Any = [
    {"type": "function", "function": {"name": name, "description": text, "parameters": SCHEMA}}
    for name, text in (("find_book", "Look a book up in the catalogue."), ("reserve", "Reserve a book."))
]


class Lines(SpanExporter):
    """Prints each span as a line, without the stack traces, which hold paths."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        document = export_request(spans)
        for resource in document["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for event in (event for span in scope["spans"] for event in span.get("events", ())):
                    event["attributes"] = [pair for pair in event["attributes"] if "stacktrace" not in pair["key"]]
        sys.stdout.write(json.dumps(document, ensure_ascii=False) + "\n")
        return SpanExportResult.SUCCESS


def call(identity: str, name: str, **arguments: str) -> dict[str, Any]:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


ANSWERS = iter(
    (
        {
            "content": "I look both up.",
            "tool_calls": [
                call("call_a", "find_book", title="Momo"),
                call("call_b", "find_book", title="Krabat"),
            ],
        },
        {"content": None, "tool_calls": [call("call_c", "reserve", title="Krabat")]},
        {"content": "Momo is on shelf 4; Krabat could not be reserved."},
    )
)
NUMBERS = itertools.count(1)


def provide(request: httpx.Request) -> httpx.Response:
    message = {"role": "assistant", **next(ANSWERS)}
    number = next(NUMBERS)
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}
    usage = {
        "prompt_tokens": 100 * number,
        "completion_tokens": 20 + number,
        "total_tokens": 101 * number + 20,
        "prompt_tokens_details": {"cached_tokens": 64 * (number - 1)},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    body = {"id": f"chatcmpl-{number}", "object": "chat.completion", "created": 1795000000 + number}
    return httpx.Response(200, json={**body, "model": "gpt-5-2026-01-01", "choices": [choice], "usage": usage})


provider = TracerProvider(resource=Resource({"service.name": "library"}))
provider.add_span_processor(SimpleSpanProcessor(Lines()))
OpenAIInstrumentor().instrument(tracer_provider=provider)
tracer = OITracer(provider.get_tracer("library"), TraceConfig())
transport: Any = httpx.Client(transport=httpx.MockTransport(provide))
client = openai.OpenAI(api_key="none", base_url="http://provider.test/v1", http_client=transport)


def find_book(title: str) -> dict[str, Any]:
    return {"title": title, "shelf": len(title)}


def reserve(title: str) -> str:
    raise LookupError(f"{title} is lent out")


FUNCTIONS: Any = {
    "find_book": tracer.tool(description="Look a book up in the catalogue.")(find_book),
    "reserve": tracer.tool(description="Reserve a book.")(reserve),
}


def answer(question: str) -> str:
    messages: list[Any] = [
        {"role": "system", "content": "You are a librarian."},
        {"role": "user", "content": question},
    ]
    while True:
        settings: Any = {"temperature": 0.3, "max_completion_tokens": 500}
        completion = client.chat.completions.create(model="gpt-5", messages=messages, tools=TOOLS, **settings)
        message = completion.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        for asked in message.tool_calls or ():
            arguments = json.loads(asked.function.arguments)
            try:
                result = json.dumps(FUNCTIONS[asked.function.name](**arguments))
            except LookupError as error:
                result = f"failed: {error}"
            messages.append({"role": "tool", "tool_call_id": asked.id, "content": result})
        if not message.tool_calls:
            return str(message.content)


with using_attributes(session_id="visit-1", user_id="reader-9", metadata={"branch": "north"}, tags=["demo"]):
    tracer.agent(name="librarian")(answer)("Where are Momo and Krabat? Reserve Krabat.")
