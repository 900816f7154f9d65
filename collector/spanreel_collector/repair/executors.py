"""Tools that another agent carried out than the one whose model asked for them, as AG2's user proxies do."""

from __future__ import annotations

import operator
from dataclasses import replace

from spanreel.records import ModelRecord, RunRecord, ToolRecord
from spanreel_collector.trace import Forest, Placed, Trace


def return_tools(trace: Trace) -> Trace:
    """A tool in a run that asks no model stands in the run of the one call that asked for it, by its id, before."""
    if not any(isinstance(placed.record, ToolRecord) and placed.record.call_id for placed in trace):
        return trace
    forest = Forest(trace)
    asked: dict[str, list[Placed]] = {}
    asking: set[str | None] = set()
    for placed in trace:
        if isinstance(placed.record, ModelRecord):
            asking.add(_run_of(forest, placed))
            for identity in _asked(placed.record):
                asked.setdefault(identity, []).append(placed)
    returned = tuple(_returned(forest, placed, asked, asking) for placed in trace)
    return trace if all(map(operator.is_, returned, trace)) else returned


def _returned(forest: Forest, placed: Placed, asked: dict[str, list[Placed]], asking: set[str | None]) -> Placed:
    record = placed.record
    callers = asked.get(record.call_id or "", []) if isinstance(record, ToolRecord) else []
    run = _run_of(forest, placed) if len(callers) == 1 else None
    if run is None or run in asking or _run_of(forest, callers[0]) is None:
        return placed
    before = callers[0].span.end <= placed.span.start
    return replace(placed, parent=callers[0].parent) if before else placed


def _run_of(forest: Forest, placed: Placed) -> str | None:
    holder = forest.holder(placed)
    return holder.id if holder is not None and isinstance(holder.record, RunRecord) else None


def _asked(record: ModelRecord) -> list[str]:
    parts = [part for message in (record.answer.messages if record.answer else ()) for part in message["parts"]]
    return [str(part["id"]) for part in parts if part.get("type") == "tool_call" and part.get("id")]
