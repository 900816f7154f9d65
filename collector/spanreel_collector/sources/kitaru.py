"""Kitaru's session JSONL: a record a session, its nodes in a flat list, or nested. What nodes mean is the dialect's.

Ids are made of the record's external id, so that the same record twice is the same session, and a longer one is that
session grown. Nodes of several source traces are runs of their own, never one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from spanreel import conventions as names
from spanreel import json_text as texts
from spanreel.model import Json
from spanreel_collector import json_text
from spanreel_collector.sources.kitaru_records import REQUIRED, STATUSES, checked_nodes, external_id, key_of
from spanreel_collector.sources.times import nanoseconds
from spanreel_collector.span import ENDED, Batch, Fault, Origin, RawSpan

SCOPE = "kitaru"
NODE = "kitaru.node"
"""A node of another writer's, as it came."""
TURN = "kitaru.turn"
"""What a session, or one turn of it, was asked and answered."""
OURS = "spanreel"
"""The member of a node's attributes that holds what of our own document Kitaru has no field for."""
CONTENT = (
    names.INPUT_MESSAGES,
    names.OUTPUT_MESSAGES,
    names.SYSTEM_INSTRUCTIONS,
    names.TOOL_DEFINITIONS,
    names.TOOL_CALL_ARGUMENTS,
    names.TOOL_CALL_RESULT,
)
"""Attributes that hold what a node has in its inputs and outputs."""

_KEPT = ("links", "attributes", "metadata")
"""Members of a node that sessions have no place for, nor for what a node holds that only groups others."""
_GROUPING = "span"


def recognises(document: Json) -> bool:
    """Whether the document is a session record of Kitaru's, or a list with one in it; at most one member is missing."""
    records = document if isinstance(document, list) else [document]
    return any(
        isinstance(record, dict) and sum(name in record for name in REQUIRED) >= len(REQUIRED) - 1 for record in records
    )


def read(document: Json, place: str) -> Batch:
    """The spans of the records; one with a fault costs only itself."""
    spans: list[RawSpan] = []
    faults: list[Fault] = []
    records = document if isinstance(document, list) else [document]
    for number, record in enumerate(records):
        try:
            spans += _read_record(record, place)
        except ValueError as error:
            named = isinstance(record, dict) and "external_id" in record
            which = f"session {record['external_id']!r}" if named else f"record {number}"
            faults.append(Fault(f"{place} ({which})", str(error)))
    return Batch(tuple(spans), faults=tuple(faults))


def _read_record(record: Any, place: str) -> list[RawSpan]:
    if not isinstance(record, dict):
        raise ValueError(f"no session record of Kitaru's: {record!r}")
    nodes = checked_nodes(record)
    if nodes and all(_own(node) is not None for node in nodes):
        return [_our_span(node, place) for node in nodes if "told" not in (_own(node) or {})]
    return _foreign_spans(record, nodes, place)


# -- our own -----------------------------------------------------------------------------------------------------------


def _own(node: Mapping[str, Any]) -> dict[str, Any] | None:
    attributes = node.get("attributes")
    found = attributes.get(OURS) if isinstance(attributes, dict) else None
    return found if isinstance(found, dict) else None


def _our_span(node: dict[str, Any], place: str) -> RawSpan:
    """The span that the node was written of."""
    own = _own(node) or {}
    attributes = own.get("attributes")
    parent = own.get("parent_id")
    return RawSpan(
        trace_id=str(node.get("trace_id") or ""),
        span_id=str(own.get("span_id") or external_id(node)),
        parent_id=parent if isinstance(parent, str) else None,
        name=str(own.get("name") or node.get("name") or ""),
        kind=1,
        start=own["start"] if isinstance(own.get("start"), int) else nanoseconds(node.get("started_at")),
        end=own["end"] if isinstance(own.get("end"), int) else nanoseconds(node.get("ended_at")),
        attributes={**(attributes if isinstance(attributes, dict) else {}), **_content(node)},
        origin=Origin(scope=names.SCOPE),
        place=place,
    )


def _content(node: dict[str, Any]) -> dict[str, Json]:
    """The attributes that hold what stands in the node's inputs and outputs."""
    inputs, outputs = node.get("inputs"), node.get("outputs")
    if node.get("node_type") == "tool_call":
        return {names.TOOL_CALL_ARGUMENTS: texts.encode(inputs), names.TOOL_CALL_RESULT: texts.encode(outputs)}
    asked = inputs if isinstance(inputs, dict) else {}
    answered = outputs if isinstance(outputs, dict) else {}
    found = {
        names.INPUT_MESSAGES: asked.get("messages"),
        names.SYSTEM_INSTRUCTIONS: asked.get("instructions"),
        names.TOOL_DEFINITIONS: asked.get("tools"),
        names.OUTPUT_MESSAGES: answered.get("messages"),
    }
    return {name: texts.encode(value) for name, value in found.items() if value}


# -- others' -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Turn:
    """What a session was asked and answered once, and the source trace that it was; of the last the status is known.

    ``identity`` is the turn's within its session, and stays as it is where the session grows.
    """

    said: dict[str, Any]
    source: Json
    identity: str
    last: bool


