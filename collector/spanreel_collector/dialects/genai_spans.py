"""Spans in the words of the GenAI conventions, of v1.37 on and before; for the dialects that write them, each its way.

Usage is read on model calls only: on agents it repeats that of the calls below them.
"""

from __future__ import annotations

from spanreel import conventions as names
from spanreel.model import Agent, Answer, ErrorCategory, Fidelity, Json, Message, Operation, Request, ToolKind
from spanreel.records import ModelRecord, Record, RunRecord, ToolRecord
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content import conventional, counts, wrapped
from spanreel_collector.dialects.genai_events import whole_attributes
from spanreel_collector.span import Attributes, RawSpan

_MODEL = {
    "chat": Operation.CHAT,
    "generate_content": Operation.CHAT,
    "text_completion": Operation.CHAT,
    "embeddings": Operation.EMBEDDINGS,
    "embedding": Operation.EMBEDDINGS,  # LiteLLM's word
    "rerank": Operation.RERANK,
}
MODEL_CALLS = frozenset(_MODEL)
"""The operations in which a model is asked."""
_CONVERSATION = "conversation"
"""AG2's word for what agents say to each other until one of them ends it; its output is all of that."""
_WRAPPERS = ("invoke_workflow", "handle_conversation_turn")
"""What stands around agents, by the names of today and of a proposal."""
_RUNS = ("invoke_agent", *_WRAPPERS, _CONVERSATION)
_MEMORY = tuple(
    f"{verb}_{what}"
    for what, verbs in (
        ("memory_store", ("create", "delete")),
        ("memory", ("create", "update", "upsert", "search", "delete")),
    )
    for verb in verbs
)
_WRITTEN = {
    "store_id": "gen_ai.memory.store.id",
    "record_id": "gen_ai.memory.record.id",
    "records": "gen_ai.memory.records",
}
_TOOLS = ("execute_tool", "retrieval", *_MEMORY)
KNOWN = (*_MODEL, *_RUNS, *_TOOLS)
"""The operations that are calls or runs."""
MERGED_TOOLS = "(merged tools)"
"""What Google ADK calls the tool of such a span."""
_ONLY_OF_MODELS = (names.RESPONSE_ID, names.RESPONSE_FINISH_REASONS)
"""By these a model call is known that does not name its operation."""
_KINDS = {"extension": ToolKind.PROVIDER, "datastore": ToolKind.RETRIEVER}
_SETTINGS = {
    "temperature": names.REQUEST_TEMPERATURE,
    "top_p": names.REQUEST_TOP_P,
    "top_k": names.REQUEST_TOP_K,
    "max_tokens": names.REQUEST_MAX_TOKENS,
    "seed": names.REQUEST_SEED,
    "frequency_penalty": names.REQUEST_FREQUENCY_PENALTY,
    "presence_penalty": names.REQUEST_PRESENCE_PENALTY,
    "choice_count": names.REQUEST_CHOICE_COUNT,
    "reasoning_effort": names.REQUEST_REASONING_LEVEL,
    "previous_response_id": names.REQUEST_PREVIOUS_RESPONSE_ID,
    "service_tier": "openai.request.service_tier",
    "dimensions": names.EMBEDDINGS_DIMENSION_COUNT,
}
_LISTS = {"stop_sequences": names.REQUEST_STOP_SEQUENCES, "encoding_formats": names.REQUEST_ENCODING_FORMATS}
_RESPONSE_FIELDS = {
    "service_tier": "openai.response.service_tier",
    "system_fingerprint": "openai.response.system_fingerprint",
}

_REASON = "gen_ai.response.finish_reason"
"""As who writes one reason alone has it."""


def read(span: RawSpan) -> Record | None:
    """What the span says; None for operations that only group others, and for those we do not know."""
    operation = operation_of(span)
    if operation in _MODEL:
        return _read_model(span, _MODEL[operation])
    if operation in _RUNS:
        return _read_run(span, operation)
    if operation in _TOOLS:
        # What ADK has around the answers of tools that ran side by side is no call, whoever's tracer it goes through.
        return None if span.attributes.get(names.TOOL_NAME) == MERGED_TOOLS else _read_tool(span, operation)
    return _read_model(span, Operation.CHAT) if _may_be_model(span) else None


def operation_of(span: RawSpan) -> str | None:
    """The operation of the conventions that the span names, by attribute or (where that was lost) by its name."""
    operation = span.attributes.get(names.OPERATION)
    if isinstance(operation, str):
        return operation
    if any(key.startswith("gen_ai.") for key in span.attributes):
        return span.name.split(" ", 1)[0]
    return None


