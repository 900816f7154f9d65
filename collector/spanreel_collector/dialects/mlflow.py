"""MLflow's traces: every value is JSON, texts too; inputs and outputs are the bodies of the library that was traced.

Where it was told to use the GenAI conventions' names, those are read, and beside them what they do not say.
"""

from __future__ import annotations

import re
from dataclasses import fields, replace

from spanreel import conventions as names
from spanreel.model import Agent, Answer, ErrorCategory, Fidelity, Json, Operation, ToolDefinition, ToolKind, Usage
from spanreel.records import ModelRecord, Record, RunRecord, ToolRecord
from spanreel_collector.dialects import genai_spans, values
from spanreel_collector.dialects.content import bodies, ends, exchanges, tokens, tools, wrapped
from spanreel_collector.dialects.content.decoding import decode_deep, decode_json
from spanreel_collector.span import Attributes, RawSpan

NAME = "mlflow"

_SCOPE = "mlflow.tracing.provider"
_TYPE, _INPUT, _OUTPUT = "mlflow.spanType", "mlflow.spanInputs", "mlflow.spanOutputs"
_ENCODED = (_TYPE, _INPUT, "mlflow.chat.tokenUsage", "mlflow.chat.tools")
_MODELS = {
    "CHAT_MODEL": Operation.CHAT,
    "LLM": Operation.CHAT,
    "EMBEDDING": Operation.EMBEDDINGS,
    "RERANKER": Operation.RERANK,
}
_TOOLS = {"TOOL": ToolKind.FUNCTION, "RETRIEVER": ToolKind.RETRIEVER}
_STEPS = ("CHAIN", "WORKFLOW", "TASK", "UNKNOWN")
_USAGE = {
    "input_tokens": ("input_tokens",),
    "output_tokens": ("output_tokens",),
    "cache_read_tokens": ("cache_read_input_tokens",),
    "cache_write_tokens": ("cache_creation_input_tokens",),
}

_OF_RESPONSES = ("completed", "incomplete")
"""How the Responses API calls an item's end; choices of the other API end in other words."""
_RUNNER = re.compile(r"\w*Runner\.run\w*")
"""The function of the OpenAI Agents SDK around a whole workflow, which is no agent."""
_UNSET = re.compile(r"<openai\.\w+ object at 0x[0-9a-f]+>|NOT_GIVEN")
"""How OpenAI's SDK shows an argument that was left out."""
_OBJECT = re.compile(r"<[A-Z]\w+ .*>", re.DOTALL)
"""How an answer is shown whose body was not read when the span ended: that of a stream."""
_OF_DSPY = "Tool."
"""What MLflow puts before the names of DSPy's tools."""


def speaks(span: RawSpan) -> bool:
    """Whether MLflow wrote the span."""
    return _TYPE in span.attributes or span.origin.scope == _SCOPE


def read(span: RawSpan) -> Record | None:
    """What the span says; None of parsers, guardrails, memories and evaluators."""
    span = _encoded_once(span)
    kind = _text(span.attributes, _TYPE)
    if kind is None:
        return _read_conventions(span)
    if kind in _MODELS and "signature" not in span.attributes:  # as DSPy's modules have, which are no calls
        return _read_model(span, _MODELS[kind])
    if kind in _TOOLS:
        return _read_tool(span, _TOOLS[kind])
    return _read_run(span, kind) if kind == "AGENT" or kind in _STEPS else None


def _encoded_once(span: RawSpan) -> RawSpan:
    """The span, with what was encoded twice encoded once: some exporters and servers encode what is JSON already.

    What a tool or a run came to may be a text that is JSON; it is left so.
    """
    given = span.attributes
    inner = {key: _taken_out(value) for key in _ENCODED if isinstance(value := given.get(key), str)}
    if _text(inner, _TYPE) in _MODELS and isinstance(value := given.get(_OUTPUT), str):
        inner[_OUTPUT] = _taken_out(value)
    changed = {key: value for key, value in inner.items() if value is not given[key]}
    return replace(span, attributes={**given, **changed}) if changed else span


def _taken_out(text: str) -> str:
    """The JSON that a JSON text holds; the same where it holds none."""
    found = decode_json(text)[0] if text.startswith('"') else None
    return found if isinstance(found, str) and found[:1] in ("{", "[", '"') else text


def _text(attributes: Attributes, *keys: str) -> str | None:
    for key in keys:
        found, _ = decode_json(attributes.get(key))
        if isinstance(found, str) and found:
            return found
    return None


# -- under the names of the conventions ------------------------------------------------------------------------------


