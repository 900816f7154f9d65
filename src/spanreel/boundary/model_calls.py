"""Model calls: each attempt opened in the turn that it opens or continues."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from opentelemetry.trace import Span, SpanKind, Tracer

from spanreel import contexts, conventions
from spanreel.boundary import Boundary
from spanreel.capture import ExchangeCapture
from spanreel.crossing import Crossing
from spanreel.exchange import HttpRequest, ModelProtocol, Piece
from spanreel.model import Agent, ErrorCategory, Operation, SessionInfo
from spanreel.own_tracer import begin
from spanreel.placing import busy, model_parent, with_span
from spanreel.player import LiveRun, Player
from spanreel.scope import (
    FailedAttempt,
    FailedAttempts,
    OpenTurn,
    RunScope,
    implicit_run,
    leave_exchange,
    scope_in,
    session_in,
    span_id_of,
)
from spanreel.start_attributes import ExchangeStart, OperationStart, other_instrumentation

Decode = Callable[[Mapping[str, str], Sequence[Piece]], list[Piece]]

_NOBODY, _UNKNOWN_SESSION = Agent(), SessionInfo()


def open_exchange(  # noqa: PLR0913 - what a model call is made of
    boundary: Boundary,
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
    tracer, hold = boundary.tracer(current, player)
    failures, session, agent = boundary.loose_failures, _UNKNOWN_SESSION, _NOBODY
    if run is not None:
        failures, session, agent = run.failures, run.session, run.live.agent
    elif current:
        session = session_in(current)
    failure = failures.take(request.body)
    turn = failure.turn if failure else None
    if turn is None and run is not None and operation.opens_turn:
        turn = _open_turn(boundary, run, tracer, player)
    second_view = other_instrumentation(current) if current else None
    span = begin(
        tracer,
        ExchangeStart(protocol, operation, request, agent, session, player, boundary.content, second_view),
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
        content=boundary.content,
        decode=decode,
        limit=boundary.settings.max_span_bytes,
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
        content=boundary.content,
    )
    crossing.told = lambda _result, error: _remember_failure(failures, capture, turn, span, error)
    live = run.live if run is not None else implicit_run(current) if scope is not None else None
    return crossing, capture, live


def _open_turn(boundary: Boundary, run: RunScope, tracer: Tracer, player: Player | None) -> OpenTurn:
    closed: list[OpenTurn] = []
    with run.lock:
        if run.turns:
            closed = [turn for turn in run.turns if turn.open_models == 0]
            run.turns = [turn for turn in run.turns if turn.open_models]
        index, run.turn_count = run.turn_count, run.turn_count + 1
    for turn in closed:
        turn.span.end(turn.last_end or None)
    rest = {conventions.RUN_ID: run.live.id, conventions.TURN_INDEX: index}
    start = OperationStart(
        conventions.AGENT_STEP, str(index), run.live.agent, run.session, player, boundary.content, rest
    )
    span = begin(tracer, start, run.context)
    turn = OpenTurn(index, span, with_span(run.context, span))
    with run.lock:
        run.turns.append(turn)
    return turn


def _remember_failure(
    failures: FailedAttempts, capture: ExchangeCapture, turn: OpenTurn | None, span: Span, error: BaseException | None
) -> None:
    # What broke in the middle of its answer is no attempt of what is asked next: the program has a part of that answer.
    begun = bool(capture.pieces) and (capture.status or 0) < 400
    failed = (capture.status or 0) >= 400 or (isinstance(error, Exception) and not begun)
    if failed:
        origin = span.get_span_context()
        failure = FailedAttempt(capture.call_id, capture.attempt, turn, origin, time.monotonic())
        failures.add(capture.request.body, failure)
