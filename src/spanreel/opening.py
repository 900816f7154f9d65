"""A call of a point, opened: what it asks, where it stands, and the passage that it goes through."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from spanreel import boundary as boundaries
from spanreel import contexts
from spanreel.arguments import parameters_of
from spanreel.boundary import Boundary, model_calls, runs, tool_calls
from spanreel.capture import ExchangeCapture
from spanreel.exchange import HttpAnswer, HttpRequest
from spanreel.isolating import rewritten
from spanreel.model import MCP_REQUESTS, Agent, Answer, Request, ToolKind
from spanreel.passage import Passage, error_again, read_control_flow, serve
from spanreel.player import Live, LiveRun, Player
from spanreel.playing import current_player
from spanreel.point import (
    BrokenOff,
    Failure,
    Kind,
    Outcome,
    Point,
    RecordedError,
    RunRequest,
    RunResult,
    ToolRequest,
    ToolResult,
)
from spanreel.protocols import in_process
from spanreel.quiet import quietly
from spanreel.rebuilding import changed_arguments
from spanreel.scope import RunScope, ToolScope, opened, run_in, scope_in
from spanreel.snapshot import snapshot
from spanreel.surroundings import Noticed, changed_since, notice


def open_passage(
    point: Point, wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Passage | None:
    """Open the crossing of a call; None where nothing is to be recorded or replayed, or the call is none of ours."""
    boundary = boundaries.installed()
    player = current_player()
    if boundary is None or (player is None and not boundary.records):
        return None
    passage, read = None, False
    with quietly(f"read a call of {point.target}"):
        arguments = _given(point, wrapped, args, kwargs)
        request = point.read(instance, arguments)
        arguments["self"] = instance
        if isinstance(request, RunRequest):
            bound = parameters_of(wrapped).signature.bind(*args, **kwargs) if player is not None else None
            passage = _open_run(boundary, player, point, request, bound, arguments)
        elif isinstance(request, ToolRequest):
            passage = _open_tool(boundary, player, point, request, arguments)
        elif isinstance(request, Request):
            passage = _open_model(boundary, player, point, request, arguments)
        elif isinstance(request, Failure):
            _note_failure(request.error)
        elif isinstance(request, Outcome):
            _note_outcome(request)
        read = True
    if not read and player is not None and point.kind in (Kind.TOOL, Kind.MODEL):
        player.refuse(f"a call of {point.target} that could not be read")
    return passage


def _given(
    point: Point, wrapped: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """A call's arguments by name; as they were given where a tool does not take them, which it will say."""
    try:
        return parameters_of(wrapped).by_name(args, kwargs)
    except TypeError:
        if not point.mutable:
            raise
        return {**({"args": list(args)} if args else {}), **kwargs}


def _open_run(  # noqa: PLR0913 - what a call is made of
    boundary: Boundary,
    player: Player | None,
    point: Point,
    request: RunRequest,
    bound: inspect.BoundArguments | None,
    arguments: Mapping[str, Any],
) -> Passage:
    def read_result(result: Any) -> RunResult:
        if isinstance(result, RunResult):
            return result
        read = point.read_result(scope.outcome.value if scope.outcome is not None else result)
        return read if isinstance(read, RunResult) else RunResult()

    crossing, scope = runs.open_run(boundary, request, player, read_result)
    if (read_begun := point.read_begun) is not None:
        crossing.begun = lambda entered: runs.note_begun(scope, read_begun(entered))
    crossing.read_control_flow, crossing.errors = partial(read_control_flow, point), point.errors
    passage = Passage(crossing, None)
    if player is not None:
        recorded = player.begin_run(scope.live, request)
        given = arguments
        if recorded is not None and point.rewrite is not None:
            arguments = point.rewrite(arguments, recorded)
        if point.isolate is not None:
            arguments = point.isolate(arguments, player.memory)
        if arguments is not given and bound is not None:
            bound.apply_defaults()
            passage.bound = rewritten(bound, arguments)
        crossing.told = _tell_run(player, scope.live, read_result)
    return passage


def _tell_run(
    player: Player, live: LiveRun, read_result: Callable[[Any], RunResult]
) -> Callable[[Any, BaseException | None], None]:
    def tell(result: Any, error: BaseException | None) -> None:
        read = None
        if error is None:
            read = read_result(result)
            read = replace(read, value=snapshot(read.value).value)
        player.end_run(live, read, error)

    return tell


