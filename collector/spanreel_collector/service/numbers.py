"""Which numbers the service tells of itself, and where they come from."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from spanreel_collector.receiver.committing import Append
from spanreel_collector.receiver.receiving import Receiver
from spanreel_collector.service.derivation import Derivation, Make
from spanreel_collector.service.retelling import Job, Told
from spanreel_collector.service.telemetry import Attributes, Telemetry
from spanreel_collector.stores.records import Appended, Refusal, Segment, Size
from spanreel_collector.stores.store import Store

_SIZE_EVERY = 15.0
"""Seconds that the store's size holds: counting is not free."""

_Numbers = Iterable[tuple[float, Attributes]]


def timed(append: Append, telemetry: Telemetry) -> Append:
    """The same, its time told."""

    def append_timed(segments: Sequence[Segment], refusals: Sequence[Refusal]) -> Appended:
        began = time.monotonic()
        appended = append(segments, refusals)
        telemetry.committed(seconds := time.monotonic() - began)
        telemetry.worked("commit", seconds)
        return appended

    return append_timed


def traced(make: Make, telemetry: Telemetry) -> Make:
    """The same, with a span where it takes long."""

    def make_traced(job: Job) -> Told:
        began = time.monotonic()
        try:
            return make(job)
        finally:
            telemetry.worked("make sessions", time.monotonic() - began)

    return make_traced


def observe_service(telemetry: Telemetry, store: Store, receiver: Receiver, derivation: Derivation) -> None:
    """Have the numbers of the receiver, the store and the derivation read whenever metrics are."""
    counts, progress, size = receiver.counts, derivation.progress, _Size(store)

    def counted(name: str, label: str) -> _Numbers:
        return [
            (number, {"signal": signal, label: value})
            for (kind, signal, value), number in counts.read().items()
            if kind == name
        ]

    observe = telemetry.observe
    observe("spanreel_requests", "Export requests, by answer", lambda: counted("requests", "answer"), grows=True)
    observe(
        "spanreel_items",
        "Spans and log records: accepted, refused, and of the accepted those that were known already",
        lambda: counted("items", "outcome"),
        grows=True,
    )
    observe("spanreel_queue_bytes", "Bytes that wait to be committed", lambda: [(receiver.committer.waiting, {})])
    observe(
        "spanreel_derivation_lag_seconds",
        "How long the oldest quiet trace has waited to become sessions",
        lambda: [(progress.behind, {})],
    )
    observe(
        "spanreel_derived",
        "Traces read, sessions made or changed, traces of which none could be made",
        lambda: [
            (progress.traces, {"of": "traces"}),
            (progress.sessions, {"of": "sessions"}),
            (progress.failed, {"of": "failed"}),
        ],
        grows=True,
    )
    observe(
        "spanreel_derivation_seconds_spent",
        "Time spent on making sessions",
        lambda: [(progress.seconds, {})],
        grows=True,
    )
    observe(
        "spanreel_store_items",
        "What the store holds",
        lambda: [
            (number, {"of": name})
            for name, number in (
                ("items", size.now().items),
                ("traces", size.now().traces),
                ("sessions", size.now().sessions),
                ("pending", size.now().pending),
            )
        ],
    )
    observe(
        "spanreel_store_bytes",
        "Bytes of the store: in use (live), and taken (disk)",
        lambda: [(size.now().live, {"of": "live"}), (size.now().disk, {"of": "disk"})],
    )


@dataclass(eq=False, slots=True)
class _Size:
    store: Store
    _known: Size | None = None
    _at: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def now(self) -> Size:
        """The store's size, not older than some seconds."""
        with self._lock:
            if self._known is None or time.monotonic() - self._at > _SIZE_EVERY:
                self._known = self.store.size()
                self._at = time.monotonic()
            return self._known
