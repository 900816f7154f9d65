"""Attempts that nobody wrote down as such: a model call that failed, and was made again with the same request."""

from __future__ import annotations

from dataclasses import replace

from spanreel.model import Status
from spanreel.records import ModelRecord, RunRecord, ToolRecord
from spanreel_collector import json_text
from spanreel_collector.trace import Forest, Placed, Trace, moved

_SETTLED = (Status.OK, Status.ERROR)


def fold_retries(trace: Trace) -> Trace:
    """A call without an answer is an attempt of the next one beside it, where that asks the same and came after it.

    What says by itself which calls are attempts of one, as our own spans do, is left alone.
    """
    if not any(_failed(placed) for placed in trace):
        return trace
    forest = Forest(trace)
    failed: dict[tuple[str | None, str], list[Placed]] = {}
    gone: dict[str, str] = {}
    folded: dict[str, Placed] = {}
    for placed in trace:
        if not isinstance(placed.record, ModelRecord) or placed.record.call_id is not None:
            continue
        key = _holder(forest, placed), _question(placed.record)
        before = failed.pop(key, [])
        if _failed(placed):
            failed[key] = [*before, placed]
        if before and _follows(placed, before[-1]) and placed.record.status in _SETTLED:
            folded[placed.id] = replace(placed, earlier=tuple(before))
            gone.update({attempt.id: placed.id for attempt in before})
            for attempt in before:
                folded.pop(attempt.id, None)
    return moved(tuple(folded.get(placed.id, placed) for placed in trace if placed.id not in gone), gone)


def _failed(placed: Placed) -> bool:
    record = placed.record
    if not isinstance(record, ModelRecord) or record.status is not Status.ERROR or not record.request.messages:
        return False
    return record.answer is None or not any(message.get("parts") for message in record.answer.messages)


def _follows(placed: Placed, before: Placed) -> bool:
    """Whether the call began after the other had ended; where times are unknown, their order has to do."""
    return not (placed.span.start and before.span.end > 0) or placed.span.start >= before.span.end


def _holder(forest: Forest, placed: Placed) -> str | None:
    for above in forest.records_above(placed):
        if isinstance(above.record, RunRecord | ToolRecord):
            return above.id
    return None


def _question(record: ModelRecord) -> str:
    request = record.request
    return json_text.canonical([request.model, list(request.messages), list(request.instructions), list(request.tools)])
