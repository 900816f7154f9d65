"""Kitaru's session JSONL: a record a session, its nodes in a flat list, or nested. What nodes mean is the dialect's.

Ids are made of the record's external id, so that the same record twice is the same session, and a longer one is that
session grown. Nodes of several source traces are runs of their own, never one.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from spanreel import conventions as names
from spanreel import json_text as texts
from spanreel.model import Json
from spanreel_collector import json_text
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

_DEEPEST = 64
_REQUIRED = ("status", "external_id", "nodes", "inputs", "outputs")
_STATUSES = {"completed": 1, "failed": 2, "in_progress": 0}


def recognises(document: Json) -> bool:
    """Whether the document is a session record of Kitaru's, or a list of them."""
    records = document if isinstance(document, list) else [document]
    return bool(records) and all(
        isinstance(record, dict) and all(name in record for name in _REQUIRED) and isinstance(record["nodes"], list)
        for record in records
    )


def read(document: Json, place: str) -> Batch:
    """The spans of the records; one with a fault costs only itself."""
    spans: list[RawSpan] = []
    faults: list[Fault] = []
    for record in document if isinstance(document, list) else [document]:
        try:
            spans += _read_record(record, place)
        except ValueError as error:
            faults.append(Fault(f"{place} (session {record['external_id']!r})", str(error)))
    return Batch(tuple(spans), faults=tuple(faults))


def _read_record(record: dict[str, Any], place: str) -> list[RawSpan]:
    session = record["external_id"]
    if not isinstance(session, str) or not session:
        raise ValueError(f"external_id is no text: {session!r}")
    nodes = list(_flat(record["nodes"]))
    _check(record, nodes)
    if nodes and all(_own(node) is not None for node in nodes):
        return [_our_span(node, place) for node in nodes if "told" not in (_own(node) or {})]
    return _foreign_spans(record, session, nodes, place)


def _flat(nodes: list[Any], parent: Any = None, depth: int = 0) -> Iterator[dict[str, Any]]:
    """The nodes with those nested in them after them, each with its parent's index."""
    if depth > _DEEPEST:
        raise ValueError(f"nodes nested deeper than {_DEEPEST}")
    for number, node in enumerate(nodes):
        if not isinstance(node, dict):
            raise ValueError(f"node {number} is no object")
        index = node.get("index", f"{'' if parent is None else parent}/{number}")
        flat = {key: value for key, value in node.items() if key != "children"}
        yield {**flat, "index": index, "parent_index": flat.get("parent_index", parent)}
        children = node.get("children")
        if isinstance(children, list):
            yield from _flat(children, index, depth + 1)


# -- what is refused -------------------------------------------------------------------------------------------------


def _check(record: dict[str, Any], nodes: list[dict[str, Any]]) -> None:
    """Refuse ids that are not one's own, parents that go in a circle or are not there, and numbers that are none.

    Raises:
        ValueError: says what, and of which node.
    """
    if not _is_status(record["status"]):
        raise ValueError(f"status {record['status']!r} is none of {sorted(_STATUSES)!r}")
    parents: dict[str, Any] = {}
    seen = set[str]()
    for node in nodes:
        index, identity = _key(node["index"]), _external_id(node)
        if index in parents:
            raise ValueError(f"two nodes of index {node['index']!r}")
        if identity in seen:
            raise ValueError(f"two nodes of external_id {identity!r}")
        seen.add(identity)
        parents[index] = None if node["parent_index"] is None else _key(node["parent_index"])
        if not _is_status(node.get("status")):
            raise ValueError(f"node {identity!r}: status {node.get('status')!r}")
        _check_numbers(node, identity)
    for index, parent in parents.items():
        walked, above = {index}, parent
        while above is not None:
            if above not in parents:
                raise ValueError(f"parent_index {above!r} is no node's")
            if above in walked:
                raise ValueError(f"parents go in a circle at index {above!r}")
            walked.add(above)
            above = parents[above]
    _check_values([record["inputs"], record["outputs"]])


def _check_numbers(node: dict[str, Any], identity: str) -> None:
    tokens = node.get("tokens")
    counts = [*(tokens.values() if isinstance(tokens, dict) else ()), node.get("cost")]
    for count in counts:
        if isinstance(count, int | float) and count < 0:
            raise ValueError(f"node {identity!r}: a count below zero: {count!r}")
    _check_values([node.get("inputs"), node.get("outputs")])


