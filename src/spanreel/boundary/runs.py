"""Runs: opened with what they are asked, handed over to other agents, and left with the turns that are still open."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from opentelemetry.trace import Span, Tracer

from spanreel import contexts, conventions
from spanreel.boundary import Boundary
from spanreel.capture import RecordCapture
from spanreel.crossing import Crossing
from spanreel.keeping import DrawsKept, RunKept
from spanreel.model import Agent, SessionInfo
from spanreel.own_tracer import OwnTracer, begin
from spanreel.placing import parent_context, with_scope
from spanreel.player import LiveRun, Player
from spanreel.point import Begun, RunRequest, RunResult, ToolRequest
from spanreel.quiet import quietly
from spanreel.records import RunRecord
from spanreel.scope import RunScope, ToolScope, merge, scope_in, session_in, span_id_of
from spanreel.spans import OwnSpan, say
from spanreel.start_attributes import OperationStart, run_attributes
from spanreel.tracing import Hold


def open_run(
    boundary: Boundary, request: RunRequest, player: Player | None, read_result: Callable[[Any], RunResult]
) -> tuple[Crossing, RunScope]:
    """A run starts here. The caller attaches the crossing's context while the run works."""
    current = contexts.current()
    outer = scope_in(current)
    parent = outer.run if isinstance(outer, ToolScope) else outer
    session = session_in(current)
    if request.conversation_id or request.user_id:
        session = merge(session, SessionInfo(id=request.conversation_id, user_id=request.user_id))
    path = parent.child_path(request.agent.name) if parent else "root"
    tracer, hold = boundary.tracer(current, player)
    content = boundary.content
    start = OperationStart(conventions.INVOKE_AGENT, request.agent.name, request.agent, session, player, content)
    span = begin(tracer, start, parent_context(current))
    live = LiveRun(
        id=span_id_of(span) or secrets.token_hex(8),
        path=path,
        agent=request.agent,
        parent=parent.live.id if parent else None,
        tool_call=outer.request if isinstance(outer, ToolScope) else None,
    )
    scope = RunScope(live=live, span=span, context=current, session=session, parent=parent)
    scope.context = with_scope(current, span, scope)
    draws = DrawsKept() if boundary.settings.freeze and content and span.is_recording() else None
    scope.draws = draws
    kept = RunKept(live, content, read_result, draws)
    crossing = Crossing(
        span=span,
        context=scope.context,
        hold=hold,
        kept=kept,
        leave=lambda end: _leave_run(scope, end, player),
        content=content,
    )
    if span.is_recording():
        say(span, run_attributes(live))
        with crossing.entered(), quietly("keep a run's input"):
            kept.start(request, root=parent is None)
        _say_started(tracer, hold, scope, kept, player)
    return crossing, scope


def note_begun(run: RunScope, begun: Begun) -> None:
    """What was not known when the run was opened. A conversation's id counts where nobody has said another."""
    if begun.conversation_id and run.parent is None and run.session.id is None:
        run.session = merge(run.session, SessionInfo(id=begun.conversation_id))
        say(run.span, {conventions.CONVERSATION_ID: begun.conversation_id})
    if begun.sees_tools:
        say(run.span, {conventions.RUN_SEES_TOOLS: True})


def _say_started(tracer: Tracer, hold: Hold, scope: RunScope, kept: RunKept, player: Player | None) -> None:
    run = scope.span
    if type(tracer) is OwnTracer and type(run) is OwnSpan and tracer.asks_nobody:
        tracer.announce(run, partial(_started, tracer, scope, kept, player, run.start_time), kept.given)
        return
    started = _begin_started(tracer, scope, kept, player)
    hold(started, kept.started())
    started.end()


def _begin_started(tracer: Tracer, scope: RunScope, kept: RunKept, player: Player | None) -> Span:
    rest = run_attributes(scope.live)
    start = OperationStart(conventions.RUN_STARTED, None, scope.live.agent, scope.session, player, kept.content, rest)
    return begin(tracer, start, scope.context)


def _started(tracer: Tracer, scope: RunScope, kept: RunKept, player: Player | None, now: int) -> OwnSpan:
    """The beginning of a run, told afterwards."""
    started = cast("OwnSpan", _begin_started(tracer, scope, kept, player))
    started.capture = kept.started()
    started.start_time = started.end_time = now
    return started


def _leave_run(scope: RunScope, end_time: int, player: Player | None) -> None:
    if scope.delegate is not None and not scope.delegate.ended:
        _end_delegate(scope.delegate, end_time, player)
    with scope.lock:
        scope.ended, scope.outcome = True, None
        turns, scope.turns = scope.turns, []
    for turn in turns:
        turn.span.end(turn.last_end or end_time)


def hand_over(boundary: Boundary, run: RunScope, agent: Agent, request: ToolRequest, player: Player | None) -> None:
    """Another agent has the word in this run from now on: its turns stand in a run of their own inside it."""
    top = run
    while top.parent is not None and top.parent.delegate is top:
        top = top.parent
    now = time.time_ns()
    if top.delegate is not None and not top.delegate.ended:
        _end_delegate(top.delegate, now, player)
    session = top.session
    tracer, hold = boundary.tracer(top.context, player)
    path = top.child_path(agent.name)
    start = OperationStart(conventions.INVOKE_AGENT, agent.name, agent, session, player, boundary.content)
    span = begin(tracer, start, top.context)
    live = LiveRun(span_id_of(span) or secrets.token_hex(8), path, agent, top.live.id, request)
    scope = RunScope(live=live, span=span, context=top.context, session=session, parent=top)
    scope.context = with_scope(top.context, span, scope)
    if span.is_recording():
        say(span, run_attributes(live))
        hold(span, RecordCapture(partial(RunRecord, run_id=live.id, path=path, agent=agent), boundary.content))
    if player is not None:
        player.begin_run(live, RunRequest(agent))
    top.delegate = scope


def _end_delegate(scope: RunScope, end_time: int, player: Player | None) -> None:
    _leave_run(scope, end_time, player)
    scope.span.end(end_time)
    if player is not None:
        player.end_run(scope.live, None, None)
