"""Google ADK's own spans: of 1.x, with whole requests in Gemini's form, and of 2.x, by the GenAI conventions."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from spanreel import conventions as names
from spanreel.model import Agent, Answer, Error, ErrorCategory, Fidelity, Json, Message, Request, Status, ToolKind
from spanreel.records import ModelRecord, Record, RunRecord, ToolRecord
from spanreel_collector.dialects import genai_spans, values
from spanreel_collector.dialects.content import bodies, gemini, losses
from spanreel_collector.span import Attributes, RawLog, RawSpan

NAME = "google-adk"

_SCOPE = "gcp.vertex.agent"
_REQUEST, _RESPONSE = "gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response"
_ARGUMENTS, _RESULT = "gcp.vertex.agent.tool_call_args", "gcp.vertex.agent.tool_response"
_OPERATIONS = {"invocation": "invoke_workflow", "call_llm": "generate_content"}
"""The operations of spans of 1.x that do not name theirs."""
_AGENT = re.compile(r"agent_run \[(.*)\]", re.DOTALL)
_TOOL = "execute_tool "
_UNKNOWN = "<not specified>"
_ELIDED = "<elided>"
_TRANSFER = "transfer_to_agent"
_KINDS = {"AgentTool": ToolKind.AGENT, "McpTool": ToolKind.MCP, "MCPTool": ToolKind.MCP}


def speaks(span: RawSpan) -> bool:
    """Whether ADK wrote the span."""
    return span.origin.scope == _SCOPE


def read(span: RawSpan) -> Record | None:
    """What the span says; None where it only groups others, as the span does that merges parallel tools' answers."""
    if span.attributes.get(names.TOOL_NAME) == genai_spans.MERGED_TOOLS or span.name.startswith("execute_tool (merged"):
        return None
    record = genai_spans.read(_translated(span))
    if isinstance(record, ModelRecord):
        return _read_model(span, record)
    if isinstance(record, ToolRecord):
        return _read_tool(span, record)
    agent = _AGENT.fullmatch(span.name)
    if isinstance(record, RunRecord) and agent is not None:
        return replace(record, agent=Agent(agent.group(1)))
    return record


def _translated(span: RawSpan) -> RawSpan:
    """The span with its operation, without the ids and contents that stand for none."""
    attributes = {key: value for key, value in span.attributes.items() if value != _UNKNOWN}
    operation = names.INVOKE_AGENT if _AGENT.fullmatch(span.name) else _OPERATIONS.get(span.name)
    if span.name.startswith(_TOOL):
        operation = names.EXECUTE_TOOL  # of 1.x, a tool that raised has nothing on its span
    if operation is not None:
        attributes.setdefault(names.OPERATION, operation)
    for name in (names.INPUT_MESSAGES, names.OUTPUT_MESSAGES):
        found, state = values.items_of(attributes.get(name), parts_depth=4)
        if state is Fidelity.WHOLE and found:
            attributes[name] = _settled(found if name == names.INPUT_MESSAGES else _joined(found))
    return replace(span, attributes=attributes, logs=tuple(_captured(log) for log in span.logs))


def _captured(log: RawLog) -> RawLog:
    """The log record as `_translated` has the span, without the word that stands for content that was not captured."""
    attributes = dict(log.attributes)
    for name in (names.INPUT_MESSAGES, names.OUTPUT_MESSAGES):
        if isinstance(attributes.get(name), list):
            attributes[name] = _settled(attributes[name] if name == names.INPUT_MESSAGES else _joined(attributes[name]))
    body = log.body
    if isinstance(body, dict) and body.get("content") == _ELIDED:
        body = {key: value for key, value in body.items() if key != "content"}
    return replace(log, body=body, attributes=attributes)


