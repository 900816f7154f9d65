"""An agent written by hand: `run`, `tool` and `session` as decorators and as context managers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import Token
from typing import Any, TypeVar, cast

import wrapt
from opentelemetry import context as otel
from opentelemetry.context import set_value

from spanreel import driving
from spanreel.model import Agent, Message, SessionInfo, Status, ToolKind
from spanreel.playing import current_player
from spanreel.point import Kind, Point, RunRequest, RunResult, ToolRequest, ToolResult
from spanreel.rebuilding import hints_of, rebuild_arguments, rebuild_value
from spanreel.scope import SESSION_KEY
from spanreel.streams import watch_async_generator, watch_generator

Function = TypeVar("Function", bound=Callable[..., Any])


class run:  # noqa: N801  # used as a decorator and in `with`, where functions' names are expected
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

    def __init__(self, agent: str | None = None, *, version: str | None = None, id: str | None = None) -> None:
        self.agent = Agent(agent, id, version)
        self.input: Any = None
        self.output: Any = None
        self._passages: list[tuple[driving.Passage | None, Token[Any] | None]] = []

    def __call__(self, function: Function) -> Function:
        """Decorate a function."""
        return cast(Function, _decorated(function, _run_point(function, self.agent)))

    def __enter__(self) -> run:
        """Start the run; what `input` and `output` are set to inside is recorded."""
        point = Point("spanreel.api:run", Kind.RUN, lambda *_: RunRequest(self.agent, self._messages), self._result)
        _enter(self._passages, point)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        _exit(self._passages, error, None)

    async def __aenter__(self) -> run:
        return self.__enter__()

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.__exit__(kind, error, trace)

    def _messages(self) -> tuple[Message, ...]:
        return said("user", self.input)

    def _result(self, _result: Any) -> RunResult:
        return RunResult(output=said("assistant", self.output), value=self.output)


class tool:  # noqa: N801  # used as a decorator and in `with`, where functions' names are expected
    """One tool of an agent: recorded when it is called, answered from the recording in a replay.

    As a decorator::

        @spanreel.tool(side_effect=True)
        def refund(order_id: str, amount: float) -> str: ...

    As a context manager, where ``served`` says whether a replay has put the recorded result in ``result``::

        with spanreel.tool("search", arguments={"query": query}) as call:
            if not call.served:
                call.result = search(query)

    ``side_effect`` says whether calling it changes something in the world; ``call_id`` is the model's id of the call.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        side_effect: bool | None = None,
        arguments: Mapping[str, Any] | None = None,
        call_id: str | None = None,
        description: str | None = None,
    ) -> None:
        self.name = name
        self.side_effect = side_effect
        self.arguments = dict(arguments or {})
        self.call_id = call_id
        self.description = description
        self.served = False
        self._result: Any = None
        self._passages: list[tuple[driving.Passage | None, Token[Any] | None]] = []

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
        return cast(Function, _decorated(function, _tool_point(function, self)))

    def __enter__(self) -> tool:
        """The call starts; ``served`` and ``result`` are set where a replay answers."""
        if self.name is None:
            raise TypeError(
                "spanreel.tool() as a context manager needs a name: spanreel.tool('search', arguments={...})"
            )
        request = ToolRequest(
            self.name, self.arguments, self.call_id, description=self.description, side_effect=self.side_effect
        )
        point = Point("spanreel.api:tool", Kind.TOOL, lambda *_: request, ToolResult)
        passage = _enter(self._passages, point)
        if passage is not None and passage.error is not None:
            self.__exit__(None, passage.error, None)
            raise passage.error
        self.served = passage is not None and passage.is_served
        self._result = passage.served if passage is not None and self.served else None
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        _exit(self._passages, error, self._result)

    async def __aenter__(self) -> tool:
        return self.__enter__()

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.__exit__(kind, error, trace)


