"""One run of the document from its draft: the run's own facts, its turns, and the calls in them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

from spanreel import conventions as names
from spanreel.model import Agent, ErrorCategory, Fidelity, Status, ToolKind
from spanreel.records import ModelRecord, ToolRecord
from spanreel.session import Draws, Entrypoint, ErrorInfo, ModelCall, Parent, Run, ToolCall, Turn
from spanreel_collector import json_text
from spanreel_collector.sessions.calls import (
    model_id,
    provider_tool_call,
    recover_tool_call,
    write_model_call,
    write_tool_call,
)
from spanreel_collector.sessions.drafts import Draft, cause, opens_turn, turn_index
from spanreel_collector.sessions.ends import write_ends
from spanreel_collector.sessions.requests import (
    MISSING,
    Asked,
    answer_by_id,
    answer_to,
    earlier_rounds,
    join,
    read_provider_calls,
    read_requests,
    said_to_have_failed,
)
from spanreel_collector.sessions.tables import Tables, agent_info, error_info, evaluations_info, timestamp
from spanreel_collector.trace import Placed


@dataclass(frozen=True, slots=True)
class RunPlace:
    """Where a run stands in its session: its id (unique there) and path, and the run and tool call it was made in."""

    id: str
    path: str
    parent: Parent | None = None


@dataclass(eq=False, slots=True)
class _Turns:
    """A run's turns while they are filled, by index; ``of_model`` gives the index that a model call's span opened."""

    draft: Draft
    models: list[Placed]
    turns: dict[int, Turn] = field(default_factory=dict)
    of_model: dict[str, int] = field(default_factory=dict)

    def get(self, index: int) -> Turn:
        """The turn of this index, made where there is none."""
        if index not in self.turns:
            self.turns[index] = Turn(index=index)
        return self.turns[index]

    def open(self, placed: Placed, call: ModelCall) -> None:
        """Open a turn: the recorded one, or the next; two model calls are never in one turn."""
        index = turn_index(self.draft, placed)
        if index is None or index in self.turns:
            index = max(self.turns, default=-1) + 1
        self.of_model[placed.id] = index
        self.turns[index] = Turn(index=index, model_call=call)

    def in_order(self) -> list[Turn]:
        """The turns by index."""
        return [self.turns[index] for index in sorted(self.turns)]


def write_run(draft: Draft, place: RunPlace, tables: Tables, runs_of_tools: dict[str, str]) -> Run:
    """The run of the document. ``runs_of_tools`` gives for a tool call's span the run that was made in it."""
    ordered = sorted(draft.models, key=lambda placed: cause(draft, placed))
    models = [placed for placed in ordered if opens_turn(placed)]
    tools = sorted(draft.tools, key=lambda placed: cause(draft, placed))
    turns = _Turns(draft, models)
    for placed in models:
        turns.open(placed, write_model_call(placed, tables))
        for number, told in enumerate(read_provider_calls(placed)):
            turns.get(turns.of_model[placed.id]).tool_calls.append(provider_tool_call(placed, number, *told))
    status = _status(draft, models)
    asked = read_requests(models)
    joined = join(tools, asked, models)
    loose = [
        *_place_tool_calls(turns, tools, joined, runs_of_tools),
        *_recover_tool_calls(turns, asked, set(joined.values())),
    ]
    record = draft.record
    run = Run(
        id=place.id,
        trace_id=draft.trace_id,
        path=place.path,
        parent=place.parent,
        agent=agent_info(record.agent if record else _agent_of_calls(models)),
        implicit=record is None,
        sees_tools=record is not None and record.sees_tools,
        draws=[Draws(kind=one.kind, site=one.site, values=list(one.values)) for one in record.draws]
        if record and record.draws
        else None,
        entrypoint=_entrypoint(draft),
        result=json_text.plain(record.result) if record else None,
        status=status,
        error=error_info(record.error) if record else _last_error(turns),
        started_at=timestamp(draft.started[0]),
        ended_at=None if status is Status.UNFINISHED else timestamp(draft.ended),
        turns=turns.in_order(),
        side_calls=[write_model_call(placed, tables) for placed in ordered if not opens_turn(placed)],
        loose_tool_calls=loose,
        order=_order(draft, models, tools),
        evaluations=evaluations_info(
            one for placed in (*([draft.run] if draft.run else []), *draft.around) for one in placed.evaluations
        ),
    )
    write_ends(run, draft, models, tables)
    if status is Status.OK and _gave_null(draft):
        run.fidelity["result"] = Fidelity.WHOLE
    return run


def _gave_null(draft: Draft) -> bool:
    """Whether the agent's result is a JSON null, and not one that nobody recorded."""
    record, placed = draft.record, draft.run
    if record is None or placed is None or record.result is not None or "result" in record.fidelity:
        return False
    # Of a run that comes from a document, the document says how its result is known.
    from_document = placed.span.attributes.get(names.ORIGIN) in ("imported", "recorded")
    return names.RUN_RESULT in placed.span.attributes and not from_document


