"""Model calls of which two traces tell: of recorders neither of whose spans is the current one for the other.

So are a framework's callbacks and the client's instrumentation. Traces that share a call are read as one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from spanreel.model import Status
from spanreel.records import ModelRecord
from spanreel_collector import json_text
from spanreel_collector.repair.views import failed_alike, response_id, said
from spanreel_collector.trace import Placed, Trace


@dataclass(frozen=True, slots=True)
class Twin:
    """A model call by a name that its twin has too; ``sure`` where the name is the provider's id of the answer."""

    name: bytes
    sure: bool
    start: int
    end: int
    scope: str
    trace: str


def read_twins(trace: Trace) -> Iterator[Twin]:
    """The names of a trace's model calls, attempts that failed among them."""
    for placed in _with_attempts(trace):
        record = placed.record
        if not isinstance(record, ModelRecord) or placed.span.end <= 0:
            continue
        service = placed.span.origin.resource.get("service.name")
        if record.status is Status.ERROR and failed_alike(record, record):
            yield _twin(placed, [service, said(record.request.messages)], sure=False)
        if record.answer is None:
            continue
        if identity := response_id(record):
            yield _twin(placed, [service, identity], sure=True)
        answered, usage = said(record.answer.messages), record.answer.usage
        if answered:
            yield _twin(placed, [service, said(record.request.messages[-1:]), answered], sure=False)
        if usage is not None and usage.input_tokens and usage.output_tokens and not (identity and answered):
            # A client tells no content, the framework around it no id: the counts are what both have.
            yield _twin(placed, [service, usage.input_tokens, usage.output_tokens], sure=False)


def _with_attempts(trace: Trace) -> Iterator[Placed]:
    for placed in trace:
        if placed.earlier:
            yield from placed.earlier
        yield placed


def _twin(placed: Placed, named: list[object], *, sure: bool) -> Twin:
    name = hashlib.sha256(json_text.canonical(named).encode("utf-8", "replace")).digest()[:16]
    span = placed.span
    return Twin(name, sure, span.start, span.end, span.origin.scope, span.trace_id)


def pair(twins: Iterable[Twin]) -> Iterator[tuple[str, str]]:
    """The traces of each two calls that are one: of one name and of two writers, at the same time.

    The twins come by name and start. Where only what was said names them, and several could be meant, none is.
    """
    for _, named in groupby(twins, key=lambda twin: twin.name):
        seen: list[Twin] = []
        for twin in named:
            seen = [one for one in seen if one.end >= twin.start]
            others = [one for one in seen if one.scope != twin.scope and _at_once(one, twin)]
            if others and (twin.sure or len(others) == 1):
                yield from ((one.trace, twin.trace) for one in others if one.trace != twin.trace)
            seen.append(twin)


def _at_once(one: Twin, other: Twin) -> bool:
    """Whether most of the shorter of two calls passed during the other."""
    shared = min(one.end, other.end) - max(one.start, other.start)
    return 2 * shared >= min(one.end - one.start, other.end - other.start)
