"""From what was exported to session documents: read, repair, assemble; and the account of what could not be read."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from spanreel.model import Record
from spanreel.session import Session
from spanreel_collector import dialects
from spanreel_collector.assemble import assemble, group
from spanreel_collector.facts import read_session
from spanreel_collector.merging import join_views
from spanreel_collector.repair import drop_redelivered, join_logs, repair
from spanreel_collector.sources.files import read_file
from spanreel_collector.span import Batch, Fault, RawLog, RawSpan
from spanreel_collector.trace import Placed


@dataclass(frozen=True, slots=True)
class Conversion:
    """Sessions, what could not be read, and how much was skipped, by kind (metrics, logs, unknown spans)."""

    sessions: tuple[Session, ...] = ()
    faults: tuple[Fault, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)


def convert_files(paths: Iterable[str]) -> Conversion:
    """Convert files of OTLP JSON lines together: a conversation may be spread over several."""
    return convert(batch for path in paths for batch in read_file(path))


def convert(batches: Iterable[Batch]) -> Conversion:
    """Convert what was exported, in the order of its arrival. The same input gives the same documents."""
    spans: list[RawSpan] = []
    logs: list[RawLog] = []
    faults: list[Fault] = []
    skipped = Counter[str]()
    for batch in batches:
        spans += batch.spans
        logs += batch.logs
        faults += batch.faults
        skipped.update(batch.skipped)
    joined, strangers = join_logs(*dialects.gather(drop_redelivered(spans), logs))
    skipped["logs"] += strangers
    traces: dict[str, list[Placed]] = defaultdict(list)
    for arrival, span in enumerate(joined):
        placed = _place(span, arrival, faults)
        skipped["spans of no known dialect"] += placed.dialect is None
        traces[span.trace_id].append(placed)
    sessions = []
    for one in group(_repaired(traces, faults)):
        try:
            sessions.append(assemble(one))
        except Exception as error:  # noqa: BLE001 - as in _place: a bad session costs only itself
            faults.append(Fault(f"session of {one.kind} {one.value!r}", _said(error)))
    return Conversion(tuple(sessions), tuple(faults), {kind: count for kind, count in skipped.items() if count})


def _repaired(traces: Mapping[str, Sequence[Placed]], faults: list[Fault]) -> Iterator[tuple[Placed, ...]]:
    """The traces put right; one that cannot be goes on as it came, and is reported."""
    for trace_id, spans in traces.items():
        trace = tuple(spans)
        try:
            trace = repair(trace)
        except Exception as error:  # noqa: BLE001 - as in _place: a bad trace costs only its own repair
            faults.append(Fault(f"trace {trace_id}", f"could not be put right: {_said(error)}"))
        yield trace


def _said(error: Exception) -> str:
    return str(error.errors()[0]["msg"]) if isinstance(error, ValidationError) else f"{type(error).__name__}: {error}"


def _place(span: RawSpan, arrival: int, faults: list[Fault]) -> Placed:
    """The span with what it says; one that its dialect fails on is kept as a grouping span, and reported."""
    spoken = dialects.find(span)
    record: Record | None = None
    for dialect in spoken:
        try:
            record = join_views(record, dialect.read(span))
        except Exception as error:  # noqa: BLE001 a dialect reads what strangers wrote: a bad span costs only itself
            reason = f"not readable as {dialect.NAME}: {type(error).__name__}: {error}"
            faults.append(Fault(f"{span.place} ({span.name!r})", reason))
    return Placed(
        span=span,
        record=record,
        dialect=spoken[0].NAME if spoken else None,
        id=span.span_id,
        parent=span.parent_id,
        arrival=arrival,
        session=read_session(span),
    )
