"""The AI SDK from version 7 on, by `@ai-sdk/otel`: the conventions, in scope ``gen_ai``."""

from __future__ import annotations

from dataclasses import replace

from spanreel.model import Message
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
        return replace(record, output=tuple(_answer(message) for message in record.output))
    if not isinstance(record, ModelRecord):
        return record
    first_chunk = values.number(span.attributes, _FIRST_CHUNK)
    record = replace(record, provider=ai_sdk.provider(record.provider))
    if first_chunk is None:
        return record
    answer = replace(record.answer, streamed=True) if record.answer else None
    request = replace(record.request, stream=True)
    return replace(record, request=request, answer=answer, time_to_first_chunk=first_chunk)


def _answer(message: Message) -> Message:
    """A run's answer without the tool calls of all its turns, which the SDK puts behind the last turn's text."""
    kept = [part for part in message["parts"] if part["type"] not in _OF_TOOLS]
    return {**message, "parts": kept} if kept else message
