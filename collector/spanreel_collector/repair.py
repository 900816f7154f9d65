"""Puts a trace right before it is read: an ordered tuple of small functions, each with one kind of damage to mend."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from typing import Any, TypeVar

from spanreel.conventions import SECOND_VIEW
from spanreel.model import (
    Agent,
    Answer,
    Fidelity,
    ModelRecord,
    Record,
    RunRecord,
    Status,
    ToolRecord,
    TurnRecord,
    Usage,
)
from spanreel_collector.span import RawLog, RawSpan
from spanreel_collector.trace import Forest, Placed, Trace

_T = TypeVar("_T")


# -- on raw spans, before a dialect reads them ---------------------------------------------------------------------------


def drop_redelivered(spans: Iterable[RawSpan]) -> list[RawSpan]:
    """One span for each trace and span id: of several versions the one that ended last, else the one that came last."""
    kept: dict[tuple[str, str], RawSpan] = {}
    for span in spans:
        key = (span.trace_id, span.span_id)
        known = kept.get(key)
        if known is None or span.end >= known.end:
            kept[key] = span
    return list(kept.values())


def join_logs(spans: list[RawSpan], logs: Iterable[RawLog]) -> tuple[list[RawSpan], int]:
    """The spans with the log records written inside them, and how many records belong to no span here."""
    inside: dict[tuple[str | None, str | None], dict[str, RawLog]] = defaultdict(dict)
    count = 0
    for count, log in enumerate(logs, 1):
        # A log record has no id: one that is equal in all but its place was delivered twice.
        inside[log.trace_id, log.span_id].setdefault(repr((log.event_name, log.time, log.body, log.attributes)), log)
    joined, placed = [], 0
    for span in spans:
        found = inside.get((span.trace_id, span.span_id))
        joined.append(replace(span, logs=tuple(found.values())) if found else span)
        placed += len(found or ())
    distinct = sum(len(found) for found in inside.values())
    return joined, max(0, distinct - placed)


# -- on a trace ----------------------------------------------------------------------------------------------------------


def order(trace: Trace) -> Trace:
    """By start; where a span has none, all as they came. Turns and positions come before it inside a run."""
    if any(placed.span.start == 0 for placed in trace):
        return tuple(sorted(trace, key=lambda placed: placed.arrival))
    return tuple(sorted(trace, key=lambda placed: (placed.span.start, placed.arrival)))


def cut_circles(trace: Trace) -> Trace:
    """Parents that go round in a circle are cut where the walk comes back, so that what follows can go up without end."""
    parents = {placed.id: placed.parent for placed in trace}
    settled: set[str] = set()
    cut: set[str] = set()
    for placed in trace:
        walked: dict[str, None] = {}
        current: str | None = placed.id
        while current is not None and current in parents and current not in settled:
            if current in walked:
                cut.add(current)
                break
            walked[current] = None
            current = parents[current]
        settled.update(walked)
    return tuple(replace(placed, parent=None) if placed.id in cut else placed for placed in trace)


def settle_starts(trace: Trace) -> Trace:
    """What a run said when it started fills what its end did not say; of a killed run it is all there is."""
    runs = {placed.id: placed for placed in trace if isinstance(placed.record, RunRecord) and not _start_of(placed)}
    starts = {run: placed for placed in trace if (run := _start_of(placed))}
    gone: dict[str, str] = {}
    settled: list[Placed] = []
    for placed in trace:
        run = _start_of(placed)
        if run is None:
            start = starts.get(placed.id)
            settled.append(_fill_run(placed, start) if start is not None else placed)
            continue
        gone[placed.id] = run
        if run not in runs and starts[run] is placed:
            settled.append(replace(placed, id=run, parent=None))
    return _under_parent_path(_moved(tuple(settled), gone))


def adopt_orphans(trace: Trace) -> Trace:
    """A call whose parent never arrived hangs on the run it names; where that is missing too, on one made for it."""
    known = {placed.id for placed in trace}
    made: dict[str, Placed] = {}
    adopted: list[Placed] = []
    for placed in trace:
        run = getattr(placed.record, "run_id", None)
        orphan = isinstance(run, str) and run != placed.id and placed.parent not in known
        if orphan and run not in known and run not in made:
            made[run] = replace(
                placed,
                span=replace(placed.span, span_id=run, name="", attributes={}, end=0, events=(), logs=()),
                record=RunRecord(run_id=run, agent=getattr(placed.record, "agent", Agent()), started_only=True),
                id=run,
                parent=None,
            )
        adopted.append(replace(placed, parent=run) if orphan else placed)
    return (*made.values(), *adopted)


def fold_second_views(trace: Trace) -> Trace:
    """Two spans of one model call, one inside the other, become one: the fuller, with what only the other says.

    One call it is where ours says so, where the response ids are equal, or where one has content, the other none.
    """
    forest = Forest(trace)
    current = dict(forest.by_id)
    gone: dict[str, str] = {}
    for placed in trace:
        outer_then = forest.model_above(placed)
        if not isinstance(placed.record, ModelRecord) or outer_then is None:
            continue
        outer, inner = current.get(gone.get(outer_then.id, outer_then.id)), current[placed.id]
        if outer is None or outer.id == inner.id or not _one_call(outer, inner):
            continue
        survivor, other = (inner, outer) if _richness(inner) > _richness(outer) else (outer, inner)
        record = _fill_model(survivor.record, other.record)
        parent = outer.parent if survivor is inner else survivor.parent
        current[survivor.id] = replace(survivor, record=record, parent=parent)
        gone[other.id] = survivor.id
        current.pop(other.id)
    return _moved(tuple(current[placed.id] for placed in trace if placed.id in current), gone)


def fold_attempts(trace: Trace) -> Trace:
    """The attempts of one model call become one: the last gives the answer, the others stand before it."""
    calls: dict[str, list[Placed]] = defaultdict(list)
    for placed in trace:
        if isinstance(placed.record, ModelRecord) and placed.record.call_id:
            calls[placed.record.call_id].append(placed)
    gone: dict[str, str] = {}
    last: dict[str, Placed] = {}
    for attempts in calls.values():
        ordered = sorted(attempts, key=_attempt)
        final = ordered[-1]
        last[final.id] = replace(final, earlier=tuple(ordered[:-1]), parent=ordered[0].parent)
        gone.update({placed.id: final.id for placed in ordered[:-1]})
    return _moved(tuple(last.get(placed.id, placed) for placed in trace if placed.id not in gone), gone)


def fold_nested_tools(trace: Trace) -> Trace:
    """A tool's span directly inside another's of the same name is its second view, as an MCP client's is."""
    forest = Forest(trace)
    gone: dict[str, str] = {}
    fuller: dict[str, Placed] = {}
    for placed in trace:
        outer = next(forest.records_above(placed), None)
        if not isinstance(placed.record, ToolRecord) or outer is None or not isinstance(outer.record, ToolRecord):
            continue
        if placed.record.name == outer.record.name and placed.id != outer.id:
            target = gone.get(outer.id, outer.id)
            base = fuller.get(target, forest.by_id[target])
            fuller[target] = replace(base, record=_fill_tool(base.record, placed.record))
            gone[placed.id] = target
    return _moved(tuple(fuller.get(placed.id, placed) for placed in trace if placed.id not in gone), gone)


