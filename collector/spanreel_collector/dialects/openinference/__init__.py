"""OpenInference, of Python and JavaScript: the kind of a span, messages in indexed attributes, values as JSON or text.

Usage is read on model calls only: on agents it repeats that of the calls below them.
"""

from __future__ import annotations

from dataclasses import replace

from spanreel import conventions as names
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
)
from spanreel.records import ModelRecord, Record
from spanreel_collector import json_text
from spanreel_collector.dialects import genai_spans, values
from spanreel_collector.dialects.content import ai_sdk, blocks, reprs, wrapped
from spanreel_collector.dialects.content import messages as content
from spanreel_collector.dialects.content.bodies import settings
from spanreel_collector.dialects.content.indexed import nested
from spanreel_collector.dialects.openinference import bodies, messages, runs, side_calls, tool_calls
from spanreel_collector.dialects.openinference.usage import read_usage
from spanreel_collector.span import Attributes, RawSpan

NAME = "openinference"

_KIND = "openinference.span.kind"
_ONLY_OF_MODELS = ("llm.token_count.", "llm.input_messages.", "llm.output_messages.")
"""By these a model call is known that does not say its kind."""
_KINDS_BY_NAME = {"invoke_agent": "AGENT", "execute_tool": "TOOL"}
_INPUT, _OUTPUT = "llm.input_messages", "llm.output_messages"
_STRAYING = (".google_genai", ".google_adk")
"""Instrumentations that put calls of tools under no message."""
_NAMED_BY_CALLS = (".bedrock", ".google_genai")
"""Instrumentations that call their spans as the functions that were called."""
_STRUCTURED = "StructuredLLM."
_ROUTERS = (".litellm", ".dspy")
"""Instrumentations that see which model LiteLLM is told to ask for, not which one a provider is."""


def speaks(span: RawSpan) -> bool:
    """Whether the span says its kind in OpenInference's words, or what a model was told or cost."""
    return _kind_of(span) is not None


def _kind_of(span: RawSpan) -> str | None:
    kind = span.attributes.get(_KIND)
    if isinstance(kind, str):
        return kind.upper()
    told = any(key.startswith(_ONLY_OF_MODELS) for key in span.attributes)
    # A limit of attributes may have taken the kind; what the processors made of the conventions' spans keeps its name.
    return _KINDS_BY_NAME.get(span.name.partition(" ")[0], "LLM") if told else None


def read(span: RawSpan) -> Record | None:
    """What the span says; None for kinds that are neither call nor run: guardrails, evaluators, prompts."""
    kind = None if _is_event(span) else _kind_of(span)
    span = ai_sdk.with_own_status(span)
    cut_at = _cut_at(span.attributes)
    if kind == "LLM":
        record = _read_model(span, cut_at)
        return record if _is_call(record, span) and not _is_around_a_call(span) else None
    if kind == "EMBEDDING":
        return side_calls.read_embedding(span)
    if kind == "RERANKER":
        return side_calls.read_reranker(span)
    if kind == "TOOL":
        return tool_calls.read_tool(span, cut_at)
    if kind == "RETRIEVER":
        return tool_calls.read_retriever(span, cut_at)
    if kind == "CHAIN" and (invoked := tool_calls.read_invoker(span)) is not None:
        return invoked
    return runs.read_run(span, kind, cut_at) if kind in {"AGENT", "CHAIN"} else None


def _cut_at(attributes: Attributes) -> int | None:
    """The length that values were cut at: that of the longest ones, where one of them is JSON that breaks off."""
    texts = [value for value in attributes.values() if isinstance(value, str)]
    longest = max(map(len, texts), default=0)
    whole = all(values.decode(text)[1] is Fidelity.WHOLE for text in texts if len(text) == longest)
    return None if whole else longest


def _read_model(span: RawSpan, cut_at: int | None) -> ModelRecord:
    attributes = span.attributes
    sent = bodies.read_request(span, Operation.CHAT)
    parameters = bodies.read_parameters(span)
    provider = values.text(attributes, "llm.provider", "llm.system")
    if provider is None and span.origin.scope.endswith(".bedrock"):
        provider = "aws"  # which older ones do not say
    request, fidelity = _read_request(span, sent[0] if sent else None, cut_at)
    request = replace(request, messages=wrapped.read_results(request.messages, provider))
    answer, fidelity["output"] = _read_answer(span, cut_at)
    history = content.read_history(values.decoded(attributes, "output.value"))
    answer, strays = messages.with_strays(attributes, answer) if span.origin.scope.endswith(_STRAYING) else (answer, ())
    request, answer = _apart(request, answer, history or strays)
    error = values.failure(span, ErrorCategory.MODEL)
    if error and fidelity["output"] is Fidelity.ABSENT:
        del fidelity["output"]
    model, answered = _read_models(span, request, parameters)
    streamed = request.stream or True in (parameters.get("stream"), attributes.get("stream")) or _is_of_stream(span)
    if answer is not None:
        answer = replace(answer, model=answer.model or answered, streamed=streamed)
    return ModelRecord(
        request=replace(
            request,
            model=model,
            settings={**settings(parameters), **request.settings},
            stream=streamed,
        ),
        answer=answer,
        provider=provider,
        protocol=sent[1].NAME if sent and answer and answer.messages else None,
        agent=Agent(values.text(attributes, "gen_ai.agent.name")),
        error=error,
        status=values.status_of(error),
        fidelity=values.marks(fidelity),
    )


