"""What Logfire writes of the OpenAI Agents SDK: its spans as they are, each with its data under the SDK's names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from spanreel import conventions as names
from spanreel.model import Agent, Answer, Error, ErrorCategory, Fidelity, Json, Message, Operation, Request, ToolKind
from spanreel.protocols import openai_responses
from spanreel.records import ModelRecord, Record, RunRecord, ToolRecord
from spanreel_collector.dialects import genai_events, values
from spanreel_collector.dialects.content import bodies, messages, tokens
from spanreel_collector.span import Attributes, RawSpan

SCOPE = "logfire.openai_agents"

_TRACE, _AGENT = "OpenAI Agents trace", "Agent run"
_FUNCTION, _HANDOFF = "Function", "Handoff"
_CALLS = ("Chat completion", "Responses API")
_SDK_TYPE = "sdk_span_type"
_RUN = "logfire.run"
"""What `mark_runs` adds: that a trace of the SDK is one run."""


def read(span: RawSpan) -> Record | None:
    """What the span says; None where it only groups others, as guardrails' and custom ones do."""
    kind = span.name.partition(":")[0].partition(" with ")[0]
    if kind in _CALLS:
        return _read_call(span)
    if kind == _FUNCTION:
        return _read_function(span)
    if kind == _HANDOFF:
        return _read_handoff(span)
    error = _failure(span, ErrorCategory.OTHER)
    absent = dict.fromkeys(("input", "output"), Fidelity.ABSENT)
    if kind == _AGENT:
        offered = values.texts(span.attributes, "tools")
        tools = tuple({"type": "function", "name": name} for name in offered)
        agent = Agent(values.text(span.attributes, "name"))
        return RunRecord(agent=agent, tools=tools, error=error, status=values.status_of(error), fidelity=absent)
    if span.attributes.get(_SDK_TYPE) == "task" or span.attributes.get(_RUN) is True:
        return RunRecord(error=error, status=values.status_of(error), fidelity=absent)
    return None


def mark_runs(spans: Sequence[RawSpan]) -> list[RawSpan]:
    """The spans, traces of the SDK marked as runs where no task inside tells one run from the next."""
    ours = [span for span in spans if span.origin.scope == SCOPE]
    if any(span.attributes.get(_SDK_TYPE) == "task" for span in ours):
        return list(spans)
    return [
        replace(span, attributes={**span.attributes, _RUN: True})
        if span.origin.scope == SCOPE and span.name.startswith(_TRACE)
        else span
        for span in spans
    ]


def _failure(span: RawSpan, category: ErrorCategory) -> Error | None:
    """How the span failed, by what the SDK says of it."""
    told = values.members(span.attributes.get("error"))
    failed = values.failure(span, category)
    if not told:
        return failed
    data = values.members(told.get("data"))
    message = values.text(data, "error") or values.text(told, "message")
    unnamed = "tool_error" if category is ErrorCategory.TOOL else "error"
    kind = failed.type if failed is not None and failed.type != "error" else unnamed
    return Error(category, kind, message)


# -- model calls -----------------------------------------------------------------------------------------------------


def _read_call(span: RawSpan) -> ModelRecord:
    attributes = span.attributes
    response = values.decoded(attributes, "response")
    if isinstance(response, dict):
        request, answer = _of_response(attributes, response)
    elif "events" in attributes:
        request, answer = of_events(attributes)
    else:
        request, answer = _of_generation(attributes)
    usage = answer.usage or tokens.read(values.decoded(attributes, "usage"))
    error = _failure(span, ErrorCategory.MODEL)
    model = values.text(attributes, names.RESPONSE_MODEL) if "response" in attributes else None
    answer = replace(answer, usage=usage, model=answer.model or model)
    known = {"input": bool(request.messages or request.instructions), "output": bool(answer.messages)}
    if error is not None:
        del known["output"]
    settings = bodies.settings(values.members(attributes.get("model_config") or attributes.get("model_settings")))
    return ModelRecord(
        request=replace(
            request,
            model=values.text(attributes, names.REQUEST_MODEL) or request.model,
            settings={**request.settings, **{key: value for key, value in settings.items() if value is not None}},
        ),
        answer=answer if answer != Answer() else None,
        provider=values.text(attributes, names.PROVIDER, "gen_ai.system"),
        error=error,
        status=values.status_of(error),
        fidelity={field: Fidelity.ABSENT for field, found in known.items() if not found},
    )


