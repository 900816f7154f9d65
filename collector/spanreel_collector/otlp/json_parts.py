"""An export request in OTLP/JSON taken apart, into the same parts as one in protobuf."""

from __future__ import annotations

import codecs
from typing import Any, Final

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from spanreel_collector import json_text
from spanreel_collector.otlp.items import NAMES, READERS, Item, KeptSignal, digest_of
from spanreel_collector.otlp.json_messages import fill
from spanreel_collector.otlp.parts import Apart, Bounds, Gathering, ScopePart, TooLarge, Undecodable

_MOST_CONTAINERS: Final = 1_000_000
_LEVELS: Final[dict[KeptSignal, tuple[tuple[str, str, Any], tuple[str, str, Any], tuple[str, str, Any]]]] = {
    "traces": (
        ("resourceSpans", "resource_spans", ResourceSpans),
        ("scopeSpans", "scope_spans", ScopeSpans),
        ("spans", "spans", Span),
    ),
    "logs": (
        ("resourceLogs", "resource_logs", ResourceLogs),
        ("scopeLogs", "scope_logs", ScopeLogs),
        ("logRecords", "log_records", LogRecord),
    ),
}
"""Of each signal: the members of a request, a resource and a scope that hold the next level, and the messages there."""


def take_json_apart(data: bytes, signal: KeptSignal, bounds: Bounds) -> Apart:
    """Take a request in OTLP/JSON apart. An empty body says nothing, as an empty one in protobuf does.

    Raises:
        Undecodable: this is no export request, or nothing of it can be decoded.
        TooLarge: there is more in it than is taken.
    """
    document = _parse(data) if data else {}
    if not isinstance(document, dict):
        raise Undecodable(f"JSON of type {type(document).__name__} is no export request")
    resources, scopes, _ = _LEVELS[signal]
    if document.keys() & set(scopes[:2]):  # a resource by itself, as some exporters write it
        document = {resources[0]: [document]}
    if document and not {resources[0], resources[1]} & document.keys():
        raise Undecodable(f"an object without {resources[0]} is no export request; it has {sorted(document)[:5]!r}")
    gathering = Gathering(bounds)
    groups = 0
    for number, resource in enumerate(_list(document, resources)):
        place = f"resource {number}"
        try:
            header = fill(resources[2](), resource, scopes[1]).SerializeToString()
            inner = _list(resource, scopes)
        except ValueError as error:
            gathering.refuse(place, error)
            continue
        groups += 1 + len(inner)
        if groups > bounds.groups:
            raise TooLarge(f"more than {bounds.groups} resources and scopes in one request")
        within = digest_of(header)
        for position, scope in enumerate(inner):
            _take_scope(gathering, scope, (signal, f"{place}, scope {position}"), (header, within))
    return gathering.finish()


def _parse(data: bytes) -> Any:
    data = data.removeprefix(codecs.BOM_UTF8)
    # Each takes many times its two bytes in memory.
    if data.count(b"{") + data.count(b"[") > _MOST_CONTAINERS:
        raise TooLarge(f"more than {_MOST_CONTAINERS} objects and lists in one request")
    try:
        return json_text.parse(data)
    except ValueError as error:
        if "recursion limit" not in str(error) and "deeply" not in str(error):
            raise Undecodable(f"not JSON: {error}") from error
    # One value nested too deeply must not cost the request its other spans.
    try:
        return json_text.parse(json_text.prune(data.decode("utf-8", "replace")))
    except ValueError as error:
        raise Undecodable(f"not JSON: {error}") from error


def _take_scope(gathering: Gathering, scope: Any, where: tuple[KeptSignal, str], under: tuple[bytes, bytes]) -> None:
    (signal, place), (resource, within) = where, under
    _, scopes, contents = _LEVELS[signal]
    try:
        header = fill(scopes[2](), scope, contents[1]).SerializeToString()
        found = _list(scope, contents)
    except ValueError as error:
        gathering.refuse(place, error)
        return
    gathering.count(len(found))
    read, digest = READERS[signal], digest_of(header, within)
    items: list[Item] = []
    for number, said in enumerate(found):
        try:
            data = fill(contents[2](), said).SerializeToString(deterministic=True)
            items.append(read(data, digest))
        except ValueError as error:
            gathering.refuse(f"{place}, {NAMES[signal]} {number}", error)
    gathering.add(ScopePart(resource, header, tuple(items)))


def _list(said: dict[str, Any], level: tuple[str, str, Any]) -> list[Any]:
    found = said.get(level[0])
    found = said.get(level[1]) if found is None else found
    if found is None:
        return []
    if not isinstance(found, list):
        raise Undecodable(f"{level[0]} is {type(found).__name__}, not a list")
    return found