def _is_event(span: RawSpan) -> bool:
    """Whether this is what BeeAI tells of inside a call, such as an error: of the call's kind, but no call."""
    attributes = span.attributes
    told = "metadata.path" in attributes and "metadata.class_name" not in attributes
    return told and span.origin.scope.endswith(".beeai")


def _is_of_stream(span: RawSpan) -> bool:
    """Whether this is a call of Bedrock's or Google's that streams, which only the name of what was called says."""
    return span.name.lower().endswith("stream") and span.origin.scope.endswith(_NAMED_BY_CALLS)


def _read_models(span: RawSpan, request: Request, parameters: dict[str, Json]) -> tuple[str | None, str | None]:
    """The model that was asked for, and the one that answered."""
    attributes = span.attributes
    named = parameters.get("model") or parameters.get("model_name")
    answered = values.text(attributes, "llm.response.model_name", "llm.model_name")
    asked = request.model or values.text(attributes, "llm.request.model_name")
    asked = asked or (named if isinstance(named, str) and parameters.get("object") != "response" else None)
    asked = asked or values.text(attributes, "llm.model_name") or genai_spans.named_model(span)
    if span.origin.scope.endswith(_ROUTERS):
        bare = wrapped.bare_model(asked)
        return bare, None if answered == asked != bare else answered
    return asked, answered


def _is_call(record: ModelRecord, span: RawSpan) -> bool:
    """Whether a model was asked: llama-index has spans of this kind for what it does before, without its messages.

    Of a stream that nobody listened to for the span, the request is all there is.
    """
    answer, attributes = record.answer, span.attributes
    answered = answer is not None and bool(answer.messages or answer.usage)
    # To the processors, a span that only groups others (the AI SDK's step) may be of this kind as well.
    operation = attributes.get(names.OPERATION)
    failed = record.error is not None and (operation is None or operation in genai_spans.MODEL_CALLS)
    asked = any(key.startswith(f"{_INPUT}.") for key in attributes) or messages.plain(attributes, "input.value", "user")
    return answered or failed or bool(asked) or bodies.read_request(span, Operation.CHAT) is not None


def _is_around_a_call(span: RawSpan) -> bool:
    """Whether this is llama-index's model for structured output, which says again what the model inside was asked."""
    return span.name.startswith(_STRUCTURED) and span.origin.scope.endswith(".llama_index")


def _read_request(span: RawSpan, sent: Request | None, cut_at: int | None) -> tuple[Request, dict[str, Fidelity]]:
    """The request from the fullest of what tells of it: the body, the indexed messages, the messages in a value."""
    attributes = span.attributes
    indexed, state = messages.read(attributes, _INPUT, cut_at)
    if span.dropped_attributes and state is not Fidelity.ABSENT and not messages.is_complete(attributes, _INPUT):
        state = Fidelity.TRUNCATED
    if not indexed:
        indexed = _prompts(attributes, "llm.prompts", "prompt", "user")
        state = Fidelity.WHOLE if indexed else messages.lost(attributes, "input.value")
    shown = content.read_messages(values.decoded(attributes, "input.value"))
    tools, tools_state = _read_tools(attributes, cut_at)
    fidelity = {"input": state, "tools": tools_state}
    if span.dropped_attributes:
        # Nothing says which were dropped: what is not there may have been.
        lost = {"tools": bool(tools), "settings": "llm.invocation_parameters" in attributes}
        fidelity.update({field: Fidelity.TRUNCATED for field, here in lost.items() if not here})
    if sent is not None and content.weight((*sent.messages, {"parts": sent.instructions})) >= content.weight(indexed):
        redacted = messages.REDACTED in json_text.canonical([*sent.messages, *sent.instructions])
        fidelity["input"] = Fidelity.REDACTED if redacted else Fidelity.WHOLE
        return replace(sent, tools=sent.tools or tools), {**fidelity, "tools": Fidelity.WHOLE}
    if content.weight(shown) > content.weight(indexed):
        indexed, fidelity["input"] = shown, Fidelity.WHOLE
    else:
        indexed = messages.with_failures(indexed, shown)
    if not indexed and (said := messages.plain(attributes, "input.value", "user")):
        indexed, fidelity["input"] = said, Fidelity.WHOLE
    return Request(operation=Operation.CHAT, model=None, messages=indexed, tools=tools), fidelity


