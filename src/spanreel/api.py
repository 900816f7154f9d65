"""An agent written by hand: `run` and `tool`, as decorators and as context managers; `session` beside them.

What is read of a decorated function is `decorating`'s.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast, overload

from spanreel import contexts
from spanreel.conversation import session
from spanreel.decorating import decorated, run_point, said, tool_point
from spanreel.model import Agent, Message
from spanreel.opening import open_passage
from spanreel.passage import Passage
from spanreel.playing import current_player
from spanreel.point import Kind, Point, RunRequest, RunResult, ToolRequest, ToolResult
from spanreel.shapes import reshaped, shape_of
from spanreel.streams import is_closing

__all__ = ["run", "session", "tool"]

Function = TypeVar("Function", bound=Callable[..., Any])


@overload
def run(agent: Function, /) -> Function: ...
@overload
def run(agent: str | None = None, *, version: str | None = None, id: str | None = None) -> RunBlock: ...
def run(agent: Any = None, *, version: str | None = None, id: str | None = None) -> Any:
    """One request to an agent, until its final answer.

    As a decorator, on functions, coroutine functions and (asynchronous) generator functions::

        @spanreel.run(agent="planner", version="3")
        def plan(question: str) -> str: ...

    As a context manager::

        with spanreel.run(agent="planner") as this:
            this.input = question
            this.output = answer(question)

    ``agent`` is the agent's name; a decorated function's own name where it is left out.
    """
    return RunBlock()(agent) if _is_function(agent) else RunBlock(agent, version=version, id=id)


@overload
def tool(name: Function, /) -> Function: ...
@overload
def tool(
    name: str | None = None,
    *,
    side_effect: bool | None = None,
    pure: bool = False,
    arguments: Mapping[str, Any] | None = None,
    call_id: str | None = None,
    description: str | None = None,
) -> ToolBlock: ...
def tool(name: Any = None, **options: Any) -> Any:
    """One tool of an agent: recorded when it is called, answered from the recording in a replay.

    As a decorator::

        @spanreel.tool(side_effect=True)
        def refund(order_id: str, amount: float) -> str: ...

    As a context manager, where ``served`` says whether a replay has put the recorded result in ``result``::

        with spanreel.tool("search", arguments={"query": query}) as call:
            if not call.served:
                call.result = search(query)

    ``side_effect`` says whether calling it changes something in the world; ``pure`` that equal arguments always give
    the same result, so that a replay may give it once more; ``call_id`` is the model's id of the call.
    """
    return ToolBlock()(name) if _is_function(name) else ToolBlock(name, **options)


def _is_function(given: Any) -> bool:
    """Whether a bare decorator was given what it decorates; a classmethod object cannot be called."""
    return callable(given) or isinstance(given, classmethod)


class RunBlock:
    """What `run` makes: a decorator, and a context manager that records what the block says."""

    def __init__(self, agent: str | None = None, *, version: str | None = None, id: str | None = None) -> None:
        self.agent = Agent(agent, id, version)
        self.input: Any = None
        self.output: Any = None
        self._passages: list[tuple[Passage | None, Any]] = []

    def __call__(self, function: Function) -> Function:
        """Decorate a function."""
        return cast(Function, decorated(function, run_point(function, self.agent)))

    def __enter__(self) -> RunBlock:
        """Start the run; what `input` and `output` are set to inside is recorded."""
        point = Point("spanreel.api:run", Kind.RUN, lambda *_: RunRequest(self.agent, self._messages), self._result)
        _enter(self._passages, point)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        _exit(self._passages, error, None)

    async def __aenter__(self) -> RunBlock:
        return self.__enter__()

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.__exit__(kind, error, trace)

    def _messages(self) -> tuple[Message, ...]:
        return said("user", self.input)

    def _result(self, _result: Any) -> RunResult:
        return RunResult(output=said("assistant", self.output), value=self.output)


class ToolBlock:
    """What `tool` makes: a decorator, and a context manager that says whether a replay has answered."""

    def __init__(  # noqa: PLR0913 - each is a question of its own, and has a default
        self,
        name: str | None = None,
        *,
        side_effect: bool | None = None,
        pure: bool = False,
        arguments: Mapping[str, Any] | None = None,
        call_id: str | None = None,
        description: str | None = None,
    ) -> None:
        self.name = name
        self.side_effect = side_effect
        self.pure = pure
        self.arguments = dict(arguments or {})
        self.call_id = call_id
        self.description = description
        self.served = False
        self._result: Any = None
        self._passages: list[tuple[Passage | None, Any]] = []

    @property
    def result(self) -> Any:
        """What the tool answered: recorded, or set by the block."""
        return self._result

    @result.setter
    def result(self, value: Any) -> None:
        player = current_player() if self.served else None
        if player is not None:
            player.refuse(f"the block of spanreel.tool({self.name!r}) ran although `served` was true")
        self._result = value

    def __call__(self, function: Function) -> Function:
        """Decorate a function."""
        return cast(Function, decorated(function, tool_point(function, self._request({}))))

    def __enter__(self) -> ToolBlock:
        """The call starts; ``served`` and ``result`` are set where a replay answers."""
        return self._start(sys._getframe(1).f_globals)  # noqa: SLF001 - the module whose block it is

    def _start(self, names: Mapping[str, Any]) -> ToolBlock:
        """Start the call; ``names`` are those of the block's module, where classes of its result are looked for."""
        if self.name is None:
            raise TypeError(
                "spanreel.tool() as a context manager needs a name: spanreel.tool('search', arguments={...})"
            )
        request = self._request(self.arguments)
        point = Point(
            "spanreel.api:tool",
            Kind.TOOL,
            lambda *_: request,
            lambda result: ToolResult(result, type=shape_of(result, names)),
            rebuild=lambda recorded, _: reshaped(recorded.value, recorded.type or "_", names),
        )
        passage = _enter(self._passages, point)
        if passage is not None and passage.error is not None:
            self.__exit__(None, passage.error, None)
            raise passage.error
        self.served = passage is not None and passage.is_served
        self._result = passage.served if passage is not None and self.served else None
        return self

    def _request(self, arguments: Mapping[str, Any]) -> ToolRequest:
        return ToolRequest(
            self.name or "",
            arguments,
            self.call_id,
            description=self.description,
            side_effect=self.side_effect,
            pure=self.pure,
        )

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        _exit(self._passages, error, self._result)

    async def __aenter__(self) -> ToolBlock:
        return self._start(sys._getframe(1).f_globals)  # noqa: SLF001 - as above

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.__exit__(kind, error, trace)


# -- context managers ------------------------------------------------------------------------------------------------


def _enter(passages: list[tuple[Passage | None, Any]], point: Point) -> Passage | None:
    passage = open_passage(point, lambda: None, None, (), {})
    token = contexts.attach(passage.crossing.context) if passage is not None else None
    passages.append((passage, token))
    return passage


def _exit(passages: list[tuple[Passage | None, Any]], error: BaseException | None, result: Any) -> None:
    passage = contexts.leave_newest(passages)
    if passage is None:
        return
    if error is not None and not is_closing(error):
        passage.crossing.fail(error)
    else:
        passage.crossing.finish(result)
