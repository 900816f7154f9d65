"""Strands Agents' own spans, of all releases: content in attributes, in old events, in new ones, or on the span.

Spans of loop cycles only group. Of a model call's settings none is written.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from spanreel import conventions as names
from spanreel.model import Error, ErrorCategory, Fidelity, Json, Message, Status, ToolKind, Usage
from spanreel.records import ModelRecord, Record, RunRecord, ToolRecord
from spanreel_collector.dialects import genai_events, genai_spans, values
from spanreel_collector.dialects.content import bedrock, conventional, losses
from spanreel_collector.span import Attributes, RawSpan

NAME = "strands"

_SCOPE = "strands.telemetry.tracer"
_PREFIXES = {"Model invoke": "chat", "Tool: ": names.EXECUTE_TOOL, "Cycle ": "execute_event_loop_cycle"}
"""Names of spans of before release 1, which do not all name their operation."""
_GROUPS = ("invoke_swarm", "invoke_graph")
_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_CHOICE = "gen_ai.choice"
_RENAMED = {
    names.TOOL_NAME: "tool.name",
    names.TOOL_CALL_ID: "tool.id",
    names.TOOL_CALL_ARGUMENTS: "tool.parameters",
    names.TOOL_CALL_RESULT: "tool.result",
    names.AGENT_NAME: "agent.name",
    names.USAGE_CACHE_WRITE_TOKENS: "gen_ai.usage.cache_write_input_tokens",
}
_HANDOFF = "handoff_to_agent"
_ENDS = {"interrupt": Status.INTERRUPTED, "cancelled": Status.CANCELLED}
"""Reasons of an agent's stopping that are no answer."""


def speaks(span: RawSpan) -> bool:
    """Whether Strands wrote the span."""
    return span.origin.scope == _SCOPE


def read(span: RawSpan) -> Record | None:
    """What the span says; None where it only groups others."""
    operation = _operation(span)
    attributes, states = _translated(span, operation)
    record = genai_spans.read(replace(span, attributes=attributes, events=_told(span), logs=()))
    if isinstance(record, ModelRecord):
        return _read_model(span, record, states)
    if isinstance(record, RunRecord):
        return _read_run(span, record, states)
    return _read_tool(span, record) if isinstance(record, ToolRecord) else record


def _operation(span: RawSpan) -> str | None:
    named = values.text(span.attributes, names.OPERATION)
    if named is not None:
        return names.INVOKE_AGENT if named in _GROUPS else named
    for prefix, operation in _PREFIXES.items():
        if span.name.startswith(prefix):
            return operation
    return names.INVOKE_AGENT if names.AGENT_NAME in span.attributes else None


def _told(span: RawSpan) -> tuple[Any, ...]:
    """The events that are not messages: failures."""
    return tuple(event for event in span.events if event.name == "exception")


# -- in the words of the conventions ---------------------------------------------------------------------------------


def _translated(span: RawSpan, operation: str | None) -> tuple[Attributes, dict[str, Fidelity]]:
    """The span's attributes as the conventions have them, and the fidelity of its input and output."""
    attributes = dict(genai_events.details(span))
    attributes[names.OPERATION] = operation
    for name, other in _RENAMED.items():
        if attributes.get(name) is None and attributes.get(other) is not None:
            attributes[name] = attributes[other]
    if operation == names.EXECUTE_TOOL:
        _settle_tool(span, attributes)
        return attributes, {}
    told = _old_messages(span)
    states: dict[str, Fidelity] = {}
    for field, name in (("input", names.INPUT_MESSAGES), ("output", names.OUTPUT_MESSAGES)):
        given, state = values.items_of(attributes.get(name), parts_depth=4)
        messages = [_unwrapped(message) for message in given] or told[field][0]
        if messages:
            attributes[name] = messages
        states[field] = state if given else told[field][1]
    if names.TOOL_DEFINITIONS not in attributes and (offered := values.texts(attributes, "gen_ai.agent.tools")):
        attributes[names.TOOL_DEFINITIONS] = [{"type": "function", "name": tool} for tool in offered]
    return attributes, states


def _old_messages(span: RawSpan) -> dict[str, tuple[list[Message], Fidelity]]:
    """Messages in old events, or (before release 0.2) in two attributes, with their fidelity."""
    found: dict[str, list[Message]] = {"input": [], "output": []}
    states = {"input": Fidelity.WHOLE, "output": Fidelity.WHOLE}
    for field, key, role in (("input", "gen_ai.prompt", "user"), ("output", "gen_ai.completion", "assistant")):
        if key in span.attributes:
            messages, states[field] = _read_content(role, span.attributes[key])
            found[field] += messages
    for event in span.events:
        field = "output" if event.name == _CHOICE else "input"
        if event.name != _CHOICE and event.name not in _ROLES:
            continue
        told = event.attributes.get("message" if event.name == _CHOICE else "content")
        messages, state = _read_content(_ROLES.get(event.name, "assistant"), told)
        reason = values.text(event.attributes, "finish_reason")
        found[field] += [{**message, "finish_reason": reason} if reason else message for message in messages]
        states[field] = losses.graver(states[field], state)
    return {field: (messages, states[field] if messages else Fidelity.ABSENT) for field, messages in found.items()}


def _read_content(role: str, content: Json) -> tuple[list[Message], Fidelity]:
    """The messages that an event's content is: blocks, whole messages (before 0.2), or plain text."""
    items, state = values.items_of(content, parts_depth=2)
    if items and all(isinstance(item, dict) and isinstance(item.get("content"), list) for item in items):
        messages = [one for item in items for one in bedrock.read_messages(str(item.get("role")), item["content"])]
        return messages, state
    if items and bedrock.is_blocks(items):
        return bedrock.read_messages("user" if role == "tool" else role, items), state
    if state is Fidelity.TRUNCATED or not isinstance(content, str) or content == "[]":
        return [], state
    return [{"role": role, "parts": [{"type": "text", "content": content}]}], Fidelity.WHOLE


