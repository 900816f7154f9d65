"""Claude Code and the Claude Agent SDK: its spans (``claude_code.*``) and its events, which are logs, or either alone.

An interaction is a run. Input tokens are Anthropic's own count, without the cache.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from spanreel.model import (
    Answer,
    Error,
    ErrorCategory,
    Fidelity,
    Json,
    Message,
    Operation,
    Request,
    Status,
    ToolKind,
    Usage,
)
from spanreel.records import ModelRecord, Record, RunRecord, ToolRecord
from spanreel_collector.dialects import values
from spanreel_collector.dialects.claude_code import content
from spanreel_collector.dialects.claude_code.events import ASKED, EXECUTION, gather, trace_of
from spanreel_collector.dialects.claude_code.names import event_name
from spanreel_collector.dialects.content import costs, losses
from spanreel_collector.span import Attributes, RawLog, RawSpan

__all__ = ["NAME", "gather", "read", "speaks", "trace_of"]

NAME = "claude_code"

_REQUEST_FIELDS = ("speed", "query_source", "effort", "llm_request.context", "system_reminders")
_SUBAGENTS = ("Task", "Agent")
_REJECTED = ("reject", "denied", "deny")


def speaks(span: RawSpan) -> bool:
    """Whether Claude Code wrote the span."""
    return span.origin.scope.startswith("com.anthropic.claude_code") or span.name.startswith("claude_code.")


def read(span: RawSpan) -> Record | None:
    """What the span says; None for waits, hooks and the inside of a tool call."""
    kind = span.attributes.get("span.type")
    if kind == "interaction":
        return _read_run(span)
    if kind == "llm_request":
        return _read_model(span)
    if kind == "tool":
        return _read_tool(span)
    return None


# -- runs ------------------------------------------------------------------------------------------------------------


def _read_run(span: RawSpan) -> RunRecord:
    said = values.text(_log(span, "user_prompt"), "prompt") or values.text(span.attributes, "user_prompt")
    asked, state = content.text_parts(said or content.prompt(span.attributes))
    answered, answer_state = content.text_parts(values.text(_log(span, "assistant_response"), "response"))
    failed = _log(span, "api_error")
    error = values.failure(span, ErrorCategory.OTHER)
    if failed and error is None:
        error = _api_error(failed, None)
    fidelity = {"input": state, "output": answer_state}
    if error and answer_state is Fidelity.ABSENT:
        del fidelity["output"]
    return RunRecord(
        input=({"role": "user", "parts": asked},) if asked else (),
        output=({"role": "assistant", "parts": answered},) if answered and not failed else (),
        status=values.status_of(error),
        error=error,
        fidelity=values.marks(fidelity),
    )


# -- model calls -----------------------------------------------------------------------------------------------------


def _read_model(span: RawSpan) -> ModelRecord:
    attributes = span.attributes
    model = values.text(attributes, "model", "gen_ai.request.model")
    sent, request, state = content.request_body(_log(span, "api_request_body"))
    if request is None:
        messages, state = content.new_context(attributes)
        tools, tools_state = content.tools(span)
        request = Request(
            Operation.CHAT,
            model,
            messages=messages,
            instructions=content.instructions(span),
            tools=tools,
            provider_fields=_present(attributes, *_REQUEST_FIELDS),
        )
    else:
        tools_state = Fidelity.WHOLE
    error = _model_error(span)
    answer, output = _read_answer(span)
    fidelity = {"input": state, "output": output, "tools": tools_state}
    if tools_state is Fidelity.ABSENT:
        del fidelity["tools"]
    if error:
        del fidelity["output"]
    first_chunk = values.number(attributes, "ttft_ms")
    return ModelRecord(
        request=replace(request, model=request.model or model, stream=True),
        answer=None if error else answer,
        provider="anthropic",
        time_to_first_chunk=None if first_chunk is None else first_chunk / 1000,
        error=error,
        status=values.status_of(error),
        raw_request=sent if state is Fidelity.TRUNCATED else None,
        continues=sent is None,
        fidelity=values.marks(fidelity),
    )


def _read_answer(span: RawSpan) -> tuple[Answer, Fidelity]:
    attributes = span.attributes
    usage = _read_usage(attributes)
    whole, body_state = content.response_body(_log(span, "api_response_body"))
    cost = costs.reported(_log(span, "api_request"))
    fields: dict[str, Json] = {} if cost is None else {costs.FIELD: cost}
    if whole is not None:
        merged = replace(whole, usage=whole.usage or usage, streamed=True)
        return replace(merged, provider_fields={**whole.provider_fields, **fields}), body_state
    said = _log(span, "assistant_response")
    texts, state = content.text_parts(values.text(said, "response") or values.text(attributes, "response.model_output"))
    if state is Fidelity.ABSENT and _says_texts(span):
        state = Fidelity.WHOLE  # nothing was said: where texts are told, one without is of tool calls alone
    calls, calls_state = _asked(span)
    message: Message = {"role": "assistant", "parts": [*texts, *calls]}
    reason = values.text(attributes, "stop_reason")
    if reason:
        message["finish_reason"] = reason
    answer = Answer(
        response_id=values.text(attributes, "request_id", "gen_ai.response.id"),
        model=values.text(said, "model"),
        messages=(message,),
        usage=usage,
        streamed=True,
        provider_fields=fields,
    )
    return answer, losses.graver(state, calls_state)


def _asked(span: RawSpan) -> tuple[list[dict[str, Json]], Fidelity]:
    """The tool calls that ran because of this answer: what it asked for is known by them alone."""
    calls: list[dict[str, Json]] = []
    state = Fidelity.WHOLE
    for event in span.events:
        if event.name == ASKED:
            arguments, of_one = content.arguments(event.attributes, values.members(event.attributes.get("log")))
            call: dict[str, Json] = {"type": "tool_call", "id": event.attributes.get("tool_use_id")}
            call["name"] = _tool_name(event.attributes)
            calls.append(call if of_one is Fidelity.ABSENT else {**call, "arguments": arguments})
            state = losses.graver(state, Fidelity.RECONSTRUCTED, of_one)
    return calls, state


def _says_texts(span: RawSpan) -> bool:
    """Whether the answer's text would stand somewhere, had there been one: in an event, or beside the context."""
    return span.attributes.get("says_texts") is True or "new_context" in span.attributes


