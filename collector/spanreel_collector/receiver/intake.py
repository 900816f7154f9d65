"""From a request's body to what is committed of it: segments, and what is refused. Knows no transport."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import zstandard

from spanreel.policy import Policy
from spanreel_collector.otlp.answers import Form
from spanreel_collector.otlp.grouping import group
from spanreel_collector.otlp.items import NAMES, KeptSignal
from spanreel_collector.otlp.json_parts import take_json_apart
from spanreel_collector.otlp.parts import Apart, Bounds, TooLarge, take_apart
from spanreel_collector.receiver.placing import place_logs
from spanreel_collector.receiver.redacting import redact_apart
from spanreel_collector.span import Fault
from spanreel_collector.stores.records import Refusal, Segment

MIB: Final = 1024 * 1024
_LEVEL: Final = 1
_NAMED: Final = 5
"""Refused items that the answer names; the store keeps more of them."""


@dataclass(frozen=True, slots=True)
class IntakeLimits:
    """How much one request may be: ``body`` bytes, packed and unpacked; ``copies`` bytes in all, taken apart."""

    body: int = 20 * MIB
    copies: int = 160 * MIB
    bounds: Bounds = field(default_factory=Bounds)


@dataclass(frozen=True, slots=True)
class Request:
    """What came: of whom, by which door (for people), and its body, unpacked."""

    tenant: str
    door: str
    signal: KeptSignal
    form: Form
    body: bytes


@dataclass(frozen=True, slots=True)
class Taken:
    """What is kept of a request, what is refused, how many items that is, and the words for whoever sent it."""

    segments: tuple[Segment, ...]
    refusals: tuple[Refusal, ...]
    items: int
    rejected: int
    message: str


@dataclass(frozen=True, slots=True)
class Intake:
    """How requests are taken in: the limits, and the policy that what arrives is redacted by, if any."""

    limits: IntakeLimits = field(default_factory=IntakeLimits)
    policy: Policy | None = None
    clock: Callable[[], int] = time.time_ns


def take(intake: Intake, request: Request) -> Taken:
    """What becomes of a request.

    Raises:
        Undecodable: nothing of it can be decoded.
        TooLarge: there is more in it than is taken.
    """
    limits = intake.limits
    if len(request.body) > limits.body:
        raise TooLarge(f"{len(request.body)} bytes; {limits.body} are taken")
    read = take_json_apart if request.form == "json" else take_apart
    apart = read(request.body, request.signal, limits.bounds)
    if intake.policy is not None:
        apart = redact_apart(apart, request.signal, intake.policy)
    if request.signal == "logs":
        apart = place_logs(apart)
    segments = tuple(
        Segment(request.tenant, each.trace, request.signal, each.identities, _pack(each.body), len(each.body))
        for each in group(apart.parts, limits.copies)
    )
    items = sum(len(segment.items) for segment in segments)
    refusals = refuse(intake, request.tenant, request.door, apart.faults)
    return Taken(segments, refusals, items, apart.refused, _message(apart, items, NAMES[request.signal]))


def refuse(intake: Intake, tenant: str, door: str, faults: Sequence[Fault]) -> tuple[Refusal, ...]:
    """What is noted of faults."""
    at = intake.clock()
    return tuple(Refusal(tenant, at, f"{door}, {fault.place}", fault.reason) for fault in faults)


def _message(apart: Apart, items: int, name: str) -> str:
    if not apart.refused:
        return ""
    told = "; ".join(f"{fault.place}: {fault.reason}" for fault in apart.faults[:_NAMED])
    more = f"; and {apart.refused - _NAMED} more" if apart.refused > _NAMED else ""
    return f"{apart.refused} of {items + apart.refused} refused ({name}s): {told}{more}"


class _Packers(threading.local):
    """A compressor for each thread: one is not for several."""

    def __init__(self) -> None:
        self.packer = zstandard.ZstdCompressor(level=_LEVEL)


_PACKERS: Final = _Packers()


def _pack(body: bytes) -> bytes:
    return _PACKERS.packer.compress(body)