def _open_tool(
    boundary: Boundary, player: Player | None, point: Point, request: ToolRequest, arguments: Mapping[str, Any]
) -> Passage | None:
    outer = current_tool()
    if outer is not None and point.outermost:
        return None
    if player is None and request.kind is ToolKind.MCP and request.name in MCP_REQUESTS and current_run() is None:
        return None  # a connection that outlives the runs which use it belongs to none of them
    if outer is not None and outer.request.name == request.name and _is_same_call(outer.request, request):
        return None  # the same call, seen by a framework and by a decorator

    def read_result(result: Any) -> ToolResult:
        read = result if isinstance(result, ToolResult) else point.read_result(result)
        if not isinstance(read, ToolResult):
            return ToolResult()
        if player is None and boundary.content:
            changed = changed_arguments(scope.request.arguments, arguments) if point.mutable else None
            read = replace(read, changed={**(changed or {}), **changed_since(before, shared)} or None)
        return read

    run = current_run()
    shared: Mapping[str, Any] = {}
    before: Noticed = {}
    if point.shared is not None and boundary.content and request.kind not in (ToolKind.AGENT, ToolKind.HANDOFF):
        with quietly(f"look at what {point.target} shares with its agent"):
            shared = point.shared(arguments)
            before = notice(shared) if player is None else before
    crossing, scope = tool_calls.open_tool(boundary, request, player, read_result)
    request = scope.request
    crossing.read_control_flow, crossing.errors = partial(read_control_flow, point), point.errors
    passage = Passage(crossing, None)
    if player is not None:
        try:
            answer = player.answer_tool(run.live if run else None, request)
        except BaseException as error:  # noqa: BLE001 - raised again where the call would have been
            passage.error = error
            return passage
        if isinstance(answer, Live):
            crossing.context = opened(crossing.context)
        elif isinstance(answer, BrokenOff):
            if answer.before is not None:
                serve(passage, point, answer.before, arguments)
            passage.broken_off = answer
        elif isinstance(answer, RecordedError):
            passage.error = error_again(point, answer, arguments)
        elif answer is not None:
            serve(passage, point, answer, arguments)
    if point.kind is Kind.HANDOFF and run is not None:
        crossing.told = _tell_handoff(boundary, run, request, player, read_result)
    return passage


def _is_same_call(outer: ToolRequest, inner: ToolRequest) -> bool:
    """Whether both are one call: what the model wrote, and the same with the function's defaults filled."""
    asked, executed = snapshot(outer.arguments).value, snapshot(inner.arguments).value
    if not isinstance(asked, dict) or not isinstance(executed, dict):
        return True
    return all(executed.get(name) == value for name, value in asked.items())


def _tell_handoff(
    boundary: Boundary,
    run: RunScope,
    request: ToolRequest,
    player: Player | None,
    read_result: Callable[[Any], ToolResult],
) -> Callable[[Any, BaseException | None], None]:
    def tell(result: Any, error: BaseException | None) -> None:
        if error is None and (target := read_result(result).target):
            runs.hand_over(boundary, run, Agent(name=target), request, player)

    return tell


def _open_model(
    boundary: Boundary, player: Player | None, point: Point, request: Request, arguments: Mapping[str, Any]
) -> Passage | None:
    """A model that is not reached over HTTP: an exchange in the canonical form."""
    asked = HttpRequest("POST", "", "", "", in_process.write_request(request))
    opened = model_calls.open_exchange(
        boundary, lambda _headers, pieces: list(pieces), in_process, request.operation, asked, player
    )
    if opened is None:
        return None
    crossing, capture, live = opened
    crossing.errors = point.errors
    crossing.told = partial(_keep_answer, point, capture, crossing.told)
    passage = Passage(crossing, None)
    if player is not None:
        try:
            answer = player.answer_model(live, in_process, request.operation, asked)
            if isinstance(answer, HttpAnswer) and answer.broken_off is not None:
                passage.broken_off = answer.broken_off
            elif isinstance(answer, HttpAnswer):
                read = in_process.read_response(answer.body, answer.status)
                passage.served = point.rebuild_answer(read, arguments) if point.rebuild_answer is not None else read
            elif answer is not asked:
                player.refuse(f"a changed request to {point.target}, whose requests cannot be rewritten,")
        except BaseException as error:  # noqa: BLE001 - raised again where the call would have been
            passage.error = error
    return passage


def _keep_answer(
    point: Point,
    capture: ExchangeCapture,
    then: Callable[[Any, BaseException | None], None] | None,
    result: Any,
    error: BaseException | None,
) -> None:
    answer = point.read_result(result) if error is None and result is not None else None
    if isinstance(answer, Answer):
        capture.status, capture.body = answer.status, in_process.write_response(answer)
    if then is not None:
        then(result, error)


def _note_failure(error: BaseException) -> None:
    if tool := current_tool():
        tool.failure = error


def _note_outcome(outcome: Outcome) -> None:
    if run := current_run():
        run.outcome = outcome


def current_tool() -> ToolScope | None:
    """The tool call that this code runs in, with no run between."""
    scope = scope_in(contexts.current())
    return scope if isinstance(scope, ToolScope) else None


def current_run() -> RunScope | None:
    """The run that this code belongs to directly."""
    return run_in(contexts.current())
