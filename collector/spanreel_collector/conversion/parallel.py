"""Work spread over processes, its results in order; with one, everything happens in this one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")
_AHEAD = 3
"""Pieces of work a process that are under way or waiting: enough to keep all busy, few enough to stay small."""


class Crew(Protocol):
    """Those who do the work."""

    def map(self, work: Callable[[_Given], _Made], pieces: Iterable[_Given]) -> Iterator[_Made]:
        """What the work makes of each piece, in order; no more pieces are taken than are being worked on."""
        ...


class _Alone:
    def map(self, work: Callable[[_Given], _Made], pieces: Iterable[_Given]) -> Iterator[_Made]:
        return map(work, pieces)


class _Several:
    def __init__(self, executor: ProcessPoolExecutor, jobs: int) -> None:
        self._executor = executor
        self._ahead = jobs * _AHEAD

    def map(self, work: Callable[[_Given], _Made], pieces: Iterable[_Given]) -> Iterator[_Made]:
        waiting: deque[Future[_Made]] = deque()
        for piece in pieces:
            waiting.append(self._executor.submit(work, piece))
            if len(waiting) >= self._ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@contextmanager
def crew(jobs: int, begin: Callable[[], None] | None = None) -> Iterator[Crew]:
    """Those who do the work, in this many processes, each of which begins so."""
    if jobs <= 1:
        yield _Alone()
        return
    # Who works alone need not wait for what makes processes.
    import multiprocessing  # noqa: PLC0415 - as said
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - the same

    # A fresh process each: one that is forked would share what this one has open.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=begin) as executor:
        try:
            yield _Several(executor, jobs)
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            raise


def chunks(items: Iterable[_Given], size: Callable[[_Given], int], most: int) -> Iterator[list[_Given]]:
    """The items in lists of about this size each, so that handing over costs little beside the work."""
    chunk: list[_Given] = []
    total = 0
    for item in items:
        chunk.append(item)
        total += size(item)
        if total >= most:
            yield chunk
            chunk, total = [], 0
    if chunk:
        yield chunk
