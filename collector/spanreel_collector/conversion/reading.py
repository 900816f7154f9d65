"""A trace read: unpacked, each of its spans by its dialects, and put right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pydantic import ValidationError

from spanreel.loss_markers import note_losses
from spanreel.model import Fidelity
from spanreel.records import ModelRecord, Record
from spanreel_collector import dialects
from spanreel_collector.conversion.account import Tally
from spanreel_collector.conversion.clusters import Place
from spanreel_collector.conversion.packing import Unpacker
from spanreel_collector.conversion.remembering import Remembered, Segments
from spanreel_collector.dialects import evaluations
from spanreel_collector.dialects.content import costs
from spanreel_collector.evaluation import Told
from spanreel_collector.repair import drop_redelivered, end_after_start, join_logs, repair
from spanreel_collector.repair.evaluating import place_evaluations
from spanreel_collector.repair.merging import join_views
from spanreel_collector.sessions.facts import read_session
from spanreel_collector.span import Fault, RawLog, RawSpan
from spanreel_collector.trace import Placed, Trace

UNKNOWN = "spans of no known dialect"
UNPLACED = "evaluations of no run here"


class Reading:
    """Reads the traces of a cluster; what is remembered of those that were read before is not read again."""

    def __init__(self, read: Callable[[Place], tuple[int, bytes]], remembered: Remembered | None = None) -> None:
        self._read = read
        self._remembered = remembered
        self._unpacker = Unpacker()

    def trace(self, trace: str, places: Sequence[Place], tally: Tally) -> Trace:
        """The trace put right, of the segments at these places."""
        segments = [self._read(place) for place in places]
        if self._remembered is None or tally.account is not None:
            return self._put_right(trace, segments, tally)
        return self._remembered.trace(trace, segments, self._put_right, tally)

    def _put_right(self, trace: str, segments: Segments, tally: Tally) -> Trace:
        spans, logs = self._unpacker.unpack(segments)
        if tally.account is not None:
            for span in spans.values():
                tally.account.add_span(span)
        return _read_trace(trace, spans, logs, tally)


def _read_trace(trace: str, spans: Mapping[int, RawSpan], logs: list[RawLog], tally: Tally) -> Trace:
    """A trace put right; one that cannot be goes on as it came, and is reported."""
    arrivals: dict[tuple[str, str], int] = {}
    for arrival, span in spans.items():
        arrivals.setdefault((span.trace_id, span.span_id), arrival)
    distinct = end_after_start(drop_redelivered(spans.values()))
    told, others = _evaluated(trace, distinct, logs, tally)
    joined, strangers = join_logs(*_gathered(trace, distinct, others, tally))
    last = max(spans, default=0)
    placed = tuple(
        _place(span, arrivals.get((span.trace_id, span.span_id), last + number), tally)
        for number, span in enumerate(joined, 1)
    )
    try:
        placed = repair(placed)
    except Exception as error:  # noqa: BLE001 - as in _place: a bad trace costs only its own repair
        tally.add([Fault(f"trace {trace}", f"could not be put right: {said(error)}")], {})
    nowhere = 0
    if told:
        placed, nowhere = place_evaluations(placed, joined, told)
    tally.add((), {"logs": strangers, UNPLACED: nowhere})
    return placed


def _gathered(trace: str, spans: list[RawSpan], logs: list[RawLog], tally: Tally) -> tuple[list[RawSpan], list[RawLog]]:
    """The trace as its dialects gather it; where one cannot, as it came, and that is reported."""
    try:
        return dialects.gather(spans, logs)
    except Exception as error:  # noqa: BLE001 - as in _place: a bad trace costs only what stands beside its spans
        tally.add([Fault(f"trace {trace}", f"could not be gathered: {said(error)}")], {})
        return spans, logs


def _evaluated(trace: str, spans: list[RawSpan], logs: list[RawLog], tally: Tally) -> tuple[list[Told], list[RawLog]]:
    """What evaluators told of the trace, and the other logs; where that cannot be read, none, and that is reported."""
    try:
        return evaluations.gather(spans, logs)
    except Exception as error:  # noqa: BLE001 - as in _place: a bad trace costs only its evaluations
        tally.add([Fault(f"trace {trace}", f"its evaluations could not be read: {said(error)}")], {})
        return [], logs


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
        tally.add((), {UNKNOWN: 0 if next(evaluations.read(span), None) else 1})
    elif type(record) is ModelRecord and (cost := costs.reported(span.attributes)) is not None:
        record = _with_cost(record, cost)
    return Placed(
        span=span,
        record=record,
        dialect=spoken[0].NAME if spoken else None,
        id=span.span_id,
        parent=span.parent_id,
        arrival=arrival,
        session=read_session(span),
    )


def _with_cost(record: ModelRecord, cost: float) -> ModelRecord:
    """The call with what it cost, where that stands beside an answer."""
    if record.answer is None:
        return record
    return replace(
        record, answer=replace(record.answer, provider_fields={costs.FIELD: cost, **record.answer.provider_fields})
    )


def _note_dropped(record: Record) -> Record:
    """The record of a span that lost attributes to its recorder's limits: what could be among them is not whole."""
    if not isinstance(record, ModelRecord):
        return record
    marks = {"settings": Fidelity.TRUNCATED}
    if not record.request.tools:
        marks["tools"] = Fidelity.ABSENT
    return replace(record, fidelity={**marks, **record.fidelity})
