"""pydantic-ai's own spans, of all formats: 0 and 1 with old events in an attribute or logs, 2 to 6 with messages.

The format is not the package's version; each span is read by what it carries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from spanreel import conventions as names
from spanreel.model import Error, ErrorCategory, Fidelity, Json, Message, Status
from spanreel.records import ModelRecord, Record, RunRecord, ToolRecord
from spanreel_collector.dialects import genai_events, genai_spans, values
from spanreel_collector.dialects.content import conventional, losses
from spanreel_collector.span import Attributes, RawEvent, RawSpan

NAME = "pydantic-ai"

_SCOPE = "pydantic-ai"
_PARAMETERS = "model_request_parameters"
_NEW_FROM = "pydantic_ai.new_message_index"
_DEFERRAL = "pydantic_ai.tool.deferral.name"
_OPERATIONS = {
    "agent run": names.INVOKE_AGENT,
    "running tool": names.EXECUTE_TOOL,
    "running output function": names.EXECUTE_TOOL,
}
"""The operations that the spans of formats 0 to 2 do not all name, by the span's name."""
_RENAMED = {
    names.AGENT_NAME: ("agent_name",),
    names.TOOL_CALL_ARGUMENTS: ("tool_arguments",),
    names.TOOL_CALL_RESULT: ("tool_response",),
    names.USAGE_CACHE_READ_TOKENS: (
        "gen_ai.usage.details.cached_tokens",
        "gen_ai.usage.details.cache_read_input_tokens",
        "gen_ai.usage.details.cached_content_tokens",
    ),
    names.USAGE_CACHE_WRITE_TOKENS: ("gen_ai.usage.details.cache_creation_input_tokens",),
    names.USAGE_REASONING_TOKENS: ("gen_ai.usage.details.thoughts_tokens",),
}
_MEDIA = {
    "image-url": ("uri", "image"),
    "audio-url": ("uri", "audio"),
    "video-url": ("uri", "video"),
    "document-url": ("uri", "document"),
    "binary": ("blob", None),
}
"""What formats 2 and 3 call parts that are no text."""
_DEFERRALS = {"ApprovalRequired": ErrorCategory.APPROVAL_REQUIRED, "CallDeferred": ErrorCategory.OTHER}
_CATEGORIES = {"UsageLimitExceeded": ErrorCategory.MAX_TURNS}


def speaks(span: RawSpan) -> bool:
    """Whether pydantic-ai wrote the span."""
    return span.origin.scope == _SCOPE or _PARAMETERS in span.attributes


def read(span: RawSpan) -> Record | None:
    """What the span says; None where it only groups others, as ``running tools`` does."""
    events, state = values.items_of(span.attributes.get("events"), parts_depth=2)
    record = genai_spans.read(_translated(span, events))
    if isinstance(record, RunRecord):
        return _read_run(span, record)
    if isinstance(record, ToolRecord):
        return _with_deferral(span, record)
    if isinstance(record, ModelRecord) and state is Fidelity.TRUNCATED:
        # The model's choice stands last: where it is left, what comes before it is whole.
        told = any(isinstance(event, dict) and event.get("event.name") == "gen_ai.choice" for event in events)
        lost = {"output": state} if told else {"input": state, "output": state}
        return replace(record, fidelity={**record.fidelity, **lost}, raw_request=values.text(span.attributes, "events"))
    return record


# -- in the words of the conventions ---------------------------------------------------------------------------------


