"""What was taken apart, changed as JSON by a function, and in protobuf again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from spanreel.model import Json
from spanreel_collector.otlp.json_messages import fill, write
from spanreel_collector.otlp.parts import NAMES, READERS, Apart, Item, Kept, Part
from spanreel_collector.span import Fault

Change = Callable[[Json], Json]

MESSAGES: Final[dict[Kept, tuple[Any, Any, Any]]] = {
    "traces": (ResourceSpans, ScopeSpans, Span),
    "logs": (ResourceLogs, ScopeLogs, LogRecord),
}


def rewrite(apart: Apart, signal: Kept, change: Change) -> Apart:
    """The same parts, each resource, scope and item changed by itself. An item that cannot be is refused."""
    resource_kind, scope_kind, item_kind = MESSAGES[signal]
    resources: dict[int, bytes] = {}
    parts: list[Part] = []
    faults: list[Fault] = []
    for part in apart.parts:
        items: list[Item] = []
        for item in part.items:
            try:
                if id(part.resource) not in resources:
                    resources[id(part.resource)] = _change(part.resource, resource_kind, change)
                resource, scope = resources[id(part.resource)], _change(part.scope, scope_kind, change)
                items.append(READERS[signal](_change(item.data, item_kind, change), resource, scope))
            except ValueError as error:
                faults.append(Fault(f"{NAMES[signal]} {item.identity[:8].hex()}", str(error)))
        if items:
            parts.append(Part(resource, scope, tuple(items)))
    refused = apart.refused + len(faults)
    return replace(apart, parts=tuple(parts), faults=(*apart.faults, *faults), refused=refused)


def _change(data: bytes, kind: Any, change: Change) -> bytes:
    return bytes(fill(kind(), change(write(kind.FromString(data)))).SerializeToString(deterministic=True))