def _of_generation(attributes: Attributes) -> tuple[Request, Answer]:
    """A chat completion: what was sent and what came, as lists of messages."""
    asked = messages.read_messages(values.decoded(attributes, "input"))
    came = values.decoded(attributes, "output")
    if isinstance(came, list) and len(came) == 1 and _is_response(came[0]):
        # A streamed completion is told as the response that the SDK makes of it, of an id that all of them have.
        answer = openai_responses.read_response(json.dumps(came[0]).encode(), 200)
        return Request(Operation.CHAT, None, asked), replace(answer, response_id=None)
    return Request(Operation.CHAT, None, asked), Answer(messages=messages.read_messages(came))


def _is_response(value: Json) -> bool:
    return isinstance(value, dict) and value.get("object") == "response" and isinstance(value.get("output"), list)


def _of_response(attributes: Attributes, response: dict[str, Any]) -> tuple[Request, Answer]:
    """A call of the responses API: the response as it came, which repeats the request but for its input."""
    given = values.decoded(attributes, "raw_input")
    body = {**{key: value for key, value in response.items() if key in _REPEATED}, "input": given or []}
    try:
        answer = openai_responses.read_response(json.dumps(response).encode(), 200)
        request = openai_responses.read_request(json.dumps(body).encode(), Operation.CHAT)
    except ValueError:
        return of_events(attributes)
    return request, answer


_REPEATED = (
    *("model", "instructions", "tools", "tool_choice", "temperature", "top_p", "max_output_tokens"),
    *("parallel_tool_calls", "previous_response_id", "reasoning", "text"),
)


def of_events(attributes: Attributes) -> tuple[Request, Answer]:
    """A call whose messages are told as old events: the model's last words in a row are its answer."""
    events, _ = values.items_of(attributes.get("events"), parts_depth=2)
    told = [(str(event.get("event.name")), event) for event in events if isinstance(event, dict)]
    said = [*genai_events.read_records(told)[0]]
    start = len(said)
    while start and said[start - 1]["role"] == "assistant":
        start -= 1
    parts = [part for message in said[start:] for part in message["parts"]]
    output: tuple[Message, ...] = ({"role": "assistant", "parts": parts},) if parts else ()
    return Request(Operation.CHAT, None, tuple(said[:start])), Answer(messages=output)


# -- tools -----------------------------------------------------------------------------------------------------------


def _read_function(span: RawSpan) -> ToolRecord:
    attributes = span.attributes
    error = _failure(span, ErrorCategory.TOOL)
    kind = ToolKind.MCP if values.members(attributes.get("mcp_data")) else ToolKind.FUNCTION
    fidelity = {field: Fidelity.ABSENT for field, key in _FIELDS.items() if attributes.get(key) is None}
    return ToolRecord(
        name=values.text(attributes, "name") or "",
        arguments=values.arguments(attributes.get("input")),
        result=_result(attributes.get("output")),
        kind=kind,
        error=error,
        status=values.status_of(error),
        fidelity=fidelity,
    )


_FIELDS = {"arguments": "input", "result": "output"}


def _result(value: Json) -> Json:
    """A result as the tool gave it: objects stand as JSON."""
    return values.decode(value)[0]


def _read_handoff(span: RawSpan) -> ToolRecord:
    target = values.text(span.attributes, "to_agent")
    error = _failure(span, ErrorCategory.TOOL)
    return ToolRecord(
        # As the SDK names the tool that hands over.
        name=f"transfer_to_{(target or 'agent').lower().replace(' ', '_')}",
        kind=ToolKind.HANDOFF,
        target=target,
        error=error,
        status=values.status_of(error),
        fidelity=dict.fromkeys(("arguments", "result"), Fidelity.ABSENT),
    )
