"""The Anthropic SDK's own spans, from version 2 on: the conventions, with some facts under names of its own."""

from __future__ import annotations

from dataclasses import replace

from spanreel.model import Answer, Json
from spanreel.records import ModelRecord, Record
from spanreel_collector.dialects import genai_spans, values
from spanreel_collector.span import RawSpan

NAME = "anthropic_sdk"

_REASON = "anthropic.message.stop_reason"
_REQUEST = {
    "anthropic.request.service_tier": "service_tier",
    "anthropic.thinking.type": "thinking_type",
    "anthropic.thinking.budget_tokens": "thinking_budget_tokens",
    "anthropic.beta": "betas",
}
_RESPONSE = {"anthropic.response.service_tier": "service_tier", "anthropic.request.id": "request_id"}


def speaks(span: RawSpan) -> bool:
    """Whether the SDK wrote the span."""
    return span.origin.scope.startswith("com.anthropic.sdk")


def read(span: RawSpan) -> Record | None:
    """A model call, which the SDK writes without its content unless asked to; None for its other requests."""
    record = genai_spans.read(span)
    if not isinstance(record, ModelRecord):
        return record
    request = replace(record.request, provider_fields=_renamed(span, _REQUEST))
    answer = record.answer
    if answer is not None:
        answer = _with_reason(answer, values.text(span.attributes, _REASON))
        answer = replace(answer, provider_fields={**answer.provider_fields, **_renamed(span, _RESPONSE)})
    return replace(record, request=request, answer=answer)


def _with_reason(answer: Answer, reason: str | None) -> Answer:
    if reason is None or answer.finish_reasons:
        return answer
    messages = answer.messages or ({"role": "assistant", "parts": []},)
    return replace(answer, messages=({**messages[0], "finish_reason": reason}, *messages[1:]))


def _renamed(span: RawSpan, names: dict[str, str]) -> dict[str, Json]:
    return {name: span.attributes[key] for key, name in names.items() if span.attributes.get(key) is not None}
