"""The one thread that writes: whatever requests wait is committed together, and each is told when it is.

A queue of bounded bytes stands before it. What a store does is the store's.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

from spanreel_collector.stores.records import Appended, Refusal, Segment
from spanreel_collector.stores.store import StoreError

LOG: Final = logging.getLogger(__name__)

Append = Callable[[Sequence[Segment], Sequence[Refusal]], Appended]
"""`Store.append`."""

_OVERHEAD: Final = 1_000
"""Bytes of memory that a request takes beside its segments, at least."""
_TROUBLED: Final = 15.0
"""Seconds that a failed commit says something about the next one. Senders come again sooner."""


class QueueFull(Exception):
    """No more is taken in at the moment, or none any more: it may be sent again."""


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """How many bytes wait at most, and how many are committed together."""

    waiting: int = 128 * 1024 * 1024
    together: int = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Work:
    segments: Sequence[Segment]
    refusals: Sequence[Refusal]
    size: int
    done: Future[Appended]


class Committer:
    """Commits what is submitted, from `start` to `close`."""

    def __init__(self, append: Append, limits: QueueLimits | None = None) -> None:
        self._append = append
        self._limits = limits or QueueLimits()
        self._waiting: deque[_Work] = deque()
        self._bytes = 0
        self._closed = False
        self._failing: tuple[float, StoreError] | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="spanreel-commit", daemon=True)

    def start(self) -> Committer:
        """Begin to commit."""
        self._thread.start()
        return self

    @property
    def waiting(self) -> int:
        """How many bytes wait, or are being committed."""
        return self._bytes

    @property
    def trouble(self) -> StoreError | None:
        """Why the last commit failed, if it did and was just now: with nothing to commit nobody knows."""
        failing = self._failing
        return failing[1] if failing is not None and time.monotonic() - failing[0] < _TROUBLED else None

    def submit(self, segments: Sequence[Segment], refusals: Sequence[Refusal] = ()) -> Future[Appended]:
        """Have segments committed. The future is done when they are; it fails with StoreError if they cannot be.

        Raises:
            QueueFull: too much waits already, or this is closed.
        """
        size = _OVERHEAD + sum(len(segment.body) + _OVERHEAD // 4 for segment in segments)
        work = _Work(segments, refusals, size, Future())
        work.done.set_running_or_notify_cancel()  # who sent it may go; it is committed none the less
        with self._changed:
            if self._closed:
                raise QueueFull("the service is stopping")
            # One that is larger than all that may wait is taken when it is alone, or it would never be.
            if self._bytes and self._bytes + size > self._limits.waiting:
                raise QueueFull(f"{self._bytes} bytes wait to be written")
            self._waiting.append(work)
            self._bytes += size
            self._changed.notify()
        return work.done

    def close(self, seconds: float = 30.0) -> bool:
        """Take no more, and commit what waits; whether all of it was within the time."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while batch := self._next():
            try:
                self._commit(batch)
            finally:
                with self._changed:
                    self._bytes -= sum(work.size for work in batch)

    def _next(self) -> list[_Work]:
        """The work that is committed together; none when this is closed and nothing waits."""
        with self._changed:
            while not self._waiting and not self._closed:
                self._changed.wait()
            batch: list[_Work] = []
            size = 0
            while self._waiting and (not batch or size + self._waiting[0].size <= self._limits.together):
                batch.append(self._waiting.popleft())
                size += batch[-1].size
            return batch

    def _commit(self, batch: list[_Work]) -> None:
        segments = [segment for work in batch for segment in work.segments]
        refusals = [refusal for work in batch for refusal in work.refusals]
        try:
            appended = self._append(segments, refusals)
        except StoreError as error:
            if self._failing is None:  # once, not for each request that comes meanwhile
                LOG.warning("the store cannot write; senders are told to send again: %s", error)
            self._failing = time.monotonic(), error
            for work in batch:
                _fail(work, error)
        except Exception as error:  # whatever it is, each request gets an answer, and the thread lives on
            if len(batch) == 1:
                LOG.exception("the store failed at what it was given")
                _fail(batch[0], StoreError(f"the store failed: {type(error).__name__}"))
                return
            for work in batch:  # one may be the cause, and must not cost the others
                self._commit([work])
        else:
            if self._failing is not None:
                LOG.warning("the store writes again")
            self._failing = None
            for work in batch:
                # How many of one request were known already is not said of a group; the sum stands at the first.
                work.done.set_result(appended)
                appended = Appended(0, 0)


def _fail(work: _Work, error: StoreError) -> None:
    work.done.set_exception(error)
