"""What a fork, and the ends of a process, mean for what is still to be exported.

Holds the process's pipelines, weakly. Nothing here keeps a process for longer than a pipeline's own limits.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401 -- see `_make_ready`
import contextlib
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import wrapt

from spanreel.quiet import quietly
from spanreel.wrappers import WrappedFunction

_DEADLY: Final = frozenset(
    number for name in ("SIGTERM", "SIGHUP", "SIGQUIT") if (number := getattr(signal, name, None)) is not None
)
"""The signals by which a program ends itself once it has cleaned up; it goes without `atexit` then."""


class Pipeline(Protocol):
    """What exports, as far as forks and ends are concerned."""

    def begin_child(self) -> None:
        """Forget what waits: it is the parent's."""

    def wait_until_ready(self) -> None:
        """Wait, within a bounded time, for what is being imported."""

    def flush_last(self) -> bool:
        """Export what waits, within a bounded time, and whether that sufficed; the process may go on after all."""

    def shutdown(self) -> None:
        """Export what waits, within a bounded time, and take no more."""


_pipelines: weakref.WeakSet[Pipeline] = weakref.WeakSet()


def watch(pipeline: Pipeline) -> None:
    """Have this pipeline told of forks and ends, as long as it lives."""
    _pipelines.add(pipeline)


def watch_here() -> None:
    """Watch the ends of this process that only one that records has to care for. To be called in each, once."""
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is not None and multiprocessing.parent_process() is not None:
        # A child of `multiprocessing` ends without `atexit`, but calls what its own module holds.
        multiprocessing.util.Finalize(None, _shut_down, exitpriority=0)
    _watch_calls_that_end()


def _watch_calls_that_end() -> None:
    """Flush before what ends a process without `atexit`: `os._exit`, another program in its place, a signal to itself.

    Servers shut down when a signal comes, and then send themselves that signal again, to end by it: uvicorn does. Who
    is ended by somebody else's signal ends at once, as without us: a handler of ours would be seen by programs that
    look whether there is one, and would wait for what the main thread is doing.
    """
    for owner, name, ends in (
        (os, "_exit", _always),
        (os, "execv", _always),
        (os, "execve", _always),
        (os, "kill", _kills_itself),
        (signal, "raise_signal", _is_deadly),
    ):
        original = getattr(owner, name, None)
        if original is not None and not isinstance(original, WrappedFunction):
            setattr(owner, name, WrappedFunction(original, _flushing_where(ends)))


def _always(*_: object, **__: object) -> bool:
    return True


def _is_deadly(signalnum: int) -> bool:
    return signalnum in _DEADLY and signal.getsignal(signalnum) is signal.SIG_DFL


def _kills_itself(pid: int, sig: int) -> bool:
    return pid == os.getpid() and _is_deadly(sig)


def _flushing_where(ends: Callable[..., bool]) -> Callable[..., Any]:
    """A wrapper that exports what waits where a call with these arguments ends the process."""

    def call(wrapped: Callable[..., Any], _: object, given: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        # A TypeError is of arguments that do not fit, which the call itself is going to say.
        with quietly("export before the process ends"), contextlib.suppress(TypeError):
            if ends(*given, **named):
                _flush()
        return wrapped(*given, **named)

    return call


def _watch_pools(module: Any) -> None:
    """A pool of processes ends its workers by a signal when it has all results: what they recorded goes before."""
    module.worker = WrappedFunction(module.worker, _work)


def _work(wrapped: Callable[..., Any], _: object, given: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
    with quietly("watch the results of a pool"):
        results = named["outqueue"] if "outqueue" in named else given[1]
        if isinstance(results, sys.modules["multiprocessing.queues"].SimpleQueue):  # that of a pool of threads is not
            results.put = _flushing_before(results.put)
    return wrapped(*given, **named)


def _flushing_before(put: Callable[[Any], None]) -> Callable[[Any], None]:
    is_worth_it = True

    def put_after(result: Any) -> None:
        nonlocal is_worth_it
        with quietly("export before a result of a pool"):
            # Who waited in vain once waits no more: tasks are not to be as slow as a backend that is away.
            is_worth_it = is_worth_it and _flush()
        put(result)

    return put_after


def _flush() -> bool:
    """Export what waits anywhere; whether that sufficed everywhere."""
    sufficed = [pipeline.flush_last() for pipeline in list(_pipelines)]
    return all(sufficed)


def _begin_child() -> None:
    for pipeline in list(_pipelines):
        pipeline.begin_child()


def _make_ready() -> None:
    """Where the program ends while exporters are still being imported: let that finish.

    They use executors for it, which the interpreter closes before it calls what `atexit` holds. What `threading`
    holds is called before that, latest first, so that we register after `concurrent.futures.thread` has.
    """
    for pipeline in list(_pipelines):
        pipeline.wait_until_ready()


def _shut_down() -> None:
    for pipeline in list(_pipelines):
        pipeline.shutdown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)
if hasattr(threading, "_register_atexit"):
    # RuntimeError: the main thread has ended, and other threads go on.
    with contextlib.suppress(RuntimeError):
        threading._register_atexit(_make_ready)  # noqa: SLF001 -- there is no public name for it
atexit.register(_shut_down)
wrapt.register_post_import_hook(_watch_pools, "multiprocessing.pool")