def _agent_of_calls(models: list[Placed]) -> Agent:
    """The agent that a run's calls say they are of, where the run itself says nothing and they agree."""
    told = [placed.record.agent for placed in models if isinstance(placed.record, ModelRecord)]
    named = {agent.name: agent for agent in told if agent.name is not None}
    return next(iter(named.values())) if len(named) == 1 else Agent()


def _order(draft: Draft, models: list[Placed], tools: list[Placed]) -> Literal["cause", "start", "arrival"]:
    calls = [*models, *tools]
    if calls and all(turn_index(draft, placed) is not None for placed in calls):
        return "cause"
    return "start" if all(placed.span.start for placed in calls) else "arrival"


def _status(draft: Draft, models: list[Placed]) -> Status:
    record = draft.record
    if record is not None and draft.run is not None:
        if record.started_only or (draft.run.span.end == 0 and record.status is Status.OK):
            return Status.UNFINISHED
        return Status.ERROR if record.error is not None and record.status is Status.OK else record.status
    last = models[-1].record if models else None
    if models and models[-1].span.end == 0:
        return Status.UNFINISHED
    return last.status if isinstance(last, ModelRecord) else Status.OK


def _last_error(turns: _Turns) -> ErrorInfo | None:
    calls = [turn.model_call for turn in turns.in_order() if turn.model_call is not None]
    return calls[-1].error if calls else None


def _entrypoint(draft: Draft) -> Entrypoint | None:
    record = draft.record
    if record is None or (record.argv is None and record.callable is None and record.arguments is None):
        return None
    arguments = dict(record.arguments) if record.arguments is not None else None
    argv = list(record.argv) if record.argv is not None else None
    told = json_text.plain(arguments)
    return Entrypoint(argv=argv, callable=record.callable, arguments=told, defaults=list(record.defaults))


# -- tool calls ------------------------------------------------------------------------------------------------------


def _place_tool_calls(
    turns: _Turns, tools: list[Placed], joined: dict[str, Asked], runs_of_tools: dict[str, str]
) -> list[ToolCall]:
    """Put the tool calls that left spans into their turns; what stands in none comes back."""
    loose: list[ToolCall] = []
    for placed in tools:
        request = joined.get(placed.id)
        call = write_tool_call(placed, request, turns.models)
        call.run = runs_of_tools.get(placed.id)
        index = _turn_of_tool(turns, placed, request)
        (loose if index is None else turns.get(index).tool_calls).append(call)
    return loose


def _turn_of_tool(turns: _Turns, placed: Placed, request: Asked | None) -> int | None:
    """The recorded turn; else that of the request, of the model call around it, of the last model call before it.

    A run without model calls has one turn that holds all its tool calls.
    """
    recorded = turn_index(turns.draft, placed)
    if recorded is not None:
        return recorded
    if request is not None:
        return turns.of_model[turns.models[request.model].id]
    around = turns.draft.asked_in.get(placed.id)
    if around in turns.of_model:
        return turns.of_model[around]
    if not turns.models:
        return 0
    start = placed.span.start
    before = [model for model in turns.models if start == 0 or model.started <= start]
    return turns.of_model[before[-1].id] if before else None


def _recover_tool_calls(turns: _Turns, asked: list[Asked], taken: set[Asked]) -> list[ToolCall]:
    """Put calls that left no span where the requests for them stand; those from before the first request come back."""
    for request in asked:
        if request not in taken:
            model = turns.models[request.model]
            calls = turns.get(turns.of_model[model.id]).tool_calls
            answer, handed_over = answer_to(request, turns.models), False
            if answer is MISSING and turns.draft.parent is not None:
                # Of a handoff, only whoever was handed over to was told.
                others = (other.models for other in turns.draft.parent.children if other is not turns.draft)
                answer = answer_by_id(request.call_id, chain.from_iterable(others))
                handed_over = answer is not MISSING
            call = recover_tool_call(model_id(model), request, answer)
            if said_to_have_failed(request.call_id, turns.models[request.model + 1 :]):
                message = answer if isinstance(answer, str) else None
                call.status, call.error = (
                    Status.ERROR,
                    ErrorInfo(category=ErrorCategory.TOOL, type="error", message=message),
                )
            if handed_over and call.kind is ToolKind.FUNCTION:
                call.kind = ToolKind.HANDOFF
            later = (
                index
                for index, known in enumerate(calls)
                if known.kind is not ToolKind.PROVIDER and _position(known) > request.position
            )
            calls.insert(next(later, len(calls)), call)
    if turns.draft.record is not None or not turns.models or getattr(turns.models[0].record, "call_id", None):
        return []
    first = turns.models[0]
    return [recover_tool_call(f"{first.id}.before", *round_) for round_ in earlier_rounds(first)]


def _position(call: ToolCall) -> int:
    return call.requested_by.position if call.requested_by else -1


def child_places(draft: Draft, place: RunPlace) -> list[tuple[Draft, str]]:
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