def _foreign_spans(record: dict[str, Any], nodes: list[dict[str, Any]], place: str) -> list[RawSpan]:
    """A root span for each turn, with the nodes of its source trace in it."""
    by_index = {key_of(node["index"]): node for node in nodes}
    sources = [_source(node, by_index) for node in nodes]
    turns = _turns(record, sources)
    session: str = record["external_id"]
    last = next(turn for turn in turns if turn.last)
    # A source stands for the first turn of it.
    of_source = {turn.source: turn for turn in reversed(turns) if turn.source is not None}
    inside: dict[str, list[dict[str, Any]]] = {turn.identity: [] for turn in turns}
    for node, source in zip(nodes, sources, strict=True):
        inside[of_source.get(source, last).identity].append(node)
    spans: list[RawSpan] = []
    began = nanoseconds(record.get("started_at"))
    for turn in turns:
        trace = _digest(session, turn.identity)[:32]
        root = _digest(session, turn.identity, "root")[:16]
        made = [_foreign_span(node, trace, root, by_index, place) for node in inside[turn.identity]]
        bare = RawSpan(trace, root, None, "session", 1, began, 0, {}, Origin(scope=SCOPE), place)
        made.insert(0, _root(record, turn, made, bare))
        spans += made
        # A turn without times of its own began after the one before it: turns stand in their order.
        began = max(began, *(time for span in made for time in (span.start, span.end)))
    return spans


def _turns(record: dict[str, Any], sources: list[str | None]) -> list[_Turn]:
    """What the session was asked, turn by turn, and source traces that no turn tells of; the outputs are the last's.

    A session without turns is one: the first that it has when it has grown to several.
    """
    inputs = record["inputs"]
    given = inputs.get("turns") if isinstance(inputs, dict) and inputs.get("schema_version") == 1 else None
    told = [turn for turn in given if isinstance(turn, dict)] if isinstance(given, list) else []
    known = list(dict.fromkeys(source for source in sources if source is not None))
    if not told:
        first = known[0] if known else ""
        return [_Turn({"inputs": inputs, "outputs": record["outputs"]}, None, first, last=True)]
    turns: list[_Turn] = []
    for number, turn in enumerate(told):
        source = turn.get("source_trace_id")
        named = source if isinstance(source, str) and source else None
        unnamed = "" if number == 0 else f"turn {number}"
        again = named is not None and any(before.source == named for before in turns)
        identity = unnamed if named is None else f"{named}#{number}" if again else named
        turns.append(_Turn(turn, named, identity, last=turn is told[-1]))
    of_turns = {turn.source for turn in turns}
    return [*turns, *(_Turn({}, source, source, last=False) for source in known if source not in of_turns)]


def _source(node: dict[str, Any], by_index: Mapping[str, dict[str, Any]]) -> str | None:
    """The source trace of a node: its own, else that of the nodes around it."""
    current: dict[str, Any] | None = node
    while current is not None:
        if isinstance(current.get("trace_id"), str) and current["trace_id"]:
            return str(current["trace_id"])
        current = by_index.get(key_of(current["parent_index"])) if current["parent_index"] is not None else None
    return None


def _root(record: dict[str, Any], turn: _Turn, inside: list[RawSpan], bare: RawSpan) -> RawSpan:
    """The span of a session's turn. Turns before the last have ended."""
    status = STATUSES[record["status"]] if turn.last else 1
    end = nanoseconds(record.get("ended_at")) if turn.last else max((span.end for span in inside), default=0)
    metadata = record.get("metadata")
    attributes: dict[str, Json] = {
        TURN: json_text.plain(turn.said),
        "kitaru.framework": record.get("framework"),
        names.CONVERSATION_ID: record["external_id"],
        names.SESSION_NAME: record.get("name"),
        names.SESSION_METADATA: texts.encode(metadata) if isinstance(metadata, dict) and metadata else None,
    }
    error = record.get("error")
    return replace(
        bare,
        name=str(record.get("name") or "session"),
        start=min((span.start for span in inside if span.start), default=bare.start),
        end=0 if status == 0 else end if end > 0 else ENDED,
        attributes={key: value for key, value in attributes.items() if value is not None},
        status=status,
        status_message=error if status == 2 and isinstance(error, str) else "",
    )


def _foreign_span(
    node: dict[str, Any], trace: str, root: str, by_index: Mapping[str, dict[str, Any]], place: str
) -> RawSpan:
    above = by_index.get(key_of(node["parent_index"])) if node["parent_index"] is not None else None
    error = node.get("error")
    status = STATUSES[node["status"]]
    end = nanoseconds(node.get("ended_at"))
    kept = (*_KEPT, *(("inputs", "outputs") if node["node_type"] == _GROUPING else ()))
    return RawSpan(
        trace_id=trace,
        span_id=_digest(trace, external_id(node))[:16],
        parent_id=root if above is None else _digest(trace, external_id(above))[:16],
        name=str(node.get("name") or node["node_type"]),
        kind=1,
        start=nanoseconds(node.get("started_at")),
        end=0 if status == 0 else end or ENDED,
        attributes={NODE: node, **{f"{SCOPE}.{key}": node[key] for key in kept if node.get(key)}},
        origin=Origin(scope=SCOPE),
        place=place,
        status=status,
        status_message=error if isinstance(error, str) else "",
    )


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(("kitaru", *parts)).encode("utf-8", "replace")).hexdigest()
