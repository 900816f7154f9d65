"""`spanreel.session`: everything inside belongs to one conversation, over several runs, requests and processes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

import wrapt
from opentelemetry.context import set_value

from spanreel import contexts
from spanreel.model import SessionInfo
from spanreel.scope import SESSION_KEY
from spanreel.snapshot import snapshot
from spanreel.streams import generator_in, watch_async_generator, watch_generator, watched

Function = TypeVar("Function", bound=Callable[..., Any])


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
        self.info = SessionInfo(str(id), user_id, name, tuple(tags), snapshot(dict(metadata or {})).value)
        self._entered: list[tuple[None, Any]] = []

    def __call__(self, function: Function) -> Function:
        """Decorate a function: each of its calls is inside."""
        return cast(Function, _in_session(function, self.info))

    def __enter__(self) -> session:
        self._entered.append((None, contexts.attach(set_value(SESSION_KEY, self.info))))
        return self

    def __exit__(self, *_: object) -> None:
        contexts.leave_newest(self._entered)

    async def __aenter__(self) -> session:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()


class _SessionWatch:
    """Steps of a generator, inside a session."""

    def __init__(self, info: SessionInfo) -> None:
        self.info = info

    def stepping(self) -> Callable[[], Any]:
        return lambda: contexts.attach(set_value(SESSION_KEY, self.info))

    def hearing(self) -> None:
        """Nothing is kept."""

    def finish(self, result: Any) -> None:
        """Nothing is kept."""

    def fail(self, error: BaseException) -> None:
        """Nothing is kept."""


def _inside(info: SessionInfo, result: Any) -> Any:
    """What a function has returned; where that is a generator, it runs inside the session too."""
    generator = generator_in(result)
    return result if generator is None else watched(result, generator, lambda: _SessionWatch(info))[0]


def _in_session(function: Any, info: SessionInfo) -> Any:
    def stream(wrapped: Any, _instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return watch_generator(lambda: _SessionWatch(info), lambda: wrapped(*args, **kwargs))

    def async_stream(wrapped: Any, _instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return watch_async_generator(lambda: _SessionWatch(info), lambda: wrapped(*args, **kwargs))

    async def asynchronous(wrapped: Any, _instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with contexts.Attached(set_value(SESSION_KEY, info)):
            return _inside(info, await wrapped(*args, **kwargs))

    def plain(wrapped: Any, _instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with contexts.Attached(set_value(SESSION_KEY, info)):
            return _inside(info, wrapped(*args, **kwargs))

    if inspect.isasyncgenfunction(function):
        return wrapt.FunctionWrapper(function, async_stream)
    if inspect.isgeneratorfunction(function):
        return wrapt.FunctionWrapper(function, stream)
    return wrapt.FunctionWrapper(function, asynchronous if inspect.iscoroutinefunction(function) else plain)
