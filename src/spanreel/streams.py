"""Generators that are advanced inside a context, and blocks that are watched.

Nothing is current across a ``yield``: the context is attached for the length of a step, and detached before the caller
has the word.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from functools import wraps
from types import AsyncGeneratorType, GeneratorType
from typing import Any, Final, Protocol

from spanreel.contexts import Inside, attach, current, detach, leave


class Watch(Protocol):
    """Who watches a generator."""

    def stepping(self) -> Callable[[], Any]:
        """What makes the context of a step current, and gives what `contexts.detach` takes it back with."""
        ...

    def hearing(self) -> Callable[[Any], None] | None:
        """What hears of each value that is about to be handed out; None where nobody wants to know."""
        ...

    def finish(self, result: Any) -> None:
        """The generator has ended, or its consumer closed it (result None)."""
        ...

    def fail(self, error: BaseException) -> None:
        """The generator raised."""
        ...


class BlockWatch(Watch, Protocol):
    """Who watches a block."""

    def item(self, value: Any) -> None:
        """The block has been entered with this."""
        ...

    def stay(self) -> Callable[[], None]:
        """Make the context current until what comes back is called, be it in another task."""
        ...


def watch_generator(open_watch: Callable[[], Watch | None], make: Callable[[], Any]) -> Generator[Any, Any, Any]:
    """A generator that does what ``make()`` does, each step inside the watch's context; opened at the first step."""
    watch = open_watch()
    if watch is None:
        return (yield from make())
    sent: Any = None
    thrown: BaseException | None = None
    generator: Any = None
    enter, hear = watch.stepping(), watch.hearing()
    try:
        with Inside(enter):
            generator = make()
        while True:
            token = enter()
            try:
                if thrown is not None:
                    raised, thrown = thrown, None
                    value = generator.throw(raised)
                elif sent is None:
                    value = next(generator)
                else:
                    value = generator.send(sent)
            finally:
                detach(token)
            if hear is not None:
                hear(value)
            try:
                sent = yield value
            except GeneratorExit:
                with Inside(enter):
                    close = getattr(generator, "close", None)
                    if close is not None:
                        close()
                watch.finish(None)
                raise
            except BaseException as error:  # noqa: BLE001 - thrown into the generator at the next step
                thrown = error
    except StopIteration as end:
        watch.finish(end.value)
        return end.value
    except GeneratorExit:
        watch.finish(None)
        raise
    except BaseException as error:
        watch.fail(error)
        raise


async def watch_async_generator(
    open_watch: Callable[[], Watch | None], make: Callable[[], Any]
) -> AsyncGenerator[Any, Any]:
    """`watch_generator` for asynchronous generators."""
    watch = open_watch()
    if watch is None:
        watch = _Unwatched()
    sent: Any = None
    thrown: BaseException | None = None
    enter, hear = watch.stepping(), watch.hearing()
    try:
        with Inside(enter):
            generator = make()
        while True:
            token = enter()
            try:
                if thrown is not None:
                    raised, thrown = thrown, None
                    value = await generator.athrow(raised)
                elif sent is None:
                    value = await anext(generator)
                else:
                    value = await generator.asend(sent)
            finally:
                leave(token)
            if hear is not None:
                hear(value)
            try:
                sent = yield value
            except BaseException as error:
                if not is_closing(error):
                    thrown = error  # into the generator at the next step
                    continue
                with Inside(enter):
                    close = getattr(generator, "aclose", None)
                    if close is not None:
                        await close()
                watch.finish(None)
                raise
    except StopAsyncIteration:
        watch.finish(None)
    except GeneratorExit:
        watch.finish(None)
        raise
    except BaseException as error:
        watch.fail(error)
        raise


BODY: Final = "body_iterator"
"""Where streamed responses of Starlette, and so of FastAPI, hold the generator of what they send."""


def generator_in(result: Any) -> Any:
    """The generator that a function has returned, by itself or as the body of a response; None where it has not."""
    try:  # not by `getattr`: what a user's own does there is none of our business
        body = object.__getattribute__(result, "__dict__").get(BODY, result)
    except AttributeError:
        body = result
    return body if type(body) in (GeneratorType, AsyncGeneratorType) else None