def _read_usage(attributes: Attributes) -> Usage | None:
    read = values.integer(attributes, "cache_read_tokens")
    written = values.integer(attributes, "cache_creation_tokens")
    given = values.integer(attributes, "input_tokens")
    usage = Usage(
        input_tokens=None if given is None else given + (read or 0) + (written or 0),
        output_tokens=values.integer(attributes, "output_tokens"),
        cache_read_tokens=read,
        cache_write_tokens=written,
    )
    return usage if usage != Usage() else None


def _model_error(span: RawSpan) -> Error | None:
    attributes = span.attributes
    failed = _log(span, "api_error")
    if failed or span.status == 2 or _is_false(attributes.get("success")):
        return _api_error(failed or attributes, span.status_message)
    return None


def _api_error(said: Attributes, message: str | None) -> Error:
    code = values.integer(said, "status_code")
    return Error(ErrorCategory.MODEL, str(code) if code else "api_error", values.text(said, "error") or message)


# -- tool calls ------------------------------------------------------------------------------------------------------


def _read_tool(span: RawSpan) -> ToolRecord:
    attributes = span.attributes
    told, decided = _log(span, "tool_result"), _log(span, "tool_decision")
    arguments, arguments_state = content.arguments(attributes, told or decided)
    result, result_state = content.tool_result(span)
    error = _tool_error(span, told)
    rejected = decided.get("decision") in _REJECTED or attributes.get("decision") in _REJECTED
    if rejected and error is None:
        error = Error(ErrorCategory.POLICY, "rejected", values.text(decided, "source"))
    if error and result_state is Fidelity.ABSENT:
        result_state = Fidelity.WHOLE
    name = _tool_name({**attributes, **told})
    return ToolRecord(
        name=name,
        arguments=arguments,
        result=result,
        call_id=values.text(attributes, "tool_use_id", "gen_ai.tool.call.id"),
        kind=_kind(name, told or decided),
        status=Status.BLOCKED if rejected else values.status_of(error),
        error=error,
        fidelity=values.marks({"arguments": arguments_state, "result": result_state}),
    )


def _tool_name(attributes: Attributes) -> str:
    """The tool's name; of an MCP server's, which is kept back, as it is known inside."""
    name = values.text(attributes, "tool_name") or "tool"
    parameters = values.members(attributes.get("tool_parameters"))
    server, tool = values.text(parameters, "mcp_server_name"), values.text(parameters, "mcp_tool_name")
    return f"mcp__{server}__{tool}" if name == "mcp_tool" and server and tool else name


def _kind(name: str, told: Attributes) -> ToolKind:
    if name in _SUBAGENTS:
        return ToolKind.AGENT
    if name.startswith("mcp__") or name == "mcp_tool" or told.get("mcp_server_scope"):
        return ToolKind.MCP
    return ToolKind.FUNCTION


def _tool_error(span: RawSpan, told: Attributes) -> Error | None:
    inside = next((event.attributes for event in span.events if event.name == EXECUTION), {})
    for said in (told, inside):
        if _is_false(said.get("success")):
            kind = values.text(said, "error_type") or values.text(inside, "error_type") or "error"
            message = values.text(told, "error") or values.text(inside, "error")
            return Error(ErrorCategory.TOOL, kind, message)
    return values.failure(span, ErrorCategory.TOOL)


def _is_false(value: Json) -> bool:
    return value is False or value == "false"


# -- what they share -------------------------------------------------------------------------------------------------


def _log(span: RawSpan, name: str) -> dict[str, Any]:
    """The attributes of the last event of this name that was joined to the span; empty where there is none."""
    found: list[RawLog] = [log for log in span.logs if event_name(log) == name]
    return dict(found[-1].attributes) if found else {}


def _present(attributes: Attributes, *keys: str) -> dict[str, Json]:
    return {key: attributes[key] for key in keys if attributes.get(key) is not None}
