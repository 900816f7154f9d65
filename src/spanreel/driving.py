"""A wrapped call, taken through its crossing: as a value, an awaitable, a stream, a block, or a handle to work.

What a replay answers is answered here; there is no replay branch in any integration.
"""

from __future__ import annotations

import asyncio
import inspect
import types
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from opentelemetry import context as otel

from spanreel.crossing import Crossing, end_with_the_program
from spanreel.isolating import isolated, leads_nowhere
from spanreel.opening import open_passage
from spanreel.passage import Passage
from spanreel.placing import stepped_in
from spanreel.point import Kind, Point, ToolResult
from spanreel.quiet import quietly
from spanreel.rebuilding import code_of
from spanreel.shapes import Generated, GeneratedAsync
from spanreel.streams import WatchedBlock, generator_in, watch_async_generator, watch_generator, watched

Wrapper = Callable[[Any, Any, tuple[Any, ...], dict[str, Any]], Any]


def wrapper_of(point: Point, original: Any) -> Wrapper:
    """The wrapper, in wrapt's form, that takes calls of this function through the point's crossing."""

    def block(wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        def opening() -> tuple[Callable[[], Crossing | None], Callable[[], Any]]:
            stream = Stream(point, wrapped, instance, args, kwargs)
            return stream.open, stream.make

        # What a model's block holds is the agent's work, not the model's.
        return WatchedBlock(opening, stays=point.kind is not Kind.MODEL)

    def async_stream(wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        opening = Stream(point, wrapped, instance, args, kwargs, keeps_items=point.values)
        return watch_async_generator(opening.open, opening.make_async)

    def stream(wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        opening = Stream(point, wrapped, instance, args, kwargs, keeps_items=point.values)
        return watch_generator(opening.open, opening.make)

    async def asynchronous(wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return await call_async(point, wrapped, instance, args, kwargs)

    def plain(wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return call(point, wrapped, instance, args, kwargs)

    def memory(wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        bound = isolated(point, wrapped, instance, args, kwargs)
        return wrapped(*args, **kwargs) if bound is None else wrapped(*bound.args, **bound.kwargs)

    def connection(wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if point.rebuild is None or not leads_nowhere(point):
            return wrapped(*args, **kwargs)
        stand_in = point.rebuild(ToolResult(), kwargs)
        return _at_once(stand_in) if inspect.iscoroutinefunction(inspect.unwrap(original)) else stand_in

    if point.kind is Kind.CONNECTION:
        return connection
    if point.kind is Kind.MEMORY:
        return memory
    if point.block:
        return block
    if inspect.isasyncgenfunction(original):
        return async_stream
    if inspect.isgeneratorfunction(original):
        return stream
    # A decorator may hide a coroutine function behind a plain one, and an object or a partial is called like either.
    return asynchronous if inspect.iscoroutinefunction(code_of(original)) else plain


async def _at_once(value: Any) -> Any:
    return value


def cross(point: Point, call: Callable[..., Any], instance: Any, /, *arguments: Any, **named: Any) -> Any:
    """What the adapter of an `Injection` calls, taken through the point's crossing."""
    return wrapper_of(point, call)(call, instance, arguments, named)


def call(
    point: Point, wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A plain call, whatever it returns: a value, an awaitable, or a handle."""
    passage = open_passage(point, wrapped, instance, args, kwargs)
    if passage is None:
        return wrapped(*args, **kwargs)
    crossing = passage.crossing
    with crossing.entered():
        try:
            result = passage.proceed(wrapped, args, kwargs)
        except BaseException as error:
            crossing.fail(error)
            raise
    if point.work is not None and not passage.is_served:
        return _follow(point, crossing, result)
    if _is_awaitable(result):
        return _finish_awaitable(crossing, result)
    return _end(point, passage, result)


def _is_awaitable(result: Any) -> bool:
    """Whether it can be awaited, by its type: what a user's own does when asked for its class is none of ours."""
    kind = type(result)
    if kind is types.GeneratorType:
        return bool(result.gi_code.co_flags & inspect.CO_ITERABLE_COROUTINE)
    return hasattr(kind, "__await__")


def _end(point: Point, passage: Passage, result: Any) -> Any:
    """A function has returned: its call has ended, but for that of a generator, which ends where the generator does."""
    crossing, generator = passage.crossing, generator_in(result) if point.streams else None
    if generator is None or passage.is_served:
        crossing.finish(result)
        return result
    result, followed = watched(result, generator, lambda: crossing)
    crossing.items = [] if point.kind is Kind.RUN else GeneratedAsync() if inspect.isasyncgen(followed) else Generated()
    # One that nobody steps through is finished with it.
    weakref.finalize(followed, crossing.finish, None).atexit = False
    end_with_the_program(crossing)
    return result


async def call_async(
    point: Point, wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A coroutine function's call; it crosses when it is first awaited."""
    passage = open_passage(point, wrapped, instance, args, kwargs)
    if passage is None:
        return await wrapped(*args, **kwargs)
    crossing = passage.crossing
    with crossing.entered():
        try:
            if passage.broken_off is not None:
                await passage.broken_off.wait()
            result = passage.proceed(wrapped, args, kwargs)
            if not passage.is_served:
                result = await result
        except BaseException as error:
            crossing.fail(error)
            raise
    return _end(point, passage, result)


async def _finish_awaitable(crossing: Crossing, awaitable: Awaitable[Any]) -> Any:
    with crossing.entered():
        try:
            result = await awaitable
        except BaseException as error:
            crossing.fail(error)
            raise
    crossing.finish(result)
    return result


def _follow(point: Point, crossing: Crossing, handle: Any) -> Any:
    """The call has returned a handle; its end is the end of the work behind it."""
    work: Any = None
    with quietly(f"follow the work behind {point.target}"):
        work = point.work(handle) if point.work else None
    if work is None or not hasattr(work, "add_done_callback"):
        crossing.finish(handle)
        return handle

    def ended(task: Any) -> None:
        error: BaseException | None = None
        if task.cancelled():
            error = asyncio.CancelledError()
        elif task.exception() is not None:
            error = task.exception()
        if error is not None:
            crossing.fail(error)
        else:
            crossing.finish(handle)

    work.add_done_callback(ended)
    return handle


@dataclass(eq=False, slots=True)
class Stream:
    """A call that is opened later: a generator's at its first step, a block's when it is entered."""

    point: Point
    wrapped: Callable[..., Any]
    instance: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    keeps_items: bool = False
    passage: Passage | None = None
    called: otel.Context = field(default_factory=otel.get_current)

    def open(self) -> Crossing | None:
        """Open the crossing."""
        token = otel.attach(stepped_in(self.called, otel.get_current()))
        try:
            self.passage = open_passage(self.point, self.wrapped, self.instance, self.args, self.kwargs)
        finally:
            otel.detach(token)
        if self.passage is None:
            return None
        if self.keeps_items:
            self.passage.crossing.items = []
        if not self.point.block:
            end_with_the_program(self.passage.crossing)
        return self.passage.crossing

    def make(self) -> Any:
        """The generator to step through: the recorded values in a replay."""
        if self.passage is None:
            return self.wrapped(*self.args, **self.kwargs)
        made = self.passage.proceed(self.wrapped, self.args, self.kwargs)
        return _given_again(made, self.passage) if self.passage.is_served and not self.point.block else made

    def make_async(self) -> Any:
        """`make` for asynchronous generators."""
        passage = self.passage
        if passage is not None and (passage.is_served or passage.broken_off is not None):
            return _given_again_async(passage)
        return self.make()


def _values(recorded: Any) -> list[Any]:
    return recorded if isinstance(recorded, list) else [] if recorded is None else [recorded]


def _given_again(recorded: Any, passage: Passage) -> Iterator[Any]:
    yield from _values(recorded)
    if passage.error_after is not None:
        raise passage.error_after


async def _given_again_async(passage: Passage) -> AsyncIterator[Any]:
    for value in _values(passage.served) if passage.is_served else ():
        yield value
    if passage.broken_off is not None:
        await passage.broken_off.wait()
    if passage.error_after is not None:
        raise passage.error_after
