"""Mastra's spans, from its OTel exporter and bridge or from `getTrace`: ``mastra.span.type``, beside the conventions.

A model call has three spans, one in the other: the inside one counts, those around it hold what was said.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from spanreel import json_text
from spanreel.model import Agent, Answer, Error, ErrorCategory, Fidelity, Json, Message, Request, Status, ToolKind
from spanreel.records import ModelRecord, Record, RunRecord, ToolRecord
from spanreel_collector.dialects import genai_spans, values
from spanreel_collector.dialects.content import ai_sdk, conventional, costs, losses
from spanreel_collector.dialects.mastra.gathering import ATTRIBUTES, GATHERED, gather, trace_of
from spanreel_collector.dialects.mastra.orphans import TYPE
from spanreel_collector.span import Attributes, RawSpan

__all__ = ["NAME", "gather", "read", "speaks", "trace_of"]

NAME = "mastra"

_MODELS = ("model_inference", "model_step", "model_generation", "llm_generation")
_TOOLS = {
    "tool_call": ToolKind.FUNCTION,
    "client_tool_call": ToolKind.FUNCTION,
    "provider_tool_call": ToolKind.PROVIDER,
    "mcp_tool_call": ToolKind.MCP,
}
_ENDS = {"aborted": Status.CANCELLED, "suspended": Status.INTERRUPTED}
"""How an agent's output says that it ended before its answer."""
_ABORTED = ["aborted"]
_BIG_INTEGER = re.compile(r"-?[0-9]+n")
_SUBAGENT = "agent-"
"""What Mastra puts before an agent's name where it is a tool of another."""


def speaks(span: RawSpan) -> bool:
    """Whether Mastra wrote the span."""
    return isinstance(span.attributes.get(TYPE), str)


def read(span: RawSpan) -> Record | None:
    """What the span says; None for steps, chunks, memory and processors."""
    kind = span.attributes[TYPE]
    if kind == "agent_run":
        return _read_agent_run(span)
    if kind == "workflow_run":
        return _read_workflow_run(span)
    if kind in _MODELS:
        return _read_model(span) if GATHERED in span.attributes else None
    if kind in _TOOLS:
        return _read_tool(span, _TOOLS[kind])
    return genai_spans.read(span) if kind == "rag_embedding" else None


# -- runs ------------------------------------------------------------------------------------------------------------


def _read_agent_run(span: RawSpan) -> RunRecord:
    attributes = span.attributes
    asked, state = ai_sdk.prompt(attributes.get("mastra.agent_run.input"))
    instructions = attributes.get("gen_ai.system_instructions")
    if not any(message["role"] == "system" for message in asked):
        asked = (*_instructed(instructions), *asked)
    came = values.decode(attributes.get("mastra.agent_run.output"))[0]
    answered, answer_state = _answer_message(came, "")
    error = _error(span, ErrorCategory.OTHER)
    fidelity = {"input": _state(state, asked), "output": _state(answer_state, answered)}
    if error and answer_state is Fidelity.ABSENT:
        del fidelity["output"]
    name = values.text(attributes, "gen_ai.agent.name", "gen_ai.agent.id")
    return RunRecord(
        agent=Agent(name, values.text(attributes, "gen_ai.agent.id"), values.text(attributes, "gen_ai.agent.version")),
        input=asked,
        output=(answered,) if answered["parts"] else (),
        status=_ENDS.get(str(values.members(came).get("status")), Status.OK)
        if error is None
        else values.status_of(error),
        error=error,
        fidelity=values.marks(fidelity),
    )


def _instructed(given: Json) -> tuple[Message, ...]:
    """The agent's instructions: a text, messages, or the conventions' parts."""
    found, _ = values.decode(given)
    if isinstance(found, str) and found:
        return ({"role": "system", "parts": ai_sdk.parts(found)},)
    if isinstance(found, list) and any(isinstance(item, dict) and "role" in item for item in found):
        return ai_sdk.messages(found)[0]
    parts, _ = conventional.parts(found)
    return ({"role": "system", "parts": list(parts)},) if parts else ()


def _read_workflow_run(span: RawSpan) -> RunRecord:
    """A workflow; its name is not an agent's."""
    attributes = span.attributes
    given, state = _value(attributes, "mastra.workflow_run.input")
    result, result_state = _value(attributes, "mastra.workflow_run.output")
    error = _error(span, ErrorCategory.OTHER)
    fidelity = {"arguments": state, "result": result_state}
    return RunRecord(
        arguments=given if isinstance(given, dict) else None,
        result=result,
        status=values.status_of(error),
        error=error,
        fidelity=values.marks(fidelity),
    )


