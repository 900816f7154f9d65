"""Lists that were laid out in attributes, ``PREFIX.<i>.a.b``: whatever indexes and members are missing.

An attribute without a value is not there.
"""

from __future__ import annotations

from typing import Any, TypeGuard

from spanreel.model import Json
from spanreel_collector import json_text
from spanreel_collector.span import Attributes

Tree = dict[str, Any]


def nested(attributes: Attributes, prefix: str) -> list[Tree]:
    """The items of an indexed list in the order of their indexes, each as the tree that its dotted names make."""
    return list(numbered(attributes, prefix).values())


def numbered(attributes: Attributes, prefix: str) -> dict[int, Tree]:
    """The items by their indexes, in order."""
    items: dict[int, Tree] = {}
    for key, value in attributes.items():
        if value is None or not key.startswith(prefix + "."):
            continue
        index, _, path = key[len(prefix) + 1 :].partition(".")
        if index.isascii() and index.isdigit() and len(index) < 10 and path:
            _plant(items.setdefault(int(index), {}), path.split("."), value)
    return {index: items[index] for index in sorted(items)}


def listed(tree: Any, *, leaves: bool = False) -> list[Any]:
    """The items of a list inside such a tree, by their indexes, or as a value holds them."""
    if isinstance(tree, list):
        return [item for item in json_text.plain(tree) if leaves or isinstance(item, dict)]
    if not is_tree(tree):
        return []
    indexes = sorted((key for key in tree if key.isascii() and key.isdigit() and len(key) < 10), key=int)
    return [tree[key] for key in indexes if leaves or is_tree(tree[key])]


def is_tree(value: Any) -> TypeGuard[Tree]:
    """Whether a member has members of its own."""
    return isinstance(value, dict)


def _plant(tree: Tree, path: list[str], value: Json) -> None:
    for step in path[:-1]:
        below = tree.get(step)
        if not is_tree(below):
            # `message.content` beside `message.content.0`: the text is kept as it is, the rest beneath it.
            below = tree[step] = {} if below is None else {"": below}
        tree = below
    last = path[-1]
    if is_tree(tree.get(last)):
        tree[last][""] = value
    else:
        tree[last] = value
