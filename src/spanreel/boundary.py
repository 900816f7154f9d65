"""The one place that opens spans: a run, a turn, a model call or a tool call crosses here, recorded or replayed.

Holds the process-wide boundary that decorators and wraps go through.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, cast

from opentelemetry.context import Context
from opentelemetry.trace import NoOpTracer, Span, SpanKind, Tracer

from spanreel import contexts, conventions
from spanreel.capture import ExchangeCapture, RecordCapture
from spanreel.crossing import Crossing
from spanreel.exchange import HttpRequest, ModelProtocol, Piece
from spanreel.keeping import DrawsKept, RunKept, ToolKept
from spanreel.model import Agent, ErrorCategory, Operation, SessionInfo
from spanreel.placing import busy, model_parent, parent_context, tool_parent, with_scope, with_span
from spanreel.player import LiveRun, Player
from spanreel.point import Begun, RunRequest, RunResult, ToolRequest, ToolResult
from spanreel.protocols import recognise
from spanreel.quiet import quietly
from spanreel.records import RunRecord, ToolRecord
from spanreel.scope import (
    Failure,
    Failures,
    RunScope,
    ToolScope,
    Turn,
    implicit_run,
    leave_exchange,
    leave_turn,
    merge,
    scope_in,
    session_in,
    span_id_of,
)
from spanreel.settings import Capture, Settings
from spanreel.snapshot import snapshot
from spanreel.spans import OwnSpan, OwnTracer, begin, say
from spanreel.start_attributes import ExchangeStart, Start, other_instrumentation, run_attributes, tool_attributes
from spanreel.tracing import TracerSource

UNRECORDED = NoOpTracer()
"""Spans of a replay that nobody asked to record."""

PATHS_KNOWN = 256

_NOBODY, _UNKNOWN_SESSION = Agent(), SessionInfo()


class Boundary:
    """Opens a `Crossing` for each call, in the right place of the tree. Thread-safe."""

    def __init__(self, settings: Settings, source: TracerSource) -> None:
        self.settings = settings
        self.source = source
        self.records = settings.capture is not Capture.OFF
        """Whether anything is recorded at all."""
        self.content = settings.content
        """Whether content is recorded."""
        self.recognise = lru_cache(PATHS_KNOWN)(lambda path: recognise("POST", path, settings.paths))
        """The protocol and operation of what is posted to a path; None where that is no model's."""
        self._loose_failures = Failures()

    # -- runs --------------------------------------------------------------------------------------------------------

    def open_run(
        self, request: RunRequest, player: Player | None, read_result: Callable[[Any], RunResult]
    ) -> tuple[Crossing, RunScope]:
        """A run starts here. The caller attaches the crossing's context while the run works."""
        current = contexts.current()
        outer = scope_in(current)
        parent = outer.run if isinstance(outer, ToolScope) else outer
        session = session_in(current)
        if request.conversation_id or request.user_id:
            session = merge(session, SessionInfo(id=request.conversation_id, user_id=request.user_id))
        path = parent.child_path(request.agent.name) if parent else "root"
        tracer, hold = self._tracer(current, player)
        start = self._start(conventions.INVOKE_AGENT, request.agent.name, request.agent, session, player)
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
        draws = DrawsKept() if self.settings.freeze and self.content and span.is_recording() else None
        scope.draws = draws
        kept = RunKept(live, self.content, read_result, draws)
        crossing = Crossing(
            span=span,
            context=scope.context,
            hold=hold,
            kept=kept,
            leave=lambda end: self._leave_run(scope, end, player),
            content=self.content,
        )
        if span.is_recording():
            say(span, run_attributes(live))
            with crossing.entered(), quietly("keep a run's input"):
                kept.start(request, root=parent is None)
            self._say_started(tracer, hold, scope, kept, player)
        return crossing, scope

    def note_begun(self, run: RunScope, begun: Begun) -> None:
        """What was not known when the run was opened. A conversation's id counts where nobody has said another."""
        if begun.conversation_id and run.parent is None and run.session.id is None:
            run.session = merge(run.session, SessionInfo(id=begun.conversation_id))
            say(run.span, {conventions.CONVERSATION_ID: begun.conversation_id})
        if begun.sees_tools:
            say(run.span, {conventions.RUN_SEES_TOOLS: True})

    def _say_started(self, tracer: Tracer, hold: Hold, scope: RunScope, kept: RunKept, player: Player | None) -> None:
        run = scope.span
        if type(tracer) is OwnTracer and type(run) is OwnSpan and tracer.asks_nobody:
            tracer.announce(run, partial(self._started, tracer, scope, kept, player, run.start_time), kept.given)
            return
        started = self._begin_started(tracer, scope, player)
        hold(started, kept.started())
        started.end()

    def _begin_started(self, tracer: Tracer, scope: RunScope, player: Player | None) -> Span:
        start = self._start(conventions.RUN_STARTED, None, scope.live.agent, scope.session, player)
        start.rest = run_attributes(scope.live)
        return begin(tracer, start, scope.context)

    def _started(self, tracer: Tracer, scope: RunScope, kept: RunKept, player: Player | None, now: int) -> OwnSpan:
        """The beginning of a run, told afterwards."""
        started = cast("OwnSpan", self._begin_started(tracer, scope, player))
        started.capture = kept.started()
        started.start_time = started.end_time = now
        return started

    def _leave_run(self, scope: RunScope, end_time: int, player: Player | None) -> None:
        if scope.delegate is not None and not scope.delegate.ended:
            self._end_delegate(scope.delegate, end_time, player)
        with scope.lock:
            scope.ended, scope.outcome = True, None
            turns, scope.turns = scope.turns, []
        for turn in turns:
            turn.span.end(turn.last_end or end_time)

    # -- handoffs ----------------------------------------------------------------------------------------------------

    def hand_over(self, run: RunScope, agent: Agent, request: ToolRequest, player: Player | None) -> None:
        """Another agent has the word in this run from now on: its turns stand in a run of their own inside it."""
        top = run
        while top.parent is not None and top.parent.delegate is top:
            top = top.parent
        now = time.time_ns()
        if top.delegate is not None and not top.delegate.ended:
            self._end_delegate(top.delegate, now, player)
        session = top.session
        tracer, hold = self._tracer(top.context, player)
        path = top.child_path(agent.name)
        span = begin(tracer, self._start(conventions.INVOKE_AGENT, agent.name, agent, session, player), top.context)
        live = LiveRun(span_id_of(span) or secrets.token_hex(8), path, agent, top.live.id, request)
        scope = RunScope(live=live, span=span, context=top.context, session=session, parent=top)
        scope.context = with_scope(top.context, span, scope)
        if span.is_recording():
            say(span, run_attributes(live))
            hold(span, RecordCapture(partial(RunRecord, run_id=live.id, path=path, agent=agent), self.content))
        if player is not None:
            player.begin_run(live, RunRequest(agent))
        top.delegate = scope

    def _end_delegate(self, scope: RunScope, end_time: int, player: Player | None) -> None:
        self._leave_run(scope, end_time, player)
        scope.span.end(end_time)
        if player is not None:
            player.end_run(scope.live, None, None)

    # -- model calls -------------------------------------------------------------------------------------------------

    def open_exchange(
        self,
        decode: Decode,
        protocol: ModelProtocol,
        operation: Operation,
        request: HttpRequest,
        player: Player | None,
    ) -> tuple[Crossing, ExchangeCapture, LiveRun | None] | None:
        """A model request is about to be sent. The caller feeds the capture and ends the crossing.

        None where the sampler drops it: then it passes untouched.
        """
        current = contexts.current()
        scope = scope_in(current)
        run = scope if type(scope) is RunScope else None
        tracer, hold = self._tracer(current, player)
        failures, session, agent = self._loose_failures, _UNKNOWN_SESSION, _NOBODY
        if run is not None:
            failures, session, agent = run.failures, run.session, run.live.agent
        elif current:
            session = session_in(current)
        failure = failures.take(request.body)
        turn = failure.turn if failure else None
        if turn is None and run is not None and operation.opens_turn:
            turn = self._open_turn(run, tracer, player)
        second_view = other_instrumentation(current) if current else None
        span = begin(
            tracer,
            ExchangeStart(protocol, operation, request, agent, session, player, self.content, second_view),
            model_parent(current, run, turn, failure),
            SpanKind.CLIENT,
        )
        if player is None and not span.is_recording():
            span.end()
            return None
        capture = ExchangeCapture(
            protocol,
            operation,
            request,
            content=self.content,
            decode=decode,
            limit=self.settings.max_span_bytes,
            call_id=failure.call_id if failure else span_id_of(span) or secrets.token_hex(8),
            attempt=failure.attempt + 1 if failure else 0,
            run_id=run.live.id if run else None,
            turn_index=turn.index if turn else None,
            agent=agent,
        )
        if turn is not None and run is not None:
            with run.lock:
                turn.open_models += 1
                turn.exchanges.append(capture)
        crossing = Crossing(
            span=span,
            context=busy(current, span, scope),
            hold=hold,
            kept=capture,
            leave=partial(leave_exchange, run, turn) if run is not None and turn is not None else None,
            category=ErrorCategory.MODEL,
            content=self.content,
        )
        crossing.told = lambda _result, error: self._remember_failure(failures, capture, turn, span, error)
        live = run.live if run is not None else implicit_run(current) if scope is not None else None
        return crossing, capture, live

    def _remember_failure(
        self, failures: Failures, capture: ExchangeCapture, turn: Turn | None, span: Span, error: BaseException | None
    ) -> None:
        failed = (capture.status or 0) >= 400 or (error is not None and isinstance(error, Exception))
        if failed:
            origin = span.get_span_context()
            failure = Failure(capture.call_id, capture.attempt, turn, origin, time.monotonic())
            failures.add(capture.request.body, failure)

    def _open_turn(self, run: RunScope, tracer: Tracer, player: Player | None) -> Turn:
        closed: list[Turn] = []
        with run.lock:
            if run.turns:
                closed = [turn for turn in run.turns if turn.open_models == 0]
                run.turns = [turn for turn in run.turns if turn.open_models]
            index, run.turn_count = run.turn_count, run.turn_count + 1
        for turn in closed:
            turn.span.end(turn.last_end or None)
        start = self._start(conventions.AGENT_STEP, str(index), run.live.agent, run.session, player)
        start.rest = {conventions.RUN_ID: run.live.id, conventions.TURN_INDEX: index}
        span = begin(tracer, start, run.context)
        turn = Turn(index, span, with_span(run.context, span))
        with run.lock:
            run.turns.append(turn)
        return turn

    # -- tool calls --------------------------------------------------------------------------------------------------

    def open_tool(
        self, request: ToolRequest, player: Player | None, read_result: Callable[[Any], ToolResult]
    ) -> tuple[Crossing, ToolScope]:
        """A tool is about to be called."""
        current = contexts.current()
        outer = scope_in(current)
        run = outer if isinstance(outer, RunScope) else None
        turn = run.turn_of(request.call_id) if run else None
        tracer, hold = self._tracer(current, player)
        session = run.session if run else session_in(current)
        agent = run.live.agent if run else _NOBODY
        start = self._start(conventions.EXECUTE_TOOL, request.name, agent, session, player)
        start.rest = tool_attributes(request, run, turn)
        span = begin(tracer, start, tool_parent(current, run, turn))
        asked = request
        if player is not None:
            request = _frozen(request)
        elif span.is_recording() and self.content:
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
        if span.is_recording() and self.content and request is not asked:
            record = replace(record, arguments=request.arguments)
        kept = ToolKept(record, self.content, scope, read_result)
        crossing = Crossing(
            span=span,
            context=with_scope(current, span, scope),
            hold=hold,
            kept=kept,
            leave=partial(leave_turn, turn) if turn is not None else None,
            category=ErrorCategory.TOOL,
            content=self.content,
        )
        crossing.noticed, crossing.failing = lambda: scope.failure, kept.fail
        return crossing, scope

    # -- what all spans say ------------------------------------------------------------------------------------------

    def _tracer(self, context: Context, player: Player | None) -> tuple[Tracer, Hold]:
        """The tracer for a span under this context, and what takes the capture when the span ends."""
        if self.records and (player is None or getattr(player, "records", False)):
            return self.source.tracer_for(context)
        return UNRECORDED, _hold_nothing

    def _start(
        self, operation: str, of: str | None, agent: Agent, session: SessionInfo, player: Player | None
    ) -> Start:
        return Start(operation, of, agent, session, player, self.content)


Hold = Callable[[Span, Any], None]
Decode = Callable[[Mapping[str, str], Sequence[Piece]], list[Piece]]

_boundary: Boundary | None = None


def install(boundary: Boundary | None) -> None:
    """Make this the process's boundary; None takes it away."""
    global _boundary  # noqa: PLW0603 - the holder that the module docstring names
    _boundary = boundary


def installed() -> Boundary | None:
    """The process's boundary."""
    return _boundary


def _frozen(request: ToolRequest) -> ToolRequest:
    """The request with its arguments as they are now."""
    taken = snapshot(request.arguments)
    return replace(request, arguments=taken.value, weak=taken.weak)


def _hold_nothing(_span: Span, _capture: Any) -> None:
    """What an unrecorded span keeps."""
