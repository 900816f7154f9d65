"""Strings in JSON text, found where they stand: the whole need not be decoded for one of them to be looked at."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from spanreel import json_text


def strings_at(text: str, places: Sequence[int]) -> Iterator[str]:
    """The strings, decoded, that stand in a JSON text around these places."""
    end = 0
    for place in places:
        if place < end:
            continue
        start = text.rfind('"', 0, place)
        while _is_escaped(text, start):
            start = text.rfind('"', 0, start)
        end = text.find('"', place)
        while end >= 0 and _is_escaped(text, end):
            end = text.find('"', end + 1)
        end = end if end >= 0 else len(text)  # numbers behind the last string, or where there is none
        # Before the first string stand numbers only; what opens the text would make it a text like this one.
        inside = text[start + 1 : end] if start >= 0 else text[:end].lstrip("[{ \t\r\n")
        yield str(json_text.decode(f'"{inside}"')) if "\\" in inside else inside


def _is_escaped(text: str, quote: int) -> bool:
    """Whether the quote belongs to the string that it stands in."""
    before = quote
    while text[before - 1 : before] == "\\":
        before -= 1
    return (quote - before) % 2 == 1


def repeats_a_key(text: str) -> bool:
    """Whether an object in a JSON text has a key twice."""
    repeated = False

    def look(pairs: list[tuple[str, Any]]) -> None:
        nonlocal repeated
        repeated = repeated or len({key for key, _ in pairs}) < len(pairs)

    try:
        json.loads(text, object_pairs_hook=look)
    except (ValueError, RecursionError):
        return True
    return repeated
