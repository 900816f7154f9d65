"""Files of any size, converted in bounded memory, by one process or several, with the same documents."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from spanreel.session import Session
from spanreel.session_files import write_session
from spanreel_collector.conversion.account import Account, Tally
from spanreel_collector.conversion.clusters import Cluster, Part
from spanreel_collector.conversion.convert import convert_cluster, fill
from spanreel_collector.conversion.packing import Packed, pack
from spanreel_collector.conversion.parallel import Crew, chunks, crew
from spanreel_collector.conversion.progress import Progress
from spanreel_collector.conversion.reading import Reading
from spanreel_collector.conversion.segments import read_segment
from spanreel_collector.conversion.spool import Spool
from spanreel_collector.sources.documents import together
from spanreel_collector.sources.files import UnreadRequest, read_piece

MOST_FAULTS = 50
"""What failed, and is said one by one."""
_HANDFUL = 1_000_000
"""Bytes that a process is given to work on at a time."""
_COLLECT_AFTER = 200_000


@dataclass(frozen=True, slots=True)
class Settings:
    """How to convert: in how many processes, documents indented by how much, with an account or without.

    ``namespace`` tells the sessions from those of other sources.
    """

    jobs: int = 1
    indent: int | None = None
    report: bool = False
    namespace: str | None = None


def convert_pieces(spool: Spool, pieces: Iterable[UnreadRequest], settings: Settings, progress: Progress) -> Tally:
    """Convert pieces, until the spool holds their documents; returns what else there is to say."""
    with crew(settings.jobs, seldom_collect) as workers, _fewer_collections():
        packed = workers.map(_pack, chunks(pieces, _size, _HANDFUL))
        return fill(spool, packed, partial(_make, spool, workers, settings, progress), _tally(settings))


def _size(piece: UnreadRequest) -> int:
    return len(piece.data) + 1


def _pack(pieces: list[UnreadRequest]) -> Packed:
    """What pieces hold, packed as one: a trace whose spans came in several of them is written once."""
    return pack(together(map(read_piece, pieces)))


def _make(
    spool: Spool, workers: Crew, settings: Settings, progress: Progress, clusters: Iterable[Cluster]
) -> Iterator[Part]:
    progress.begin("converting", spool.size)
    sizes = deque[int]()

    def watched() -> Iterator[Cluster]:
        for cluster in clusters:
            sizes.append(cluster.size)
            yield cluster

    work = partial(_convert, spool.path, settings)
    for parts in workers.map(work, chunks(watched(), lambda one: one.size, _HANDFUL)):
        for part in parts:
            progress.advance(sizes.popleft())
            yield part


def _convert(path: str, settings: Settings, clusters: list[Cluster]) -> list[Part]:
    """What some clusters become, read from a spool's file."""
    # Segments are read whole, each from a place of its own: a buffer would read what nobody asks for.
    with Path(path).open("rb", buffering=0) as file:
        read = partial(read_segment, file)
        write = partial(_text, settings.indent)
        return [
            convert_cluster(cluster, Reading(read), _tally(settings), write, settings.namespace)[0]
            for cluster in clusters
        ]


def _tally(settings: Settings) -> Tally:
    return Tally(most=MOST_FAULTS, account=Account() if settings.report else None)


def _text(indent: int | None, session: Session) -> bytes:
    return write_session(session, indent=indent).encode()


@contextmanager
def _fewer_collections() -> Iterator[None]:
    """Much is made here that lives a little and holds no circles: looking for those often costs a quarter of it."""
    known = gc.get_threshold()
    seldom_collect()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*known)


def seldom_collect() -> None:
    """Set this process up for it, until it ends."""
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)
