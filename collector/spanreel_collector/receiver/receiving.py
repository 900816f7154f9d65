"""What both doors do with a request: take it in, have it committed, and know which answer fits what went wrong."""

from __future__ import annotations

import logging
import math
import threading
from collections import Counter
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from dataclasses import dataclass, field
from typing import Final

from spanreel_collector.access import Denied
from spanreel_collector.otlp.answers import Code, Form, Status
from spanreel_collector.otlp.items import KeptSignal
from spanreel_collector.otlp.parts import TooLarge, Undecodable
from spanreel_collector.otlp.protobuf_form import Signal
from spanreel_collector.rates import TooOften
from spanreel_collector.receiver.bodies import UnknownEncoding, unpack
from spanreel_collector.receiver.committing import Committer, QueueFull
from spanreel_collector.receiver.intake import Intake, Request, Taken, refuse, take
from spanreel_collector.span import Fault
from spanreel_collector.stores.records import Appended
from spanreel_collector.stores.store import StoreError

LOG: Final = logging.getLogger(__name__)

SLOTS: Final = 2
"""Requests that are unpacked and taken apart at the same time, of both doors: more would only take memory."""
RETRY_SECONDS: Final = 1
"""After which what could not be written may come again; senders add their own back-off."""


class Counts:
    """What the receiver did, counted; `read` gives the numbers by name and labels."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = Counter[tuple[str, str, str]]()

    def add(self, name: str, signal: str, label: str, number: int = 1) -> None:
        """Count."""
        with self._lock:
            self._counts[name, signal, label] += number

    def read(self) -> dict[tuple[str, str, str], int]:
        """The numbers: of ``requests`` by signal and answer (a code's name), of ``items`` by signal and what became."""
        with self._lock:
            return dict(self._counts)


@dataclass(frozen=True, slots=True)
class Receiver:
    """What the doors share. ``metrics`` says whether metrics are accepted (and dropped), or refused as not found.

    ``body_seconds`` are given to a body to arrive, ``commit_seconds`` to a commit; ``reading`` bounds the bytes of all
    bodies that arrive at the same time, ``slots`` how many are taken apart at the same time.
    """

    committer: Committer
    intake: Intake = field(default_factory=Intake)
    metrics: bool = True
    body_seconds: float = 30.0
    commit_seconds: float = 30.0
    reading: int = 256 * 1024 * 1024
    counts: Counts = field(default_factory=Counts)
    slots: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(SLOTS))


@dataclass(frozen=True, slots=True)
class Arrived:
    """A request as it arrived: its body is packed as ``encoding`` says."""

    tenant: str
    door: str
    signal: KeptSignal
    form: Form
    encoding: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Accepted:
    """A request that was taken apart, and the future of its commit; None where there is nothing to write."""

    taken: Taken
    done: Future[Appended] | None


def accept(receiver: Receiver, arrived: Arrived) -> Accepted:
    """Take a request in and submit it. What cannot be decoded at all is noted as refused.

    Raises:
        UnknownEncoding, Undecodable, TooLarge, QueueFull: it is not taken; `status_of` says what to answer.
    """
    door = f"{arrived.signal} over {arrived.door}"
    try:
        with receiver.slots:
            body = unpack(arrived.body, arrived.encoding, receiver.intake.limits.body)
            taken = take(receiver.intake, Request(arrived.tenant, door, arrived.signal, arrived.form, body))
            del body
    except (Undecodable, TooLarge) as error:
        _note(receiver, arrived.tenant, door, str(error))
        raise
    if not taken.segments and not taken.refusals:
        return Accepted(taken, None)
    return Accepted(taken, receiver.committer.submit(taken.segments, taken.refusals))


def count(receiver: Receiver, signal: Signal, accepted: Accepted, appended: Appended | None) -> None:
    """Count a request that was answered well."""
    receiver.counts.add("requests", signal, "OK")
    receiver.counts.add("items", signal, "accepted", accepted.taken.items)
    receiver.counts.add("items", signal, "refused", accepted.taken.rejected)
    receiver.counts.add("items", signal, "known", appended.known if appended else 0)


def _note(receiver: Receiver, tenant: str, door: str, reason: str) -> None:
    """Keep what was refused as a whole, if there is room: nobody waits for it."""
    try:
        done = receiver.committer.submit((), refuse(receiver.intake, tenant, door, (Fault("request", reason),)))
    except QueueFull:
        return
    done.add_done_callback(lambda future: future.exception())


def status_of(error: BaseException) -> Status:
    """What is answered to what went wrong. Only what may be sent again says so."""
    match error:
        case Undecodable():
            return Status(Code.INVALID_ARGUMENT, str(error), faults=(Fault("request", str(error)),))
        case UnknownEncoding():
            return Status(Code.INVALID_ARGUMENT, str(error))
        case TooLarge():
            return Status(Code.RESOURCE_EXHAUSTED, f"too large: {error}")
        case Denied():
            return Status(Code.UNAUTHENTICATED if error.status == 401 else Code.PERMISSION_DENIED, str(error))
        case TooOften():
            return Status(Code.UNAVAILABLE, str(error), retry=math.ceil(error.seconds))
        case QueueFull():
            return Status(Code.UNAVAILABLE, f"too busy: {error}", retry=RETRY_SECONDS)
        case StoreError():
            # Why is said in our log: a store's words may name its address.
            return Status(Code.UNAVAILABLE, "the store cannot write at the moment", retry=RETRY_SECONDS)
        case NotInTime():
            return Status(Code.UNAVAILABLE, "not written in time", retry=RETRY_SECONDS)
        case _:
            LOG.error("a fault of the receiver", exc_info=error)
            return Status(Code.INTERNAL, "a fault of the receiver; its log says more")