def _may_be_model(span: RawSpan) -> bool:
    """Whether this is a model's answer whose operation a limit of attributes took, and whose name is another's."""
    lost = span.dropped_attributes > 0 and names.OPERATION not in span.attributes
    return lost and any(key in span.attributes for key in _ONLY_OF_MODELS)


def named_model(span: RawSpan) -> str | None:
    """The model by a span's name, ``{operation} {model}``, where a limit of attributes may have taken it."""
    operation, _, model = span.name.partition(" ")
    return model or None if span.dropped_attributes and operation in _MODEL else None


def _read_model(span: RawSpan, operation: Operation) -> ModelRecord:
    attributes = whole_attributes(span)
    messages, input_fidelity = conventional.messages(attributes.get(names.INPUT_MESSAGES))
    provider = values.text(attributes, names.PROVIDER, "gen_ai.system")
    messages = wrapped.read_results(messages, provider)
    instructions = _instructions(attributes, messages)
    tools, tools_fidelity = values.tools(attributes.get(names.TOOL_DEFINITIONS))
    error = values.failure(span, ErrorCategory.MODEL)
    answer, output_fidelity = _read_answer(attributes)
    fidelity = {"input": input_fidelity, "output": output_fidelity, "tools": tools_fidelity}
    if conventional.parts(attributes.get(names.SYSTEM_INSTRUCTIONS))[1] is Fidelity.TRUNCATED:
        fidelity["instructions"] = Fidelity.TRUNCATED
    if tools_fidelity is Fidelity.ABSENT and names.TOOL_DEFINITIONS not in attributes:
        del fidelity["tools"]
    if not operation.opens_turn or (error and output_fidelity is Fidelity.ABSENT):
        del fidelity["output"]
    return ModelRecord(
        request=Request(
            operation=operation,
            model=values.text(attributes, names.REQUEST_MODEL) or named_model(span),
            messages=messages,
            instructions=instructions,
            tools=tools,
            settings=_read_settings(attributes),
            stream=attributes.get(names.REQUEST_STREAM) is True,
        ),
        answer=answer,
        provider=provider,
        agent=_read_agent(attributes),
        host=values.text(attributes, names.SERVER_ADDRESS),
        port=values.integer(attributes, names.SERVER_PORT),
        time_to_first_chunk=values.number(attributes, names.RESPONSE_TIME_TO_FIRST_CHUNK),
        error=error,
        status=values.status_of(error),
        raw_request=_unread(attributes, names.INPUT_MESSAGES, input_fidelity),
        raw_response=_unread(attributes, names.OUTPUT_MESSAGES, output_fidelity),
        fidelity=values.marks(fidelity),
    )


def _read_answer(attributes: Attributes) -> tuple[Answer | None, Fidelity]:
    messages, fidelity = conventional.messages(attributes.get(names.OUTPUT_MESSAGES), "assistant")
    reasons = values.texts(attributes, names.RESPONSE_FINISH_REASONS) or values.texts(attributes, _REASON)
    usage = counts.read(attributes)
    identity = values.text(attributes, names.RESPONSE_ID)
    model = values.text(attributes, names.RESPONSE_MODEL)
    if not (messages or reasons or usage or identity or model):
        return None, fidelity
    fields = {field: attributes[key] for field, key in _RESPONSE_FIELDS.items() if attributes.get(key) is not None}
    answer = Answer(
        response_id=identity,
        model=model,
        messages=tuple(_with_reasons(messages, reasons)),
        usage=usage,
        streamed=attributes.get(names.REQUEST_STREAM) is True,
        provider_fields=fields,
    )
    return answer, fidelity


def _with_reasons(messages: tuple[Message, ...], reasons: list[str]) -> list[Message]:
    """The messages with the finish reasons that the span says; without content, empty ones that carry the reasons."""
    found = list(messages) or [{"role": "assistant", "parts": []} for _ in reasons]
    told = [
        message if "finish_reason" in message else {**message, "finish_reason": reason}
        for message, reason in zip(found, reasons, strict=False)
    ]
    return [*told, *found[len(told) :]]


def _read_settings(attributes: Attributes) -> dict[str, Json]:
    settings = {field: attributes[key] for field, key in _SETTINGS.items() if attributes.get(key) is not None}
    for field, key in _LISTS.items():
        if found := values.texts(attributes, key):
            settings[field] = found
    conversation = values.text(attributes, names.CONVERSATION_ID)
    if conversation and conversation.startswith("resp_"):
        # What Microsoft's Agent Framework puts here is not a conversation: each call has the response before it.
        settings.setdefault("previous_response_id", conversation)
    return values.with_numbers(settings)


