"""A call of a point, opened: what it asks, where it stands, and what a replay answers to it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from spanreel import boundary as boundaries
from spanreel import contexts
from spanreel.arguments import parameters_of
from spanreel.boundary import Boundary
from spanreel.capture import ExchangeCapture
from spanreel.crossing import Crossing
from spanreel.exchange import HttpAnswer, HttpRequest
from spanreel.failures import rebuild_error
from spanreel.model import MCP_REQUESTS, Agent, Answer, Request, Status, ToolKind
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
from spanreel.rebuilding import change_again, changed_arguments
from spanreel.scope import RunScope, ToolScope, is_open, opened, run_in, scope_in
from spanreel.snapshot import snapshot
from spanreel.surroundings import Noticed, change_shared, changed_since, notice

_NOTHING: Any = object()


@dataclass(eq=False, slots=True)
class Passage:
    """A call under way: its crossing (None where nothing is recorded), its arguments, what a replay answers to it."""

    crossing: Crossing
    bound: inspect.BoundArguments | None
    served: Any = _NOTHING
    error: BaseException | None = None
    error_after: BaseException | None = None
    """What a generator raises after what it has given."""
    broken_off: BrokenOff | None = None
    """The call was broken off when it was recorded, and is to be waited with."""

    @property
    def is_served(self) -> bool:
        """Whether a replay has answered."""
        return self.served is not _NOTHING

    def proceed(self, wrapped: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """What a replay answered, else what the call itself gives."""
        if self.error is not None:
            raise self.error
        if self.broken_off is not None:
            self.broken_off.give_up()
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


def isolated(
    point: Point, wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> inspect.BoundArguments | None:
    """The arguments of a call that goes to the memory of a replay; None where none is played."""
    player = current_player()
    if player is None or point.isolate is None:
        return None
    parameters = parameters_of(wrapped)
    bound = parameters.signature.bind(*args, **kwargs)
    bound.apply_defaults()
    with quietly(f"keep {point.target} from what outlives a replay"):
        given = {**parameters.by_name(args, kwargs), "self": instance}
        return _rewritten(bound, point.isolate(given, player.memory))
    player.refuse(f"a call of {point.target} that could not be kept from the live store")
    return None


def leads_nowhere(point: Point) -> bool:
    """Whether a connection is one of a replay that needs none."""
    player = current_player()
    if player is None or boundaries.installed() is None or is_open():
        return False
    return not player.connects()


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
    bound: inspect.BoundArguments | None,
    arguments: Mapping[str, Any],
) -> Passage:
    def read_result(result: Any) -> RunResult:
        if isinstance(result, RunResult):
            return result
        read = point.read_result(scope.outcome.value if scope.outcome is not None else result)
        return read if isinstance(read, RunResult) else RunResult()

    crossing, scope = boundary.open_run(request, player, read_result)
    if (read_begun := point.read_begun) is not None:
        crossing.begun = lambda entered: boundary.note_begun(scope, read_begun(entered))
    crossing.read_control_flow, crossing.errors = partial(_read_control_flow, point), point.errors
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
            passage.bound = _rewritten(bound, arguments)
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
    crossing, scope = boundary.open_tool(request, player, read_result)
    request = scope.request
    crossing.read_control_flow, crossing.errors = partial(_read_control_flow, point), point.errors
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
                _serve(passage, point, answer.before, arguments)
            passage.broken_off = answer
        elif isinstance(answer, RecordedError):
            passage.error = _error_again(point, answer, arguments)
        elif answer is not None:
            _serve(passage, point, answer, arguments)
    if point.kind is Kind.HANDOFF and run is not None:
        crossing.told = _tell_handoff(boundary, run, request, player, read_result)
    return passage


def _open_model(
    boundary: Boundary, player: Player | None, point: Point, request: Request, arguments: Mapping[str, Any]
) -> Passage | None:
    """A model that is not reached over HTTP: an exchange in the canonical form."""
    asked = HttpRequest("POST", "", "", "", in_process.write_request(request))
    opened = boundary.open_exchange(lambda _headers, pieces: list(pieces), in_process, request.operation, asked, player)
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


def _is_same_call(outer: ToolRequest, inner: ToolRequest) -> bool:
    """Whether both are one call: what the model wrote, and the same with the function's defaults filled."""
    asked, executed = snapshot(outer.arguments).value, snapshot(inner.arguments).value
    if not isinstance(asked, dict) or not isinstance(executed, dict):
        return True
    return all(executed.get(name) == value for name, value in asked.items())


def _note_failure(error: BaseException) -> None:
    if tool := current_tool():
        tool.failure = error


def _note_outcome(outcome: Outcome) -> None:
    if run := current_run():
        run.outcome = outcome


def _read_control_flow(point: Point, error: BaseException) -> RunResult | ToolResult | None:
    """What an exception amounts to that is no error; None for all others."""
    if not {kind.__name__ for kind in type(error).__mro__} & set(point.control_flow):
        return None
    if point.read_control_flow is not None:
        return point.read_control_flow(error)
    kind = RunResult if point.kind is Kind.RUN else ToolResult
    return kind(status=Status.INTERRUPTED)


def _serve(passage: Passage, point: Point, answer: ToolResult, arguments: Mapping[str, Any]) -> None:
    """Answer with the recorded result; what interrupted the call interrupts it again."""
    try:
        passage.served = point.rebuild(answer, arguments) if point.rebuild is not None else answer.value
        if answer.raises is not None:
            passage.error_after = _error_again(point, answer.raises, arguments)
        if answer.changed:
            change_again(arguments, answer.changed)
            if point.shared is not None:
                change_shared(point.shared(arguments), answer.changed)
    except BaseException as error:
        if _read_control_flow(point, error) is None:
            raise
        passage.error = error


def _error_again(point: Point, recorded: RecordedError, arguments: Mapping[str, Any]) -> BaseException:
    """The library's own error where it raises the recorded one by itself, else one made from the recorded text."""
    if point.raise_again is not None:
        try:
            point.raise_again(recorded, arguments)
        except Exception as error:  # noqa: BLE001 - whether it is the recorded one is seen below
            if type(error).__qualname__ == recorded.type.rpartition(".")[2]:
                return error
    return rebuild_error(recorded)


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
    scope = scope_in(contexts.current())
    return scope if isinstance(scope, ToolScope) else None


def current_run() -> RunScope | None:
    """The run that this code belongs to directly."""
    return run_in(contexts.current())