def fold_wrappers(trace: Trace) -> Trace:
    """A nameless run (a workflow) around exactly one run and nothing else is that run's wrapping, not a request."""
    forest = Forest(trace)
    inside: dict[str, list[Placed]] = defaultdict(list)
    for placed in trace:
        if placed.record is not None and not isinstance(placed.record, TurnRecord):
            above = next(forest.records_above(placed), None)
            if above is not None:
                inside[above.id].append(placed)
    folded: dict[str, Placed] = {}
    for placed in trace:
        below = inside[placed.id]
        if _is_wrapper(placed) and len(below) == 1 and isinstance(below[0].record, RunRecord):
            folded[placed.id] = replace(placed, record=None)
            inner = folded.get(below[0].id, below[0])
            folded[inner.id] = _fill_run(inner, placed)
    return tuple(folded.get(placed.id, placed) for placed in trace)


# The order has a meaning: circles are cut before anybody goes up, starts become runs before orphans look for theirs,
# and views are folded before attempts, which are counted.
REPAIRS: tuple[Callable[[Trace], Trace], ...] = (
    order,
    cut_circles,
    settle_starts,
    adopt_orphans,
    cut_circles,
    fold_second_views,
    fold_attempts,
    fold_nested_tools,
    fold_wrappers,
    cut_circles,
    order,
)


def repair(trace: Trace) -> Trace:
    """The trace after all repairs."""
    for step in REPAIRS:
        trace = step(trace)
    return trace


# -- what they share -----------------------------------------------------------------------------------------------------


def _start_of(placed: Placed) -> str | None:
    """The run that this span says the start of."""
    record = placed.record
    return record.run_id if isinstance(record, RunRecord) and record.started_only and record.run_id else None


def _moved(trace: Trace, gone: dict[str, str]) -> Trace:
    """The trace with the children of spans that are gone under those that took their place."""
    if not gone:
        return trace

    def home(parent: str | None) -> str | None:
        seen = set[str]()
        while parent in gone and parent not in seen:
            seen.add(parent)
            parent = gone[parent]
        return parent

    moved = []
    for placed in trace:
        parent = home(placed.parent)
        moved.append(
            replace(placed, parent=None if parent == placed.id else parent) if parent != placed.parent else placed
        )
    return tuple(moved)