def _read_run(span: RawSpan, operation: str) -> RunRecord:
    attributes = whole_attributes(span)
    messages, input_fidelity = conventional.messages(attributes.get(names.INPUT_MESSAGES))
    output, output_fidelity = conventional.messages(attributes.get(names.OUTPUT_MESSAGES), "assistant")
    error = values.failure(span, ErrorCategory.OTHER)
    fidelity = {"input": input_fidelity, "output": output_fidelity}
    return RunRecord(
        # A workflow's name is not an agent's; a workflow that holds one agent is folded into it.
        agent=Agent() if operation in _WRAPPERS else _read_agent(attributes),
        input=(*_instructed(attributes, messages), *messages),
        output=_last_said(output) if operation == _CONVERSATION else output,
        tools=values.tools(attributes.get(names.TOOL_DEFINITIONS))[0],
        status=values.status_of(error),
        error=error,
        fidelity=values.marks(fidelity),
    )


def _last_said(found: tuple[Message, ...]) -> tuple[Message, ...]:
    """A conversation's last words, which are its answer: who began it tells it, to whom the others are users."""
    spoken = [message for message in found if message["parts"]]
    return tuple({**message, "role": "assistant"} for message in spoken[-1:])


def _instructions(attributes: Attributes, messages: tuple[Message, ...]) -> tuple[dict[str, Json], ...]:
    """The instructions that stand beside messages, and not among them too."""
    parts, _ = conventional.parts(attributes.get(names.SYSTEM_INSTRUCTIONS))
    told = any(message["role"] == "system" and message["parts"] == list(parts) for message in messages[:2])
    return () if told else parts


def _instructed(attributes: Attributes, messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """What stands beside a run's messages as instructions, as the system's message."""
    instructions = _instructions(attributes, messages)
    return ({"role": "system", "parts": list(instructions)},) if instructions else ()


def _read_tool(span: RawSpan, operation: str) -> ToolRecord:
    attributes = whole_attributes(span)
    error = values.failure(span, ErrorCategory.TOOL)
    arguments_key, result_key, name = names.TOOL_CALL_ARGUMENTS, names.TOOL_CALL_RESULT, None
    kind = _KINDS.get(values.text(attributes, names.TOOL_TYPE) or "", ToolKind.FUNCTION)
    if operation == "retrieval":
        arguments_key, result_key = "gen_ai.retrieval.query.text", "gen_ai.retrieval.documents"
        name, kind = values.text(attributes, "gen_ai.data_source.id") or "retrieval", ToolKind.RETRIEVER
    if operation in _MEMORY:
        arguments_key, result_key, name = "gen_ai.memory.query.text", "gen_ai.memory.records", operation
        kind = ToolKind.RETRIEVER if operation == "search_memory" else kind
    arguments, arguments_fidelity = _read_value(attributes, arguments_key)
    result, result_fidelity = _read_value(attributes, result_key)
    if operation in _MEMORY and operation != "search_memory" and arguments_fidelity is Fidelity.ABSENT:
        # What is written is what it was asked with; only a search gives records.
        written = {key: values.decode(attributes[name])[0] for key, name in _WRITTEN.items() if name in attributes}
        if written:
            arguments, arguments_fidelity = written, Fidelity.WHOLE
        result, result_fidelity = None, Fidelity.ABSENT
    fidelity = {"arguments": arguments_fidelity, "result": result_fidelity}
    if error and result_fidelity is Fidelity.ABSENT:
        del fidelity["result"]
    return ToolRecord(
        name=values.text(attributes, names.TOOL_NAME) or name or span.name.partition(" ")[2] or span.name,
        arguments=arguments,
        result=result,
        call_id=values.text(attributes, names.TOOL_CALL_ID),
        kind=kind,
        description=values.text(attributes, names.TOOL_DESCRIPTION),
        status=values.status_of(error),
        error=error,
        fidelity=values.marks(fidelity),
    )


def _read_value(attributes: Attributes, key: str) -> tuple[Json, Fidelity]:
    return values.decode(attributes[key]) if key in attributes else (None, Fidelity.ABSENT)


def _read_agent(attributes: Attributes) -> Agent:
    return Agent(
        values.text(attributes, names.AGENT_NAME),
        values.text(attributes, names.AGENT_ID),
        values.text(attributes, names.AGENT_VERSION),
    )


def _unread(attributes: Attributes, key: str, fidelity: Fidelity) -> str | None:
    """The raw text of a messages attribute that could not be read whole."""
    value = attributes.get(key)
    return value if isinstance(value, str) and fidelity is not Fidelity.WHOLE else None
