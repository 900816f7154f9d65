"""From a span's end to a backend: a bounded queue, and one thread that reads, redacts, bounds and exports.

Nothing here blocks or raises into the caller. What had to be dropped is counted (`losses`).
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from opentelemetry import context as otel
from opentelemetry.sdk.trace.export import SpanExporter
from opentelemetry.trace import TraceFlags

from spanreel import conventions, process_ends
from spanreel import losses as reasons
from spanreel.contexts import SUPPRESS, SUPPRESS_HTTP
from spanreel.delivery import REQUEST_BYTES, Capture, Delivery, Waiting
from spanreel.exporters import describe, exports, place, quieten
from spanreel.losses import Losses
from spanreel.outgoing import finish
from spanreel.patience import wait_within
from spanreel.quiet import quietly
from spanreel.settings import Flush, Log, Settings
from spanreel.spans import OwnSpan

__all__ = ["Capture", "Pipeline", "describe", "finish"]

BATCH_SPANS: Final = 512
MAX_SPANS: Final = 20_000
"""The most spans that wait, however small."""
SPAN_BYTES: Final = 1024
"""What a span without its capture is reckoned to hold."""
_SAMPLED: Final = TraceFlags.SAMPLED
_OF_RUNS: Final = (conventions.INVOKE_AGENT, conventions.RUN_STARTED)
DELAYS: Final = {Flush.CALL: 0.0, Flush.TURN: 1.0, Flush.RUN: 5.0}
"""Seconds after which what waits is exported, though nothing has woken the thread."""
LINGER: Final = 0.25
"""Seconds that the first span waits for others to leave with it, though the thread has been woken: calls that follow
each other closely then share a request, and the beginning of a short run need not be told apart from the run."""
LINGER_WHILE_BUSY: Final = 1.0
"""The same where spans left less than so many seconds before: a thread that takes turns with its caller at every few
calls, each with caches that the other has filled, takes twice the time for each."""
EXIT_SECONDS: Final = 5.0
EXIT_SECONDS_FAILING: Final = 1.0
"""How long the process's exit may wait for the last spans; less where the backend did not take those before."""