class session:  # noqa: N801  # used as a decorator and in `with`, where functions' names are expected
    """Everything inside belongs to the session ``id``: a conversation over several runs, requests and processes.

    Args:
        id: the conversation's id (``gen_ai.conversation.id`` on every span).
        user_id: whose conversation it is (``user.id``).
        name: a title for people.
        tags: short labels to find it by.
        metadata: anything else, as JSON.
    """

    def __init__(
        self,
        id: str,
        *,
        user_id: str | None = None,
        name: str | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.info = SessionInfo(str(id), user_id, name, tuple(tags), dict(metadata or {}))
        self._tokens: list[Token[Any]] = []

    def __call__(self, function: Function) -> Function:
        """Decorate a function: each of its calls is inside."""
        return cast(Function, _in_session(function, self.info))

    def __enter__(self) -> session:
        self._tokens.append(otel.attach(set_value(SESSION_KEY, self.info)))
        return self

    def __exit__(self, *_: object) -> None:
        otel.detach(self._tokens.pop())

    async def __aenter__(self) -> session:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()


def said(role: str, value: Any) -> tuple[Message, ...]:
    """A value as one text message; none where it is no text."""
    return ({"role": role, "parts": [{"type": "text", "content": value}]},) if isinstance(value, str) else ()


# -- points of decorated functions -----------------------------------------------------------------------------------


def _run_point(function: Callable[..., Any], agent: Agent) -> Point:
    named = agent if agent.name else Agent(function.__name__, agent.id, agent.version)

    def read(_instance: Any, arguments: Mapping[str, Any]) -> RunRequest:
        shown = _without_self(arguments)
        texts = [value for value in shown.values() if isinstance(value, str)]
        return RunRequest(
            agent=named,
            input=said("user", texts[0]) if texts else (),
            arguments=shown,
            callable=f"{function.__module__}:{function.__qualname__}",
        )

    def rewrite(arguments: Mapping[str, Any], recorded: Mapping[str, Any]) -> Mapping[str, Any]:
        return rebuild_arguments(function, arguments, recorded)

    return Point(
        f"{function.__module__}:{function.__qualname__}",
        Kind.RUN,
        read,
        lambda result: RunResult(output=said("assistant", _joined(result)), value=result),
        rewrite=rewrite,
    )


def _tool_point(function: Callable[..., Any], made: tool) -> Point:
    name = made.name or function.__name__
    description = made.description or inspect.getdoc(function)
    returns = hints_of(function).get("return", Any)

    def read(_instance: Any, arguments: Mapping[str, Any]) -> ToolRequest:
        return ToolRequest(
            name,
            _without_self(arguments),
            made.call_id,
            kind=ToolKind.FUNCTION,
            description=description,
            side_effect=made.side_effect,
        )

    return Point(
        f"{function.__module__}:{function.__qualname__}",
        Kind.TOOL,
        read,
        ToolResult,
        rebuild=lambda recorded, _arguments: rebuild_value(recorded.value, returns),
    )


def _without_self(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name not in ("self", "cls")}


def _joined(result: Any) -> Any:
    """A streamed run's text in one; any other result as it is."""
    if isinstance(result, list) and result and all(isinstance(item, str) for item in result):
        return "".join(result)
    return result


def _decorated(function: Any, point: Point) -> Any:
    if inspect.isasyncgenfunction(function):

        def async_stream(wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            opening = driving.open_stream(point, wrapped, instance, args, kwargs)
            return watch_async_generator(opening.open, opening.make_async)

        return wrapt.FunctionWrapper(function, async_stream)
    if inspect.isgeneratorfunction(function):

        def stream(wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            opening = driving.open_stream(point, wrapped, instance, args, kwargs)
            return watch_generator(opening.open, opening.make)

        return wrapt.FunctionWrapper(function, stream)
    if inspect.iscoroutinefunction(function):

        async def asynchronous(wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return await driving.call_async(point, wrapped, instance, args, kwargs)

        return wrapt.FunctionWrapper(function, asynchronous)

    def plain(wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return driving.call(point, wrapped, instance, args, kwargs)

    return wrapt.FunctionWrapper(function, plain)


# -- context managers ------------------------------------------------------------------------------------------------


def _enter(passages: list[tuple[driving.Passage | None, Token[Any] | None]], point: Point) -> driving.Passage | None:
    passage = driving.open_passage(point, lambda: None, None, (), {})
    token = otel.attach(passage.crossing.context) if passage is not None else None
    passages.append((passage, token))
    return passage


def _exit(
    passages: list[tuple[driving.Passage | None, Token[Any] | None]], error: BaseException | None, result: Any
) -> None:
    passage, token = passages.pop()
    if token is not None:
        otel.detach(token)
    if passage is None:
        return
    if error is not None:
        passage.crossing.fail(error)
    else:
        passage.crossing.finish(result)


# -- sessions of decorated functions ---------------------------------------------------------------------------------


class _SessionWatch:
    """Steps of a generator, inside a session."""

    def __init__(self, info: SessionInfo) -> None:
        self.info = info

    def entered(self) -> AbstractContextManager[None]:
        return _attached(self.info)

    def item(self, value: Any) -> None:
        """Nothing is kept."""

    def finish(self, result: Any) -> None:
        """Nothing is kept."""

    def fail(self, error: BaseException) -> None:
        """Nothing is kept."""


@contextmanager
def _attached(info: SessionInfo) -> Any:
    token = otel.attach(set_value(SESSION_KEY, info))
    try:
        yield
    finally:
        otel.detach(token)


def _in_session(function: Any, info: SessionInfo) -> Any:
    def stream(wrapped: Any, _instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return watch_generator(lambda: _SessionWatch(info), lambda: wrapped(*args, **kwargs))

    def async_stream(wrapped: Any, _instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return watch_async_generator(lambda: _SessionWatch(info), lambda: wrapped(*args, **kwargs))

    async def asynchronous(wrapped: Any, _instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with _attached(info):
            return await wrapped(*args, **kwargs)

    def plain(wrapped: Any, _instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with _attached(info):
            return wrapped(*args, **kwargs)

    if inspect.isasyncgenfunction(function):
        return wrapt.FunctionWrapper(function, async_stream)
    if inspect.isgeneratorfunction(function):
        return wrapt.FunctionWrapper(function, stream)
    return wrapt.FunctionWrapper(function, asynchronous if inspect.iscoroutinefunction(function) else plain)


__all__ = ["Status", "run", "said", "session", "tool"]