def _read_conventions(span: RawSpan) -> Record | None:
    """What the conventions' names say, with what stands beside them: parameters, and facts of LangChain."""
    step = values.text(span.attributes, names.OPERATION) in _STEPS
    as_run = replace(span, attributes={**span.attributes, names.OPERATION: names.INVOKE_AGENT}) if step else span
    record = genai_spans.read(as_run)
    if isinstance(record, ModelRecord):
        return _with_parameters(span, _with_items_joined(record))
    if isinstance(record, ToolRecord):
        result, told = tools.read_result(record.result)
        call_id = record.call_id or values.text(told, "tool_call_id") or _text(span.attributes, "tool_call_id")
        return replace(record, result=result, call_id=call_id, error=record.error or tools.failure(told, result))
    if isinstance(record, RunRecord):
        name = _langchain_agent(span) or (None if step or _is_runner(record.agent.name) else record.agent.name)
        return replace(record, agent=replace(record.agent, name=name), outermost_only=step)
    return record


def _with_items_joined(record: ModelRecord) -> ModelRecord:
    """The call with one message of the items that the Responses API answered in, each of which is a message here."""
    answer = record.answer
    said = answer.messages if answer else ()
    if answer is None or len(said) < 2 or any(one.get("finish_reason") not in _OF_RESPONSES for one in said):
        return record
    parts = [part for one in said for part in one["parts"]]
    return replace(record, answer=replace(answer, messages=({**said[-1], "parts": parts},)))


def _with_parameters(span: RawSpan, record: ModelRecord) -> ModelRecord:
    """The call with its request's settings; where the conventions have one model, it is the one that answered."""
    parameters = _parameters(span.attributes)
    told = record.request.model
    answered, answer = _is_response(parameters), _with_response(record.answer, parameters, told)
    asked = None if answered else values.text(parameters, "model", "model_name")
    request = replace(
        record.request,
        model=asked or told,
        tools=_described(record.request.tools, parameters),
        settings={**bodies.settings(parameters), **record.request.settings},
    )
    return replace(record, request=request, answer=answer)


def _is_response(parameters: dict[str, Json]) -> bool:
    """Whether the span's are those of the response: the Agents SDK's, with its id and its counts."""
    return parameters.get("object") == "response"


def _with_response(answer: Answer | None, parameters: dict[str, Json], told: str | None) -> Answer | None:
    """The answer, with what the response says that stands on the span."""
    if not _is_response(parameters):
        return answer
    answer = answer or Answer()
    return replace(
        answer,
        response_id=answer.response_id or values.text(parameters, "id"),
        model=answer.model or told or values.text(parameters, "model"),
        usage=_filled(answer.usage, tokens.read(parameters.get("usage"))),
    )


def _filled(usage: Usage | None, more: Usage | None) -> Usage | None:
    if usage is None or more is None:
        return usage or more
    return Usage(**{one.name: _first(getattr(usage, one.name), getattr(more, one.name)) for one in fields(Usage)})


def _first(count: int | None, other: int | None) -> int | None:
    return other if count is None else count


def _parameters(attributes: Attributes) -> dict[str, Json]:
    """The arguments of the call that was traced, which stand on the span without a prefix; LangChain's in one."""
    found = {key: decode_json(value)[0] for key, value in attributes.items() if "." not in key}
    invoked, _ = decode_json(attributes.get("invocation_params"))
    found.update(invoked if isinstance(invoked, dict) else {})
    return {key: value for key, value in found.items() if not _is_unset(value)}


def _is_unset(value: Json) -> bool:
    return isinstance(value, str) and _UNSET.fullmatch(value) is not None


def _without_unset(body: Json) -> Json:
    """A request without the arguments that were left out; what names none of them stays as it came."""
    if not isinstance(body, str) or _UNSET.search(body) is None:
        return body
    found, _ = decode_json(body)
    return {key: value for key, value in found.items() if not _is_unset(value)} if isinstance(found, dict) else body


def _value(attributes: Attributes, key: str) -> Json:
    """An input or output; None where it is JSON's null, or shows an object that nothing is known of."""
    value = attributes.get(key)
    found, _ = decode_json(value) if isinstance(value, str) and value[:2] in ("nu", '"<') else (value, None)
    return None if isinstance(found, str) and _OBJECT.fullmatch(found) else found if found is None else value


def _described(tools: tuple[ToolDefinition, ...], parameters: dict[str, Json]) -> tuple[ToolDefinition, ...]:
    """The tools, with the parameters that MLflow leaves out of those that are not written as OpenAI does."""
    if all("parameters" in tool for tool in tools):
        return tools
    given = {tool.get("name"): tool for tool in bodies.read_tools(parameters.get("tools"))}
    return tuple({**given.get(tool.get("name"), {}), **tool} for tool in tools)


