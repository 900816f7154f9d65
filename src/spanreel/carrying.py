"""OpenTelemetry's context, and which replay this is, go along into threads and pools: Python does not see to it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from opentelemetry import context as otel
from opentelemetry.context import Context

from spanreel import playing
from spanreel.player import Player

_for_pool: ContextVar[bool] = ContextVar("spanreel_thread_for_pool", default=False)
"""Whether a thread that is started is a pool's, which outlives who it is started for."""


def start_thread(wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`threading.Thread.start`: what the thread runs, it runs in the context it was started in."""
    context, player = otel.get_current(), None if _for_pool.get() else playing.player_to_carry()
    if context or player is not None:
        run = instance.run

        def run_in_context() -> None:
            vars(instance).pop("run", None)  # it hides the class's method for this one start only
            in_context(context, player, run)

        instance.run = run_in_context
        try:
            return wrapped(*args, **kwargs)
        except BaseException:
            vars(instance).pop("run", None)
            raise
    return wrapped(*args, **kwargs)


def submit(wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`ThreadPoolExecutor.submit`: the task runs in its submitter's context, the pool's threads in none."""
    context, player = otel.get_current(), playing.player_to_carry()
    if not (context or player is not None) or not args:
        return wrapped(*args, **kwargs)
    function, *rest = args
    token, mark = otel.attach(Context()), _for_pool.set(True)  # a worker thread started here outlives this context
    try:
        return wrapped(in_context, context, player, function, *rest, **kwargs)
    finally:
        _for_pool.reset(mark)
        otel.detach(token)


def in_context(context: Context, player: Player | None, function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a function in a context, in a replay."""
    token = otel.attach(context)
    try:
        with playing.carried(player):
            return function(*args, **kwargs)
    finally:
        otel.detach(token)


CARRIERS = (
    ("threading", "Thread.start", start_thread),
    ("concurrent.futures.thread", "ThreadPoolExecutor.submit", submit),
)
