"""The AI SDK's own spans, up to version 6 and with LegacyOpenTelemetry: ``ai.*``. Version 7 speaks the conventions.

Usage is read on model calls only: on a run it is the last step's or the sum, by version.
"""

from __future__ import annotations

from dataclasses import replace

from spanreel.model import (
    Agent,
    Answer,
    ErrorCategory,
    Fidelity,
    Json,
    Message,
    Operation,
    Request,
    ToolDefinition,
    Usage,
)
from spanreel.records import ModelRecord, Record, RunRecord, ToolRecord
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content import ai_sdk
from spanreel_collector.span import Attributes, RawSpan

NAME = "vercel"

_OPERATION = "ai.operationId"
_RUNS = ("ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject")
_CALLS = (".doGenerate", ".doStream")
_TOOL = "ai.toolCall"
_SETTING = "ai.settings."
_SETTINGS = {
    "temperature": "temperature",
    "topP": "top_p",
    "topK": "top_k",
    "maxOutputTokens": "max_tokens",
    "maxTokens": "max_tokens",
    "stopSequences": "stop_sequences",
    "frequencyPenalty": "frequency_penalty",
    "presencePenalty": "presence_penalty",
    "seed": "seed",
}
_CONVENTIONS = {
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "top_k": "gen_ai.request.top_k",
    "max_tokens": "gen_ai.request.max_tokens",
    "stop_sequences": "gen_ai.request.stop_sequences",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
    "presence_penalty": "gen_ai.request.presence_penalty",
}
_USAGE = {
    "input_tokens": ("ai.usage.inputTokens", "ai.usage.promptTokens", "gen_ai.usage.input_tokens"),
    "output_tokens": ("ai.usage.outputTokens", "ai.usage.completionTokens", "gen_ai.usage.output_tokens"),
    "cache_read_tokens": ("ai.usage.inputTokenDetails.cacheReadTokens", "ai.usage.cachedInputTokens"),
    "cache_write_tokens": ("ai.usage.inputTokenDetails.cacheWriteTokens",),
    "reasoning_tokens": ("ai.usage.outputTokenDetails.reasoningTokens", "ai.usage.reasoningTokens"),
}


def speaks(span: RawSpan) -> bool:
    """Whether the span names an operation of the SDK."""
    return _operation_of(span) is not None


def _operation_of(span: RawSpan) -> str | None:
    """The operation by attribute or, where a limit of attributes took that, by the span's name."""
    operation = span.attributes.get(_OPERATION)
    if isinstance(operation, str):
        return operation
    named = span.name.partition(" ")[0]
    known = named == _TOOL or named in _RUNS or (named.endswith(_CALLS) and named.rpartition(".")[0] in _RUNS)
    return named if known and any(key.startswith("ai.") for key in span.attributes) else None


def read(span: RawSpan) -> Record | None:
    """What the span says; None for operations that only group others, and for those we do not know."""
    span, operation = ai_sdk.with_own_status(span), _operation_of(span) or ""
    if operation in _RUNS:
        return _read_run(span)
    if operation.endswith(_CALLS):
        return _read_model(span, streamed=operation.endswith(".doStream"))
    if operation == _TOOL:
        return _read_tool(span)
    if operation.endswith(".doEmbed"):
        return _read_embedding(span)
    return None


# -- runs ------------------------------------------------------------------------------------------------------------


def _read_run(span: RawSpan) -> RunRecord:
    attributes = span.attributes
    asked, state = _asked(attributes)
    answer, output = _answer_message(attributes)
    error = values.failure(span, ErrorCategory.OTHER)
    fidelity = {"input": state, "output": output}
    if error and output is Fidelity.ABSENT:
        del fidelity["output"]
    return RunRecord(
        agent=Agent(values.text(attributes, "ai.telemetry.functionId")),
        input=asked,
        output=(answer,) if answer["parts"] else (),
        status=ai_sdk.status_of(span, error, answer["parts"], answer.get("finish_reason"), _read_usage(attributes)),
        error=error,
        fidelity=values.marks(fidelity),
    )


def _asked(attributes: Attributes) -> tuple[tuple[Message, ...], Fidelity]:
    return ai_sdk.prompt(attributes["ai.prompt"]) if attributes.get("ai.prompt") else ((), Fidelity.ABSENT)


