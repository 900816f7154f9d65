"""A call of a point, opened: what it asks, where it stands, and what a replay answers to it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from opentelemetry import context as otel

from spanreel import boundary as boundaries
from spanreel.boundary import Boundary
from spanreel.crossing import Crossing
from spanreel.model import Agent
from spanreel.playing import current_player, rebuild_error
from spanreel.point import (
    Failure,
    Kind,
    LiveRun,
    Player,
    Point,
    RecordedError,
    RunRequest,
    RunResult,
    ToolRequest,
    ToolResult,
)
from spanreel.quiet import quietly
from spanreel.scope import RunScope, ToolScope, run_in, scope_in
from spanreel.snapshot import snapshot

_NOTHING: Any = object()


@dataclass(eq=False, slots=True)
class Passage:
    """A call under way: its crossing (None where nothing is recorded), its arguments, what a replay answers to it."""

    crossing: Crossing
    bound: inspect.BoundArguments | None
    served: Any = _NOTHING
    error: BaseException | None = None

    @property
    def is_served(self) -> bool:
        """Whether a replay has answered."""
        return self.served is not _NOTHING

    def proceed(self, wrapped: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """What a replay answered, else what the call itself gives."""
        if self.error is not None:
            raise self.error
        if self.served is not _NOTHING:
            return self.served
        if self.bound is not None:
            return wrapped(*self.bound.args, **self.bound.kwargs)
        return wrapped(*args, **kwargs)


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
        bound = inspect.signature(wrapped).bind(*args, **kwargs)
        arguments = by_name(bound)
        request = point.read(instance, arguments)
        if isinstance(request, RunRequest):
            passage = _open_run(boundary, player, point, request, bound, arguments)
        elif isinstance(request, ToolRequest):
            passage = _open_tool(boundary, player, point, request, arguments)
        elif isinstance(request, Failure):
            _note_failure(request.error)
        read = True
    if not read and player is not None and point.kind is Kind.TOOL:
        player.refuse(f"a call of {point.target} that could not be read")
    return passage


def by_name(bound: inspect.BoundArguments) -> dict[str, Any]:
    """A call's arguments by name, defaults filled, those of ``**kwargs`` beside the others."""
    bound.apply_defaults()
    arguments: dict[str, Any] = {}
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            arguments.update(bound.arguments[name])
        else:
            arguments[name] = bound.arguments[name]
    return arguments


def _rewritten(bound: inspect.BoundArguments, arguments: Mapping[str, Any]) -> inspect.BoundArguments:
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            extra = bound.arguments[name]
            bound.arguments[name] = {key: arguments.get(key, value) for key, value in extra.items()}
        elif name in arguments:
            bound.arguments[name] = arguments[name]
    return bound


def _open_run(  # noqa: PLR0913 - what a call is made of
    boundary: Boundary,
    player: Player | None,
    point: Point,
    request: RunRequest,
    bound: inspect.BoundArguments,
    arguments: Mapping[str, Any],
) -> Passage:
    def read_result(result: Any) -> RunResult:
        read = point.read_result(result)
        return read if isinstance(read, RunResult) else RunResult()

    crossing, scope = boundary.open_run(request, player, read_result)
    crossing.control_flow, crossing.errors = point.control_flow, point.errors
    passage = Passage(crossing, None)
    if player is not None:
        recorded = player.begin_run(scope.live, request)
        if recorded is not None and point.rewrite is not None:
            passage.bound = _rewritten(bound, point.rewrite(arguments, recorded))
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
    if outer is not None and outer.request.name == request.name and _is_same_call(outer.request, request):
        return None  # the same call, seen by a framework and by a decorator

    def read_result(result: Any) -> ToolResult:
        read = point.read_result(result)
        return read if isinstance(read, ToolResult) else ToolResult()

    run = current_run()
    crossing, scope = boundary.open_tool(request, player, read_result)
    request = scope.request
    crossing.control_flow, crossing.errors = point.control_flow, point.errors
    passage = Passage(crossing, None)
    if player is not None:
        try:
            answer = player.answer_tool(run.live if run else None, request)
        except BaseException as error:  # noqa: BLE001 - raised again where the call would have been
            passage.error = error
            return passage
        if isinstance(answer, RecordedError):
            passage.error = rebuild_error(answer)
        elif answer is not None:
            passage.served = _rebuilt(point, answer, arguments)
    if point.kind is Kind.HANDOFF and run is not None:
        crossing.told = _tell_handoff(boundary, run, request, player, read_result)
    return passage


def _is_same_call(outer: ToolRequest, inner: ToolRequest) -> bool:
    """Whether both are one call: what the model wrote, and the same with the function's defaults filled."""
    asked, executed = snapshot(outer.arguments).value, snapshot(inner.arguments).value
    if not isinstance(asked, dict) or not isinstance(executed, dict):
        return True
    return all(executed.get(name) == value for name, value in asked.items())


def _note_failure(error: BaseException) -> None:
    if tool := current_tool():
        tool.failure = error


def _rebuilt(point: Point, answer: ToolResult, arguments: Mapping[str, Any]) -> Any:
    return point.rebuild(answer, arguments) if point.rebuild is not None else answer.value


def _tell_handoff(
    boundary: Boundary,
    run: RunScope,
    request: ToolRequest,
    player: Player | None,
    read_result: Callable[[Any], ToolResult],
) -> Callable[[Any, BaseException | None], None]:
    def tell(result: Any, error: BaseException | None) -> None:
        if error is None and (target := read_result(result).target):
            boundary.hand_over(run, Agent(name=target), request, player)

    return tell


def current_tool() -> ToolScope | None:
    """The tool call that this code runs in, with no run between."""
    scope = scope_in(otel.get_current())
    return scope if isinstance(scope, ToolScope) else None


def current_run() -> RunScope | None:
    """The run that this code belongs to directly."""
    return run_in(otel.get_current())
