"""Requests as a Collector in front of many agents would send them: conversations side by side, 512 spans a request."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

Kind = Literal["big", "small"]

SPANS_PER_REQUEST: Final = 512
SPANS_PER_TRACE: Final = 8
TRACES_PER_CONVERSATION: Final = 3
_SIDE_BY_SIDE: Final = 16
_BEGAN: Final = 1_795_000_000_000_000_000
_SECOND: Final = 1_000_000_000
_chance = random.Random(7)
_WORDS: Final = ["".join(_chance.choices("abcdefghijklmnopqrstuvwxyz", k=_chance.randint(2, 11))) for _ in range(5000)]
_TOOLS: Final = json.dumps([{"type": "function", "name": name} for name in ("orders", "customers", "invoices")])


@dataclass
class Conversation:
    """One that goes on: of a big span, the last four of what was said are its messages, as far as it fills 5.5 KB."""

    number: int
    kind: Kind
    chance: random.Random
    history: list[str] = field(default_factory=list)

    def spans(self, first: int = 0, count: int = SPANS_PER_TRACE * TRACES_PER_CONVERSATION) -> Iterator[Span]:
        """Its spans from one on, in the order in which they end; the agent's own closes each trace."""
        for position in range(first, first + count):
            trace, inside = divmod(position, SPANS_PER_TRACE)
            root = inside == SPANS_PER_TRACE - 1
            began = _BEGAN + self.number * _SECOND + position * 1_000_000
            yield Span(
                trace_id=(self.number * 1000 + trace + 1).to_bytes(16, "big"),
                span_id=(self.number * 1000 + position + 1).to_bytes(8, "big"),
                parent_span_id=b"" if root else (self.number * 1000 + (trace + 1) * SPANS_PER_TRACE).to_bytes(8, "big"),
                name="invoke_agent support" if root else "chat gpt-5" if inside % 2 == 0 else "execute_tool orders",
                kind=Span.SPAN_KIND_INTERNAL,
                start_time_unix_nano=began,
                end_time_unix_nano=began + 900_000,
                attributes=[_pair(key, value) for key, value in self._attributes(position, root).items()],
            )

    def _attributes(self, position: int, root: bool) -> dict[str, Any]:
        operation = "invoke_agent" if root else "chat" if position % 2 == 0 else "execute_tool"
        common = {
            "gen_ai.operation.name": operation,
            "gen_ai.conversation.id": f"conversation-{self.number}",
            "gen_ai.agent.name": "support",
            "gen_ai.provider.name": "openai",
        }
        named = {"chat": "gen_ai.request.model", "execute_tool": "gen_ai.tool.name"}.get(operation, "gen_ai.agent.id")
        if self.kind == "small":
            call = {named: "gpt-5" if operation == "chat" else "orders", "gen_ai.usage.input_tokens": 900}
            return {
                **common,
                **call,
                "server.address": "api.openai.com",
                "app.request": f"{self.number:x}-{position:x}",
            }
        self.history.append(self._text(900))
        messages = [{"role": "user", "parts": [{"type": "text", "content": said}]} for said in self.history[-5:-1]]
        answer = [{"role": "assistant", "parts": [{"type": "text", "content": self.history[-1]}]}]
        return {
            **common,
            named: "gpt-5" if operation == "chat" else "orders",
            "gen_ai.response.id": f"resp_{self.chance.getrandbits(120):x}",
            "gen_ai.request.temperature": 0.3,
            "gen_ai.usage.input_tokens": 900 + position,
            "gen_ai.usage.output_tokens": 60,
            "server.address": "api.openai.com",
            "gen_ai.tool.definitions": _TOOLS,
            "gen_ai.input.messages": json.dumps(messages),
            "gen_ai.output.messages": json.dumps(answer),
            **{f"app.detail.{name}": self.chance.choice(_WORDS) for name in "abcdefgh"},
        }

    def _text(self, length: int) -> str:
        return " ".join(self.chance.choices(_WORDS, k=length // 7))


def spans(kind: Kind, count: int, first: int = 1) -> Iterator[Span]:
    """So many spans of conversations that go on side by side, numbered from one on."""
    chance = random.Random(first)
    going: list[Iterator[Span]] = []
    number, given = first, 0
    while given < count:
        while len(going) < _SIDE_BY_SIDE:
            going.append(Conversation(number, kind, chance).spans())
            number += 1
        one = chance.choice(going)
        span = next(one, None)
        if span is None:
            going.remove(one)
            continue
        given += 1
        yield span


def request(some: list[Span]) -> bytes:
    """An export request of these spans."""
    made = ExportTraceServiceRequest()
    resource = made.resource_spans.add()
    resource.resource.attributes.append(_pair("service.name", "support"))
    scope = resource.scope_spans.add()
    scope.scope.name = "opentelemetry.instrumentation.genai.openai"
    scope.spans.extend(some)
    return bytes(made.SerializeToString())


def requests(kind: Kind, count: int, first: int = 1) -> Iterator[bytes]:
    """Export requests of so many spans together."""
    some: list[Span] = []
    for span in spans(kind, count, first):
        some.append(span)
        if len(some) == SPANS_PER_REQUEST:
            yield request(some)
            some = []
    if some:
        yield request(some)


def packed(body: bytes) -> bytes:
    """As exporters pack it."""
    return gzip.compress(body, 6)


def _pair(key: str, value: Any) -> Any:

    if isinstance(value, int):
        return KeyValue(key=key, value=AnyValue(int_value=value))
    if isinstance(value, float):
        return KeyValue(key=key, value=AnyValue(double_value=value))
    return KeyValue(key=key, value=AnyValue(string_value=value))
