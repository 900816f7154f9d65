"""OpenTelemetry's context: read, made and made current at the least price, since every call and every step asks for it.

What stands in it is left to others.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, TypeVar

from opentelemetry import context as otel
from opentelemetry import trace
from opentelemetry.context import _RUNTIME_CONTEXT, Context
from opentelemetry.context.contextvars_context import ContextVarsRuntimeContext
from opentelemetry.trace import INVALID_SPAN

SPAN_KEY: Final = next(iter(trace.set_span_in_context(INVALID_SPAN, Context())))
"""Under which a context holds its current span: the SDK has no public name for it."""
SUPPRESS: Final = otel._SUPPRESS_INSTRUMENTATION_KEY  # noqa: SLF001 -- the key that all instrumentations look at
SUPPRESS_HTTP: Final = otel._SUPPRESS_HTTP_INSTRUMENTATION_KEY  # noqa: SLF001 -- likewise


def _doors() -> tuple[Callable[[], Context], Callable[[Context], Any], Callable[[Any], None]]:
    """OpenTelemetry's own, or what these come to where contexts stand in a context variable, as nearly everywhere."""
    variable = getattr(_RUNTIME_CONTEXT, "_current_context", None)
    if type(_RUNTIME_CONTEXT) is ContextVarsRuntimeContext and isinstance(variable, ContextVar):
        return variable.get, variable.set, variable.reset
    return otel.get_current, otel.attach, otel.detach


current, attach, detach = _doors()


def leave(token: Any) -> None:
    """`detach`; a coroutine that was thrown away is closed in another context, where there is nothing to detach."""
    try:
        detach(token)
    except ValueError:
        pass


Entered = TypeVar("Entered")


def leave_newest(entered: list[tuple[Entered, Any]]) -> Entered:
    """Leave what was entered last here, each with its token or None; where nothing was, what was entered last at all.

    A block is left in another context than it was entered in where a generator is closed by somebody else; and tasks
    that share one block enter and leave it in any order.
    """
    for what, token in entered[::-1]:
        if token is not None:
            try:
                detach(token)
            except ValueError:
                continue
            entered.remove((what, token))
            return what
    last, _ = entered.pop()
    return last


class Inside:
    """A block inside what ``enter()`` makes current."""

    __slots__ = ("_enter", "_token")

    def __init__(self, enter: Callable[[], Any]) -> None:
        self._enter = enter

    def __enter__(self) -> None:
        self._token = self._enter()

    def __exit__(self, *_: object) -> None:
        leave(self._token)


class Attached:
    """A context that is current inside a block; a class, since a generator costs several times as much."""

    __slots__ = ("_context", "_token")

    def __init__(self, context: Context) -> None:
        self._context = context

    def __enter__(self) -> None:
        self._token = attach(self._context)

    def __exit__(self, *_: object) -> None:
        try:  # as in `leave`
            detach(self._token)
        except ValueError:
            pass
