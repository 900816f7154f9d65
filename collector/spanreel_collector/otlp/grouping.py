"""What was taken apart, put together again: an export request for each trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from spanreel_collector.otlp.items import Item
from spanreel_collector.otlp.parts import ScopePart, TooLarge
from spanreel_collector.otlp.wire_format import write_head

_RESOURCES: Final = 1
_CONTENTS: Final = 2


@dataclass(frozen=True, slots=True)
class TraceItems:
    """What a request holds of one trace, as an export request."""

    trace: bytes
    identities: tuple[bytes, ...]
    body: bytes


def group(parts: Sequence[ScopePart], most: int) -> Iterator[TraceItems]:
    """A request for each trace; all of them together are at most so many bytes.

    Raises:
        TooLarge: they would be more, since each trace gets its resource and scope again.
    """
    traces: dict[bytes, list[tuple[ScopePart, list[Item]]]] = {}
    total = 0
    for part in parts:
        found: dict[bytes, list[Item]] = {}
        for item in part.items:
            found.setdefault(item.trace, []).append(item)
        for trace, items in found.items():
            traces.setdefault(trace, []).append((part, items))
        total += len(found) * (len(part.resource) + len(part.scope)) + sum(len(item.data) for item in part.items)
    if total > most:
        raise TooLarge(f"{total} bytes with a resource and a scope for each trace; {most} are taken")
    for trace, scopes in traces.items():
        identities = tuple([item.identity for _, items in scopes for item in items])
        yield TraceItems(trace, identities, b"".join(_pieces(scopes)))


def _pieces(scopes: Sequence[tuple[ScopePart, list[Item]]]) -> list[bytes]:
    """The scopes of a trace under their resources, which stand together. Joined once: what items hold is large."""
    pieces: list[bytes] = []
    for _, same in groupby(scopes, lambda scope: id(scope[0].resource)):
        resource: list[bytes] = []
        for part, items in same:
            resource = resource or [part.resource]
            scope = [part.scope]
            for item in items:
                scope += (write_head(_CONTENTS, len(item.data)), item.data)
            resource += (write_head(_CONTENTS, sum(map(len, scope))), *scope)
        pieces += (write_head(_RESOURCES, sum(map(len, resource))), *resource)
    return pieces
