"""One run of the document from its draft: the run's own facts, its turns, and the calls in them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from spanreel.model import Fidelity, Json, Message, ModelRecord, Status, ToolKind, ToolRecord
from spanreel.session import (
    AgentInfo,
    Attempt,
    Entrypoint,
    ErrorInfo,
    ModelCall,
    Parent,
    RequestedBy,
    Run,
    ToolCall,
    Turn,
)
from spanreel_collector import json_text, requests
from spanreel_collector.drafts import Draft
from spanreel_collector.requests import Asked
from spanreel_collector.tables import Tables, agent_info, error_info, timestamp, usage_info
from spanreel_collector.trace import Placed


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run stands in its session: its id (unique there) and path, and the run and tool call it was made in."""

    id: str
    path: str
    parent: Parent | None = None


@dataclass(slots=True)
class _Turns:
    """A run's turns while they are filled, by index, and the number of the model call that opened each."""

    turns: dict[int, Turn] = field(default_factory=dict)
    of_model: dict[str, int] = field(default_factory=dict)

    def get(self, index: int) -> Turn:
        return self.turns.setdefault(index, Turn(index=index))


def write_run(draft: Draft, place: Place, tables: Tables, runs_of_tools: dict[str, str]) -> Run:
    """The run of the document. ``runs_of_tools`` gives for a tool call's span the run that was made in it."""
    models = sorted(
        (placed for placed in draft.models if _opens_turn(placed)), key=lambda placed: _cause(draft, placed)
    )
    sides = [placed for placed in draft.models if not _opens_turn(placed)]
    tools = sorted(draft.tools, key=lambda placed: _cause(draft, placed))
    status = _status(draft, models)
    turns = _Turns()
    for placed in models:
        index = _free_index(draft, placed, turns)
        turns.of_model[placed.id] = index
        turns.get(index).model_call = write_model_call(placed, tables)
    loose = _write_tool_calls(draft, models, tools, turns, runs_of_tools, status)
    ends = [placed.span.end for placed in draft.own()]
    record = draft.record
    run = Run(
        id=place.id,
        trace_id=draft.trace_id,
        path=place.path,
        parent=place.parent,
        agent=agent_info(record.agent) if record else AgentInfo(),
        implicit=record is None,
        entrypoint=_entrypoint(draft),
        result=json_text.plain(record.result) if record else None,
        status=status,
        error=error_info(record.error) if record else _last_error(turns),
        started_at=timestamp(draft.started[0]),
        ended_at=None if status is Status.UNFINISHED else timestamp(draft.run.span.end if draft.run else max(ends)),
        turns=[turns.turns[index] for index in sorted(turns.turns)],
        side_calls=[write_model_call(placed, tables) for placed in sides],
        loose_tool_calls=loose,
        order=_order(draft, models, tools),
    )
    _write_ends(run, draft, models, tables)
    return run


def _opens_turn(placed: Placed) -> bool:
    return isinstance(placed.record, ModelRecord) and placed.record.request.operation.opens_turn


def _turn_index(draft: Draft, placed: Placed) -> int | None:
    index = getattr(placed.record, "turn_index", None)
    return index if isinstance(index, int) else draft.turns.get(placed.id)


def _cause(draft: Draft, placed: Placed) -> tuple[int, int]:
    """By turn and place in the answer where those are known; the sort is stable, so else by start or arrival."""
    index = _turn_index(draft, placed)
    position = getattr(placed.record, "position", None)
    return (index if index is not None else -1), (position if isinstance(position, int) else -1)


def _order(draft: Draft, models: list[Placed], tools: list[Placed]) -> str:
    calls = [*models, *tools]
    if calls and all(_turn_index(draft, placed) is not None for placed in calls):
        return "cause"
    return "start" if all(placed.span.start for placed in calls) else "arrival"


def _free_index(draft: Draft, placed: Placed, turns: _Turns) -> int:
    """The turn's number: the recorded one, or the next; two model calls are never in one turn."""
    index = _turn_index(draft, placed)
    if index is not None and index not in turns.turns:
        return index
    return max(turns.turns, default=-1) + 1


def _status(draft: Draft, models: list[Placed]) -> Status:
    record = draft.record
    if record is not None and draft.run is not None:
        unfinished = record.started_only or (draft.run.span.end == 0 and record.status is Status.OK)
        return Status.UNFINISHED if unfinished else record.status
    last = models[-1].record if models else None
    if models and models[-1].span.end == 0:
        return Status.UNFINISHED
    return last.status if isinstance(last, ModelRecord) else Status.OK


def _last_error(turns: _Turns) -> ErrorInfo | None:
    call = turns.turns[max(turns.turns)].model_call if turns.turns else None
    return call.error if call is not None else None


def _entrypoint(draft: Draft) -> Entrypoint | None:
    record = draft.record
    if record is None or (record.argv is None and record.callable is None and record.arguments is None):
        return None
    arguments = dict(record.arguments) if record.arguments is not None else None
    argv = list(record.argv) if record.argv is not None else None
    return Entrypoint(argv=argv, callable=record.callable, arguments=json_text.plain(arguments))


