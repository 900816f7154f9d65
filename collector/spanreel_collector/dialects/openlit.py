"""OpenLIT: the GenAI conventions, with settings that nobody gave."""

from __future__ import annotations

from dataclasses import replace

from spanreel import conventions as names
from spanreel.model import Message, ModelRecord, Record
from spanreel_collector.dialects import genai_spans
from spanreel_collector.span import Attributes, RawSpan

NAME = "openlit"

_SCOPE = "openlit"
_INVENTED = {
    names.REQUEST_SEED: (0, ""),
    names.REQUEST_TEMPERATURE: (1.0,),
    names.REQUEST_TOP_P: (1.0,),
    names.REQUEST_TOP_K: (1.0,),
    names.REQUEST_MAX_TOKENS: (-1,),
    names.REQUEST_FREQUENCY_PENALTY: (0.0,),
    names.REQUEST_PRESENCE_PENALTY: (0.0,),
}
"""What it writes where nothing was set; whoever did set just these cannot be told apart."""
_COUNT_APART = ("anthropic", "aws.bedrock")
"""Providers whose input tokens come without the cached ones, as they are written down here."""


def speaks(span: RawSpan) -> bool:
    """Whether OpenLIT wrote the span."""
    scope = span.origin.scope
    return (scope == _SCOPE or scope.startswith(f"{_SCOPE}.")) and any(
        key.startswith("gen_ai.") for key in span.attributes
    )


def read(span: RawSpan) -> Record | None:
    """What the span says. The tools that a model call names are those it asked for, not one that was called."""
    logs = tuple(replace(log, attributes=_given(log.attributes)) for log in span.logs)
    record = genai_spans.read(replace(span, attributes=_given(span.attributes), logs=logs))
    if isinstance(record, ModelRecord) and record.answer:
        record = replace(record, answer=replace(record.answer, messages=tuple(map(_said, record.answer.messages))))
    if isinstance(record, ModelRecord) and record.provider in _COUNT_APART and record.answer and record.answer.usage:
        usage = record.answer.usage
        cached = (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
        if usage.input_tokens is not None and usage.input_tokens == span.attributes.get(names.USAGE_INPUT_TOKENS):
            usage = replace(usage, input_tokens=usage.input_tokens + cached)
        return replace(record, answer=replace(record.answer, usage=usage))
    return record


def _said(message: Message) -> Message:
    """The message without the word that stands beside tool calls where nothing was said."""
    parts = message["parts"]
    asks = any(part["type"] == "tool_call" for part in parts)
    if not asks or not any(part.get("content") == "None" for part in parts):
        return message
    return {**message, "parts": [part for part in parts if part.get("content") != "None"]}


def _given(attributes: Attributes) -> Attributes:
    return {key: value for key, value in attributes.items() if value not in _INVENTED.get(key, ())}
