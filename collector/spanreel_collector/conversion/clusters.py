"""What is given out by a spool to be converted, and what comes back of it, as data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from spanreel_collector.conversion.twins import Twin

Place = tuple[int, int, int]
"""A segment in the file: the arrival of its batch's first span, offset and length."""
End = tuple[bytes, str]
"""The name of a loop's beginning or end, and the trace that has it."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Traces that may share sessions, in the order of their start, each with the places of its segments.

    ``twins`` are those that are read as one; ``alone`` says that one recorder wrote all there is: no other has twins.
    """

    names: tuple[bytes, ...]
    traces: tuple[tuple[str, tuple[Place, ...]], ...]
    twins: tuple[frozenset[str], ...] = ()
    alone: bool = False

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(length for _, places in self.traces for _, _, length in places)


@dataclass(frozen=True, slots=True)
class Document:
    """A session's text and what it is ordered and found by."""

    start: int
    arrival: int
    kind: str
    value: str
    id: str
    runs: int
    text: bytes


@dataclass(frozen=True, slots=True)
class Part:
    """What one cluster became: documents, the rest of its account, and the ends of loops that others may go on with."""

    names: tuple[bytes, ...]
    documents: tuple[Document, ...]
    rest: Any
    heads: frozenset[End] = frozenset()
    tails: frozenset[End] = frozenset()
    twins: tuple[Twin, ...] = ()


def gather_clusters(rows: Iterable[tuple[bytes, bytes, int, int, int]]) -> Iterator[Cluster]:
    """Clusters of rows that come in their order: the cluster's name, a trace in it, and a place of the trace's."""
    name: bytes | None = None
    traces: dict[bytes, list[Place]] = {}
    for cluster, trace, first, offset, length in rows:
        if name is not None and cluster != name:
            yield _cluster(name, traces)
            traces = {}
        name = cluster
        traces.setdefault(trace, []).append((first, offset, length))
    if name is not None:
        yield _cluster(name, traces)


def _cluster(name: bytes, traces: dict[bytes, list[Place]]) -> Cluster:
    return Cluster((name,), tuple((trace.decode("utf-8"), tuple(places)) for trace, places in traces.items()))