# -- model calls ---------------------------------------------------------------------------------------------------------


def write_model_call(placed: Placed, tables: Tables) -> ModelCall:
    """The model call of the document; the last attempt gives its answer."""
    record = placed.record
    assert isinstance(record, ModelRecord)
    request, answer = record.request, record.answer
    absent = record.fidelity.get("output") is Fidelity.ABSENT
    output = [message for message in (answer.messages if answer else ()) if not absent or message.get("parts")]
    error = record.error or (answer.error if answer else None)
    unfinished = placed.span.end == 0 and error is None
    status = (
        Status.UNFINISHED if unfinished else Status.ERROR if error and record.status is Status.OK else record.status
    )
    return ModelCall(
        id=record.call_id or placed.id,
        operation=str(request.operation),
        provider=record.provider,
        protocol=record.protocol,
        model=request.model,
        response_model=answer.model if answer else None,
        response_id=answer.response_id if answer else None,
        settings=json_text.plain(dict(request.settings)),
        input=tables.add_input(record),
        output=tables.add_messages(output),
        tools=tables.add_tools(request.tools),
        finish_reasons=answer.finish_reasons if answer else [],
        usage=usage_info(answer.usage if answer else None),
        streamed=request.stream or bool(answer and answer.streamed),
        complete=answer.complete if answer else True,
        chunks=[list(chunk) for chunk in answer.chunks] if answer else [],
        attempts=[_attempt(one) for one in (*placed.earlier, placed)] if record.call_id else [],
        request_fields=json_text.plain(dict(request.provider_fields)),
        provider_fields=json_text.plain(dict(answer.provider_fields)) if answer else {},
        raw_request=record.raw_request,
        raw_response=record.raw_response,
        headers=dict(record.headers),
        status=status,
        http_status=answer.status if answer and record.protocol else None,
        error=error_info(error),
        started_at=timestamp(placed.started),
        ended_at=timestamp(placed.span.end),
        fidelity=dict(record.fidelity),
    )


def _attempt(placed: Placed) -> Attempt:
    record = placed.record
    assert isinstance(record, ModelRecord)
    answer = record.answer
    return Attempt(
        started_at=timestamp(placed.span.start),
        ended_at=timestamp(placed.span.end),
        status=answer.status if answer else None,
        error=error_info(record.error or (answer.error if answer else None)),
        headers=dict(record.headers),
        provider_fields=json_text.plain(dict(answer.provider_fields)) if answer and answer.status >= 400 else {},
        raw_response=record.raw_response if answer is None or answer.status >= 400 else None,
    )


# -- tool calls ----------------------------------------------------------------------------------------------------------


def _write_tool_calls(
    draft: Draft,
    models: list[Placed],
    tools: list[Placed],
    turns: _Turns,
    runs_of_tools: dict[str, str],
    status: Status,
) -> list[ToolCall]:
    """Put the tool calls into their turns; what stands in none comes back."""
    asked = requests.read_requests(models)
    joined = requests.join(tools, asked, models)
    loose: list[ToolCall] = []
    for placed in tools:
        request = joined.get(placed.id)
        call = _write_tool_call(placed, request, models)
        call.run = runs_of_tools.get(placed.id)
        index = _turn_of_tool(draft, placed, request, models, turns)
        (loose if index is None else turns.get(index).tool_calls).append(call)
    taken = {id(request) for request in joined.values()}
    for request in asked:
        if id(request) not in taken:
            model = models[request.model]
            call = _recovered(_model_id(model), request, requests.answer_to(request, models), status)
            turns.get(turns.of_model[model.id]).tool_calls.insert(_place_of(request, turns, model), call)
    if draft.record is None and models and getattr(models[0].record, "call_id", None) is None:
        for request, answer in requests.earlier_rounds(models[0]):
            loose.append(_recovered(f"{models[0].id}.before", request, answer, status))
    return loose


def _place_of(request: Asked, turns: _Turns, model: Placed) -> int:
    """Where among the tool calls of its turn a recovered one belongs: before those that were asked for after it."""
    calls = turns.get(turns.of_model[model.id]).tool_calls
    later = [
        index for index, call in enumerate(calls) if call.requested_by and call.requested_by.position > request.position
    ]
    return later[0] if later else len(calls)


def _turn_of_tool(
    draft: Draft, placed: Placed, request: Asked | None, models: list[Placed], turns: _Turns
) -> int | None:
    """The recorded turn; else that of the request, of the model call around it, of the last model call before it.

    A run without model calls has one turn that holds all its tool calls.
    """
    recorded = _turn_index(draft, placed)
    if recorded is not None:
        return recorded
    if request is not None:
        return turns.of_model[models[request.model].id]
    around = draft.asked_in.get(placed.id)
    if around in turns.of_model:
        return turns.of_model[around]
    if not models:
        return 0
    before = [model for model in models if not placed.span.start or model.started <= placed.span.start]
    return turns.of_model[before[-1].id] if before else None


