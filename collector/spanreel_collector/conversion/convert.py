"""From what was exported to session documents: read, repair, assemble; and the account of what could not be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from pydantic import ValidationError

from spanreel.loss_markers import note_losses
from spanreel.model import Fidelity, ModelRecord, Record
from spanreel.session import Session
from spanreel_collector import dialects
from spanreel_collector.conversion.account import Tally
from spanreel_collector.conversion.clusters import Cluster, Document, Part, Place
from spanreel_collector.conversion.packing import Packed, Unpacker, pack
from spanreel_collector.conversion.spool import Spool
from spanreel_collector.conversion.twins import Twin, read_twins
from spanreel_collector.repair import drop_redelivered, join_logs, repair
from spanreel_collector.repair.merging import join_views
from spanreel_collector.sessions.assemble import Assembly, Finished
from spanreel_collector.sessions.conversations import read_ends
from spanreel_collector.sessions.facts import read_session
from spanreel_collector.sources.files import read_file
from spanreel_collector.span import Batch, Fault, RawLog, RawSpan
from spanreel_collector.trace import Placed, Trace

UNKNOWN = "spans of no known dialect"


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
            part, made = convert_cluster(cluster, spool.read, Tally())
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
    read: Callable[[Place], tuple[int, bytes]],
    tally: Tally,
    write: Callable[[Session], bytes] = lambda _: b"",
    namespace: str | None = None,
) -> tuple[Part, list[Finished]]:
    """What the traces of a cluster become. They are read one by one, so that only documents grow with their number.

    ``namespace`` tells their sessions from those of other sources.
    """
    unpacker = Unpacker()
    assembly = Assembly(lambda place, error: tally.add([Fault(place, said(error))], {}), namespace)
    heads, tails = set[bytes](), set[bytes]()
    twins: list[Twin] = []
    for trace, places in _whole_traces(cluster):
        spans, logs = unpacker.unpack(read(place) for place in places)
        if tally.account is not None:
            for span in spans.values():
                tally.account.add_span(span)
        placed = _read_trace(trace, spans, logs, tally)
        if not cluster.alone:
            twins += read_twins(placed)
        for root in assembly.add(placed):
            ends = read_ends(root)
            heads.update(ends[0])
            tails.update(ends[1])
    finished = list(assembly.finish())
    if tally.account is not None:
        for one in finished:
            tally.account.add_session(one.session)
    documents = []
    for one in finished:
        session = one.session
        try:
            text = write(session)
        except Exception as error:  # noqa: BLE001 - as in _place: a bad session costs only itself
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


def _read_trace(trace: str, spans: Mapping[int, RawSpan], logs: list[RawLog], tally: Tally) -> Trace:
    """A trace put right; one that cannot be goes on as it came, and is reported."""
    arrivals: dict[tuple[str, str], int] = {}
    for arrival, span in spans.items():
        arrivals.setdefault((span.trace_id, span.span_id), arrival)
    joined, strangers = join_logs(*_gathered(trace, drop_redelivered(spans.values()), logs, tally))
    tally.add((), {"logs": strangers})
    last = max(spans, default=0)
    placed = tuple(
        _place(span, arrivals.get((span.trace_id, span.span_id), last + number), tally)
        for number, span in enumerate(joined, 1)
    )
    try:
        return repair(placed)
    except Exception as error:  # noqa: BLE001 - as in _place: a bad trace costs only its own repair
        tally.add([Fault(f"trace {trace}", f"could not be put right: {said(error)}")], {})
        return placed


def _gathered(trace: str, spans: list[RawSpan], logs: list[RawLog], tally: Tally) -> tuple[list[RawSpan], list[RawLog]]:
    """The trace as its dialects gather it; where one cannot, as it came, and that is reported."""
    try:
        return dialects.gather(spans, logs)
    except Exception as error:  # noqa: BLE001 - as in _place: a bad trace costs only what stands beside its spans
        tally.add([Fault(f"trace {trace}", f"could not be gathered: {said(error)}")], {})
        return spans, logs


def said(error: Exception) -> str:
    """What an error of ours says, in a line."""
    return str(error.errors()[0]["msg"]) if isinstance(error, ValidationError) else f"{type(error).__name__}: {error}"


def _place(span: RawSpan, arrival: int, tally: Tally) -> Placed:
    """The span with what it says; one that its dialect fails on is kept as a grouping span, and reported."""
    spoken = dialects.find(span)
    record: Record | None = None
    for dialect in spoken:
        try:
            read = dialect.read(span)
            # What we lost ourselves, our spans say themselves.
            if read is not None and dialect is not dialects.spanreel:
                read = note_losses(read)
                read = _note_dropped(read) if span.dropped_attributes else read
            record = join_views(record, read)
        except Exception as error:  # noqa: BLE001 a dialect reads what strangers wrote: a bad span costs only itself
            reason = f"not readable as {dialect.NAME}: {type(error).__name__}: {error}"
            tally.add([Fault(f"{span.place} ({span.name!r})", reason)], {})
    if not spoken:
        tally.add((), {UNKNOWN: 1})
    return Placed(
        span=span,
        record=record,
        dialect=spoken[0].NAME if spoken else None,
        id=span.span_id,
        parent=span.parent_id,
        arrival=arrival,
        session=read_session(span),
    )


def _note_dropped(record: Record) -> Record:
    """The record of a span that lost attributes to its recorder's limits: what could be among them is not whole."""
    if not isinstance(record, ModelRecord):
        return record
    marks = {"settings": Fidelity.TRUNCATED}
    if not record.request.tools:
        marks["tools"] = Fidelity.ABSENT
    return replace(record, fidelity={**marks, **record.fidelity})
