"""JSON text from strangers: cut off, too deep, with half a character. Reads what can be read."""

from __future__ import annotations

import base64
import json
import math
import re

import pydantic_core

from spanreel.json_text import without_surrogates
from spanreel.model import Json

DEEPEST = 190
"""Levels of nesting that are read; the parser gives up at 200."""

_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*\\?"?|[\[\]{}]', re.DOTALL)
"""A string, whole or cut off at the end, or a bracket."""
_TOKENS_OF_BYTES = re.compile(_TOKENS.pattern.encode(), re.DOTALL)
_FIRST_KEY = re.compile(r'\[(\{"\w{1,40}":)')
"""The beginning of a list of objects, up to the first value of the first."""
_PLAIN = frozenset({str, int, bool, type(None)})
"""Types whose values stand in a document as they are."""
_NAMES = {math.inf: "Infinity", -math.inf: "-Infinity"}


def parse(text: str | bytes) -> Json:
    """The value of a JSON text; half a surrogate pair becomes U+FFFD.

    Raises:
        ValueError: not JSON, cut off, or nested deeper than is read.
    """
    try:
        return pydantic_core.from_json(text)
    except ValueError as error:
        if "hex escape" not in str(error) and "surrogate" not in str(error):
            raise
    try:
        return without_surrogates(json.loads(text))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def is_cut(error: ValueError) -> bool:
    """Whether a text that failed to parse with this error is the beginning of one that would have parsed."""
    return "EOF while parsing" in str(error) or "unexpected end" in str(error)


def parse_prefix(text: str) -> tuple[Json, int]:
    """What is whole in a JSON text that was cut off, and how many brackets were open at the cut.

    Strings that were cut are left out, with their keys.

    Raises:
        ValueError: not even the beginning of a JSON text.
    """
    value = pydantic_core.from_json(text, allow_partial=True)
    depth = 0
    for match in _TOKENS.finditer(text):
        bracket = match.group()
        if bracket in "[{":
            depth += 1
        elif bracket in "]}":
            depth -= 1
    return value, depth


def documents(text: bytes) -> list[tuple[int, bytes]]:
    """The objects and lists that stand in a text one after the other, each with where it begins.

    What stands before, between and after them is left out; the last one may be cut off.
    """
    found: list[tuple[int, bytes]] = []
    depth = begun = 0
    for match in _TOKENS_OF_BYTES.finditer(text):
        bracket = match.group()
        if bracket in (b"[", b"{"):
            begun = begun if depth else match.start()
            depth += 1
        elif bracket in (b"]", b"}") and depth:
            depth -= 1
            if not depth:
                found.append((begun, text[begun : match.end()]))
    return [*found, (begun, text[begun:])] if depth else found


def split_objects(text: str) -> list[str] | None:
    """The texts of the objects in the text of a list; None where they do not all begin alike, as one writer's do.

    If each is JSON by itself, which is for the caller to see, they are what the list holds.
    """
    begins = _FIRST_KEY.match(text)
    if begins is None or not text.endswith("}]"):
        return None
    opening = begins[1]
    pieces = _between(text, opening)
    return [pieces[0], *[opening + other for other in pieces[1:]]]


def _between(text: str, opening: str) -> list[str]:
    inner = text[1:-1]
    spaced = inner.split(f", {opening}")
    return spaced if len(spaced) > 1 else inner.split(f",{opening}")


def prune(text: str) -> str:
    """The same JSON text with null in place of what is nested deeper than is read."""
    pieces: list[str] = []
    depth = kept = 0
    for match in _TOKENS.finditer(text):
        bracket = match.group()
        if bracket in "[{":
            depth += 1
            if depth == DEEPEST + 1:
                pieces.append(text[kept : match.start()])
        elif bracket in "]}":
            depth -= 1
            if depth == DEEPEST:
                pieces.append("null")
                kept = match.end()
    if depth <= DEEPEST:
        pieces.append(text[kept:])
    return "".join(pieces)


def plain(value: Json) -> Json:
    """The value as it can stand in a document: bytes as ``{"base64": text}``, NaN and infinities as their names.

    One that can as it is, as nearly all can, is given back itself.
    """
    return value if _is_plain(value) else _made_plain(value)


def _is_plain(value: Json) -> bool:
    kind = type(value)
    if kind in _PLAIN:
        return True
    if kind is float:
        return math.isfinite(value)
    if kind is list or isinstance(value, dict):
        for item in value if kind is list else value.values():
            if type(item) not in _PLAIN and not _is_plain(item):
                return False
        return True
    return False


def _made_plain(value: Json) -> Json:
    if type(value) in _PLAIN or isinstance(value, str):
        return value
    if isinstance(value, dict):
        return {key: item if type(item) in _PLAIN else _made_plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [item if type(item) in _PLAIN else _made_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return _NAMES.get(value, "NaN")
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode("ascii")}
    return value


def canonical(value: Json) -> str:
    """A text that is equal for equal JSON values, whatever the order of keys."""
    return _CANONICAL.encode(value)


_CANONICAL = json.JSONEncoder(
    # Values come from JSON, or were copied to be like it: none holds itself.
    check_circular=False,
    sort_keys=True,
    ensure_ascii=False,
    default=repr,
    separators=(",", ":"),
)
