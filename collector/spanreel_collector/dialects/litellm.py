"""LiteLLM's callback: calls in the conventions' names, and inside each the raw exchange as Python writes it.

Without a span around it is ``litellm_request``; else the attributes stand on whichever span was open, those of the
last call over those of the ones before. The raw exchanges inside are all there.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from spanreel import conventions as names
from spanreel.model import Answer, Error, ErrorCategory, Fidelity, Json, Message, Operation
from spanreel.records import ModelRecord, Record
from spanreel_collector.dialects import genai_spans, values
from spanreel_collector.dialects.content import bodies, exchanges, messages, tokens
from spanreel_collector.dialects.content.indexed import numbered
from spanreel_collector.span import Attributes, RawSpan

NAME = "litellm"

_SCOPE, _CALL_ID, _RAW = "litellm", "litellm.call_id", "raw_gen_ai_request"
_LONGEST = 1_000_000
_ANSWERED = ("id", "choices", "created", "object", "usage", "system_fingerprint", "output", "content", "stop_reason")
_MESSAGES = (names.INPUT_MESSAGES, names.OUTPUT_MESSAGES)
_COUNTED = "metadata.usage_object"
_OLD_FUNCTIONS, _OLD_ANSWERS = "llm.request.functions", "gen_ai.completion"


def speaks(span: RawSpan) -> bool:
    """Whether LiteLLM wrote the span, or on it."""
    return span.origin.scope == _SCOPE or _CALL_ID in span.attributes


def read(span: RawSpan) -> Record | None:
    """What the span says: of a call, or of the raw exchange of one."""
    if span.name == _RAW:
        return _read_raw(span)
    told = {key: _plain(span.attributes[key]) for key in _MESSAGES if span.attributes.get(key) is not None}
    record = genai_spans.read(replace(span, attributes={**span.attributes, **told}))
    if not isinstance(record, ModelRecord):
        return record
    request = record.request
    if not request.tools:
        items = numbered(span.attributes, _OLD_FUNCTIONS).values()
        request = replace(request, tools=bodies.read_tools([_function(item) for item in items]))
    stream = request.stream or span.attributes.get("llm.is_streaming") in (True, "True")
    answer, fidelity = _answer(span, record, stream), dict(record.fidelity)
    if fidelity.get("output") is Fidelity.ABSENT and answer and any(message["parts"] for message in answer.messages):
        fidelity["output"] = Fidelity.RECONSTRUCTED  # of an answer that only asks for tools; their ids stand elsewhere
    return replace(record, request=replace(request, stream=stream), answer=answer, fidelity=fidelity)


def _plain(value: Json) -> Json:
    """Messages whose tool calls stand beside their parts, as OpenAI has them, put into the conventions' form."""
    found, state = values.decode(value)
    if state is not Fidelity.WHOLE or not isinstance(found, list):
        return value
    return [_message(item) if isinstance(item, dict) else item for item in found]


def _message(item: dict[str, Json]) -> dict[str, Json]:
    if "tool_calls" not in item and "tool_call_id" not in item:
        return item
    given = item.get("parts")
    parts = [part for part in given if isinstance(part, dict)] if isinstance(given, list) else []
    texts = [str(part["content"]) for part in parts if part.get("type") == "text" and part.get("content")]
    read = messages.read_message({**item, "parts": None, "content": "".join(texts)})
    return read if read is not None else item


def _answer(span: RawSpan, record: ModelRecord, streamed: bool) -> Answer | None:
    """The answer, with the tokens that the object counted from tells; a failed call has only LiteLLM's own id."""
    answer = record.answer
    if answer is None or (record.error is not None and not answer.messages and answer.usage is None):
        return None
    counted = tokens.read(_literal(span.attributes.get(_COUNTED)))
    usage = answer.usage or counted
    if usage is not None and counted is not None and usage.input_tokens == counted.input_tokens:
        usage = counted
    return replace(answer, usage=usage, streamed=streamed, messages=_with_calls(span.attributes, answer.messages))


def _with_calls(attributes: Attributes, found: tuple[Message, ...]) -> tuple[Message, ...]:
    """The answer, with the calls of tools that only the names of old tell, without ids; those of this call alone.

    On a span of the caller's, those of the call before may be left.
    """
    if not found or "tool" not in str(found[-1].get("finish_reason")):
        return found
    *before, last = found
    parts = [part for part in last["parts"] if part != {"type": "text", "content": ""}]
    if any(part.get("type") == "tool_call" for part in parts):
        return found
    for item in numbered(attributes, _OLD_ANSWERS).values():
        call = item.get("function_call")
        if isinstance(call, dict) and call.get("name"):
            arguments = values.arguments(call.get("arguments"))
            parts.append({"type": "tool_call", "id": None, "name": call["name"], "arguments": arguments})
    return (*before, {**last, "parts": parts})


def _function(item: dict[str, Json]) -> dict[str, Json]:
    return {**item, "parameters": _literal(item.get("parameters"))}


def _read_raw(span: RawSpan) -> ModelRecord | None:
    """The body of a request and that of its answer, which share a prefix: ``llm.PROVIDER.``."""
    provider, body = _body(span.attributes)
    if provider is None:
        return None
    asked = {key: value for key, value in body.items() if key not in (*_ANSWERED, "model")}
    answered = {key: value for key, value in body.items() if key in (*_ANSWERED, "model", "type", "role")}
    exchange = exchanges.read(asked, answered, Operation.EMBEDDINGS if _is_embedded(body) else Operation.CHAT)
    error = values.failure(span, ErrorCategory.MODEL) or _refusal(body)
    fidelity = dict(exchange.fidelity)
    if error and fidelity.get("output") is Fidelity.ABSENT:
        del fidelity["output"]
    asks = exchange.request
    return ModelRecord(
        request=asks if asks.model or not _is_embedded(body) else replace(asks, model=values.text(body, "model")),
        answer=exchange.answer,
        provider=provider,
        error=error,
        status=values.status_of(error),
        fidelity=fidelity,
    )


def _is_embedded(body: dict[str, Json]) -> bool:
    """Whether a request is for embeddings: it has nothing but texts, and no answer is told."""
    given = body.get("input")
    return isinstance(given, list) and all(isinstance(text, str) for text in given) and "messages" not in body


def _body(attributes: Attributes) -> tuple[str | None, dict[str, Json]]:
    provider: str | None = None
    body: dict[str, Json] = {}
    for key, value in attributes.items():
        prefix, _, rest = key.partition(".")
        name, _, field = rest.partition(".")
        if prefix == "llm" and field and value is not None:
            provider = provider or name
            body[field] = _literal(value)
    return provider, body


def _literal(value: Json) -> Json:
    """A value that was written as Python writes it, or as JSON."""
    if not isinstance(value, str) or not value.startswith(("{", "[")) or len(value) > _LONGEST:
        return value
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return values.decode(value)[0]


def _refusal(body: dict[str, Json]) -> Error | None:
    """The provider's own words where it answered with an error."""
    told = body.get("error")
    if not isinstance(told, dict):
        return None
    kind = values.text(told, "type", "code") or "error"
    return Error(ErrorCategory.MODEL, kind, values.text(told, "message"))
