"""The AI SDK from version 7 on, by `@ai-sdk/otel`: the conventions, in scope ``gen_ai``."""

from __future__ import annotations

from dataclasses import replace

from spanreel import conventions as names
from spanreel.model import Fidelity, Message, Operation, Request
from spanreel.records import ModelRecord, Record, RunRecord
from spanreel_collector.dialects import genai_spans, values
from spanreel_collector.dialects.content import ai_sdk
from spanreel_collector.span import RawSpan

NAME = "vercel_otel"

_FIRST_CHUNK = "gen_ai.client.operation.time_to_first_chunk"
_OF_TOOLS = ("tool_call", "tool_call_response")


def speaks(span: RawSpan) -> bool:
    """Whether the SDK wrote the span."""
    return span.origin.scope == ai_sdk.OTEL_SCOPE and "gen_ai.operation.name" in span.attributes


def read(span: RawSpan) -> Record | None:
    """What the span says in the conventions' words, and what it says by the way."""
    record = genai_spans.read(ai_sdk.with_own_status(span))
    if isinstance(record, RunRecord):
        usage = any(key.startswith("gen_ai.usage.") for key in span.attributes)
        reasons = span.attributes.get(names.RESPONSE_FINISH_REASONS)
        status = ai_sdk.status_of(span, record.error, record.output, reasons, usage)
        return replace(record, output=tuple(_answer(message) for message in record.output), status=status)
    if not isinstance(record, ModelRecord):
        return record
    first_chunk = values.number(span.attributes, _FIRST_CHUNK)
    record = replace(
        record,
        provider=ai_sdk.provider(record.provider),
        status=ai_sdk.status_of(span, record.error, record.answer),
        fidelity={**record.fidelity, **_untold_instructions(record.request)},
    )
    if first_chunk is None:
        return record
    answer = replace(record.answer, streamed=True) if record.answer else None
    request = replace(record.request, stream=True)
    return replace(record, request=request, answer=answer, time_to_first_chunk=first_chunk)


def _untold_instructions(request: Request) -> dict[str, Fidelity]:
    """Releases before 1.0.30 or so of `@ai-sdk/otel` tell a run's instructions on the run alone."""
    told = request.instructions or any(message["role"] == "system" for message in request.messages)
    return {} if told or request.operation is not Operation.CHAT else {"instructions": Fidelity.ABSENT}


def _answer(message: Message) -> Message:
    """A run's answer without the tool calls of all its turns, which the SDK puts behind the last turn's text."""
    kept = [part for part in message["parts"] if part["type"] not in _OF_TOOLS]
    return {**message, "parts": kept} if kept else message
