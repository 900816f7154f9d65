"""Session documents as Kitaru's session JSONL: a line a session, with what Kitaru reads and, beside it, all the rest.

The rest stands in each node's ``attributes`` under ``spanreel``, so that `sources.kitaru` reads the same session again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from spanreel.model import Json, Message, Status
from spanreel.records import ModelRecord, ToolRecord
from spanreel.session import ErrorInfo, ModelCall, Run, Session, ToolCall
from spanreel_collector.dialects.content import costs
from spanreel_collector.json_text import plain
from spanreel_collector.sources.kitaru import CONTENT, OURS
from spanreel_collector.sources.sessions import ToldSpan, spans_of

_STATUS = {Status.OK: "completed", Status.UNFINISHED: "in_progress"}


def write_line(session: Session) -> str:
    """The session in a line. All beyond ASCII is escaped: Kitaru cuts lines at more characters than LF."""
    return json.dumps(plain(write_record(session)), separators=(",", ":"))


def write_record(session: Session) -> dict[str, Json]:
    """The session's record. Runs of one conversation are turns: none is merged into another."""
    roots = session.roots()
    turns = [_turn(session, run) for run in roots]
    single = len(turns) == 1
    inputs = turns[0]["inputs"] if single else {"schema_version": 1, "turns": turns}
    outputs = turns[-1]["outputs"] if turns else None
    last = roots[-1] if roots else None
    record: dict[str, Json] = {
        "external_id": _external_id(session),
        "name": session.name,
        "status": _status(session.status),
        "inputs": inputs,
        "outputs": outputs,
        "input_text_selector": _selector(inputs, "user") if single else None,
        "output_text_selector": _selector(outputs, "assistant"),
        "error": _error(last.error) if last is not None and last.status is not Status.OK else None,
        "started_at": session.started_at,
        "ended_at": session.ended_at,
        "metadata": {**session.metadata, OURS: {"version": 1, "key": session.key.kind}},
        "nodes": list(_nodes(session)),
    }
    return {name: value for name, value in record.items() if value is not None or name in ("inputs", "outputs")}


def _external_id(session: Session) -> str:
    """What Kitaru knows the session by: the same whenever it is written, and another one of another source."""
    namespace, value = session.source.get("namespace"), session.key.value or session.id
    return value if namespace is None else f"{namespace}:{value}"


def _turn(session: Session, run: Run) -> dict[str, Json]:
    return {
        "source_trace_id": run.trace_id,
        "inputs": _said(session, run.input),
        "outputs": _said(session, run.output),
    }


def _said(session: Session, indexes: Sequence[int]) -> Json:
    return {"messages": [_message(session, index) for index in indexes]} if indexes else None


def _message(session: Session, index: int) -> Message:
    return session.messages[index].model_dump(exclude_none=True, exclude_defaults=True) | {
        "parts": session.messages[index].parts
    }


# -- nodes -----------------------------------------------------------------------------------------------------------


def _nodes(session: Session) -> Iterator[dict[str, Json]]:
    numbers: dict[str, int] = {}
    told = list(spans_of(session))
    for number, one in enumerate(told):
        numbers[one.span.span_id] = number
    for number, one in enumerate(told):
        # Kitaru has tool calls under the model call that asked for them.
        parent = numbers.get(one.around or one.span.parent_id or "")
        yield _common(number, parent, one) | _node(session, one)
    yield from _retold(session, numbers, len(told))


def _common(number: int, parent: int | None, one: ToldSpan) -> dict[str, Json]:
    span = one.span
    attributes = {name: value for name, value in span.attributes.items() if name not in CONTENT}
    kept: dict[str, Json] = {"span_id": span.span_id, "name": span.name, "attributes": attributes}
    kept |= {"start": span.start, "end": span.end}
    if span.parent_id is not None:
        kept["parent_id"] = span.parent_id
    return {
        "index": number,
        **({} if parent is None else {"parent_index": parent}),
        "external_id": f"{span.trace_id}:{span.span_id}",
        "trace_id": span.trace_id,
        "attributes": {OURS: kept},
    }


def _node(session: Session, one: ToldSpan) -> dict[str, Json]:
    if isinstance(one.part, Run):
        return _run_node(session, one.part)
    if isinstance(one.part, ModelCall) and isinstance(one.record, ModelRecord):
        return _model_node(one.part, one.record)
    assert isinstance(one.part, ToolCall)
    assert isinstance(one.record, ToolRecord)
    return _tool_node(one.part)