def _unwrapped(message: Json) -> Json:
    """A message of the conventions' form, with tools' results and Bedrock's kinds of content out of their blocks."""
    if not isinstance(message, dict) or not isinstance(message.get("parts"), list):
        return message
    return {
        **message,
        "parts": [_unwrapped_part(part) if isinstance(part, dict) else part for part in message["parts"]],
    }


def _unwrapped_part(part: dict[str, Json]) -> dict[str, Json]:
    kind = part.get("type")
    if kind == "tool_call_response" and "response" in part:
        return {**part, "response": bedrock.read_result(part["response"])}
    if isinstance(kind, str) and kind != "text" and bedrock.is_blocks([{kind: part.get("content")}]):
        return bedrock.read_parts([{kind: part.get("content")}])[0]
    return part


def _settle_tool(span: RawSpan, attributes: dict[str, Json]) -> None:
    """Put the arguments and the result of a tool call under the conventions' names, from wherever they stand."""
    for event in span.events:
        if event.name == "gen_ai.tool.message" and "content" in event.attributes:
            attributes.setdefault(names.TOOL_CALL_ARGUMENTS, event.attributes["content"])
        elif event.name == _CHOICE and "message" in event.attributes:
            attributes.setdefault(names.TOOL_CALL_RESULT, event.attributes["message"])
    if names.TOOL_CALL_RESULT not in attributes:
        # The conventions have results of calls that did not fail; what the model was told of a failure stands here.
        told, _ = conventional.messages(attributes.get(names.OUTPUT_MESSAGES))
        answers = [part for message in told for part in message["parts"] if "response" in part]
        if answers:
            attributes[names.TOOL_CALL_RESULT] = answers[0]["response"]


# -- what Strands says in its own way --------------------------------------------------------------------------------


def _read_model(span: RawSpan, record: ModelRecord, states: dict[str, Fidelity]) -> ModelRecord:
    fidelity = {**record.fidelity, **values.marks(states)}
    if record.error is not None and fidelity.get("output") is Fidelity.ABSENT:
        del fidelity["output"]
    if not record.request.instructions and not any(one["role"] == "system" for one in record.request.messages):
        fidelity["instructions"] = Fidelity.ABSENT  # releases before 1.30 or so tell them on the agent alone
    if _cancelled(span):
        record = replace(record, status=Status.CANCELLED)
    answer = record.answer
    if answer is not None and answer.usage is not None:
        answer = replace(answer, usage=_with_cache(span.attributes, answer.usage))
    first = values.number(span.attributes, "gen_ai.server.time_to_first_token")
    return replace(
        record,
        # What they call the provider is themselves.
        provider=None,
        answer=answer,
        time_to_first_chunk=first / 1000 if first is not None else None,
        fidelity=fidelity,
    )


def _with_cache(attributes: Attributes, usage: Usage) -> Usage:
    """The usage with cached tokens in the input: left out of it by older releases, as the total shows."""
    total = values.integer(attributes, "gen_ai.usage.total_tokens")
    cached = (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
    known = (usage.input_tokens or 0) + (usage.output_tokens or 0)
    if cached and usage.input_tokens is not None and total == known + cached:
        return replace(usage, input_tokens=usage.input_tokens + cached)
    return usage


def _read_run(span: RawSpan, record: RunRecord, states: dict[str, Fidelity]) -> RunRecord:
    instructions = values.text(span.attributes, "system_prompt")
    asked = record.input
    if instructions and not any(message["role"] == "system" for message in asked):
        asked = ({"role": "system", "parts": [{"type": "text", "content": instructions}]}, *asked)
    output = tuple(_without_line_end(message) for message in record.output)
    reasons = {message.get("finish_reason") for message in output}
    ended = next((status for reason, status in _ENDS.items() if reason in reasons), record.status)
    return replace(
        record,
        input=asked,
        output=output,
        status=Status.CANCELLED if _cancelled(span) else ended if record.error is None else record.status,
        fidelity={**record.fidelity, **values.marks(states)},
    )


def _without_line_end(message: Message) -> Message:
    """The message without the line end that Strands puts after each text of an agent's answer."""
    parts = [
        {**part, "content": part["content"].removesuffix("\n")} if isinstance(part.get("content"), str) else part
        for part in message["parts"]
    ]
    return {**message, "parts": parts}


def _read_tool(span: RawSpan, record: ToolRecord) -> ToolRecord:
    schema, _ = values.decode(span.attributes.get("gen_ai.tool.json_schema"))
    result = bedrock.read_result(record.result)
    error = record.error
    if error is not None and error.type == "error":
        error = replace(error, type="tool_error")
    if error is None and values.text(span.attributes, "gen_ai.tool.status", "tool.status") == "error":
        # Of old releases, whose span does not fail with the tool.
        error = Error(ErrorCategory.TOOL, "tool_error", result if isinstance(result, str) else None)
    target = record.arguments.get("agent_name") if isinstance(record.arguments, dict) else None
    handoff = record.name == _HANDOFF and isinstance(target, str)
    return replace(
        record,
        result=result,
        parameters=schema if isinstance(schema, dict) else None,
        error=error,
        status=Status.CANCELLED if _cancelled(span) else values.status_of(error),
        kind=ToolKind.HANDOFF if handoff else record.kind,
        target=target if handoff else record.target,
    )


def _cancelled(span: RawSpan) -> bool:
    return "strands.cancellation.type" in span.attributes