class Pipeline:
    """Where our own spans go when they end. ``exporters`` are those of the settings where none are given."""

    def __init__(self, settings: Settings, exporters: Sequence[SpanExporter] | None = None) -> None:
        self.settings = settings
        self._given = exporters
        self._exports = exports(settings) or bool(exporters)
        # The last eighth of the room is for spans alone, so that a call leaves a trace when its content cannot.
        self._room, self._content_room = settings.queue_bytes, settings.queue_bytes * 7 // 8
        self._due_bytes = settings.queue_bytes // 4
        self._forked_at = 0
        self._begin()
        process_ends.watch(self)

    def _begin(self) -> None:
        """The state of a process that has recorded nothing yet."""
        self.losses = Losses()
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._queue: deque[Waiting] = deque()
        self._begun: dict[int, Waiting] = {}
        """What waits of runs that have begun, by the ids of their spans."""
        self._bytes = 0
        self._oldest = 0.0
        self._left = -math.inf
        """When spans left last."""
        self._taken = self._done = 0
        self._flush_to = 0
        self._woken = self._stopping = False
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()
        self._delivery = Delivery(self.settings, self._given, self.losses)

    def begin_child(self) -> None:
        """After a fork: what waits, and what is open, is the parent's to export."""
        self._begin()
        self._forked_at = time.time_ns()

    # -- the caller's side -------------------------------------------------------------------------------------------

    def take(self, span: OwnSpan) -> None:
        """A span has ended: into the queue with it and its capture; where that is full, the newest content goes."""
        try:
            self._take(span)
        except Exception:
            with quietly("queue a span"):
                raise

    def announce(self, run: OwnSpan, begun: Callable[[], OwnSpan], size: int) -> None:
        """A run has begun. ``begun`` makes the span that says so, of so many bytes, if that leaves before the run."""
        try:
            self._announce(run, begun, SPAN_BYTES + size)
        except Exception:
            with quietly("queue the beginning of a run"):
                raise

    def wake(self) -> None:
        """Export what waits, soon."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def flush(self, timeout: float = EXIT_SECONDS) -> bool:
        """Export what has ended so far; whether that was done within so many seconds (not whether all was taken)."""
        with self._changed:
            target = self._flush_to = self._taken
            if self._done >= target:
                return True
            if not self._ensure_thread() or threading.current_thread() is self._thread:
                return False
            self._changed.notify_all()
            return wait_within(timeout, self._changed.wait, lambda: self._done >= target)

    def flush_last(self) -> bool:
        """Export what waits, as long as the process's exit may take: it may be about to end. Whether that sufficed."""
        return self.flush(self._patience())

    def _patience(self) -> float:
        return EXIT_SECONDS_FAILING if self._delivery.failing else EXIT_SECONDS

    def shutdown(self, timeout: float | None = None) -> None:
        """Export what waits, within so many seconds, and take no more; what is left then is counted as lost."""
        with self._changed:
            if self._stopping:
                return
            self._stopping = True
            thread = self._thread if self._ensure_thread() else None
            self._changed.notify_all()
        if timeout is None:
            timeout = self._patience()
        if thread is not None and thread is not threading.current_thread():
            if not wait_within(timeout, thread.join, lambda: not thread.is_alive()):
                self._give_up()
                thread.join(EXIT_SECONDS_FAILING)
        elif thread is None:
            self._give_up()
        self._log(now=True)

    def wait_until_ready(self) -> None:
        """Wait, within a bounded time, until a thread that has started has its exporters."""
        if self._thread is not None:
            wait_within(EXIT_SECONDS, self._ready.wait, self._ready.is_set)

    # -- the queue ---------------------------------------------------------------------------------------------------

    def _take(self, span: OwnSpan) -> None:
        capture, span.capture = span.capture, None
        if not self._exports or not span.flags & _SAMPLED or span.start_time < self._forked_at:
            return
        size = SPAN_BYTES if capture is None else SPAN_BYTES + capture.size
        with self._lock:
            if self._stopping:
                self.losses.add(reasons.AFTER_SHUTDOWN)
                return
            if len(self._queue) >= MAX_SPANS or self._bytes + SPAN_BYTES > self._room:
                self.losses.add(reasons.QUEUE_FULL)
                return
            waiting, held = Waiting(span, capture, size), self._bytes + size
            if held > self._content_room and capture is not None:
                self.losses.add(reasons.QUEUE_FULL_CONTENT)
                waiting.drop_content(SPAN_BYTES)
                held = self._bytes + SPAN_BYTES
            if span.operation in _OF_RUNS:
                self._supersede(waiting)
            self._put(waiting, held, wakes=not self._woken and self._wakes(span))

    def _announce(self, run: OwnSpan, begun: Callable[[], OwnSpan], size: int) -> None:
        if not self._exports or not run.flags & _SAMPLED:
            return
        with self._lock:
            held = self._bytes + size
            if self._stopping or len(self._queue) >= MAX_SPANS or held > self._content_room:
                self._take(begun())  # which says what is lost
                return
            waiting = self._begun[run.span_id] = Waiting(run, None, size)
            waiting.begun = begun
            self._put(waiting, held, wakes=not self._woken)

    def _put(self, waiting: Waiting, held: int, *, wakes: bool) -> None:
        """Into the queue, which then holds so many bytes. ``wakes``: it is to be exported soon. The lock is held."""
        queue = self._queue
        if not queue:
            self._oldest = time.monotonic()
        queue.append(waiting)
        self._bytes = held
        self._taken += 1
        if self._thread is None:
            self._ensure_thread()
        if wakes:
            self._woken = True
        # When what waits is due by time, the thread knows by itself.
        if wakes or len(queue) == 1 or len(queue) == BATCH_SPANS or held >= self._due_bytes:
            self._changed.notify_all()

    def _supersede(self, waiting: Waiting) -> None:
        """A run that ends while its beginning still waits says all that its beginning would have said."""
        operation = waiting.span.operation
        if operation == conventions.RUN_STARTED and waiting.span.above is not None:
            self._begun[waiting.span.above.span_id] = waiting
        elif operation == conventions.INVOKE_AGENT and not waiting.content_dropped:
            begun = self._begun.pop(waiting.span.span_id, None)
            if begun is not None:
                begun.superseded = True

    def _wakes(self, span: OwnSpan) -> bool:
        flush, operation = self.settings.flush, span.operation
        if flush is Flush.CALL or operation == conventions.RUN_STARTED or span.is_outermost:
            return True
        return flush is Flush.TURN and operation == conventions.AGENT_STEP

    def _is_due(self) -> bool:
        return (
            self._stopping
            or self._flush_to > self._done
            or (
                bool(self._queue)
                and (
                    len(self._queue) >= BATCH_SPANS
                    or self._bytes >= self._due_bytes
                    or time.monotonic() >= self._due_at()
                )
            )
        )

    def _due_at(self) -> float:
        """When what waits is to be exported, whatever else comes."""
        linger = LINGER_WHILE_BUSY if self._oldest < self._left + LINGER_WHILE_BUSY else LINGER
        return self._oldest + (linger if self._woken else max(DELAYS[self.settings.flush], linger))

    def _ensure_thread(self) -> bool:
        """Start the thread where there is none; False where the interpreter allows no more. The lock is held."""
        if self._thread is None:
            thread = threading.Thread(target=self._work, name="spanreel-export", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return False
            self._thread = thread
            process_ends.watch_here()
        return True

    def _give_up(self) -> None:
        """What waits is lost; an exporter that is waiting to try again is told to stop."""
        with self._changed:
            left = len(self._queue)
            self._queue.clear()
            self._done += left
            if left:
                self.losses.add(reasons.AT_EXIT, left)
        self._delivery.shutdown()

    def _log(self, *, now: bool = False) -> None:
        if self.settings.log is not Log.OFF:
            self.losses.log(place(self.settings), now=now)

    # -- the thread's side -------------------------------------------------------------------------------------------

    def _work(self) -> None:
        self._delivery.prepare()
        self._ready.set()
        quieten(threading.current_thread(), self._delivery.complaint)
        # Neither our wraps nor other instrumentations may record how the recording leaves.
        otel.attach(otel.set_value(SUPPRESS, True, otel.set_value(SUPPRESS_HTTP, True)))
        while batch := self._next_batch():
            self._delivery.deliver(batch)
            with self._changed:
                self._bytes -= sum(waiting.size for waiting in batch)
                self._done += len(batch)
                self._left = time.monotonic()
                self._changed.notify_all()
            self._log()
        self._delivery.shutdown()

    def _next_batch(self) -> list[Waiting]:
        """The next spans, once it is time; none when all is done."""
        with self._changed:
            while not self._is_due():
                delay = self._due_at() - time.monotonic() if self._queue else None
                self._changed.wait(delay if delay is None else max(delay, 0.001))
            batch: list[Waiting] = []
            size = 0
            while self._queue and len(batch) < BATCH_SPANS and size < REQUEST_BYTES:
                waiting = self._queue.popleft()
                if waiting.superseded:
                    self._bytes -= waiting.size
                    self._done += 1
                    continue
                batch.append(waiting)
                size += waiting.size
            if not self._queue:
                self._woken = False
                self._begun.clear()
            return batch
