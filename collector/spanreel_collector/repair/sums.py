"""Spans that look like model calls and only count together what the calls inside them cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from spanreel.model import Usage
from spanreel.records import ModelRecord, RunRecord
from spanreel_collector.repair.views import is_ours
from spanreel_collector.trace import Forest, Placed, Trace


def open_sums(trace: Trace) -> Trace:
    """A model call around several, whose tokens are the sum of theirs, is the run that they stand in.

    So hand-written spans of an agent look, and those of libraries that tell the whole loop as a call of its own.
    """
    if sum(isinstance(placed.record, ModelRecord) for placed in trace) < 3:
        return trace
    forest = Forest(trace)
    inside: dict[str, list[Placed]] = defaultdict(list)
    for placed in trace:
        if isinstance(placed.record, ModelRecord):
            above = next((one for one in forest.records_above(placed) if not isinstance(one.record, RunRecord)), None)
            if above is not None and isinstance(above.record, ModelRecord):
                inside[above.id].append(placed)
    sums = {
        around: _as_run(forest.by_id[around])
        for around, calls in inside.items()
        if len(calls) > 1 and not is_ours(forest.by_id[around]) and _is_sum(forest.by_id[around], calls)
    }
    return tuple(sums.get(placed.id, placed) for placed in trace) if sums else trace


def _is_sum(placed: Placed, calls: Iterable[Placed]) -> bool:
    told, each = _usage(placed), [_usage(call) for call in calls]
    return all(
        (getattr(told, name) or 0) > 0 and getattr(told, name) == sum(getattr(one, name) or 0 for one in each)
        for name in ("input_tokens", "output_tokens")
    )


def _usage(placed: Placed) -> Usage:
    answer = placed.record.answer if isinstance(placed.record, ModelRecord) else None
    return (answer.usage if answer else None) or Usage()


def _as_run(placed: Placed) -> Placed:
    record = placed.record
    assert isinstance(record, ModelRecord)
    run = RunRecord(
        agent=record.agent,
        input=record.request.messages,
        output=record.answer.messages if record.answer else (),
        status=record.status,
        error=record.error,
        outermost_only=True,
        tools=record.request.tools,
        fidelity={key: state for key, state in record.fidelity.items() if key in ("input", "output")},
    )
    return replace(placed, record=run)
