"""OpenLLMetry, which is Traceloop's: its own names for workflows, agents and tools, and for model calls of old.

What it writes in the names of the GenAI conventions is read as those are; older names are put into today's first.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from spanreel import conventions as names
from spanreel.model import Agent, ErrorCategory, Fidelity, Json, ToolKind
from spanreel.records import ModelRecord, Record, RunRecord, ToolRecord
from spanreel_collector.dialects import genai_spans, values
from spanreel_collector.dialects.content import ends, indexed_messages, text_blocks, tools, wrapped
from spanreel_collector.dialects.content.decoding import decode, decode_json
from spanreel_collector.dialects.content.indexed import Tree, numbered
from spanreel_collector.span import Attributes, RawSpan

NAME = "traceloop"

_SCOPE = re.compile(r"(opentelemetry\.instrumentation\.(?!genai\.)|@traceloop/instrumentation-)\w")
_VERSION = re.compile(r"0\.\d+\.\d+$")
"""Other instrumentations of that name are betas, or have no version."""
_KIND, _ENTITY = "traceloop.span.kind", "traceloop.entity.name"
_INPUT, _OUTPUT = "traceloop.entity.input", "traceloop.entity.output"
_PROPERTIES = "traceloop.association.properties."
_REQUEST_TYPE = "llm.request.type"
_PROMPTS, _COMPLETIONS, _FUNCTIONS = "gen_ai.prompt", "gen_ai.completion", "llm.request.functions"
_SCHEMAS = ("parameters", "input_schema", "arguments")
"""Where a tool's schema stands; in the last by JavaScript's before 0.23."""
_OPERATIONS = {
    "chat": "chat",
    "completion": "text_completion",
    "embedding": "embeddings",
    "rerank": "rerank",
    "unknown": "chat",
}
_TODAY = {
    names.REQUEST_STREAM: ("gen_ai.is_streaming", "llm.is_streaming"),
    names.REQUEST_FREQUENCY_PENALTY: ("llm.frequency_penalty",),
    names.REQUEST_PRESENCE_PENALTY: ("llm.presence_penalty",),
    names.REQUEST_TOP_K: ("llm.top_k",),
    names.REQUEST_STOP_SEQUENCES: ("llm.chat.stop_sequences",),
    names.REQUEST_MAX_TOKENS: ("gen_ai.request.max_completion_tokens",),
    names.REQUEST_CHOICE_COUNT: ("gen_ai.request.n",),
    names.REQUEST_REASONING_LEVEL: ("gen_ai.request.reasoning_effort",),
    names.USAGE_REASONING_TOKENS: ("gen_ai.usage.reasoning_tokens", "llm.usage.reasoning_tokens"),
    "openai.response.system_fingerprint": (
        "gen_ai.openai.response.system_fingerprint",
        "gen_ai.openai.system_fingerprint",
    ),
}
_OF_MODELS = re.compile(r"gen_ai\.(prompt|completion)\.\d|gen_ai\.(output\.messages|response\.id|response\.model)$")
"""By these a model call is known that does not say what it is."""
_RUNS = ("workflow", "agent")
_RUNNING = re.compile(r'"current_agent_name": ?"([^"]+)"')
"""Who runs, in the words of llama-index; on a workflow who ran last."""
_SCHEMA = "gen_ai.request.structured_output_schema"
_GRAPH_NODES = "gen_ai.workflow.nodes"
_CREWS_RESULT, _CREWS_TASK = "crewai.crew.result", "crewai.task.description"


def speaks(span: RawSpan) -> bool:
    """Whether OpenLLMetry wrote the span, by names of its own or by who it says it is."""
    attributes = span.attributes
    if _KIND in attributes or _REQUEST_TYPE in attributes or _ENTITY in attributes:
        return True
    origin = span.origin
    named = bool(_SCOPE.match(origin.scope) and _VERSION.match(origin.scope_version))
    return named and any(key.startswith("gen_ai.") for key in attributes)


def read(span: RawSpan) -> Record | None:
    """What the span says; None for tasks, which only group."""
    kind = values.text(span.attributes, _KIND)
    span = replace(span, attributes=_todays(span))
    operation = genai_spans.operation_of(span)
    if kind == "handoff":
        return _read_handoff(span)
    if kind == "tool" or operation == "execute_tool" or _is_llama_index_tool(span):
        return _read_tool(span)
    if kind in _RUNS or operation == "invoke_agent" or _is_nested_agent(span, kind):
        return _read_run(span, kind)
    record = genai_spans.read(span)
    if isinstance(record, ModelRecord):
        record = _out_of_texts(span, record)
    return _with_losses(span, record) if isinstance(record, ModelRecord) else record


# -- model calls -----------------------------------------------------------------------------------------------------


def _todays(span: RawSpan) -> Attributes:
    """The attributes with the conventions' names of today for what was named otherwise; today's own come first."""
    attributes = span.attributes
    found: dict[str, Json] = {}
    kind = values.text(attributes, _REQUEST_TYPE)
    if kind in _OPERATIONS:
        found[names.OPERATION] = _OPERATIONS[kind]
    elif names.OPERATION not in attributes and _KIND not in attributes and any(map(_OF_MODELS.match, attributes)):
        found[names.OPERATION] = "chat"  # a limit of attributes takes the first ones first
    for name, keys in _TODAY.items():
        value = next((attributes[key] for key in keys if attributes.get(key) is not None), None)
        if value is not None:
            found[name] = value
    system = values.text(attributes, "gen_ai.system")
    if system:
        found[names.PROVIDER] = system.lower()
    prompts = indexed_messages.read(attributes, _PROMPTS, "user")
    completions = indexed_messages.read(attributes, _COMPLETIONS, "assistant")
    functions = [_function(item) for item in numbered(attributes, _FUNCTIONS).values()]
    lists = {names.INPUT_MESSAGES: prompts, names.OUTPUT_MESSAGES: completions, names.TOOL_DEFINITIONS: functions}
    found.update({name: items for name, items in lists.items() if items})
    return {**attributes, **found, **{key: attributes[key] for key in found if attributes.get(key) is not None}}


def _out_of_texts(span: RawSpan, record: ModelRecord) -> ModelRecord:
    """The call out of what LiteLLM puts before its model, and of the texts that LangChain's blocks are written into."""
    request, answer, scope = record.request, record.answer, span.origin.scope
    if scope.endswith(".litellm"):
        request = replace(request, model=wrapped.bare_model(request.model))
    elif scope.startswith("@"):
        request = replace(request, messages=text_blocks.read_lists(request.messages))
    elif scope.endswith(".langchain"):
        request = replace(request, messages=text_blocks.read_lone(request.messages))
        answer = answer and replace(answer, messages=text_blocks.read_lone(answer.messages))
    elif scope.endswith(".bedrock"):
        request = replace(request, messages=text_blocks.read_thoughts(request.messages))
        answer = answer and replace(answer, messages=text_blocks.read_thoughts(answer.messages))
    return replace(record, request=request, answer=answer)


