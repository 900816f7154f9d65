"""Detectors of one pattern, tried at the places of their fragments."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Final

from spanreel.detectors.finding import Find, Found

# A key starts a word, or follows an escape of a JSON string, a repr or a URL that has not been decoded.
START: Final = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4})|(?<=\\x[0-9A-Fa-f]{2})|(?<=%[0-9A-Fa-f]{2}))"

Judge = Callable[[re.Match[str]], bool]


def matching(pattern: str, judge: Judge | None = None, back: int = 0) -> Find:
    """The function that finds what the pattern matches at the places, or ``back`` characters before them.

    The secret is the group ``value`` where there is one, else the whole match, if ``judge`` takes it for one.
    """
    return functools.partial(_find_at, re.compile(pattern), judge, back)


def _find_at(pattern: re.Pattern[str], judge: Judge | None, back: int, text: str, places: Sequence[int]) -> list[Found]:
    found, done = [], 0
    group = "value" if "value" in pattern.groupindex else 0
    for place in places:
        start = place - back
        match = pattern.match(text, start) if start >= done else None
        if match is None:
            continue
        done = match.end()  # also of what is none, or text that goes on like it would be read over and over
        if judge is None or judge(match):
            found.append(Found(*match.span(group)))
    return found
