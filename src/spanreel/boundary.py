"""The one place that opens spans: a run, a turn, a model call or a tool call crosses here, recorded or replayed.

Holds the process-wide boundary that decorators and wraps go through.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from opentelemetry import context as otel
from opentelemetry import trace
from opentelemetry.context import Context, set_value
from opentelemetry.trace import Span, SpanKind, Tracer

from spanreel import conventions
from spanreel.capture import ExchangeCapture, RecordCapture
from spanreel.crossing import Crossing
from spanreel.keeping import DrawsKept, RunKept, ToolKept
from spanreel.model import (
    Agent,
    ErrorCategory,
    Operation,
    RunRecord,
    SessionInfo,
    ToolRecord,
)
from spanreel.point import (
    Begun,
    HttpRequest,
    LiveRun,
    ModelProtocol,
    Piece,
    Player,
    RunRequest,
    RunResult,
    ToolRequest,
    ToolResult,
)
from spanreel.protocols import peek_model
from spanreel.protocols.paths import model_in
from spanreel.quiet import quietly
from spanreel.scope import (
    BUSY_KEY,
    Failure,
    Failures,
    RunScope,
    ToolScope,
    Turn,
    implicit_run,
    leave_exchange,
    leave_turn,
    merge,
    model_parent,
    parent_context,
    run_in,
    scope_in,
    session_in,
    span_id_of,
    tool_parent,
    with_scope,
)
from spanreel.settings import Capture, Settings
from spanreel.snapshot import snapshot
from spanreel.start_attributes import agent_attributes, exchange_attributes, titled, tool_attributes
from spanreel.tracing import TracerSource

UNRECORDED = trace.NoOpTracer()
"""Spans of a replay that nobody asked to record."""


class Boundary:
    """Opens a `Crossing` for each call, in the right place of the tree. Thread-safe."""

    def __init__(self, settings: Settings, source: TracerSource) -> None:
        self.settings = settings
        self.source = source
        self._loose_failures = Failures()

    @property
    def records(self) -> bool:
        """Whether anything is recorded at all."""
        return self.settings.capture is not Capture.OFF

    @property
    def content(self) -> bool:
        """Whether content is recorded."""
        return self.settings.content

    # -- runs --------------------------------------------------------------------------------------------------------

    def open_run(
        self, request: RunRequest, player: Player | None, read_result: Callable[[Any], RunResult]
    ) -> tuple[Crossing, RunScope]:
        """A run starts here. The caller attaches the crossing's context while the run works."""
        current = otel.get_current()
        outer = scope_in(current)
        parent = outer.run if isinstance(outer, ToolScope) else outer
        session = merge(session_in(current), SessionInfo(id=request.conversation_id, user_id=request.user_id))
        path = parent.child_path(request.agent.name) if parent else "root"
        tracer, hold = self._tracer(current, player)
        span = tracer.start_span(
            titled(conventions.INVOKE_AGENT, request.agent.name),
            context=parent_context(current),
            attributes=self._said(conventions.INVOKE_AGENT, request.agent, session, player),
        )
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
        kept = RunKept(RunRecord(run_id=live.id, path=path, agent=request.agent), self.content, read_result, draws)
        crossing = Crossing(
            span=span,
            context=scope.context,
            hold=hold,
            kept=kept,
            leave=lambda end: self._leave_run(scope, end, player),
            content=self.content,
        )
        if span.is_recording():
            span.set_attributes({conventions.RUN_ID: live.id, conventions.RUN_PATH: path})
            with crossing.entered(), quietly("keep a run's input"):
                if callable(request.arguments) and self.content:
                    request = replace(request, arguments=request.arguments())
                kept.start(request, root=parent is None)
            self._say_started(tracer, hold, scope, kept, player)
        return crossing, scope

    def note_begun(self, run: RunScope, begun: Begun) -> None:
        """What was not known when the run was opened. A conversation's id counts where nobody has said another."""
        if begun.conversation_id and run.parent is None and run.session.id is None:
            run.session = replace(run.session, id=begun.conversation_id)
            run.span.set_attribute(conventions.CONVERSATION_ID, begun.conversation_id)
        if begun.sees_tools:
            run.span.set_attribute(conventions.RUN_SEES_TOOLS, True)

    def _say_started(self, tracer: Tracer, hold: Hold, scope: RunScope, kept: RunKept, player: Player | None) -> None:
        started = tracer.start_span(
            conventions.RUN_STARTED,
            context=scope.context,
            attributes={
                **self._said(conventions.RUN_STARTED, scope.live.agent, scope.session, player),
                conventions.RUN_ID: scope.live.id,
                conventions.RUN_PATH: scope.live.path,
            },
        )
        hold(started, kept.started())
        started.end()

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
        span = tracer.start_span(
            titled(conventions.INVOKE_AGENT, agent.name),
            context=top.context,
            attributes=self._said(conventions.INVOKE_AGENT, agent, session, player),
        )
        live = LiveRun(span_id_of(span) or secrets.token_hex(8), path, agent, top.live.id, request)
        scope = RunScope(live=live, span=span, context=top.context, session=session, parent=top)
        scope.context = with_scope(top.context, span, scope)
        if span.is_recording():
            span.set_attributes({conventions.RUN_ID: live.id, conventions.RUN_PATH: path})
            hold(span, RecordCapture(RunRecord(run_id=live.id, path=path, agent=agent), self.content))
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
        current = otel.get_current()
        run = run_in(current)
        tracer, hold = self._tracer(current, player)
        failures = run.failures if run else self._loose_failures
        failure = failures.take(request.body)
        turn = failure.turn if failure else None
        if turn is None and run is not None and operation.opens_turn:
            turn = self._open_turn(run, tracer, player)
        session = run.session if run else session_in(current)
        agent = run.live.agent if run else Agent()
        model = peek_model(request.body) or model_in(request.path)
        span = tracer.start_span(
            titled(str(operation), model),
            kind=SpanKind.CLIENT,
            context=model_parent(current, run, turn, failure),
            attributes={
                **self._said(str(operation), agent, session, player),
                **exchange_attributes(protocol, operation, request, model),
            },
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
        context = with_scope(current, span, scope_in(current))
        crossing = Crossing(
            span=span,
            context=set_value(BUSY_KEY, True, context),
            hold=hold,
            kept=capture,
            leave=lambda end: leave_exchange(run, turn, end),
            category=ErrorCategory.MODEL,
            content=self.content,
        )
        crossing.told = lambda _result, error: self._remember_failure(failures, capture, turn, span, error)
        return crossing, capture, run.live if run else implicit_run(current)

    def _remember_failure(
        self, failures: Failures, capture: ExchangeCapture, turn: Turn | None, span: Span, error: BaseException | None
    ) -> None:
        failed = (capture.status or 0) >= 400 or (error is not None and isinstance(error, Exception))
        if failed:
            origin = span.get_span_context()
            failure = Failure(capture.call_id, capture.attempt, turn, origin, time.monotonic())
            failures.add(capture.request.body, failure)

    def _open_turn(self, run: RunScope, tracer: Tracer, player: Player | None) -> Turn:
        with run.lock:
            closed = [turn for turn in run.turns if turn.open_models == 0]
            run.turns = [turn for turn in run.turns if turn.open_models]
            index, run.turn_count = run.turn_count, run.turn_count + 1
        for turn in closed:
            turn.span.end(turn.last_end or None)
        span = tracer.start_span(
            f"{conventions.AGENT_STEP} {index}",
            context=run.context,
            attributes={
                **self._said(conventions.AGENT_STEP, run.live.agent, run.session, player),
                conventions.RUN_ID: run.live.id,
                conventions.TURN_INDEX: index,
            },
        )
        turn = Turn(index, span, trace.set_span_in_context(span, run.context))
        with run.lock:
            run.turns.append(turn)
        return turn

    # -- tool calls --------------------------------------------------------------------------------------------------

    def open_tool(
        self, request: ToolRequest, player: Player | None, read_result: Callable[[Any], ToolResult]
    ) -> tuple[Crossing, ToolScope]:
        """A tool is about to be called."""
        current = otel.get_current()
        outer = scope_in(current)
        run = outer if isinstance(outer, RunScope) else None
        turn = run.turn_of(request.call_id) if run else None
        tracer, hold = self._tracer(current, player)
        session = run.session if run else session_in(current)
        span = tracer.start_span(
            titled(conventions.EXECUTE_TOOL, request.name),
            context=tool_parent(current, run, turn),
            attributes={
                **self._said(conventions.EXECUTE_TOOL, run.live.agent if run else Agent(), session, player),
                **tool_attributes(request, run, turn),
            },
        )
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
        crossing = Crossing(
            span=span,
            context=with_scope(current, span, scope),
            hold=hold,
            kept=ToolKept(record, self.content, scope, read_result),
            leave=lambda end: leave_turn(turn, end),
            category=ErrorCategory.TOOL,
            content=self.content,
        )
        crossing.noticed = lambda: scope.failure
        return crossing, scope

    # -- what all spans say ------------------------------------------------------------------------------------------

    def _tracer(self, context: Context, player: Player | None) -> tuple[Tracer, Hold]:
        """The tracer for a span under this context, and what takes the capture when the span ends."""
        if not self.records or (player is not None and not getattr(player, "records", False)):
            return UNRECORDED, _hold_nothing
        return self.source.tracer_for(context)

    def _said(self, operation: str, agent: Agent, session: SessionInfo, player: Player | None) -> dict[str, Any]:
        return agent_attributes(operation, agent, session, player, content=self.content)


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
