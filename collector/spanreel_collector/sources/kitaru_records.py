"""A session record of Kitaru's, checked, and its nodes in one list. What they mean is `sources.kitaru`'s to tell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from spanreel.model import Json

REQUIRED: Final = ("status", "external_id", "nodes", "inputs", "outputs")
STATUSES: Final = {"completed": 1, "failed": 2, "in_progress": 0}
"""How a session or node stands, and a span's status for it."""

_NODE_TYPES = ("llm_call", "tool_call", "subagent_call", "span")
_DEEPEST = 64


def checked_nodes(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The record's nodes with those nested in them.

    Raises:
        ValueError: an id is not one's own, parents go in a circle or are not there, or a member is missing or cannot
            be: says what, and of which node.
    """
    missing = [name for name in REQUIRED if name not in record]
    if missing:
        raise ValueError(f"a session record of Kitaru's without {missing!r}")
    if not isinstance(record["external_id"], str) or not record["external_id"]:
        raise ValueError(f"external_id is no text: {record['external_id']!r}")
    if not _is_one_of(record["status"], STATUSES):
        raise ValueError(f"status {record['status']!r} is none of {sorted(STATUSES)!r}")
    if not isinstance(record["nodes"], list):
        raise ValueError(f"nodes is no list: {record['nodes']!r}")
    _check_values(record)
    nodes = list(_flat(record["nodes"]))
    for node in nodes:
        _check_node(node)
    _check_parents(nodes)
    return nodes


def key_of(index: Any) -> str:
    """What a node is found by: ``1`` and ``"1"`` are two."""
    return repr(index)


def external_id(node: Mapping[str, Any]) -> str:
    """The node's id within its session."""
    found = node.get("external_id")
    return found if isinstance(found, str) and found else f"node-{node['index']}"


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


def _check_node(node: Mapping[str, Any]) -> None:
    identity = external_id(node)
    if not _is_one_of(node.get("node_type"), _NODE_TYPES):
        raise ValueError(f"node {identity!r}: node_type {node.get('node_type')!r} is none of {list(_NODE_TYPES)!r}")
    if not _is_one_of(node.get("status"), STATUSES):
        raise ValueError(f"node {identity!r}: status {node.get('status')!r} is none of {sorted(STATUSES)!r}")
    tokens = node.get("tokens")
    for count in (*(tokens.values() if isinstance(tokens, dict) else ()), node.get("cost")):
        if isinstance(count, int | float | str) and _is_below_zero(count):
            raise ValueError(f"node {identity!r}: a count below zero: {count!r}")


def _check_parents(nodes: list[dict[str, Any]]) -> None:
    parents: dict[str, Any] = {}
    seen = set[str]()
    for node in nodes:
        index, identity = key_of(node["index"]), external_id(node)
        if index in parents:
            raise ValueError(f"two nodes of index {node['index']!r}")
        if identity in seen:
            raise ValueError(f"two nodes of external_id {identity!r}")
        seen.add(identity)
        parents[index] = None if node["parent_index"] is None else key_of(node["parent_index"])
    sound = set[str]()
    for index, parent in parents.items():
        walked, above = {index}, parent
        while above is not None and above not in sound:
            if above not in parents:
                raise ValueError(f"parent_index {above!r} is no node's")
            if above in walked:
                raise ValueError(f"parents go in a circle at index {above!r}")
            walked.add(above)
            above = parents[above]
        sound |= walked


def _check_values(record: Json) -> None:
    waiting = [record]
    while waiting:
        value = waiting.pop()
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{value!r} is no JSON value")
        waiting += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _is_below_zero(count: float | str) -> bool:
    """Whether the number is, also one in text: Kitaru writes costs as decimals in text."""
    try:
        return float(count) < 0
    except (ValueError, OverflowError):
        return False


def _is_one_of(value: Any, known: Mapping[str, int] | tuple[str, ...]) -> bool:
    return isinstance(value, str) and value in known
