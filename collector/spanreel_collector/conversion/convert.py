"""From what was exported to session documents: read, repair, assemble; and the account of what could not be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from spanreel.session import Session
from spanreel_collector.conversion.account import Tally
from spanreel_collector.conversion.clusters import Cluster, Document, End, Part, Place
from spanreel_collector.conversion.packing import Packed, pack
from spanreel_collector.conversion.reading import Reading, said
from spanreel_collector.conversion.spool import Spool
from spanreel_collector.conversion.twins import Twin, read_twins
from spanreel_collector.sessions.assemble import Assembly, Finished
from spanreel_collector.sessions.conversations import read_ends
from spanreel_collector.sources.files import read_file
from spanreel_collector.span import Batch, Fault


@dataclass(frozen=True, slots=True)
class Conversion:
    """Sessions, what could not be read, and how much was skipped, by kind (metrics, logs, unknown spans)."""

    sessions: tuple[Session, ...] = ()
    faults: tuple[Fault, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)


def convert_files(paths: Iterable[str]) -> Conversion:
    """Convert files together: a conversation may be spread over several."""
    return convert(batch for path in paths for batch in read_file(path))


def convert(batches: Iterable[Batch]) -> Conversion:
    """Convert what was exported, in the order of its arrival. The same input gives the same documents."""
    tally = Tally()
    sessions: dict[str, Session] = {}

    def make(clusters: Iterable[Cluster]) -> Iterator[Part]:
        for cluster in clusters:
            part, made = convert_cluster(cluster, Reading(spool.read), Tally())
            sessions.update({one.session.id: one.session for one in made})
            yield part

    with Spool() as spool:
        tally = fill(spool, (pack(batch) for batch in batches), make, tally)
        ordered = tuple(sessions[identity] for identity, _ in spool.documents())
    return Conversion(ordered, tuple(tally.faults), dict(tally.skipped))


def fill(
    spool: Spool, batches: Iterable[Packed], make: Callable[[Iterable[Cluster]], Iterator[Part]], tally: Tally
) -> Tally:
    """Take batches through a spool, until its documents are there: ``make`` gives what clusters become, in order."""
    for packed in batches:
        tally.add(packed.faults, packed.skipped)
        spool.add(packed)
    for part in make(spool.clusters()):
        spool.keep(part)
    # What only the content of calls tells to be one was made apart, and is made again.
    again = list(spool.rejoined())
    for (number, _), part in zip(again, make(cluster for _, cluster in again), strict=True):
        spool.keep(part, number)
    for rest in spool.rests():
        tally.merge(rest)
    return tally


# -- one cluster of traces -------------------------------------------------------------------------------------------


def convert_cluster(
    cluster: Cluster,
    reading: Reading,
    tally: Tally,
    write: Callable[[Session], bytes] = lambda _: b"",
    namespace: str | None = None,
) -> tuple[Part, list[Finished]]:
    """What the traces of a cluster become. They are read one by one, so that only documents grow with their number.

    ``namespace`` tells their sessions from those of other sources.
    """
    assembly = Assembly(lambda place, error: tally.add([Fault(place, said(error))], {}), namespace)
    heads, tails = set[End](), set[End]()
    twins: list[Twin] = []
    for trace, places in _whole_traces(cluster):
        placed = reading.trace(trace, places, tally)
        if not cluster.alone:
            twins += read_twins(placed)
        for root in assembly.add(placed):
            for found, ends in zip((heads, tails), read_ends(root), strict=True):
                found.update((name, trace) for name in ends)
    finished = list(assembly.finish())
    if tally.account is not None:
        for one in finished:
            tally.account.add_session(one.session)
    documents = []
    for one in finished:
        session = one.session
        try:
            text = write(session)
        except Exception as error:  # noqa: BLE001 - what strangers wrote may fail anywhere: a session costs only itself
            tally.add([Fault(f"session of {session.key.kind} {session.key.value!r}", said(error))], {})
            continue
        start, arrival = one.began
        kind, value = session.key.kind, session.key.value
        documents.append(Document(start, arrival, kind, value, session.id, len(session.runs), text))
    return Part(cluster.names, tuple(documents), tally, frozenset(heads), frozenset(tails), tuple(twins)), finished


def _whole_traces(cluster: Cluster) -> Iterator[tuple[str, tuple[Place, ...]]]:
    """The traces of a cluster, those that are one put together at the place of the first."""
    groups = {trace: group for group in cluster.twins for trace in group}
    for trace, places in cluster.traces:
        group = groups.get(trace)
        if group is None:
            yield trace, places
            continue
        members = [(name, found) for name, found in cluster.traces if name in group]
        if members[0][0] == trace:
            yield trace, tuple(place for _, found in members for place in found)
