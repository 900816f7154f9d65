"""Tool calls: each opened in the turn that asked for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from spanreel import contexts, conventions
from spanreel.boundary import Boundary
from spanreel.crossing import Crossing
from spanreel.keeping import ToolKept
from spanreel.model import Agent, ErrorCategory
from spanreel.own_tracer import begin
from spanreel.placing import tool_parent, with_scope
from spanreel.player import Player
from spanreel.point import ToolRequest, ToolResult
from spanreel.quiet import quietly
from spanreel.records import ToolRecord
from spanreel.scope import RunScope, ToolScope, leave_turn, scope_in, session_in
from spanreel.snapshot import snapshot
from spanreel.start_attributes import OperationStart, tool_attributes

_NOBODY = Agent()


def open_tool(
    boundary: Boundary, request: ToolRequest, player: Player | None, read_result: Callable[[Any], ToolResult]
) -> tuple[Crossing, ToolScope]:
    """A tool is about to be called."""
    current = contexts.current()
    outer = scope_in(current)
    run = outer if isinstance(outer, RunScope) else None
    turn = run.turn_of(request.call_id) if run else None
    tracer, hold = boundary.tracer(current, player)
    session = run.session if run else session_in(current)
    agent = run.live.agent if run else _NOBODY
    rest = tool_attributes(request, run, turn)
    start = OperationStart(conventions.EXECUTE_TOOL, request.name, agent, session, player, boundary.content, rest)
    span = begin(tracer, start, tool_parent(current, run, turn))
    asked = request
    if player is not None:
        request = _frozen(request)
    elif span.is_recording() and boundary.content:
        with quietly("keep a tool's arguments"):
            request = _frozen(request)
    scope = ToolScope(run or getattr(outer, "run", None), request, span)
    record = ToolRecord(
        name=request.name,
        call_id=request.call_id,
        kind=request.kind,
        description=request.description,
        side_effect=request.side_effect,
        run_id=run.live.id if run else None,
        turn_index=turn.index if turn else None,
    )
    if span.is_recording() and boundary.content and request is not asked:
        record = replace(record, arguments=request.arguments)
    kept = ToolKept(record, boundary.content, scope, read_result)
    crossing = Crossing(
        span=span,
        context=with_scope(current, span, scope),
        hold=hold,
        kept=kept,
        leave=partial(leave_turn, turn) if turn is not None else None,
        category=ErrorCategory.TOOL,
        content=boundary.content,
    )
    crossing.noticed, crossing.failing = lambda: scope.failure, kept.fail
    return crossing, scope


def _frozen(request: ToolRequest) -> ToolRequest:
    """The request with its arguments as they are now."""
    taken = snapshot(request.arguments)
    return replace(request, arguments=taken.value, weak=taken.weak)