# -- model calls -----------------------------------------------------------------------------------------------------


def _read_model(span: RawSpan, *, streamed: bool) -> ModelRecord:
    attributes = span.attributes
    key = "ai.prompt.messages" if "ai.prompt.messages" in attributes else "ai.prompt"
    asked, state = ai_sdk.messages(attributes.get(key)) if key == "ai.prompt.messages" else _asked(attributes)
    tools, tools_state = _read_tools(attributes)
    answer, output = _read_answer(attributes, streamed=streamed)
    error = values.failure(span, ErrorCategory.MODEL)
    fidelity = {"input": state, "output": output, "tools": tools_state}
    if error and output is Fidelity.ABSENT:
        del fidelity["output"]
    return ModelRecord(
        request=Request(
            operation=Operation.CHAT,
            model=values.text(attributes, "ai.model.id", "gen_ai.request.model"),
            messages=asked,
            tools=tools,
            settings=_read_settings(attributes),
            stream=streamed,
            provider_fields=_request_fields(attributes),
        ),
        answer=answer,
        provider=ai_sdk.provider(values.text(attributes, "ai.model.provider", "gen_ai.system")),
        agent=Agent(values.text(attributes, "ai.telemetry.functionId")),
        time_to_first_chunk=_seconds(attributes, "ai.response.msToFirstChunk", "ai.stream.msToFirstChunk"),
        error=error,
        status=ai_sdk.status_of(span, error, answer),
        raw_request=values.text(attributes, key) if state is not Fidelity.WHOLE else None,
        raw_response=values.text(attributes, "ai.response.toolCalls") if output is Fidelity.TRUNCATED else None,
        fidelity=values.marks(fidelity),
    )


def _read_tools(attributes: Attributes) -> tuple[tuple[ToolDefinition, ...], Fidelity]:
    """The tools on offer: a list of texts, each the JSON of one; the list itself may have been made a text."""
    given, state = values.decode(attributes.get("ai.prompt.tools"))
    read = []
    for text in given if isinstance(given, list) else [given]:
        found, of_one = values.decode(text)
        if isinstance(found, dict):
            read.append(values.tool_definition(found))
        elif of_one is not Fidelity.WHOLE:
            state = of_one
    return tuple(read), state


def _read_settings(attributes: Attributes) -> dict[str, Json]:
    settings = {name: attributes[key] for name, key in _CONVENTIONS.items() if attributes.get(key) is not None}
    for key, name in _SETTINGS.items():
        if (value := attributes.get(f"{_SETTING}{key}")) is not None:
            settings[name] = value
    if attributes.get("ai.prompt.toolChoice") is not None:
        settings["tool_choice"] = ai_sdk.tool_choice(attributes["ai.prompt.toolChoice"])
    return values.with_numbers(settings)


def _request_fields(attributes: Attributes) -> dict[str, Json]:
    """What else the request was made with, under the SDK's names."""
    own = {key.removeprefix(_SETTING): value for key, value in attributes.items() if key.startswith(_SETTING)}
    fields = {key: value for key, value in own.items() if key not in _SETTINGS and value is not None}
    if name := values.text(attributes, "ai.model.provider"):
        fields["provider"] = name
    return fields


def _read_answer(attributes: Attributes, *, streamed: bool) -> tuple[Answer | None, Fidelity]:
    message, state = _answer_message(attributes)
    reason = message.get("finish_reason")
    usage = _read_usage(attributes)
    identity = values.text(attributes, "ai.response.id", "gen_ai.response.id")
    model = values.text(attributes, "ai.response.model", "gen_ai.response.model")
    if not (message["parts"] or reason or usage or identity or model):
        return None, state
    metadata = values.members(attributes.get("ai.response.providerMetadata"))
    return (
        Answer(
            response_id=identity,
            model=model,
            messages=(message,),
            usage=usage,
            streamed=streamed,
            provider_fields={"provider_metadata": metadata} if metadata else {},
        ),
        state,
    )


