"""The agent of the golden dumps: a librarian on the OpenAI SDK before a canned provider, told by whoever records it.

Three requests of one conversation: two tools at once and one that fails; a streamed answer; a provider that refuses.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import httpx
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from spanreel.otlp_file import export_request

SCHEMA = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
TOOLS: Any = [
    {"type": "function", "function": {"name": name, "description": text, "parameters": SCHEMA}}
    for name, text in (("find_book", "Look a book up in the catalogue."), ("reserve", "Reserve a book."))
]
QUESTIONS = ("Where are Momo and Krabat? Reserve Krabat.", "Who wrote Momo?", "And Krabat?")
_PATHS = ("stacktrace", "stack_trace", "process.", "host.", "service.instance", "telemetry.", "platform")
"""Of attributes that hold this machine's paths, or differ from run to run."""


class Lines(SpanExporter):
    """Prints each span as a line, without what is the machine's."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        document = export_request(spans)
        for resource in document["resourceSpans"]:
            _clean(resource["resource"])
            for span in (span for scope in resource["scopeSpans"] for span in scope["spans"]):
                for holder in (span, *span.get("events", ())):
                    _clean(holder)
        sys.stdout.write(json.dumps(document, ensure_ascii=False) + "\n")
        return SpanExportResult.SUCCESS


def _clean(holder: dict[str, Any]) -> None:
    kept = [pair for pair in holder.get("attributes", ()) if not any(word in pair["key"] for word in _PATHS)]
    for pair in kept:
        if pair["key"] == "exception.message":
            pair["value"]["stringValue"] = pair["value"]["stringValue"].partition("\n")[0]
    holder["attributes"] = kept


def _call(identity: str, name: str, **arguments: str) -> dict[str, Any]:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


_ANSWERS: Iterator[dict[str, Any] | None] = iter(
    (
        {
            "content": "I look both up.",
            "tool_calls": [_call("call_a", "find_book", title="Momo"), _call("call_b", "find_book", title="Krabat")],
        },
        {"content": None, "tool_calls": [_call("call_c", "reserve", title="Krabat")]},
        {"content": "Momo is on shelf 4; Krabat could not be reserved."},
        {"content": "Michael Ende wrote it."},
        None,
    )
)
_NUMBERS = itertools.count(1)


def provide(request: httpx.Request) -> httpx.Response:
    """What the provider answers: plain, as events where that is asked for, at last a refusal."""
    said = next(_ANSWERS)
    if said is None:
        return httpx.Response(429, json={"error": {"message": "Too many readers.", "type": "rate_limit_exceeded"}})
    number = next(_NUMBERS)
    message = {"role": "assistant", **said}
    reason = "tool_calls" if "tool_calls" in message else "stop"
    usage = {
        "prompt_tokens": 100 * number,
        "completion_tokens": 20 + number,
        "total_tokens": 101 * number + 20,
        "prompt_tokens_details": {"cached_tokens": 64 * (number - 1)},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    body = {"id": f"chatcmpl-{number}", "created": 1795000000 + number, "model": "gpt-5-2026-01-01"}
    if not json.loads(request.content).get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return httpx.Response(200, json={**body, "object": "chat.completion", "choices": [choice], "usage": usage})
    body["object"] = "chat.completion.chunk"
    words = str(message["content"] or "").split(" ")
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": words[0]}]
    deltas += [{"content": f" {word}"} for word in words[1:]]
    deltas += [{"tool_calls": [{"index": index, **call}]} for index, call in enumerate(message.get("tool_calls", ()))]
    chunks = [{**body, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks += [
        {**body, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        {**body, "choices": [], "usage": usage},
    ]
    text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    return httpx.Response(200, text=text, headers={"content-type": "text/event-stream"})


CLIENT: Any = {
    "api_key": "none",
    "base_url": "http://provider.test/v1",
    "http_client": httpx.Client(transport=httpx.MockTransport(provide)),
    "max_retries": 0,
}
"""A client of the OpenAI SDK that reaches the canned provider only."""


def asynchronous() -> httpx.AsyncClient:
    """The same for those who await."""
    return httpx.AsyncClient(transport=httpx.MockTransport(provide))


def find_book(title: str) -> dict[str, Any]:
    return {"title": title, "shelf": len(title)}


def reserve(title: str) -> str:
    raise LookupError(f"{title} is lent out")


def answer(messages: list[Any], create: Callable[..., Any], tools: dict[str, Callable[..., Any]], **also: Any) -> str:
    """One request to the agent: its loop, until it answers."""
    while True:
        settings: Any = {"temperature": 0.3, "max_completion_tokens": 500, **also}
        completion = create(model="gpt-5", messages=messages, tools=TOOLS, **settings)
        if also.get("stream"):
            text = "".join(chunk.choices[0].delta.content or "" for chunk in completion if chunk.choices)
            messages.append({"role": "assistant", "content": text})
            return text
        message = completion.choices[0].message
        asked = message.tool_calls or ()
        calls = [_call(call.id, call.function.name, **json.loads(call.function.arguments)) for call in asked]
        said = {"role": "assistant", "content": message.content}
        messages.append({**said, "tool_calls": calls} if calls else said)
        for call in asked:
            try:
                result = json.dumps(tools[call.function.name](**json.loads(call.function.arguments)))
            except LookupError as error:
                result = f"failed: {error}"
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        if not asked:
            return str(message.content)


def converse(request: Callable[..., str]) -> None:
    """The conversation: ``request`` is the agent as it is recorded, given the messages and settings."""
    messages: list[Any] = [{"role": "system", "content": "You are a librarian."}]
    for question in QUESTIONS:
        messages.append({"role": "user", "content": question})
        streamed = {"stream": True, "stream_options": {"include_usage": True}} if question == QUESTIONS[1] else {}
        try:
            request(question, messages, **streamed)
        except Exception as error:  # noqa: BLE001 - whatever the recorder makes of the provider's refusal
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
