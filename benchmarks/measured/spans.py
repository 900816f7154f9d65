"""Export requests as a service's Collector would have written them: agents that call tools, some at the same time."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

RUNS_PER_CONVERSATION: Final = 3
SPANS_PER_LINE: Final = 40
BEGAN: Final = 1_795_000_000_000_000_000
_TOOLS = json.dumps(
    [
        {
            "type": "function",
            "name": name,
            "description": f"Finds the {name} that was asked for, and says what is known of it.",
            "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
        }
        for name in ("orders", "customers", "invoices")
    ]
)
_WORDS = [
    "order",
    "customer",
    "invoice",
    "late",
    "again",
    "where",
    "parcel",
    "street",
    "number",
    "answer",
    "please",
    "soon",
    "already",
    "address",
]


def write_spans(path: Path, count: int) -> None:
    """A file of OTLP JSON lines with this many spans of about 5 KB each."""
    chance = random.Random(7)
    with path.open("w", encoding="utf-8") as file:
        pending: list[dict[str, Any]] = []
        for span in _interleaved(count, chance):
            pending.append(span)
            if len(pending) == SPANS_PER_LINE:
                file.write(_line(pending))
                pending = []
        if pending:
            file.write(_line(pending))


def _interleaved(count: int, chance: random.Random) -> Iterator[dict[str, Any]]:
    """The spans of several conversations that go on side by side."""
    open_ones: list[Iterator[dict[str, Any]]] = []
    conversation = given = 0
    while given < count:
        while len(open_ones) < 16:
            open_ones.append(_conversation(conversation, chance))
            conversation += 1
        one = chance.choice(open_ones)
        span = next(one, None)
        if span is None:
            open_ones.remove(one)
            continue
        given += 1
        yield span


def _conversation(number: int, chance: random.Random) -> Iterator[dict[str, Any]]:
    history: list[dict[str, Any]] = []
    for run in range(RUNS_PER_CONVERSATION):
        trace = f"{number * 100 + run + 1:032x}"
        yield from _run(trace, number, run, history, chance)


def _run(
    trace: str, number: int, run: int, history: list[dict[str, Any]], chance: random.Random
) -> Iterator[dict[str, Any]]:
    """A run: four model calls with a tool call after each of the first three, then the run's own span."""
    began = BEGAN + number * 1_000_000_000 + run * 60_000_000_000
    history.append(_said("user", _text(chance, 300)))
    first = history[-1]
    for turn in range(4):
        start = began + turn * 2_000_000_000
        last = turn == 3
        identity = f"call_{trace[-8:]}_{turn}"
        call = {"type": "tool_call", "id": identity, "name": "orders", "arguments": {"query": _text(chance, 60)}}
        answer = _said("assistant", _text(chance, 400)) if last else {"role": "assistant", "parts": [call]}
        yield _span(trace, turn * 2 + 2, f"chat gpt-5 {turn}", start, _chat(number, history, answer), 1)
        history.append(answer)
        if not last:
            result = {"rows": [_text(chance, 90) for _ in range(5)], "total": 5}
            attributes = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "orders",
                "gen_ai.tool.call.id": identity,
                "gen_ai.tool.call.arguments": json.dumps(call["arguments"]),
                "gen_ai.tool.call.result": json.dumps(result),
                "app.note": _text(chance, 3800),
            }
            yield _span(trace, turn * 2 + 3, "execute_tool orders", start + 1_000_000_000, attributes, 1)
            part = {"type": "tool_call_response", "id": identity, "response": result}
            history.append({"role": "tool", "parts": [part]})
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "support",
        "gen_ai.conversation.id": f"conversation-{number}",
        "gen_ai.input.messages": json.dumps([first]),
        "gen_ai.output.messages": json.dumps([history[-1]]),
        "app.note": _text(chance, 3500),
    }
    yield _span(trace, 1, "invoke_agent support", began, attributes, None)


def _chat(number: int, history: list[dict[str, Any]], answer: dict[str, Any]) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5",
        "gen_ai.response.model": "gpt-5-2025-08-07",
        "gen_ai.response.id": f"resp_{number}",
        "gen_ai.request.temperature": 0.3,
        "gen_ai.usage.input_tokens": 900,
        "gen_ai.usage.output_tokens": 60,
        "server.address": "api.openai.com",
        "gen_ai.conversation.id": f"conversation-{number}",
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "You help customers with orders."}]),
        "gen_ai.tool.definitions": _TOOLS,
        # As many of the newest as fill a span of 5 KB: a whole history would make the spans grow.
        "gen_ai.input.messages": json.dumps(history[-7:]),
        "gen_ai.output.messages": json.dumps([answer]),
    }


def _said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _text(chance: random.Random, length: int) -> str:
    return " ".join(chance.choices(_WORDS, k=length // 7))


def _span(
    trace: str, number: int, name: str, start: int, attributes: dict[str, Any], parent: int | None
) -> dict[str, Any]:
    return {
        "traceId": trace,
        "spanId": f"{trace[-8:]}{number:08x}",
        **({"parentSpanId": f"{trace[-8:]}{parent:08x}"} if parent else {}),
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + 900_000_000 if parent else start + 9_000_000_000),
        "attributes": [{"key": key, "value": _value(value)} for key, value in attributes.items()],
        "status": {},
    }


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


def _line(spans: list[dict[str, Any]]) -> str:
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "support"}}]}
    scope = {"name": "opentelemetry.instrumentation.genai.openai", "version": "1.0"}
    request = {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}]}]}
    return json.dumps(request, separators=(",", ":")) + "\n"