def _write_tool_call(placed: Placed, request: Asked | None, models: list[Placed]) -> ToolCall:
    record = placed.record
    assert isinstance(record, ToolRecord)
    fidelity = dict(record.fidelity)
    arguments, result = record.arguments, record.result
    if request is not None and fidelity.get("arguments") is Fidelity.ABSENT:
        arguments, fidelity["arguments"] = request.arguments, Fidelity.RECONSTRUCTED
    if request is not None and fidelity.get("result") is Fidelity.ABSENT:
        told = requests.answer_to(request, models)
        if told is not requests.MISSING:
            result, fidelity["result"] = told, Fidelity.RECONSTRUCTED
    position = record.position if record.position is not None else request.position if request else 0
    unfinished = placed.span.end == 0 and record.error is None
    return ToolCall(
        id=placed.id,
        call_id=record.call_id or (request.call_id if request else None),
        name=record.name,
        kind=record.kind,
        requested=json_text.plain(request.arguments) if request else None,
        arguments=json_text.plain(arguments),
        result=json_text.plain(result),
        status=Status.UNFINISHED if unfinished else record.status,
        error=error_info(record.error),
        requested_by=_requested_by(models[request.model], position) if request else None,
        target=record.target,
        side_effect=record.side_effect,
        started_at=timestamp(placed.span.start),
        ended_at=timestamp(placed.span.end),
        fidelity=fidelity,
    )


def _requested_by(model: Placed, position: int) -> RequestedBy:
    return RequestedBy(model_call=_model_id(model), position=position)


def _model_id(model: Placed) -> str:
    return getattr(model.record, "call_id", None) or model.id


def _recovered(model_call: str, request: Asked, answer: Json, status: Status) -> ToolCall:
    """A call that left no span: what the model asked for, and what it was told in a later request."""
    known = answer is not requests.MISSING
    return ToolCall(
        id=f"{model_call}.{request.position}",
        call_id=request.call_id,
        name=request.name,
        kind=ToolKind.FUNCTION,
        requested=json_text.plain(request.arguments),
        arguments=json_text.plain(request.arguments),
        result=json_text.plain(answer) if known else None,
        status=Status.OK if known else Status.UNFINISHED,
        requested_by=RequestedBy(model_call=model_call, position=request.position) if request.model >= 0 else None,
        executed=False,
        fidelity={
            "arguments": Fidelity.RECONSTRUCTED,
            "result": Fidelity.RECONSTRUCTED if known else Fidelity.ABSENT,
        },
    )


# -- input and output ----------------------------------------------------------------------------------------------------


def _write_ends(run: Run, draft: Draft, models: list[Placed], tables: Tables) -> None:
    """The run's input and output, as its span says them; else as its first request and last answer show them."""
    record = draft.record
    given = {"input": list(record.input), "output": list(record.output)} if record else {"input": [], "output": []}
    shown = {"input": _shown_input(models), "output": _shown_output(models)}
    fidelity: dict[str, Any] = dict(record.fidelity) if record else {}
    for field_name in ("input", "output"):
        absent = fidelity.get(field_name) in (Fidelity.ABSENT, None)
        if not given[field_name] and absent and shown[field_name]:
            given[field_name], fidelity[field_name] = shown[field_name], Fidelity.RECONSTRUCTED
    run.input, run.output = tables.add_messages(given["input"]), tables.add_messages(given["output"])
    run.fidelity = fidelity


def _shown_input(models: list[Placed]) -> list[Message]:
    """The first request's messages since the model's last word to the user, without the system's."""
    record = models[0].record if models else None
    found: list[Message] = []
    for message in record.request.messages if isinstance(record, ModelRecord) else ():
        parts = message.get("parts")
        asks = any(part.get("type") == "tool_call" for part in parts if isinstance(part, dict)) if parts else False
        if message.get("role") == "assistant" and not asks:
            found = []
        elif message.get("role") != "system":
            found.append(message)
    return found


def _shown_output(models: list[Placed]) -> list[Message]:
    """The last answer, where it asks for no tool."""
    record = models[-1].record if models else None
    if not isinstance(record, ModelRecord) or record.answer is None or requests.read_requests(models[-1:]):
        return []
    return [message for message in record.answer.messages if message.get("parts")]


def child_places(draft: Draft, place: Place) -> list[tuple[Draft, str]]:
    """The runs inside this one with their paths: as recorded, else ``root/NAME#k``, k counting those of one name."""
    counts = Counter[str]()
    found = []
    for child in draft.children:
        name = child.record.agent.name if child.record else None
        if child.record is None and child.tool is not None and isinstance(child.tool.record, ToolRecord):
            name = child.tool.record.name
        label = (name or "agent").replace("/", "_")
        recorded = child.record.path if child.record else None
        found.append((child, recorded or f"{place.path}/{label}#{counts[label]}"))
        counts[label] += 1
    return found