def _run_node(session: Session, run: Run) -> dict[str, Json]:
    inputs, outputs = _said(session, run.input), _said(session, run.output)
    name = run.agent.name or run.path
    return _present(
        {
            "node_type": "span" if run.parent is None else "subagent_call",
            "subagent_id": None if run.parent is None else name,
            "name": name,
            "input_text_selector": _selector(inputs, "user"),
            "output_text_selector": _selector(outputs, "assistant"),
            **_ends(run),
        },
        inputs=inputs,
        outputs=outputs,
    )


def _model_node(call: ModelCall, record: ModelRecord) -> dict[str, Json]:
    request, answer = record.request, record.answer
    inputs: dict[str, Json] = {"messages": list(request.messages)}
    if request.instructions:
        inputs["instructions"] = list(request.instructions)
    if request.tools:
        inputs["tools"] = list(request.tools)
    outputs: Json = {"messages": list(answer.messages)} if answer is not None and answer.messages else None
    system = "/instructions/0/content" if request.instructions else _selector(inputs, "system")
    usage = answer.usage if answer is not None else None
    tokens = {
        "input_tokens": usage.input_tokens if usage else None,
        "output_tokens": usage.output_tokens if usage else None,
        "cached_input_tokens": usage.cache_read_tokens if usage else None,
        "reasoning_tokens": usage.reasoning_tokens if usage else None,
    }
    cost = call.provider_fields.get(costs.FIELD)
    return _present(
        {
            "node_type": "llm_call",
            "name": f"{call.operation} {call.model or ''}".strip(),
            "requested_model": request.model,
            "model": (answer.model if answer else None) or request.model,
            "model_provider": record.provider,
            "tokens": {name: count for name, count in tokens.items() if count is not None and count >= 0} or None,
            "cost": cost if isinstance(cost, int | float) and not isinstance(cost, bool) else None,
            "model_params": dict(request.settings) or None,
            "system_prompt_selector": system,
            "input_text_selector": _selector(inputs, "user"),
            "output_text_selector": _selector(outputs, "assistant"),
            "reasoning_selectors": list(_reasoning(outputs)) or None,
            **_ends(call),
        },
        inputs=inputs if len(inputs) > 1 or request.messages else None,
        outputs=outputs,
    )


def _tool_node(call: ToolCall) -> dict[str, Json]:
    return _present(
        {"node_type": "tool_call", "name": call.name, "tool_name": call.name, **_ends(call)},
        inputs=call.arguments,
        outputs=call.result,
    )


def _retold(session: Session, numbers: dict[str, int], number: int) -> Iterator[dict[str, Json]]:
    """Calls that left no span, which only the model's answers and later requests tell of."""
    for run in session.runs:
        for call in (call for call in run.tool_calls() if not call.executed):
            asked = call.requested_by.model_call if call.requested_by is not None else run.id
            parent = numbers.get(asked, numbers.get(run.id))
            yield {
                "index": number,
                **({} if parent is None else {"parent_index": parent}),
                "external_id": f"{run.trace_id}:{call.id}",
                "trace_id": run.trace_id,
                "attributes": {OURS: {"told": True}},
                **_tool_node(call),
            }
            number += 1


def _ends(part: Run | ModelCall | ToolCall) -> dict[str, Json]:
    return {
        "status": _status(part.status),
        "error": _error(part.error),
        "started_at": part.started_at,
        "ended_at": part.ended_at,
    }


def _status(status: Status) -> str:
    return _STATUS.get(status, "failed")


def _error(error: ErrorInfo | None) -> str | None:
    """The failure in a line: Kitaru hands this text on where a replay asks for the call."""
    return None if error is None else error.message or error.type or str(error.category)


def _present(node: dict[str, Json], *, inputs: Json, outputs: Json) -> dict[str, Json]:
    return {**{name: value for name, value in node.items() if value is not None}, "inputs": inputs, "outputs": outputs}


# -- pointers into payloads (RFC 6901) -------------------------------------------------------------------------------


def _selector(payload: Json, role: str) -> str | None:
    """The last text that this role says in a payload's messages."""
    found = [pointer for pointer, message, part in _parts(payload) if message == role and part == "text"]
    return found[-1] if found else None


def _reasoning(payload: Json) -> Iterator[str]:
    return (pointer for pointer, _, part in _parts(payload) if part == "reasoning")


def _parts(payload: Json) -> Iterator[tuple[str, Any, Any]]:
    for number, message in enumerate(payload.get("messages", ()) if isinstance(payload, dict) else ()):
        for index, part in enumerate(message.get("parts", ())):
            yield f"/messages/{number}/parts/{index}/content", message.get("role"), part.get("type")
