"""Members of objects in OTLP/JSON, in either spelling: as the specification has it, or in snake_case."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any


def member(item: dict[str, Any], key: str) -> Any:
    """What an object holds under a name, given as the specification spells it; None where there is nothing."""
    value = item.get(key)
    return item.get(_snake(key)) if value is None else value


def spelt(item: dict[str, Any]) -> dict[str, Any]:
    """The object with its members named as OTLP/JSON names them, so that no other spelling need be looked for."""
    if "_" not in "".join(item):
        return item
    other = {_camel(key): value for key, value in item.items() if "_" in key}
    return {**other, **{key: value for key, value in item.items() if value is not None or key not in other}}


def has_member(item: dict[str, Any], key: str) -> bool:
    """Whether an object names a member at all."""
    return key in item or _snake(key) in item


@cache
def _snake(key: str) -> str:
    return re.sub("[A-Z]", lambda match: "_" + match.group().lower(), key)


@lru_cache(maxsize=256)
def _camel(key: str) -> str:
    return re.sub("_([a-z])", lambda match: match.group(1).upper(), key)


def list_of(item: Any, key: str) -> list[Any]:
    """The list under a name; an empty one, where there is none."""
    value = member(item, key) if isinstance(item, dict) else None
    return value if isinstance(value, list) else []


def objects(item: Any, key: str) -> list[dict[str, Any]]:
    """The objects of the list under a name."""
    return [value for value in list_of(item, key) if isinstance(value, dict)]


def text_of(item: dict[str, Any], key: str) -> str:
    """The text under a name; an empty one, where there is none."""
    value = member(item, key)
    return value if isinstance(value, str) else ""