def watched(result: Any, generator: Any, open_watch: Callable[[], Watch | None]) -> tuple[Any, Any]:
    """What a function has returned with its generator watched, and that."""
    watch = watch_async_generator if inspect.isasyncgen(generator) else watch_generator
    followed: Any = watch(open_watch, lambda: generator)
    if generator is result:
        return followed, followed
    setattr(result, BODY, followed)
    return result, followed


def is_closing(error: BaseException) -> bool:
    """Whether a generator is closed with it: by whoever read it, or by its event loop, which is about to end.

    The loop closes it in a task of its own, and cancels that task with all others.
    """
    if isinstance(error, GeneratorExit):
        return True
    task = asyncio.current_task() if isinstance(error, asyncio.CancelledError) else None
    return task is not None and type(task.get_coro()).__name__ == "async_generator_athrow"


class WatchedBlock:
    """A context manager, sync or async, whose block is watched: opened when it is entered, ended when it is left.

    The context is current inside the block, as the user's ``with`` says; what was entered is the result. ``opening()``
    gives how to open the watch, and what makes the context manager; where the context does not stay, it is current only
    while the block is entered. It decorates functions as those of contextlib do.
    """

    def __init__(
        self, opening: Callable[[], tuple[Callable[[], BlockWatch | None], Callable[[], Any]]], *, stays: bool = True
    ) -> None:
        self._opening = opening
        self._stays = stays
        self._open_watch, self._make = opening()
        self._watch: BlockWatch = _Unwatched()
        self._inner: Any = None
        self._leave: Callable[[], None] = _nothing
        self._entered: Any = None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, each call of it in a block of its own."""
        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def asynchronous(*args: Any, **kwargs: Any) -> Any:
                async with WatchedBlock(self._opening, stays=self._stays):
                    return await function(*args, **kwargs)

            return asynchronous

        @wraps(function)
        def plain(*args: Any, **kwargs: Any) -> Any:
            with WatchedBlock(self._opening, stays=self._stays):
                return function(*args, **kwargs)

        return plain

    def __enter__(self) -> Any:
        self._start()
        try:
            self._inner = self._make()
            self._entered = self._inner.__enter__()
        except BaseException as error:
            self._end(error)
            raise
        self._settle()
        return self._entered

    def __exit__(self, kind: object, raised: BaseException | None, trace: object) -> Any:
        try:
            swallowed = self._inner.__exit__(kind, raised, trace)
        except BaseException as error:
            self._end(error)
            raise
        self._end(None if swallowed else raised)
        return swallowed

    async def __aenter__(self) -> Any:
        self._start()
        try:
            self._inner = self._make()
            self._entered = await self._inner.__aenter__()
        except BaseException as error:
            self._end(error)
            raise
        self._settle()
        return self._entered

    async def __aexit__(self, kind: object, raised: BaseException | None, trace: object) -> Any:
        try:
            swallowed = await self._inner.__aexit__(kind, raised, trace)
        except BaseException as error:
            self._end(error)
            raise
        self._end(None if swallowed else raised)
        return swallowed

    def _start(self) -> None:
        self._watch = self._open_watch() or _Unwatched()
        self._leave = self._watch.stay()

    def _settle(self) -> None:
        if not self._stays:
            self._leave()
            self._leave = _nothing
        self._watch.item(self._entered)

    def _end(self, error: BaseException | None) -> None:
        self._leave()
        if error is None or is_closing(error):
            self._watch.finish(self._entered)
        else:
            self._watch.fail(error)


def _nothing() -> None:
    """What there is to undo where nothing was done."""


class _Unwatched:
    """A watch that sees nothing."""

    def stepping(self) -> Callable[[], Any]:
        return lambda: attach(current())

    def hearing(self) -> None:
        return None

    def stay(self) -> Callable[[], None]:
        return _nothing

    def item(self, value: Any) -> None:
        pass

    def finish(self, result: Any) -> None:
        pass

    def fail(self, error: BaseException) -> None:
        pass
