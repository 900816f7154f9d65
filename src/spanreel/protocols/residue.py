"""What the canonical form has no name for, kept to be written again: the difference between two JSON values.

A protocol reads a JSON object into the canonical form, writes that again, and keeps the difference to the original in
``provider_fields``. Reading and writing are thus without loss by construction. Keys that begin with ``$`` are ours:
they say how something stood, never what; the original's own keep theirs behind one more ``$``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import pydantic_core

from spanreel.model import Json

ABSENT: Final = "$absent"
"""Names of fields that the canonical form writes and the original did not have."""
EXACT: Final = "$arguments"
"""How a tool call's arguments were written: SPACED, or their very text."""
SPACED: Final = "spaced"


def read_json(text: bytes | str, *, strict: bool = False) -> Json:
    """The value of JSON text as clients read it: half a surrogate pair stays what it is, a mark of the order is none.

    Raises:
        ValueError: it is not JSON; or holds NaN or an infinity, where that is asked for strictly.
    """
    try:
        return pydantic_core.from_json(text, allow_inf_nan=not strict)
    except (ValueError, TypeError):  # TypeError: text with half a surrogate pair outside of escapes
        try:
            return json.loads(text, parse_constant=_refuse if strict else None)
        except RecursionError as error:
            raise ValueError("JSON nested too deep") from error


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def parse_object(body: bytes | str, what: str) -> dict[str, Json]:
    """A JSON object from text; ``what`` names it in the ValueError raised for anything else."""
    try:
        value = read_json(body)
    except ValueError as error:
        raise ValueError(f"{what} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise unexpected(what, value, "an object")
    return value


def unexpected(what: str, value: Json, expected: str) -> ValueError:
    """The error for a body that is not of a protocol's form."""
    return ValueError(f"{what} is of type {type(value).__name__}, expected {expected}")


def objects(entries: list[Json], place: str) -> list[Json]:
    """The entries of a list that must be objects; ``place`` names the list in the ValueError for one that is none."""
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise unexpected(f"{place}/{index}", entry, "an object")
    return entries


def read_count(value: Json) -> int | None:
    """The value where it is a whole number, as counts of tokens are; None where it is none, or absent."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def write_json(value: Json) -> bytes:
    """Compact JSON text; half a surrogate pair, which no UTF-8 holds, is written as its escape."""
    try:
        return pydantic_core.to_json(value)
    except ValueError:
        return json.dumps(value, separators=(",", ":")).encode()


def same(one: Json, other: Json) -> bool:
    """Whether two JSON values are the same; unlike ``==``, 1, 1.0 and true are three values."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return len(one) == len(other) and all(key in other and same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def residue(original: Mapping[str, Json], written: Mapping[str, Json]) -> dict[str, Json]:
    """What has to be laid over ``written`` to get ``original``; objects inside are compared field by field."""
    rest: dict[str, Json] = {}
    for key, value in original.items():
        name = f"${key}" if key[:1] == "$" else key
        if key not in written:
            rest[name] = value
        elif value is not written[key] and not same(value, written[key]):
            both = isinstance(value, dict) and isinstance(written[key], dict)
            rest[name] = residue(value, written[key]) if both else value
    absent = sorted(key for key in written if key not in original)
    if absent:
        rest[ABSENT] = absent
    return rest


def overlay(written: Mapping[str, Json], rest: Mapping[str, Json]) -> dict[str, Json]:
    """The inverse of `residue`. Our own keys other than ABSENT are not written."""
    absent = rest.get(ABSENT)
    gone = absent if isinstance(absent, list) else ()
    result = {key: value for key, value in written.items() if key not in gone}
    for name, value in rest.items():
        if name[:1] == "$" and name[:2] != "$$":
            continue
        key = name[1:] if name[:1] == "$" else name
        known = result.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            result[key] = overlay(known, value)
        else:
            result[key] = value
    return result


def keep(canonical: dict[str, Any], rest: Mapping[str, Json]) -> dict[str, Any]:
    """The canonical object with what is to be kept of the original."""
    if rest:
        canonical["provider_fields"] = dict(rest)
    return canonical


def kept(canonical: Mapping[str, Any]) -> dict[str, Json]:
    """What was kept of the original of a message, part or tool definition."""
    rest = canonical.get("provider_fields")
    return rest if isinstance(rest, dict) else {}


def read_arguments(text: str) -> tuple[Json, str | None]:
    """Arguments that a model wrote, parsed where they are JSON, and how they were written where that is not compact.

    A text that is a JSON string stays as it is, so that a str is always the text itself.
    """
    try:
        value = read_json(text, strict=True)
    except ValueError:
        return text, None
    if isinstance(value, str):
        return text, None
    if write_json(value).decode() == text:
        return value, None
    if _spaced(value) == text:
        return value, SPACED
    return value, text


def write_arguments(value: Json, exact: Json = None) -> str:
    """The text of arguments; ``exact`` (as `read_arguments` gave it) counts only while it still means the value."""
    if isinstance(value, str):
        return value
    if exact == SPACED:
        return _spaced(value)
    if isinstance(exact, str):
        try:
            if same(read_json(exact, strict=True), value):
                return exact
        except ValueError:
            pass
    return write_json(value).decode()


def _spaced(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)