def _translated(span: RawSpan, events: list[Any]) -> RawSpan:
    """The span with the names that the conventions have today, and its events as events."""
    attributes = dict(span.attributes)
    if span.name in _OPERATIONS:
        attributes.setdefault(names.OPERATION, _OPERATIONS[span.name])
    for name, others in _RENAMED.items():
        for other in others:
            if attributes.get(name) is None and attributes.get(other) is not None:
                attributes[name] = attributes[other]
    if attributes.get(names.TOOL_DEFINITIONS) is None and (tools := _offered(span.attributes)):
        attributes[names.TOOL_DEFINITIONS] = tools
    for name in (names.INPUT_MESSAGES, names.OUTPUT_MESSAGES):
        found, state = values.items_of(attributes.get(name), parts_depth=4)
        if state is Fidelity.WHOLE and found:
            attributes[name] = [message for item in found for message in _in_order(item)]
    told = tuple(RawEvent(str(event.get("event.name")), span.end, event) for event in events if isinstance(event, dict))
    return replace(span, attributes=attributes, events=(*span.events, *told))


def _offered(attributes: Attributes) -> list[Json]:
    """The tools that the model was offered, those that end the run by their call included."""
    parameters = values.members(attributes.get(_PARAMETERS))
    kinds = (parameters.get("function_tools"), parameters.get("output_tools"))
    tools = [tool for kind in kinds if isinstance(kind, list) for tool in kind if isinstance(tool, dict)]
    return [
        {
            "type": "function",
            **{key: tool.get(key) for key in ("name", "description", "parameters_json_schema")},
        }
        for tool in tools
    ]


def _in_order(item: Json) -> list[Json]:
    """A message, its tool answers apart from what the user said with them; parts under the conventions' names."""
    if not isinstance(item, dict) or not isinstance(item.get("parts"), list):
        return [item]
    parts = [_part(part) for part in item["parts"]]
    answers = [part for part in parts if isinstance(part, dict) and part.get("type") == "tool_call_response"]
    if item.get("role") != "user" or not answers or len(answers) == len(parts):
        return [{**item, "parts": parts}]
    rest = [part for part in parts if part not in answers]
    return [{**item, "role": "tool", "parts": answers}, {**item, "parts": rest}]


def _part(part: Json) -> Json:
    if not isinstance(part, dict):
        return part
    kind = part.get("type")
    if kind in ("tool_call", "tool_call_response") and part.get("builtin") is True:
        return _server_part(part)
    if kind not in _MEDIA:
        return part
    type_, modality = _MEDIA[kind]
    mime_type = part.get("media_type")
    read: dict[str, Json] = {"type": type_, "modality": modality or str(mime_type).partition("/")[0]}
    if mime_type is not None:
        read["mime_type"] = mime_type
    told = {"uri": part.get("url")} if type_ == "uri" else {"content": part.get("content", part.get("binary_content"))}
    return {**read, **{key: value for key, value in told.items() if value is not None}}


def _server_part(part: dict[str, Json]) -> dict[str, Json]:
    """A call that the provider ran itself, or its answer."""
    if part.get("type") == "tool_call":
        asked = values.arguments(part.get("arguments"))
        read = {"type": "server_tool_call", "id": part.get("id"), "name": part.get("name")}
        return {**read, "server_tool_call": {"type": part.get("name"), "input": asked}}
    answer = {"type": "server_tool_call_response", "id": part.get("id")}
    return {**answer, "server_tool_call_response": part["result"]} if "result" in part else answer


# -- runs and tools --------------------------------------------------------------------------------------------------


def _read_run(span: RawSpan, record: RunRecord) -> RunRecord:
    """The run with its part of the conversation, which stands whole on its span."""
    told, state = _conversation(span.attributes)
    start = _new_from(span.attributes, told)
    asked_state = state
    if start is None:
        asked, asked_state = _last_asked(told), losses.graver(state, Fidelity.RECONSTRUCTED)
    else:
        asked = _until_answered(told[start:])
    instructed = tuple(message for message in record.input if message["role"] == "system")
    output = _final(span.attributes, told)
    fidelity = {
        "input": asked_state if asked else Fidelity.ABSENT,
        "output": state if output else Fidelity.ABSENT,
    }
    error = _categorised(record.error)
    return replace(
        record,
        input=(*instructed, *asked) if asked else (),
        output=output,
        error=error,
        status=Status.INTERRUPTED if _is_deferred(span.attributes) and error is None else record.status,
        fidelity={key: one for key, one in fidelity.items() if one is not Fidelity.WHOLE},
    )