def _under_parent_path(trace: Trace) -> Trace:
    """Runs that left only their start hang under the run that their path names."""
    paths: dict[str, str] = {}
    for placed in trace:
        if isinstance(placed.record, RunRecord) and placed.record.path:
            paths.setdefault(placed.record.path, placed.id)
    placed_under = []
    for placed in trace:
        record = placed.record
        if isinstance(record, RunRecord) and record.started_only and record.path and "/" in record.path:
            above = paths.get(record.path.rpartition("/")[0])
            placed = replace(placed, parent=above if above != placed.id else None)  # noqa: PLW2901 the same, moved
        placed_under.append(placed)
    return tuple(placed_under)


def _one_call(outer: Placed, inner: Placed) -> bool:
    if SECOND_VIEW in inner.span.attributes or SECOND_VIEW in outer.span.attributes:
        return True
    first, second = _response_id(outer.record), _response_id(inner.record)
    if first and second:
        return first == second
    return not (_has_content(outer.record) and _has_content(inner.record))


def _richness(placed: Placed) -> tuple[bool, bool]:
    """Ours can be replayed byte by byte; else content counts."""
    record = placed.record
    return isinstance(record, ModelRecord) and record.call_id is not None, _has_content(record)


def _has_content(record: Record | None) -> bool:
    if not isinstance(record, ModelRecord):
        return False
    return bool(record.request.messages or (record.answer and any(m.get("parts") for m in record.answer.messages)))


def _response_id(record: Record | None) -> str | None:
    return record.answer.response_id if isinstance(record, ModelRecord) and record.answer else None


def _attempt(placed: Placed) -> tuple[int, int, int]:
    record = placed.record
    return (record.attempt if isinstance(record, ModelRecord) else 0), placed.span.start, placed.arrival


def _is_wrapper(placed: Placed) -> bool:
    record = placed.record
    return isinstance(record, RunRecord) and record.agent.name is None and record.run_id is None


def _fill_run(placed: Placed, other: Placed) -> Placed:
    record, said = placed.record, other.record
    if not isinstance(record, RunRecord) or not isinstance(said, RunRecord):
        return placed
    fidelity = dict(record.fidelity)
    for field in ("input", "output"):
        if not getattr(record, field) and getattr(said, field):
            fidelity.pop(field, None)
            if field in said.fidelity:
                fidelity[field] = said.fidelity[field]
    filled = _fill(record, said, ("input", "output", "arguments", "argv", "callable", "error"))
    if record.status is Status.OK and said.status not in (Status.OK, Status.UNFINISHED):
        filled = replace(filled, status=said.status)
    session = placed.session if placed.session.id else other.session
    return replace(placed, record=replace(filled, fidelity=fidelity), session=session)


def _fill_tool(record: Record | None, other: ToolRecord) -> Record | None:
    if not isinstance(record, ToolRecord):
        return record
    fidelity = dict(record.fidelity)
    taken: dict[str, Any] = {}
    for field in ("arguments", "result"):
        if fidelity.get(field) is Fidelity.ABSENT and other.fidelity.get(field) is not Fidelity.ABSENT:
            taken[field] = getattr(other, field)
            del fidelity[field]
    return replace(_fill(record, other, ("call_id", "description")), **taken, fidelity=fidelity)


def _fill_model(record: Record | None, other: Record | None) -> Record | None:
    if not isinstance(record, ModelRecord) or not isinstance(other, ModelRecord):
        return record
    fidelity = dict(record.fidelity)
    request, answer = record.request, record.answer
    if not request.messages and other.request.messages:
        request = replace(request, messages=other.request.messages, instructions=other.request.instructions)
        fidelity.pop("input", None)
    request = _fill(request, other.request, ("model", "tools"))
    request = replace(request, settings={**other.request.settings, **request.settings})
    if answer is None:
        answer = other.answer
    elif other.answer is not None:
        answer = _fill_answer(answer, other.answer)
    if answer is not None and any(message.get("parts") for message in answer.messages):
        if not (record.answer and record.answer.messages):
            fidelity.pop("output", None)
    filled = _fill(record, other, ("provider", "host", "port", "run_id", "turn_index"))
    return replace(filled, request=request, answer=answer, fidelity=fidelity)


def _fill_answer(answer: Answer, other: Answer) -> Answer:
    usage = answer.usage
    if usage is None or other.usage is None:
        usage = usage or other.usage
    else:
        usage = _fill(usage, other.usage, tuple(field.name for field in fields(Usage)))
    messages = answer.messages if any(m.get("parts") for m in answer.messages) else other.messages or answer.messages
    return replace(_fill(answer, other, ("response_id", "model")), usage=usage, messages=messages)


def _fill(value: _T, other: Any, names: tuple[str, ...]) -> _T:
    """The value with these fields of the other where its own are empty."""
    taken = {
        name: getattr(other, name) for name in names if getattr(value, name) in (None, ()) and getattr(other, name)
    }
    return replace(value, **taken) if taken else value  # type: ignore[type-var]