# -- model calls -----------------------------------------------------------------------------------------------------


def _read_model(span: RawSpan) -> ModelRecord | None:
    attributes = span.attributes
    gathered: dict[str, Any] = attributes[GATHERED]
    as_chat = {**attributes, **gathered["facts"], "gen_ai.operation.name": "chat"}
    base = genai_spans.read(replace(span, attributes=as_chat))
    if not isinstance(base, ModelRecord):
        return None
    own = attributes.get(ATTRIBUTES)
    own = own if isinstance(own, dict) else {}
    sent: Request = gathered["sent"] or Request(base.request.operation, None)
    asked, state = (sent.messages, Fidelity.WHOLE) if sent.messages else _asked(gathered["input"])
    asked, state = (asked, state) if asked or not base.request.messages else (base.request.messages, Fidelity.WHOLE)
    answered, answer_state = _answer_message(gathered["output"], gathered["reasoning"])
    error = _error(span, ErrorCategory.MODEL) or _told(gathered["error"])
    if error is None and not answered["parts"] and base.answer and base.answer.finish_reasons == ["error"]:
        error = Error(ErrorCategory.MODEL, "error")  # the agent tells it; the call's span ends as if all were well
    fidelity = {**base.fidelity, "input": _state(state, asked), "output": _state(answer_state, answered)}
    if error and answer_state is Fidelity.ABSENT:
        del fidelity["output"]
    tools = sent.tools or tuple(values.tool_definition(tool) for tool in gathered["tools"])
    if any("parameters" not in tool for tool in tools):
        fidelity["tools"] = Fidelity.TRUNCATED  # names and descriptions, no parameters
    if gathered.get("usage_of_all"):
        fidelity["usage"] = Fidelity.RECONSTRUCTED
    settings = {**sent.settings, **base.request.settings}
    if own.get("toolChoice") is not None:
        settings["tool_choice"] = ai_sdk.tool_choice(own["toolChoice"])
    fields = {"provider": base.provider} if base.provider else {}
    if isinstance(own.get("providerOptions"), dict):
        fields["provider_options"] = own["providerOptions"]
    streamed: bool | None = gathered["streamed"]
    if streamed is None:
        streamed = own.get("streaming") is True or "mastra.completion_start_time" in attributes
    request = replace(
        base.request,
        messages=asked,
        instructions=sent.instructions or base.request.instructions,
        tools=tools,
        settings=settings,
        stream=streamed,
        provider_fields=fields,
    )
    answer = None if error and not answered["parts"] else _answer(base, answered, gathered, streamed=streamed)
    return replace(
        base,
        request=request,
        answer=answer,
        provider=ai_sdk.provider(base.provider),
        error=error,
        status=Status.CANCELLED if _was_aborted(answer) else ai_sdk.status_of(span, error, answer),
        raw_request=None,
        raw_response=None,
        continues=not gathered["first"],
        fidelity=values.marks(fidelity),
    )


def _asked(given: Json) -> tuple[tuple[Message, ...], Fidelity]:
    """A context's messages: the AI SDK's, or parts of the conventions' in which each value is JSON again."""
    found: list[Message] = []
    state = Fidelity.ABSENT
    for item in given if isinstance(given, list) else []:
        conventions = isinstance(item, dict) and "parts" in item and "content" not in item
        read, state_of_one = conventional.messages([item]) if conventions else ai_sdk.messages([item])
        found += [{**message, "parts": [_decoded(part) for part in message["parts"]]} for message in read]
        state = state_of_one if not found or state is Fidelity.ABSENT else losses.graver(state, state_of_one)
    return tuple(found), state


def _was_aborted(answer: Answer | None) -> bool:
    return answer is not None and answer.finish_reasons == _ABORTED


def _decoded(part: dict[str, Json]) -> dict[str, Json]:
    if part.get("type") != "tool_call_response" or not isinstance(part.get("response"), str):
        return part
    return {**part, "response": values.decode(part["response"])[0]}


