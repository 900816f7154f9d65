"""What was taken apart, changed as JSON by a function, and in protobuf again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from spanreel.model import Json
from spanreel_collector.otlp.items import NAMES, READERS, Item, KeptSignal, digest_of
from spanreel_collector.otlp.json_messages import fill, write
from spanreel_collector.otlp.parts import Apart, ScopePart
from spanreel_collector.span import Fault

Change = Callable[[Json], Json]

MESSAGES: Final[dict[KeptSignal, tuple[Any, Any, Any]]] = {
    "traces": (ResourceSpans, ScopeSpans, Span),
    "logs": (ResourceLogs, ScopeLogs, LogRecord),
}


def rewrite(apart: Apart, signal: KeptSignal, change: Change) -> Apart:
    """The same parts, each resource, scope and item changed by itself. An item that cannot be is refused."""
    _, _, kind = MESSAGES[signal]
    headers: dict[int, tuple[bytes, bytes]] = {}
    parts: list[ScopePart] = []
    faults: list[Fault] = []
    for part in apart.parts:
        try:
            resource, scope, under = _headers(part, signal, change, headers)
        except ValueError as error:
            faults += [_fault(signal, item, error) for item in part.items]
            continue
        items: list[Item] = []
        for item in part.items:
            try:
                items.append(READERS[signal](_change(item.data, kind, change), under))
            except ValueError as error:
                faults.append(_fault(signal, item, error))
        parts.append(ScopePart(resource, scope, tuple(items)))
    refused = apart.refused + len(faults)
    return replace(apart, parts=tuple(parts), faults=(*apart.faults, *faults), refused=refused)


def _headers(
    part: ScopePart, signal: KeptSignal, change: Change, known: dict[int, tuple[bytes, bytes]]
) -> tuple[bytes, bytes, bytes]:
    """A part's resource and scope, changed, and the digest of both; resources of several parts are changed once."""
    resource_kind, scope_kind, _ = MESSAGES[signal]
    if id(part.resource) not in known:
        changed = _change(part.resource, resource_kind, change)
        known[id(part.resource)] = changed, digest_of(changed)
    resource, within = known[id(part.resource)]
    scope = _change(part.scope, scope_kind, change)
    return resource, scope, digest_of(scope, within)


def _fault(signal: KeptSignal, item: Item, error: ValueError) -> Fault:
    return Fault(f"{NAMES[signal]} {item.identity[:8].hex()}", str(error))


def _change(data: bytes, kind: Any, change: Change) -> bytes:
    return bytes(fill(kind(), change(write(kind.FromString(data)))).SerializeToString(deterministic=True))