def _function(item: Tree) -> dict[str, Json]:
    key = next((key for key in _SCHEMAS if item.get(key) is not None), "parameters")
    schema, _ = decode(item.get(key))
    told = {name: value for name, value in item.items() if name not in _SCHEMAS}
    return values.tool_definition({**told, "parameters": schema})


def _with_losses(span: RawSpan, record: ModelRecord) -> ModelRecord:
    """The model call, with what a limit of attributes took from its indexed messages, and what only it names."""
    fidelity = dict(record.fidelity)
    indexes = list(numbered(span.attributes, _PROMPTS))
    if indexes and (indexes != list(range(len(indexes))) or (span.dropped_attributes and not record.request.tools)):
        fidelity["input"] = Fidelity.TRUNCATED
    if indexes and any(message["role"] == "user" and not message["parts"] for message in record.request.messages):
        fidelity["input"] = Fidelity.TRUNCATED  # what holds an image is left out whole
    if span.dropped_attributes and not record.request.tools:
        fidelity["tools"] = Fidelity.TRUNCATED
    request = record.request
    schema, _ = decode(span.attributes.get(_SCHEMA))
    if schema is not None:
        request = replace(request, provider_fields={**request.provider_fields, "structured_output_schema": schema})
    return replace(record, request=request, fidelity=fidelity)


# -- tools -----------------------------------------------------------------------------------------------------------


