"""What model calls were offered and told by their run: tools and instructions that stand on other spans only."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

from spanreel.model import Fidelity, ToolDefinition
from spanreel.records import ModelRecord, RunRecord, ToolRecord, TurnRecord
from spanreel_collector.trace import Forest, Placed, Trace


def describe_tools(trace: Trace) -> Trace:
    """A run that does not say what its tools are, or says their names only, has them as their calls' spans say them.

    Tools that it says nothing of, and that were not called, stay unknown.
    """
    if not any(_tells_itself(placed) for placed in trace):
        return trace
    forest = Forest(trace)
    described: dict[str, dict[str, ToolDefinition]] = defaultdict(dict)
    for placed in trace:
        record = placed.record
        if isinstance(record, ToolRecord) and _tells_itself(placed):
            holder = forest.holder(placed)
            if holder is not None:
                described[holder.id].setdefault(record.name, _definition(record))
    return tuple(_described(placed, described[placed.id]) if placed.id in described else placed for placed in trace)


def _tells_itself(placed: Placed) -> bool:
    """Whether the span says what the tool is."""
    record = placed.record
    return isinstance(record, ToolRecord) and bool(record.description or record.parameters)


def share_instructions(trace: Trace) -> Trace:
    """Model calls whose writer tells instructions on the run alone were told those of their run."""
    if not any(_untold(placed) for placed in trace):
        return trace
    forest = Forest(trace)
    return tuple(_instructed(forest, placed) if _untold(placed) else placed for placed in trace)


def _definition(record: ToolRecord) -> ToolDefinition:
    told = {"description": record.description, "parameters": record.parameters}
    return {"type": "function", "name": record.name, **{key: value for key, value in told.items() if value is not None}}


def _described(placed: Placed, known: dict[str, ToolDefinition]) -> Placed:
    record = placed.record
    if not isinstance(record, RunRecord) or record.run_id is not None:
        return placed
    tools = tuple({**known.get(_name(tool), {}), **tool} for tool in record.tools) or tuple(known.values())
    return replace(placed, record=replace(record, tools=tools)) if tools != record.tools else placed


def _name(tool: dict[str, Any]) -> str:
    return str(tool.get("name"))


def _untold(placed: Placed) -> bool:
    record = placed.record
    return isinstance(record, ModelRecord) and record.fidelity.get("instructions") is Fidelity.ABSENT


def _instructed(forest: Forest, placed: Placed) -> Placed:
    """The model call with its run's system message; one whose run has none was told none."""
    record = placed.record
    assert isinstance(record, ModelRecord)
    above = next((one for one in forest.records_above(placed) if not isinstance(one.record, TurnRecord)), None)
    told = above.record.input[:1] if above is not None and isinstance(above.record, RunRecord) else ()
    if above is not None and above.record is not None and "instructions" in getattr(above.record, "fidelity", {}):
        return placed  # the run does not tell them either
    fidelity = {field: state for field, state in record.fidelity.items() if field != "instructions"}
    request = record.request
    if told and told[0].get("role") == "system" and request.messages:
        request = replace(request, instructions=tuple(told[0]["parts"]))
        fidelity["instructions"] = Fidelity.RECONSTRUCTED
    return replace(placed, record=replace(record, request=request, fidelity=fidelity))