def _joined(messages: list[Any]) -> list[Any]:
    """The one message that ADK asks for: several are the pieces of a streamed answer, and perhaps the whole of it."""
    if len(messages) < 2 or not all(_has_parts(message) for message in messages):
        return messages
    *pieces, last = ([*message["parts"]] for message in messages)
    whole = _run_together([part for piece in pieces for part in piece])
    parts = last if _run_together(last) == whole else _run_together([*whole, *last])
    reasons = [message["finish_reason"] for message in messages if message.get("finish_reason")]
    joined = {**messages[-1], "parts": parts}
    return [{**joined, "finish_reason": reasons[-1]} if reasons else joined]


def _run_together(parts: list[Any]) -> list[Any]:
    """Parts, with texts that follow each other as one."""
    found: list[Any] = []
    for part in parts:
        before = found[-1] if found else None
        if before is not None and _is_text(part) and _is_text(before) and part["type"] == before["type"]:
            found[-1] = {**before, "content": before["content"] + part["content"]}
        else:
            found.append(part)
    return found


def _is_text(part: Json) -> bool:
    return isinstance(part, dict) and part.get("type") in ("text", "reasoning") and isinstance(part.get("content"), str)


def _settled(messages: list[Any]) -> list[Any]:
    """Messages of the conventions' form, without ids that were made up, tools' results out of their wrapping.

    An id that is made of the tool's name and the part's place comes again in the next round, for another call.
    """
    made_up = {
        part["id"]
        for _, part, number in _tool_parts(messages)
        if part["type"] == "tool_call" and part.get("id") == f"{part.get('name') or ''}_{number}".lstrip("_")
    }
    settled = [{**message, "parts": [*message["parts"]]} if _has_parts(message) else message for message in messages]
    for message, part, number in _tool_parts(settled):
        read = {key: value for key, value in part.items() if key != "id" or not _is_in(value, made_up)}
        if "response" in read:
            read["response"] = gemini.read_result(read["response"])
        message["parts"][number] = read
    return settled


def _is_in(value: Json, texts: Collection[str]) -> bool:
    """Whether it is one of these; what is no text is none of them."""
    return isinstance(value, str) and value in texts


def _tool_parts(messages: list[Any]) -> list[tuple[dict[str, Any], dict[str, Any], int]]:
    """The parts that are tool calls and their answers, each with its message and its place in it."""
    return [
        (message, part, number)
        for message in messages
        if _has_parts(message)
        for number, part in enumerate(message["parts"])
        if isinstance(part, dict) and part.get("type") in ("tool_call", "tool_call_response")
    ]


def _has_parts(message: Json) -> bool:
    return isinstance(message, dict) and isinstance(message.get("parts"), list)


# -- model calls -----------------------------------------------------------------------------------------------------


def _read_model(span: RawSpan, record: ModelRecord) -> ModelRecord:
    """The model call; of 1.x with the request and the response that its span holds whole."""
    provider = record.provider if record.provider != _SCOPE else None
    record = replace(record, provider=provider)
    if _REQUEST not in span.attributes:
        return record
    fidelity = dict(record.fidelity)
    asked, fidelity["input"] = _read_request(span.attributes, record.request)
    answer, error, fidelity["output"] = _read_response(span.attributes, record.answer)
    if fidelity["input"] is Fidelity.ABSENT and record.request.messages:
        asked, fidelity["input"] = record.request, record.fidelity.get("input", Fidelity.WHOLE)
    if fidelity["output"] is Fidelity.ABSENT and record.answer is not None and record.answer.messages:
        fidelity["output"] = record.fidelity.get("output", Fidelity.WHOLE)
    error = record.error or error
    if error is not None and fidelity["output"] is Fidelity.ABSENT:
        del fidelity["output"]
    return replace(
        record,
        request=asked,
        answer=answer,
        error=error,
        status=values.status_of(error),
        raw_request=_unread(span.attributes, _REQUEST, fidelity["input"]),
        raw_response=_unread(span.attributes, _RESPONSE, fidelity.get("output")),
        fidelity=values.marks(fidelity),
    )


