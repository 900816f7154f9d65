"""One call on its way over a boundary: its span, its context, what it kept, and its one end."""

from __future__ import annotations

import atexit
import functools
import os
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from types import MappingProxyType
from typing import Any

from opentelemetry.context import Context
from opentelemetry.trace import Span, Status, StatusCode

from spanreel import contexts, conventions, model
from spanreel.contexts import Attached
from spanreel.failures import name_of, text_of
from spanreel.keeping import Kept
from spanreel.model import Error, ErrorCategory
from spanreel.point import RunResult, ToolResult
from spanreel.quiet import quietly
from spanreel.scope import opened


class Crossing:
    """A boundary being crossed. ``kept`` is completed and held when the span ends, ``leave(end_time)`` tidies up.

    The first end counts: a stream's drained, closed and abandoned all arrive here.
    """

    # What most crossings do without is the class's.
    read_control_flow: Callable[[BaseException], RunResult | ToolResult | None] | None = None
    """What an exception that is no error amounts to, None for the others."""
    errors: Mapping[str, ErrorCategory] = MappingProxyType({})
    items: list[Any] | None = None
    told: Callable[[Any, BaseException | None], None] | None = None
    """Hears of the end first: of the result and the exception."""
    noticed: Callable[[], BaseException | None] | None = None
    """Gives an exception that was swallowed on the way."""
    failing: Callable[[BaseException], None] | None = None
    """Hears of the exception that the call has raised."""
    begun: Callable[[Any], None] | None = None
    """Hears what a block was entered with."""

    def __init__(  # noqa: PLR0913 - what a crossing is made of
        self,
        span: Span,
        context: Context,
        hold: Callable[[Span, Any], None],
        kept: Kept,
        leave: Callable[[int], None] | None = None,
        category: ErrorCategory = ErrorCategory.OTHER,
        *,
        content: bool = True,
    ) -> None:
        self.span = span
        self.context = context
        self.hold = hold
        self.kept = kept
        self.leave = leave
        self.category = category
        self.content = content
        self._ends = [True]

    def entered(self) -> AbstractContextManager[None]:
        """The crossing's context, attached for the length of a block that yields nothing to the caller."""
        return Attached(self.context)

    def opened(self) -> AbstractContextManager[None]:
        """`entered`, for a call that a replay lets go to the world."""
        return Attached(opened(self.context))

    def stay(self) -> Callable[[], None]:
        """The crossing's context, made current until what comes back is called.

        A block inside a generator may be left in another task than it was entered in, where no token of
        `contextvars` is good; what is current there is somebody else's, and stays.
        """
        before = contexts.current()
        contexts.attach(self.context)

        def leave() -> None:
            if contexts.current() is self.context:
                contexts.attach(before)

        return leave

    def stepping(self) -> Callable[[], Any]:
        """What makes the crossing's context current for a step of a generator."""
        return partial(contexts.attach, self.context)

    def hearing(self) -> Callable[[Any], None] | None:
        """What hears of a generator's values; None where nobody wants to know."""
        return self.item if self.begun is not None or self.items is not None else None

    def item(self, value: Any) -> None:
        """A stream's value is handed out, or what a block was entered with."""
        if self.begun is not None:
            with quietly("read what a block was entered with"):
                self.begun(value)
        if self.items is not None and len(self.items) < MOST_ITEMS:
            self.items.append(value)

    def finish(self, result: Any, status: model.Status = model.Status.OK, error: Error | None = None) -> None:
        """The call has returned (a stream: has been drained or closed)."""
        if self._end():
            if self.items is not None:
                result = self.items  # not what a generator returned beside what it yielded
            if self.told is not None:
                try:
                    self.told(result, None)
                except Exception:
                    with quietly("tell a replay the end of a call"):
                        raise
            if error is None and self.noticed is not None and (swallowed := self.noticed()) is not None:
                error, status = describe_error(swallowed, self.errors, self.category), model.Status.ERROR
            self._close(result, error, status)

    def fail(self, error: BaseException) -> None:
        """The call has raised; the exception itself is the caller's to see."""
        if self._end():
            read = None
            with quietly("read an exception that is no error"):
                read = self.read_control_flow(error) if self.read_control_flow else None
            with quietly("tell a replay the end of a call"):
                if self.told:
                    self.told(read, error if read is None else None)
            if read is not None:
                self._close(read, None, read.status)
                return
            if self.failing is not None:
                with quietly("keep what an exception is made of"):
                    self.failing(error)
            found = describe_error(error, self.errors, self.category)
            cancelled = found.category is ErrorCategory.CANCELLED
            status = model.Status.CANCELLED if cancelled else model.Status.ERROR
            self._close(self.items or None, found, status)

    def _end(self) -> bool:
        """Whether this is the first end: of several threads one alone takes the only item of a list."""
        try:
            return self._ends.pop()
        except IndexError:
            return False

    def _end_kept(self, result: Any, error: Error | None, status: model.Status) -> None:
        try:
            self.kept.end(result, error, status)
        except Exception:
            with quietly("keep what a call returned"):
                raise

    def _close(self, result: Any, error: Error | None, status: model.Status) -> None:
        end_time, span = time.time_ns(), self.span
        if span.is_recording():
            if self.kept.reads:
                with Attached(self.context):
                    self._end_kept(result, error, status)
            else:
                self._end_kept(result, error, status)
            if error is not None:
                with quietly("set a span's status"):
                    span.set_attribute(conventions.ERROR_TYPE, error.type)
                    span.set_status(Status(StatusCode.ERROR, error.message if self.content else None))
            try:
                self.hold(span, self.kept.capture())
            except Exception:
                with quietly("hand over what a call kept"):
                    raise
        try:
            if self.leave is not None:
                self.leave(end_time)
        except Exception:
            with quietly("close a turn"):
                raise
        try:
            span.end(end_time)
        except Exception:
            with quietly("end a span"):
                raise


_streamed: weakref.WeakSet[Crossing] = weakref.WeakSet()


def end_with_the_program(crossing: Crossing) -> None:
    """Have this call, which ends where a generator does, end where the program does, if nobody steps to its end."""
    _streamed.add(crossing)
    _end_at_exit()


@functools.cache
def _end_at_exit() -> None:
    """Registered with the first: what is registered last is called first, before the export shuts down."""
    atexit.register(_end_streamed)


def _end_streamed() -> None:
    for crossing in list(_streamed):
        crossing.finish(None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_streamed.clear)  # those are the parent's to end

MOST_ITEMS = 10_000
"""Values of a streamed run that are kept."""


def describe_error(
    error: BaseException, errors: Mapping[str, ErrorCategory], category: ErrorCategory = ErrorCategory.OTHER
) -> Error:
    """The exception's full class name, its text, and the category that the point or its class gives it."""
    kind = type(error)
    for base in kind.__mro__:
        if base.__name__ in errors:
            category = errors[base.__name__]
            break
    else:
        if base_name := next((base.__name__ for base in kind.__mro__ if base.__name__ in _CATEGORIES), None):
            category = _CATEGORIES[base_name]
    return Error(category, name_of(error), text_of(error))


_CATEGORIES = {
    "CancelledError": ErrorCategory.CANCELLED,
    "KeyboardInterrupt": ErrorCategory.CANCELLED,
    "ReplayStop": ErrorCategory.POLICY,
    "TimeoutError": ErrorCategory.TIMEOUT,
    "TimeoutException": ErrorCategory.TIMEOUT,
}