def _langchain_agent(span: RawSpan) -> str | None:
    metadata, _ = decode_json(span.attributes.get("metadata"))
    return values.text(metadata, "lc_agent_name") if isinstance(metadata, dict) else None


def _is_runner(name: str | None) -> bool:
    return name is not None and _RUNNER.fullmatch(name) is not None


# -- in MLflow's own words -------------------------------------------------------------------------------------------


def _read_model(span: RawSpan, operation: Operation) -> ModelRecord:
    attributes = span.attributes
    exchange = exchanges.read(_without_unset(_value(attributes, _INPUT)), _value(attributes, _OUTPUT), operation)
    request, answer, fidelity = exchange.request, exchange.answer, dict(exchange.fidelity)
    error = values.failure(span, ErrorCategory.MODEL)
    if error and fidelity.get("output") is Fidelity.ABSENT:
        del fidelity["output"]
    offered, _ = decode_json(attributes.get("mlflow.chat.tools"))
    usage = _read_usage(attributes, answer.usage if answer else None)
    model = _text(attributes, "mlflow.llm.model")
    if _text(attributes, "mlflow.message.format") == "dspy":
        model = wrapped.bare_model(model)
        request = replace(request, model=wrapped.bare_model(request.model) or model)
    if usage is not None or answer is not None:
        answer = replace(answer or Answer(), usage=usage, streamed=request.stream)
        answer = replace(answer, model=answer.model or model)
    parameters = _parameters(attributes)
    answer = _with_response(answer, parameters, None)
    return ModelRecord(
        request=replace(
            request,
            model=request.model or _text(attributes, "model", "model_name") or model or _invoked(attributes),
            tools=_described(request.tools or bodies.read_tools(offered), parameters),
            settings={**bodies.settings(parameters), **request.settings},
        ),
        answer=answer,
        provider=_text(attributes, "mlflow.llm.provider"),
        protocol=exchange.protocol,
        error=error,
        status=values.status_of(error),
        fidelity=fidelity,
    )


def _invoked(attributes: Attributes) -> str | None:
    """The model by LangChain's parameters of the call, which releases before 3.7 or so tell nowhere else."""
    return values.text(values.members(attributes.get("invocation_params")), "model", "model_name")


def _read_usage(attributes: Attributes, usage: Usage | None) -> Usage | None:
    """The counts that MLflow tells, with those that only the answer's own body has."""
    told = values.members(attributes.get("mlflow.chat.tokenUsage"))
    counts = {field: values.integer(told, *keys) for field, keys in _USAGE.items()}
    known = usage or Usage()
    whole = replace(known, **{field: count for field, count in counts.items() if getattr(known, field) is None})
    return values.whole_usage(whole) if whole != Usage() else None


def _read_tool(span: RawSpan, kind: ToolKind) -> ToolRecord:
    attributes = span.attributes
    given, given_state = decode_json(attributes.get(_INPUT))
    came, came_state = decode_deep(attributes.get(_OUTPUT))
    result, told = tools.read_result(came)
    error = values.failure(span, ErrorCategory.TOOL) or tools.failure(told, result)
    fidelity = {"arguments": given_state, "result": came_state}
    if error and (came is None or came_state is Fidelity.ABSENT):
        del fidelity["result"]
    return ToolRecord(
        name=_name(span),
        arguments=tools.read_arguments(given),
        result=result,
        call_id=values.text(told, "tool_call_id"),
        kind=kind,
        status=values.status_of(error),
        error=error,
        fidelity=values.marks(fidelity),
    )


def _read_run(span: RawSpan, kind: str) -> RunRecord:
    attributes = span.attributes
    told = ends.read(_value(attributes, _INPUT), _value(attributes, _OUTPUT))
    error = values.failure(span, ErrorCategory.OTHER)
    by_name = kind == "AGENT" and not _is_runner(span.name)
    agent = Agent(_langchain_agent(span) or (_name(span) if by_name else None))
    return ends.as_run(told, agent, error, outermost_only=kind != "AGENT")


def _name(span: RawSpan) -> str:
    """The span's name, without the number that older versions put behind a name that they had used."""
    function = _text(span.attributes, "mlflow.spanFunctionName")
    numbered = function is not None and re.fullmatch(re.escape(function) + r"_\d+", span.name)
    name = function if numbered and function else span.name
    return name.removeprefix(_OF_DSPY)