def _read_request(attributes: Attributes, known: Request) -> tuple[Request, Fidelity]:
    body = values.members(attributes[_REQUEST])
    contents = body.get("contents")
    given = [item for item in contents if gemini.is_content(item)] if isinstance(contents, list) else []
    state = values.decode(attributes[_REQUEST])[1]
    config = body["config"] if isinstance(body.get("config"), dict) else {}
    if not given:
        return known, Fidelity.ABSENT if state is Fidelity.WHOLE else state
    if any(not item["parts"] for item in given):
        state = Fidelity.TRUNCATED  # images and other data are left out, with nothing in their place
    messages = tuple(gemini.read_message(item) for item in given)
    if losses.media_in(known.messages) > losses.media_in(messages):
        messages = known.messages  # which say at least that there was an image
        state = Fidelity.TRUNCATED
    request = replace(
        known,
        model=known.model or values.text(body, "model"),
        messages=messages,
        instructions=tuple(gemini.read_instructions(config.get("system_instruction"))),
        tools=gemini.read_tools(config.get("tools")),
        settings={**known.settings, **bodies.settings(config)},
    )
    return request, state


def _read_response(attributes: Attributes, known: Answer | None) -> tuple[Answer | None, Error | None, Fidelity]:
    """The answer, and how it failed where the response says so; the counts are those of the response itself."""
    body = values.members(attributes.get(_RESPONSE))
    state = values.decode(attributes.get(_RESPONSE))[1]
    code = body.get("error_code")
    error = Error(ErrorCategory.MODEL, str(code), values.text(body, "error_message")) if code else None
    if not body:
        return known, None, Fidelity.ABSENT if state is Fidelity.WHOLE else state
    messages: tuple[Message, ...] = ()
    if gemini.is_content(body.get("content")):
        messages = ({**gemini.read_message(body["content"]), "role": "assistant"},)
        reasons = known.finish_reasons if known else []
        reason = next(iter(reasons), None) or values.text(body, "finish_reason")
        messages = ({**messages[0], "finish_reason": reason},) if reason else messages
    answer = replace(
        known or Answer(),
        messages=messages or (known.messages if known else ()),
        model=values.text(body, "model_version") or (known.model if known else None),
        usage=gemini.read_usage(body.get("usage_metadata")) or (known.usage if known else None),
        complete=body.get("interrupted") is not True,
    )
    return answer, error, state if messages else Fidelity.ABSENT


def _unread(attributes: Attributes, key: str, state: Fidelity | None) -> str | None:
    value = attributes.get(key)
    return value if isinstance(value, str) and state is Fidelity.TRUNCATED else None


# -- tool calls ------------------------------------------------------------------------------------------------------


def _read_tool(span: RawSpan, record: ToolRecord) -> ToolRecord:
    attributes = span.attributes
    fidelity = dict(record.fidelity)
    arguments, result = record.arguments, record.result
    # Both are empty where content is off: a result is never.
    if _ARGUMENTS in attributes and not (attributes[_ARGUMENTS] == "{}" and attributes.get(_RESULT) == "{}"):
        arguments, fidelity["arguments"] = values.decode(attributes[_ARGUMENTS])
        result, fidelity["result"] = values.decode(attributes.get(_RESULT))
        if _RESULT not in attributes or result == {"result": _UNKNOWN}:
            result, fidelity["result"] = None, Fidelity.ABSENT
    kind = _KINDS.get(str(attributes.get(names.TOOL_TYPE)), record.kind)
    target = arguments.get("agent_name") if isinstance(arguments, dict) else None
    if record.name == _TRANSFER and isinstance(target, str):
        kind = ToolKind.HANDOFF
    if record.error is not None:
        fidelity = {field: state for field, state in fidelity.items() if not _unsaid(field, state)}
    return replace(
        record,
        arguments=arguments,
        result=gemini.read_result(result),
        kind=kind,
        target=target if kind is ToolKind.HANDOFF else record.target,
        status=record.status if record.error is None else Status.ERROR,
        fidelity=values.marks(fidelity),
    )


def _unsaid(field: str, state: Fidelity) -> bool:
    return field == "result" and state is Fidelity.ABSENT