def _read_tool(span: RawSpan) -> ToolRecord:
    attributes = span.attributes
    given, given_state = _first(attributes, names.TOOL_CALL_ARGUMENTS, _INPUT)
    came, came_state = _first(attributes, names.TOOL_CALL_RESULT, _OUTPUT)
    result, told = tools.read_result(came)
    if isinstance(result, dict) and "result" in result and set(result) <= {"result", "is_error"}:
        told = {"status": "error"} if result.get("is_error") is True else told  # of an MCP client
        result = result["result"]
    shown = tools.read_shown(result)
    if {"status", "result"} <= set(shown):  # of agno's
        result, told = shown["result"], {"status": "error"} if shown.get("error") else told
    error = values.failure(span, ErrorCategory.TOOL) or tools.failure(told, result)
    fidelity = {"arguments": given_state, "result": came_state}
    if error and came_state is Fidelity.ABSENT:
        del fidelity["result"]
    name = values.text(attributes, names.TOOL_NAME, "gen_ai.completion.tool.name")
    if name is None and isinstance(came, dict):
        name = values.text(came, "tool_name")
    if name is None and values.text(told, "tool_call_id"):
        name = values.text(told, "name")  # of JavaScript's LangChain, which calls the span by its class
    return ToolRecord(
        name=name or values.text(attributes, _ENTITY) or span.name.removesuffix(".tool"),
        arguments=tools.read_arguments(given),
        result=result,
        call_id=values.text(attributes, names.TOOL_CALL_ID) or values.text(told, "tool_call_id") or _call_id(given),
        description=values.text(attributes, names.TOOL_DESCRIPTION, "gen_ai.completion.tool.description"),
        kind=ToolKind.MCP if ".mcp" in span.origin.scope else ToolKind.FUNCTION,
        status=values.status_of(error),
        error=error,
        fidelity=values.marks(fidelity),
    )


def _first(attributes: Attributes, *keys: str) -> tuple[Json, Fidelity]:
    """The first of these values; what OpenLLMetry names itself is JSON."""
    key = next((key for key in keys if attributes.get(key) is not None), None)
    if key is None:
        return None, Fidelity.ABSENT
    return (decode_json if key.startswith("traceloop.") else decode)(attributes[key])


def _call_id(given: Json) -> str | None:
    """The id that LangChain hands to its callback beside the arguments."""
    beside: Any = given.get("kwargs") if isinstance(given, dict) and "input_str" in given else None
    return values.text(beside, "tool_call_id") if isinstance(beside, dict) else None


def _is_llama_index_tool(span: RawSpan) -> bool:
    """Whether a task is a tool: llama-index runs each as one, and only its output says so."""
    if values.text(span.attributes, _KIND) != "task" or "Tool" not in span.name:
        return False
    came, _ = decode(span.attributes.get(_OUTPUT))
    return isinstance(came, dict) and {"tool_name", "raw_output"} <= set(came)


def _read_handoff(span: RawSpan) -> ToolRecord | None:
    target = values.text(span.attributes, "gen_ai.handoff.to_agent")
    if target is None:
        return None
    error = values.failure(span, ErrorCategory.TOOL)
    return ToolRecord(
        # What the openai-agents SDK calls the tool that the model asked for.
        name="transfer_to_" + re.sub(r"\W", "_", target).lower(),
        kind=ToolKind.HANDOFF,
        target=target,
        status=values.status_of(error),
        error=error,
        fidelity=dict.fromkeys(("arguments", "result"), Fidelity.ABSENT),
    )


# -- runs ------------------------------------------------------------------------------------------------------------


def _is_nested_agent(span: RawSpan, kind: str | None) -> bool:
    """Whether a task is an agent's that another one called: of LangChain's, its name is the agent's own."""
    agent = values.text(span.attributes, _PROPERTIES + "lc_agent_name")
    return kind == "task" and agent is not None and agent == values.text(span.attributes, _ENTITY)


def _read_run(span: RawSpan, kind: str | None) -> RunRecord | None:
    """A workflow or an agent. A workflow has no agent's name: one that holds a single agent is its wrapping."""
    attributes = span.attributes
    record = genai_spans.read(replace(span, attributes={**attributes, names.OPERATION: "invoke_agent"}))
    if not isinstance(record, RunRecord):
        return None
    told = ends.read(
        attributes.get(_INPUT, attributes.get(_CREWS_TASK)), attributes.get(_OUTPUT, attributes.get(_CREWS_RESULT))
    )
    fidelity = {field: told.fidelity[field] for field in ("input", "output") if field in told.fidelity}
    whole = {"input": record.input, "output": record.output}
    fidelity = {field: state for field, state in fidelity.items() if not whole[field]}
    name = values.text(attributes, _PROPERTIES + "lc_agent_name") or record.agent.name
    if _GRAPH_NODES in attributes:
        name = None  # the workflow inside says who runs
    elif name is None and (running := _RUNNING.search(str(attributes.get(_OUTPUT)))) and "llama" in span.origin.scope:
        name = running.group(1)
    elif name is None and kind == "agent":
        name = values.text(attributes, _ENTITY) or span.name.removesuffix(".agent")
    return replace(
        record,
        agent=replace(record.agent, name=name) if name else Agent(),
        input=record.input or told.input,
        output=record.output or told.output,
        arguments=told.arguments,
        result=told.result,
        fidelity=fidelity,
    )
