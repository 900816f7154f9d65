"""What a model call's span keeps beside its indexed attributes: both bodies as they were sent, and the parameters.

Bodies are read by the protocol that the instrumented library speaks; of other libraries they are reprs of objects.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from spanreel.model import Answer, Json, Message, Operation, Request
from spanreel.point import ModelProtocol
from spanreel.protocols import anthropic, openai_chat, openai_embeddings, openai_responses, openai_usage
from spanreel_collector import json_text
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content import reprs
from spanreel_collector.span import RawSpan

_SETTINGS = {
    "temperature": ("temperature",),
    "top_p": ("top_p", "topP"),
    "top_k": ("top_k", "topK"),
    "max_tokens": ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxTokens", "maxOutputTokens"),
    "stop_sequences": ("stop_sequences", "stop", "stopSequences"),
    "seed": ("seed",),
    "frequency_penalty": ("frequency_penalty", "frequencyPenalty"),
    "presence_penalty": ("presence_penalty", "presencePenalty"),
    "choice_count": ("n", "candidate_count"),
    "tool_choice": ("tool_choice", "toolChoice"),
    "parallel_tool_calls": ("parallel_tool_calls",),
    "response_format": ("response_format",),
    "reasoning_effort": ("reasoning_effort",),
    "previous_response_id": ("previous_response_id",),
    "service_tier": ("service_tier",),
    "dimensions": ("dimensions",),
}


def protocol_of(span: RawSpan, body: Json) -> ModelProtocol | None:
    """The protocol that a body is written in, by the library that was instrumented; None where that is not known."""
    library = span.origin.scope.replace("_", "-").rpartition("instrumentation")[2].lstrip(".-")
    if not isinstance(body, dict):
        return None
    if library == "anthropic":
        return anthropic
    if library in ("openai", "litellm"):
        if "messages" in body or body.get("object") == "chat.completion" or "choices" in body:
            return openai_chat
        if "output" in body or body.get("object") == "response":
            return openai_responses
        if "input" in body:
            embeds = span.attributes.get("openinference.span.kind") == "EMBEDDING"
            return openai_embeddings if embeds else openai_responses
    if library == "openai-agents" and body.get("object") == "response":
        return openai_responses
    return None


def read_request(span: RawSpan, operation: Operation) -> tuple[Request, ModelProtocol] | None:
    """The whole request, where the span kept it as it was sent."""
    body, _ = values.decode(span.attributes.get("input.value"))
    protocol = protocol_of(span, body)
    if protocol is None:
        return None
    try:
        request = protocol.read_request(json.dumps(body).encode(), operation)
    except ValueError:
        return None
    return (request, protocol) if request.messages else None


def read_answer(span: RawSpan) -> Answer | None:
    """The whole answer, where the span kept it as it came; of a stream, as the instrumentation put it together."""
    body, _ = values.decode(span.attributes.get("output.value"))
    protocol = protocol_of(span, body)
    if protocol is None:
        return _read_langchain(body) or _read_gemini(body) or _read_repr(body)
    try:
        return protocol.read_response(json.dumps(body).encode(), 200)
    except ValueError:
        return None


def read_parameters(span: RawSpan) -> dict[str, Json]:
    """The invocation parameters; of those cut off, what is whole."""
    found = values.members(span.attributes.get("llm.invocation_parameters"))
    inner = found.get("generation_config") or found.get("config")
    return {**found, **inner} if isinstance(inner, dict) else found


def settings(parameters: dict[str, Json]) -> dict[str, Json]:
    """Invocation parameters by the names of ours; those that nobody set are left out."""
    read: dict[str, Json] = {}
    for name, keys in _SETTINGS.items():
        value = next((parameters[key] for key in keys if parameters.get(key) is not None), None)
        if value is not None:
            read[name] = [value] if name == "stop_sequences" and isinstance(value, str) else json_text.plain(value)
    reasoning, text = parameters.get("reasoning"), parameters.get("text")
    if isinstance(reasoning, dict) and isinstance(reasoning.get("effort"), str):
        read.setdefault("reasoning_effort", reasoning["effort"])
    if isinstance(text, dict) and isinstance(text.get("format"), dict) and text["format"].get("type") != "text":
        read.setdefault("response_format", text["format"])
    return read


def _read_langchain(body: Json) -> Answer | None:
    """What a LangChain result tells beside its messages: who answered, and why it ended."""
    generation = _at(body, "generations", 0, 0)
    if not isinstance(generation, dict):
        return None
    facts: dict[str, Any] = {}
    for place in (("generation_info",), ("message", "kwargs", "response_metadata")):
        found = _at(generation, *place)
        facts.update(found if isinstance(found, dict) else {})
    return _answer(
        values.text(facts, "id"), values.text(facts, "model_name", "model"), values.text(facts, "finish_reason")
    )


def _read_gemini(body: Json) -> Answer | None:
    if not isinstance(body, dict) or "model_version" not in body:
        return None
    reason = _at(body, "candidates", 0, "finish_reason") or body.get("finish_reason")
    return _answer(
        values.text(body, "response_id"),
        values.text(body, "model_version"),
        reason if isinstance(reason, str) else None,
    )


def _read_repr(body: Json) -> Answer | None:
    """The provider's answer where it was kept as a repr only: OpenAI's by smolagents, its numbers by Haystack."""
    shown = _at(body, "raw") if _at(body, "role") == "assistant" else _at(body, "replies", 0)
    try:
        found = reprs.parse(shown) if isinstance(shown, str) else None
        if _at(found, "") == "ChatCompletion":
            return openai_chat.read_response(json.dumps(reprs.without_names(found)).encode(), 200)
    except ValueError:
        return None
    meta = _at(found, "_meta")
    if not isinstance(meta, dict):
        return None
    answer = _answer(values.text(meta, "id"), values.text(meta, "model"), values.text(meta, "finish_reason"))
    usage = meta.get("usage")
    return replace(answer, usage=openai_usage.read_usage(usage)) if isinstance(usage, dict) and usage else answer


def _answer(response_id: str | None, model: str | None, reason: str | None) -> Answer:
    empty: Message = {"role": "assistant", "parts": []}
    return Answer(
        response_id=response_id, model=model, messages=({**empty, "finish_reason": reason},) if reason else ()
    )


def _at(value: Any, *path: str | int) -> Any:
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and len(value) > step else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value