def _read_answer(span: RawSpan, cut_at: int | None) -> tuple[Answer | None, Fidelity]:
    attributes = span.attributes
    kept = bodies.read_answer(span) or Answer()
    found, state = messages.read(attributes, _OUTPUT, cut_at)
    if not found:
        found = _prompts(attributes, "llm.choices", "completion", "assistant")
        state = Fidelity.WHOLE if found else messages.lost(attributes, "output.value")
    shown = content.read_messages(values.decoded(attributes, "output.value"))
    best = max((kept.messages, found, shown), key=content.weight)
    if not content.weight(best):
        best = found or kept.messages
    elif best is not found:
        state = Fidelity.REDACTED if messages.REDACTED in json_text.canonical(best) else Fidelity.WHOLE
    # What says no more than what came out is none: llama-index has such for what it prepares.
    told = "input.value" in attributes or bodies.read_request(span, Operation.CHAT) is not None
    if not best and told and (said := messages.plain(attributes, "output.value", "assistant")):
        best, state = said, Fidelity.WHOLE
    reason = next(iter(kept.finish_reasons), None) or values.text(attributes, "llm.finish_reason")
    answer = replace(kept, messages=_with_reason(best, reason), usage=read_usage(attributes, kept.usage))
    return (None if answer == Answer() else answer), state


def _with_reason(found: tuple[Message, ...], reason: str | None) -> tuple[Message, ...]:
    if reason is None or any("finish_reason" in message for message in found):
        return found
    *before, last = found or ({"role": "assistant", "parts": []},)
    return (*before, {**last, "finish_reason": reason})


def _apart(request: Request, answer: Answer | None, history: tuple[Message, ...]) -> tuple[Request, Answer | None]:
    """The request as it was first sent, and all that came of it, where one span holds several rounds with a model.

    Such an answer has the tools' answers between the model's: the SDK went on by itself (``history``), or a later call
    wrote over the span of the first one, whose tool calls are left in the answer and stand in the request as well.
    """
    if answer is None or not answer.messages:
        return request, answer
    last = answer.messages[-1]
    rounds = history[content.rounds_from(history) :]
    if not rounds:
        asked = [part for part in last["parts"] if part.get("type") == "tool_call"]
        start = content.rounds_from(request.messages)
        again = request.messages[start]["parts"] if start < len(request.messages) else []
        if not asked or len(asked) == len(last["parts"]) or any(call not in again for call in asked):
            return request, answer
        rounds, request = request.messages[start:], replace(request, messages=request.messages[:start])
        last = {**last, "parts": [part for part in last["parts"] if part.get("type") != "tool_call"]}
    return request, replace(answer, messages=(*rounds, *answer.messages[:-1], last))


def _read_tools(attributes: Attributes, cut_at: int | None) -> tuple[tuple[ToolDefinition, ...], Fidelity]:
    found: list[ToolDefinition] = []
    state = Fidelity.WHOLE
    for item in nested(attributes, "llm.tools"):
        tool = item["tool"] if isinstance(item.get("tool"), dict) else {}
        schema, _ = values.decode(tool.get("json_schema"))
        if not isinstance(schema, dict):
            state = Fidelity.TRUNCATED if cut_at is not None else state
            schema = {}
        name = values.text(tool, "name")
        if name and "function" not in schema and schema.get("name") != name:
            # The span processors give the name beside, and the parameters alone.
            schema = {"name": name, "description": values.text(tool, "description"), "parameters": schema or None}
        if schema:
            found.append(values.tool_definition(schema))
    if not found:
        # CrewAI's listener has the whole list in one attribute, and reprs of what is deep in it.
        whole, told = values.tools(attributes.get("llm.tools"))
        found = [{**tool, "parameters": reprs.undone(tool.get("parameters"))} for tool in whole]
        state = told if whole else state
    return tuple(found), state


def _prompts(attributes: Attributes, prefix: str, member: str, role: str) -> tuple[Message, ...]:
    """Texts of the completions API."""
    items = (item.get(member) for item in nested(attributes, prefix))
    texts = (values.text(item, "text") for item in items if isinstance(item, dict))
    return tuple({"role": role, "parts": blocks.parts_of(text)} for text in texts if text)