def _conversation(attributes: Attributes) -> tuple[tuple[Message, ...], Fidelity]:
    """All messages of the run, and of those that it goes on from."""
    items, state = values.items_of(attributes.get("pydantic_ai.all_messages"), parts_depth=4)
    if items:
        ordered = [message for item in items for message in _in_order(item)]
        told, found = conventional.messages(ordered)
        return told, found if state is Fidelity.WHOLE else state
    events, state = values.items_of(attributes.get("all_messages_events"), parts_depth=2)
    records = [(str(event.get("event.name")), event) for event in events if isinstance(event, dict)]
    told, found = conventional.messages([*genai_events.read_records(records)[0]])
    return told, found if state is Fidelity.WHOLE else state


def _new_from(attributes: Attributes, told: tuple[Message, ...]) -> int | None:
    """Where the run's own messages begin; None where nothing tells, as in formats 0 and 1.

    The index counts requests and responses, of which a request is several messages here.
    """
    if not isinstance(attributes.get("pydantic_ai.all_messages"), str | list):
        return None
    left = values.integer(attributes, _NEW_FROM) or 0
    before = None
    for number, message in enumerate(told):
        side = message["role"] == "assistant"
        if side or side is not before:
            left -= 1
        if left < 0:
            return number
        before = side
    return None


def _last_asked(told: tuple[Message, ...]) -> tuple[Message, ...]:
    """What was asked last, where nothing tells which messages are the run's own: since the answer before the last."""
    found: list[Message] = []
    for number, message in enumerate(told):
        asks = any(part["type"] == "tool_call" for part in message["parts"])
        if message["role"] == "assistant" and not asks and number < len(told) - 1:
            found = []
        elif message["role"] != "system":
            found.append(message)
    return _until_answered(found)


def _until_answered(told: Sequence[Message]) -> tuple[Message, ...]:
    rounds = [number for number, message in enumerate(told) if message["role"] == "assistant"]
    return tuple(told[: rounds[0]] if rounds else told)


def _final(attributes: Attributes, told: tuple[Message, ...]) -> tuple[Message, ...]:
    """The model's last words; of a run that ends by a tool call or with data, its result as text."""
    last = told[-1] if told else None
    result = values.text(attributes, "final_result")
    if last is not None and last["role"] == "assistant":
        types = {part["type"] for part in last["parts"]}
        if "text" in types and "tool_call" not in types:
            return (last,)
    return ({"role": "assistant", "parts": [{"type": "text", "content": result}]},) if result else ()


def _is_deferred(attributes: Attributes) -> bool:
    """Whether the run ended with tool calls that somebody else is to run or to approve."""
    result = values.members(attributes.get("final_result"))
    return {"calls", "approvals"} <= set(result) and any(result[key] for key in ("calls", "approvals"))


def _with_deferral(span: RawSpan, record: ToolRecord) -> ToolRecord:
    """The tool call; one that was put off is no failure, though formats before 5 mark it as one."""
    raised = record.error.type.rsplit(".", 1)[-1] if record.error else ""
    name = values.text(span.attributes, _DEFERRAL) or (raised if raised in _DEFERRALS else None)
    if name is None:
        return replace(record, error=_categorised(record.error))
    category = _DEFERRALS.get(name, ErrorCategory.OTHER)
    error = Error(category, name) if category is ErrorCategory.APPROVAL_REQUIRED else None
    fidelity: Mapping[str, Fidelity] = {**record.fidelity, "result": Fidelity.ABSENT}
    return replace(record, status=Status.INTERRUPTED, error=error, fidelity=fidelity)


def _categorised(error: Error | None) -> Error | None:
    category = _CATEGORIES.get(error.type.rsplit(".", 1)[-1]) if error else None
    return replace(error, category=category) if error and category else error