def _answer_message(attributes: Attributes) -> tuple[Message, Fidelity]:
    """What was answered: reasoning, text or object, tool calls, files."""
    reasoning = values.text(attributes, "ai.response.reasoning")
    text = values.text(attributes, "ai.response.text", "ai.result.text")
    text = text or values.text(attributes, "ai.response.object", "ai.result.object")
    calls, state = ai_sdk.calls(values.text(attributes, "ai.response.toolCalls", "ai.result.toolCalls"))
    files, _ = values.items_of(attributes.get("ai.response.files"), parts_depth=2)
    parts: list[dict[str, Json]] = [{"type": "reasoning", "content": reasoning}] if reasoning else []
    parts += [*ai_sdk.parts(text), *calls]
    parts += ai_sdk.parts([{"type": "file", **file} for file in files if isinstance(file, dict)])
    message: Message = {"role": "assistant", "parts": parts}
    reason = values.text(attributes, "ai.response.finishReason", "ai.finishReason")
    reasons = [reason] if reason else values.texts(attributes, "gen_ai.response.finish_reasons")
    if reasons:
        message["finish_reason"] = reasons[0]
    if state is not Fidelity.TRUNCATED:
        # An empty text beside nothing else is an answer too: what was said is known to be nothing.
        state = Fidelity.WHOLE if parts or "ai.response.text" in attributes else Fidelity.ABSENT
    return message, state


def _read_usage(attributes: Attributes) -> Usage | None:
    usage = Usage(**{name: values.integer(attributes, *keys) for name, keys in _USAGE.items()})
    if usage == Usage():
        return None
    said = values.members(attributes.get("ai.response.providerMetadata")).get("anthropic")
    anthropic = said.get("usage") if isinstance(said, dict) else None
    if isinstance(anthropic, dict):
        read = values.integer(anthropic, "cache_read_input_tokens")
        written = values.integer(anthropic, "cache_creation_input_tokens")
        usage = replace(
            usage,
            cache_read_tokens=usage.cache_read_tokens if usage.cache_read_tokens is not None else read,
            cache_write_tokens=usage.cache_write_tokens if usage.cache_write_tokens is not None else written,
        )
        # Up to version 5 the input is Anthropic's own count, which leaves the cache out.
        if usage.input_tokens is not None and usage.input_tokens == values.integer(anthropic, "input_tokens"):
            return replace(usage, input_tokens=usage.input_tokens + (read or 0) + (written or 0))
    return values.whole_usage(usage)


# -- tools and embeddings --------------------------------------------------------------------------------------------


def _read_tool(span: RawSpan) -> ToolRecord:
    attributes = span.attributes
    error = values.failure(span, ErrorCategory.TOOL)
    found = {
        "arguments": _value(attributes, "ai.toolCall.args", "ai.toolCall.input"),
        "result": _value(attributes, "ai.toolCall.result", "ai.toolCall.output"),
    }
    fidelity = {field: state for field, (_, state) in found.items()}
    if error and fidelity["result"] is Fidelity.ABSENT:
        del fidelity["result"]
    return ToolRecord(
        name=values.text(attributes, "ai.toolCall.name") or span.name,
        arguments=found["arguments"][0],
        result=found["result"][0],
        call_id=values.text(attributes, "ai.toolCall.id"),
        status=values.status_of(error),
        error=error,
        fidelity=values.marks(fidelity),
    )


def _value(attributes: Attributes, *keys: str) -> tuple[Json, Fidelity]:
    for key in keys:
        if attributes.get(key) is not None:
            return values.decode(attributes[key])
    return None, Fidelity.ABSENT


def _read_embedding(span: RawSpan) -> ModelRecord:
    attributes = span.attributes
    given = attributes.get("ai.values", attributes.get("ai.value"))
    texts = [values.decode(text)[0] for text in (given if isinstance(given, list) else [given])]
    error = values.failure(span, ErrorCategory.MODEL)
    said = [{"role": "user", "parts": ai_sdk.parts(text)} for text in texts if isinstance(text, str) and text]
    usage = Usage(input_tokens=values.integer(attributes, "ai.usage.tokens"))
    return ModelRecord(
        request=Request(Operation.EMBEDDINGS, values.text(attributes, "ai.model.id"), messages=tuple(said)),
        answer=None if error else Answer(usage=usage if usage != Usage() else None),
        provider=ai_sdk.provider(values.text(attributes, "ai.model.provider")),
        error=error,
        status=values.status_of(error),
        fidelity={} if said else {"input": Fidelity.ABSENT},
    )


def _seconds(attributes: Attributes, *keys: str) -> float | None:
    milliseconds = values.number(attributes, *keys)
    return None if milliseconds is None else milliseconds / 1000