def _answer(base: ModelRecord, answered: Message, gathered: dict[str, Any], *, streamed: bool) -> Answer | None:
    answer, cost = base.answer or Answer(), gathered.get("cost")
    reasons = answer.finish_reasons
    message = {**answered, "finish_reason": reasons[0]} if reasons else answered
    found = replace(
        answer,
        messages=(message,) if message["parts"] or reasons else (),
        streamed=streamed,
        provider_fields={**answer.provider_fields, **({} if cost is None else {costs.FIELD: cost})},
    )
    return None if found == Answer(streamed=streamed) else found


def _answer_message(output: Json, reasoning: str) -> tuple[Message, Fidelity]:
    """The answer in a span's output: ``{"text", "toolCalls", "object", "files"}``, or a text."""
    said = {"text": output} if isinstance(output, str) else output if isinstance(output, dict) else None
    parts: list[dict[str, Json]] = [{"type": "reasoning", "content": reasoning}] if reasoning else []
    if said is None:
        return {"role": "assistant", "parts": parts}, Fidelity.ABSENT
    text = said.get("text")
    if not text and said.get("object") is not None:
        text = json_text.encode(said["object"])
    parts += ai_sdk.parts(text)
    given = said.get("files")
    files = [item.get("payload", item) for item in given if isinstance(item, dict)] if isinstance(given, list) else []
    parts += ai_sdk.parts([{"type": "file", **file} for file in files if isinstance(file, dict)])
    calls = said.get("toolCalls")
    flat = [item.get("payload", item) for item in calls if isinstance(item, dict)] if isinstance(calls, list) else []
    parts += ai_sdk.calls(flat)[0]
    return {"role": "assistant", "parts": parts}, Fidelity.WHOLE


# -- tool calls ------------------------------------------------------------------------------------------------------


def _read_tool(span: RawSpan, kind: ToolKind) -> ToolRecord:
    attributes = span.attributes
    error = _error(span, ErrorCategory.TOOL)
    found = {
        "arguments": _value(attributes, "gen_ai.tool.call.arguments", f"mastra.{attributes[TYPE]}.input"),
        "result": _value(attributes, "gen_ai.tool.call.result", f"mastra.{attributes[TYPE]}.output"),
    }
    fidelity = {field: state for field, (_, state) in found.items()}
    if error and fidelity["result"] is Fidelity.ABSENT:
        del fidelity["result"]
    name = values.text(attributes, "gen_ai.tool.name") or span.name.partition(" ")[2] or span.name
    if name.startswith(_SUBAGENT) and kind is ToolKind.FUNCTION:
        kind = ToolKind.AGENT
    return ToolRecord(
        name=name,
        arguments=found["arguments"][0],
        result=found["result"][0],
        call_id=values.text(attributes, "gen_ai.tool.call.id", "mastra.metadata.toolCallId"),
        kind=kind,
        description=values.text(attributes, "gen_ai.tool.description"),
        status=values.status_of(error),
        error=error,
        fidelity=values.marks(fidelity),
    )


def _value(attributes: Attributes, *keys: str) -> tuple[Json, Fidelity]:
    for key in keys:
        if key in attributes:
            found, state = values.decode(attributes[key])
            cut = Fidelity.TRUNCATED if _holds_big_integer(found) else Fidelity.WHOLE
            return found, losses.graver(state, losses.state(found), cut)
    return None, Fidelity.ABSENT


def _holds_big_integer(value: Json) -> bool:
    """Whether a BigInt stands in it, which Mastra writes as the text ``12n``: that is not what crossed."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            if one.endswith("n") and _BIG_INTEGER.fullmatch(one):
                return True
        elif isinstance(one, dict | list):
            waiting += one.values() if isinstance(one, dict) else one
    return False


def _error(span: RawSpan, category: ErrorCategory) -> Error | None:
    """The failure; the exporter's own ``unknown`` and ``Error`` name no kind."""
    if span.status != 2:
        return None
    error = values.failure(span, category)
    assert error is not None
    kind = "error" if error.type == "unknown" else error.type
    return Error(error.category, kind, error.message or values.text(span.attributes, "error.message"))


def _told(failure: dict[str, Json] | None) -> Error | None:
    """A model call's failure that is told of beside its span, which ends as if all were well."""
    if failure is None:
        return None
    return Error(ErrorCategory.MODEL, values.text(failure, "name") or "error", values.text(failure, "message"))


def _state(state: Fidelity, *said: Any) -> Fidelity:
    return losses.graver(state, losses.state(list(said)))
