"""Spans that look like runs and calls of an agent's and are none: steps of frameworks, and servers of tools."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

from spanreel.model import Agent, Fidelity
from spanreel.records import ModelRecord, RunRecord, ToolRecord
from spanreel_collector.repair.rounds import tells_rounds
from spanreel_collector.sessions.continuing import asks_for_tools
from spanreel_collector.trace import Forest, Placed, Trace

_SERVER = 2
"""The kind of a span on the side that is called."""


def gather_steps(trace: Trace) -> Trace:
    """Steps whose run never arrived are that run's, where a model is told in one what it had asked for in another.

    Else they may be as many runs, of an application whose span is not here.
    """
    steps = [placed for placed in trace if type(placed.record) is RunRecord and placed.record.outermost_only]
    if len(steps) < 2:
        return trace
    known = {placed.id for placed in trace}
    lone: dict[str, list[Placed]] = defaultdict(list)
    for placed in steps:
        if placed.parent is not None and placed.parent not in known:
            lone[placed.parent].append(placed)
    lone = {parent: inside for parent, inside in lone.items() if len(inside) > 1}
    if not lone:
        return trace
    forest = Forest(trace)
    calls: dict[str, list[tuple[str, ModelRecord]]] = defaultdict(list)
    for placed in trace:
        if isinstance(placed.record, ModelRecord) and placed.record.request.operation.opens_turn:
            top = forest.top(placed)
            calls[top.parent or ""].append((top.id, placed.record))
    made = [_run_of(parent, inside) for parent, inside in lone.items() if _is_loop(calls[parent])]
    return (*made, *trace)


def settle_steps(trace: Trace) -> Trace:
    """A step inside a run only groups; so does one that stands outermost here, yet not in its trace, and holds no call.

    Unless it is all there is: of a trace that the application began, or another service, it may tell a whole run.
    A run that says no name takes that of its steps, where they agree.
    """
    if not any(isinstance(placed.record, RunRecord) and placed.record.outermost_only for placed in trace):
        return trace
    forest = Forest(trace)
    holding = _holding(forest, trace)
    calls = any(isinstance(placed.record, ModelRecord | ToolRecord) for placed in trace)
    told = any(tells_rounds(placed) for placed in trace)
    steps: set[str] = set()
    names: dict[str, set[str]] = {}
    for placed in trace:
        if not isinstance(placed.record, RunRecord) or not placed.record.outermost_only:
            continue
        run = _run_around(forest, placed)
        if run is not None:
            steps.add(placed.id)
            if placed.record.agent.name:
                names.setdefault(_top_run(forest, run).id, set()).add(placed.record.agent.name)
        elif placed.parent is not None and placed.id not in holding:
            begun_elsewhere = forest.top(placed).parent is not None
            if calls or (begun_elsewhere and not told):
                steps.add(placed.id)
    return tuple(_settled(placed, steps, names) for placed in trace)


def drop_lone_servers(trace: Trace) -> Trace:
    """What a tool's server says of a call is no agent's call, unless something of an agent stands around it."""
    if not any(_is_server(placed) for placed in trace):
        return trace
    forest = Forest(trace)
    agents = any(isinstance(placed.record, ModelRecord | RunRecord) for placed in trace)

    def alone(placed: Placed) -> bool:
        # Beside a model's calls it may be all that is known of a tool's; what another service asked is the agent's.
        outermost = placed.parent is None or (not agents and forest.top(placed).parent is None)
        return _is_server(placed) and outermost and not any(forest.records_above(placed))

    return tuple(replace(placed, record=None) if alone(placed) else placed for placed in trace)


def _is_loop(calls: list[tuple[str, ModelRecord]]) -> bool:
    """Whether a call in one step goes on from a call in another that asked for tools."""
    return any(
        step != before
        and asks_for_tools(earlier)
        and earlier.request.messages
        and later.request.messages[: len(earlier.request.messages)] == earlier.request.messages
        for (before, earlier), (step, later) in pairwise(calls)
    )


def _run_of(identity: str, steps: list[Placed]) -> Placed:
    """The run that these are the steps of: it was asked what the first was, and came to what the last came to."""
    first, last = steps[0], steps[-1]
    records = [placed.record for placed in steps if isinstance(placed.record, RunRecord)]
    named = {record.agent.name: record.agent for record in records if record.agent.name is not None}
    record = RunRecord(
        agent=next(iter(named.values())) if len(named) == 1 else Agent(),
        input=records[0].input,
        output=records[-1].output,
        status=records[-1].status,
        error=records[-1].error,
        fidelity=dict.fromkeys(("input", "output"), Fidelity.RECONSTRUCTED),
    )
    ends = [placed.span.end for placed in steps]
    span = replace(
        first.span, span_id=identity, name="", attributes={}, events=(), logs=(), end=max(ends) if all(ends) else 0
    )
    return replace(last, span=span, record=record, id=identity, parent=None, arrival=first.arrival)


def _is_server(placed: Placed) -> bool:
    return isinstance(placed.record, ToolRecord) and placed.span.kind == _SERVER


def _settled(placed: Placed, steps: set[str], names: dict[str, set[str]]) -> Placed:
    record = placed.record
    if placed.id in steps:
        return replace(placed, record=None)
    if isinstance(record, RunRecord) and record.agent.name is None and len(names.get(placed.id, ())) == 1:
        return replace(placed, record=replace(record, agent=Agent(next(iter(names[placed.id])))))
    return placed


def _holding(forest: Forest, trace: Trace) -> set[str]:
    """The ids of spans with a call or a run inside."""
    holding: set[str] = set()
    for placed in trace:
        if placed.record is None or (isinstance(placed.record, RunRecord) and placed.record.outermost_only):
            continue
        above = placed.parent
        while above is not None and above in forest.by_id and above not in holding:
            holding.add(above)
            above = forest.by_id[above].parent
    return holding


def _run_around(forest: Forest, placed: Placed) -> Placed | None:
    """The nearest run around a span; none where a tool call stands between: what a tool starts is a run of its own."""
    for above in forest.records_above(placed):
        if isinstance(above.record, ToolRecord):
            return None
        if isinstance(above.record, RunRecord):
            return above
    return None


def _top_run(forest: Forest, run: Placed) -> Placed:
    """The run that this one, being a step perhaps, is part of."""
    while isinstance(run.record, RunRecord) and run.record.outermost_only:
        above = _run_around(forest, run)
        if above is None:
            break
        run = above
    return run