def _check_values(values: list[Json]) -> None:
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{value!r} is no JSON value")
        waiting += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _is_status(value: Any) -> bool:
    return isinstance(value, str) and value in _STATUSES


def _key(index: Any) -> str:
    return repr(index)


def _external_id(node: Mapping[str, Any]) -> str:
    found = node.get("external_id")
    return found if isinstance(found, str) and found else f"node-{node['index']}"


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
        span_id=str(own.get("span_id") or _external_id(node)),
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


def _foreign_spans(record: dict[str, Any], session: str, nodes: list[dict[str, Any]], place: str) -> list[RawSpan]:
    """A root span for each turn, with the nodes of its source trace in it."""
    turns = _turns(record)
    by_index = {_key(node["index"]): node for node in nodes}
    spans: list[RawSpan] = []
    for turn in turns:
        source = turn.get("source_trace_id")
        inside = [node for node in nodes if len(turns) == 1 or _source(node, by_index, turns) == source]
        trace = _digest(session, str(source or ""))[:32]
        root = _digest(session, str(source or ""), "root")[:16]
        made = [_foreign_span(node, trace, root, by_index, place) for node in inside]
        bare = RawSpan(trace, root, None, "session", 1, 0, 0, {}, Origin(scope=SCOPE), place)
        spans.append(_root(record, turn, made, bare))
        spans += made
    return spans


def _turns(record: dict[str, Any]) -> list[dict[str, Any]]:
    """What the session was asked, turn by turn; the last turn's outputs are the session's."""
    inputs = record["inputs"]
    given = inputs.get("turns") if isinstance(inputs, dict) and inputs.get("schema_version") == 1 else None
    turns = [turn for turn in given if isinstance(turn, dict)] if isinstance(given, list) else []
    return turns or [{"inputs": inputs, "outputs": record["outputs"]}]


def _source(node: dict[str, Any], by_index: Mapping[str, dict[str, Any]], turns: list[dict[str, Any]]) -> Any:
    """The source trace of a node: its own, else that of the nodes around it; what is of none is of the last turn."""
    current: dict[str, Any] | None = node
    while current is not None:
        if current.get("trace_id") is not None:
            return current["trace_id"]
        current = by_index.get(_key(current["parent_index"])) if current["parent_index"] is not None else None
    return turns[-1].get("source_trace_id")


def _root(record: dict[str, Any], turn: dict[str, Any], inside: list[RawSpan], bare: RawSpan) -> RawSpan:
    """The span of a session's turn. Only of the last is the status known; those before it have ended."""
    last = turn is _turns(record)[-1] or "source_trace_id" not in turn
    status = _STATUSES[record["status"]] if last else 1
    end = nanoseconds(record.get("ended_at")) if last else max((span.end for span in inside), default=0)
    metadata = record.get("metadata")
    attributes: dict[str, Json] = {
        TURN: json_text.plain(turn),
        "kitaru.framework": record.get("framework"),
        names.CONVERSATION_ID: record["external_id"],
        names.SESSION_NAME: record.get("name"),
        names.SESSION_METADATA: texts.encode(metadata) if isinstance(metadata, dict) and metadata else None,
    }
    error = record.get("error")
    return replace(
        bare,
        name=str(record.get("name") or "session"),
        start=min((span.start for span in inside if span.start), default=nanoseconds(record.get("started_at"))),
        end=0 if status == 0 else end if end > 0 else ENDED,
        attributes={key: value for key, value in attributes.items() if value is not None},
        status=status,
        status_message=error if status == 2 and isinstance(error, str) else "",
    )


def _foreign_span(
    node: dict[str, Any], trace: str, root: str, by_index: Mapping[str, dict[str, Any]], place: str
) -> RawSpan:
    above = by_index.get(_key(node["parent_index"])) if node["parent_index"] is not None else None
    error = node.get("error")
    status = _STATUSES[node["status"]]
    end = nanoseconds(node.get("ended_at"))
    return RawSpan(
        trace_id=trace,
        span_id=_digest(trace, _external_id(node))[:16],
        parent_id=root if above is None else _digest(trace, _external_id(above))[:16],
        name=str(node.get("name") or node.get("node_type")),
        kind=1,
        start=nanoseconds(node.get("started_at")),
        end=0 if status == 0 else end or ENDED,
        attributes={NODE: json_text.plain(node)},
        origin=Origin(scope=SCOPE),
        place=place,
        status=status,
        status_message=error if isinstance(error, str) else "",
    )


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(("kitaru", *parts)).encode("utf-8", "replace")).hexdigest()
