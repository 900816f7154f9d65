"""Puts a trace right before it is read: an ordered tuple of small functions, each with one kind of damage to mend."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace

from spanreel.model import Agent
from spanreel.records import ModelRecord, RunRecord, ToolRecord
from spanreel_collector.repair.doubles import fold_beside, fold_empty_runs, fold_runs_around, fold_tools_beside
from spanreel_collector.repair.executors import return_tools
from spanreel_collector.repair.folding import (
    fold_attempts,
    fold_native_runs,
    fold_nested_tools,
    fold_second_views,
    fold_wrappers,
)
from spanreel_collector.repair.histories import (
    chain_deltas,
    complete_answers,
    mend_cut,
    recover_asked,
    restore_calls,
)
from spanreel_collector.repair.merging import fill_run
from spanreel_collector.repair.offers import describe_tools, share_instructions
from spanreel_collector.repair.retries import fold_retries
from spanreel_collector.repair.rounds import chain_responses, recover_rounds, share_tools, split_rounds, unfold_tools
from spanreel_collector.repair.steps import drop_lone_servers, gather_steps, settle_steps
from spanreel_collector.repair.sums import open_sums
from spanreel_collector.repair.telling import fill_calls
from spanreel_collector.span import RawLog, RawSpan
from spanreel_collector.trace import Forest, Placed, Trace, moved

# -- on raw spans, before a dialect reads them -----------------------------------------------------------------------


def drop_redelivered(spans: Iterable[RawSpan]) -> list[RawSpan]:
    """One span for each trace and span id: of several versions the one that ended last, else the one that came last."""
    kept: dict[tuple[str, str], RawSpan] = {}
    for span in spans:
        key = (span.trace_id, span.span_id)
        known = kept.get(key)
        if known is None or _ended(span) >= _ended(known):
            kept[key] = span
    return list(kept.values())


def _ended(span: RawSpan) -> tuple[bool, int]:
    """What the later of two versions is known by: one that ended, nobody knows when, is later than one still open."""
    return span.end != 0, span.end


def end_after_start(spans: list[RawSpan]) -> list[RawSpan]:
    """The spans, of which none ends before it starts: where a clock was set back between, it took no time."""
    if all(span.end == 0 or span.end >= span.start for span in spans):
        return spans
    return [replace(span, end=span.start) if 0 < span.end < span.start else span for span in spans]


def join_logs(spans: list[RawSpan], logs: Iterable[RawLog]) -> tuple[list[RawSpan], int]:
    """The spans with the log records written inside them, and how many records belong to no span here."""
    inside: dict[tuple[str | None, str | None], dict[str, RawLog]] = defaultdict(dict)
    for log in logs:
        # A log record has no id: one that is equal in all but its place was delivered twice.
        inside[log.trace_id, log.span_id].setdefault(repr((log.event_name, log.time, log.body, log.attributes)), log)
    joined, placed = [], 0
    for span in spans:
        found = inside.get((span.trace_id, span.span_id))
        joined.append(replace(span, logs=tuple(found.values())) if found else span)
        placed += len(found or ())
    distinct = sum(len(found) for found in inside.values())
    return joined, max(0, distinct - placed)


# -- on a trace ------------------------------------------------------------------------------------------------------


def order(trace: Trace) -> Trace:
    """By start; where a span has none, all as they came. Turns and positions come before it inside a run."""
    if any(placed.span.start == 0 for placed in trace):
        return tuple(sorted(trace, key=lambda placed: placed.arrival))
    times = [(placed.span.start, placed.arrival) for placed in trace]
    if all(map(operator.le, times, times[1:])):
        return trace
    return tuple(sorted(trace, key=lambda placed: (placed.span.start, placed.arrival)))


def cut_circles(trace: Trace) -> Trace:
    """Parents that go round in a circle are cut where the walk comes back, so that what follows can go up."""
    parents = {placed.id: placed.parent for placed in trace}
    if not _may_go_round(trace, parents):
        return trace
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


def _may_go_round(trace: Trace, parents: dict[str, str | None]) -> bool:
    """Whether any circle can be there; quick, since nearly all spans come after their parents."""
    if len(parents) < len(trace):
        return True
    settled: set[str] = set()
    for placed in trace:
        above = placed.parent
        walked = {placed.id}
        while above is not None and above in parents and above not in settled:
            if above in walked:
                return True
            walked.add(above)
            above = parents[above]
        settled.update(walked)
    return False


def settle_starts(trace: Trace) -> Trace:
    """What a run said when it started fills what its end did not say; of a killed run it is all there is."""
    if not any(isinstance(placed.record, RunRecord) and placed.record.started_only for placed in trace):
        return trace
    runs = {placed.id: placed for placed in trace if isinstance(placed.record, RunRecord) and not _start_of(placed)}
    starts = {run: placed for placed in trace if (run := _start_of(placed))}
    gone: dict[str, str] = {}
    settled: list[Placed] = []
    for placed in trace:
        run = _start_of(placed)
        if run is None:
            start = starts.get(placed.id)
            settled.append(fill_run(placed, start) if start is not None else placed)
            continue
        gone[placed.id] = run
        if run not in runs and starts[run] is placed:
            settled.append(replace(placed, id=run, parent=None))
    return _under_parent_path(moved(tuple(settled), gone))


def adopt_orphans(trace: Trace) -> Trace:
    """A call whose parent never arrived hangs on the run it names; where that is missing too, on one made for it."""
    if not any(getattr(placed.record, "run_id", None) for placed in trace):
        return trace
    known = {placed.id for placed in trace}
    made: dict[str, Placed] = {}
    adopted: list[Placed] = []
    for placed in trace:
        run = getattr(placed.record, "run_id", None)
        if not isinstance(run, str) or run == placed.id or placed.parent in known:
            adopted.append(placed)
            continue
        if run not in known and run not in made:
            made[run] = replace(
                placed,
                span=replace(placed.span, span_id=run, name="", attributes={}, end=0, events=(), logs=()),
                record=RunRecord(run_id=run, agent=getattr(placed.record, "agent", Agent()), started_only=True),
                id=run,
                parent=None,
            )
        adopted.append(replace(placed, parent=run))
    return (*made.values(), *adopted)


def adopt_by_time(trace: Trace) -> Trace:
    """A call whose parent never arrived belongs to the run that it was made during, where that is one and no other.

    Of runs inside one another it is the innermost; beside each other, nothing tells them apart.
    """
    known = {placed.id for placed in trace}
    orphans = [placed for placed in trace if _is_orphan(placed, known)]
    if not orphans:
        return trace
    forest = Forest(trace)
    runs = [placed for placed in trace if isinstance(placed.record, RunRecord) and placed.span.end]
    homes = {placed.id: home for placed in orphans if (home := _run_during(placed, runs, forest)) is not None}
    return tuple(replace(placed, parent=homes[placed.id]) if placed.id in homes else placed for placed in trace)


def _is_orphan(placed: Placed, known: set[str]) -> bool:
    calls = isinstance(placed.record, (ModelRecord, ToolRecord))
    return calls and placed.parent is not None and placed.parent not in known and placed.span.start > 0


def _run_during(placed: Placed, runs: list[Placed], forest: Forest) -> str | None:
    start, end = placed.span.start, placed.span.end or placed.span.start
    around = [run for run in runs if run.span.start <= start and end <= run.span.end]
    if not around:
        return None
    innermost = max(around, key=lambda run: (run.span.start, -run.span.end))
    chain = {innermost.id, *(above.id for above in forest.records_above(innermost))}
    return innermost.id if all(run.id in chain for run in around) else None


# The order has a meaning: circles are cut before anybody goes up, steps settled before runs are looked for (and after
# they have told what they know), starts
# become runs before orphans look for theirs, and views are folded before attempts, which are counted.
REPAIRS: tuple[Callable[[Trace], Trace], ...] = (
    order,
    cut_circles,
    fill_calls,
    open_sums,
    gather_steps,
    settle_steps,
    drop_lone_servers,
    settle_starts,
    adopt_orphans,
    adopt_by_time,
    cut_circles,
    fold_second_views,
    fold_beside,
    cut_circles,
    fold_attempts,
    fold_retries,
    cut_circles,
    fold_nested_tools,
    fold_native_runs,
    fold_tools_beside,
    fold_empty_runs,
    fold_runs_around,
    return_tools,
    fold_wrappers,
    describe_tools,
    recover_rounds,
    unfold_tools,
    split_rounds,
    share_tools,
    share_instructions,
    chain_deltas,
    chain_responses,
    complete_answers,
    recover_asked,
    mend_cut,
    restore_calls,
    cut_circles,
    order,
)


def repair(trace: Trace) -> Trace:
    """The trace after all repairs. What found nothing to mend is not asked again before something has changed."""
    content: dict[Callable[[Trace], Trace], Trace] = {}
    for step in REPAIRS:
        if content.get(step) is not trace:
            repaired = step(trace)
            if repaired is trace:
                content[step] = trace
            trace = repaired
    return trace


# -- what they share -------------------------------------------------------------------------------------------------


def _start_of(placed: Placed) -> str | None:
    """The run that this span says the start of."""
    record = placed.record
    return record.run_id if isinstance(record, RunRecord) and record.started_only and record.run_id else None


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
