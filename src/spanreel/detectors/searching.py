"""Looking through text with many detectors at once, in time linear in its length.

Fragments are looked for first, and patterns tried only there: a pattern searched for through a long text would hold the
interpreter's lock, and delay the streams of the program that is recorded.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from spanreel.detectors.finding import PLACEHOLDER, Detector, Finding, Found

_SHORT: Final = 400


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """Detectors, ready to look through text; where findings overlap, the first of them names the whole.

    Text in which neither ``fragments`` stand nor ``shapes`` match holds nothing. ``gate`` matches any of both;
    ``breaks`` makes spaces of the signs that stand in no fragment.
    """

    detectors: tuple[Detector, ...]
    fragments: tuple[bytes, ...]
    shapes: tuple[re.Pattern[bytes], ...]
    gate: re.Pattern[bytes]
    breaks: bytes


Places = dict[object, list[int]]
"""By fragment or shape, where it stands."""


def make_search(detectors: Sequence[Detector]) -> Search:
    """The search with these detectors, those that come first before the others."""
    fragments = tuple(dict.fromkeys(fragment.encode() for detector in detectors for fragment in detector.fragments))
    shapes = tuple(dict.fromkeys(detector.shape for detector in detectors if detector.shape is not None))
    inside = set(b"".join(fragments))
    signs = bytes(sign for sign in string.punctuation.encode() if sign not in inside)
    gate = b"|".join([*map(re.escape, fragments), *(shape.pattern for shape in shapes)])
    if any(not detector.fragments and detector.shape is None for detector in detectors):
        gate = b""
    return Search(tuple(detectors), fragments, shapes, re.compile(gate), bytes.maketrans(signs, b" " * len(signs)))


def places_in(text: str, search: Search) -> list[int]:
    """The places in the text around which something may be found, in order; it is clean where there are none."""
    return sorted({place for places in _places(_lowered(text), search).values() for place in places})


def find_all(text: str, search: Search) -> list[Finding]:
    """What the detectors find, in order and not overlapping; placeholders, and what stands in them, are not found."""
    places = _places(_lowered(text), search)
    found = []
    for rank, detector in enumerate(search.detectors if places else ()):
        keys = (detector.shape, *(fragment.encode() for fragment in detector.fragments))
        here = sorted(place for key in keys for place in places.get(key, ()))
        if here or (not detector.fragments and detector.shape is None):
            found += [(one.start, one.end, rank) for one in detector.find(text, here)]
    if not found:
        return []
    return [Finding(start, end, search.detectors[rank]) for start, end, rank in _spared(text, _merged(found))]


def _lowered(text: str) -> bytes:
    """The text in lower case and ASCII, byte by character, so that places stay."""
    return text.encode("ascii", "replace").lower()


def _places(lowered: bytes, search: Search) -> Places:
    """Where fragments and shapes stand.

    For short text one pattern is faster than many searches. Of long text each word is searched once.
    """
    if len(lowered) < _SHORT:
        if search.gate.search(lowered) is None:
            return {}
        words = lowered
    else:
        words = b"\n".join(set(lowered.translate(search.breaks).split()))
    places: Places = {fragment: _places_of(fragment, lowered) for fragment in search.fragments if fragment in words}
    for shape in search.shapes:
        matches = [match.start() for match in shape.finditer(lowered)]
        if matches:
            places[shape] = matches
    if not places and search.gate.pattern == b"":
        places[None] = [0]
    return places


def _places_of(fragment: bytes, lowered: bytes) -> list[int]:
    places = []
    place = lowered.find(fragment)
    while place >= 0:
        places.append(place)
        place = lowered.find(fragment, place + 1)
    return places


def _merged(found: Iterable[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Overlapping findings as one, under the first of their detectors."""
    merged: list[tuple[int, int, int]] = []
    for start, end, rank in sorted(found):
        if merged and start < merged[-1][1]:
            before = merged[-1]
            merged[-1] = (before[0], max(before[1], end), min(before[2], rank))
        elif start < end:
            merged.append((start, end, rank))
    return merged


def _spared(text: str, found: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """The findings without those in placeholders, and without the parts of placeholders at their ends."""
    placeholders = [Found(*match.span()) for match in PLACEHOLDER.finditer(text)]
    if not placeholders:
        return found
    spared = []
    following = 0
    for start, end, rank in found:
        while following < len(placeholders) and placeholders[following].end <= start:
            following += 1
        inside, index = [], following
        while index < len(placeholders) and placeholders[index].start < end:
            inside.append(placeholders[index])
            index += 1
        if inside and inside[0].start < start:
            start = inside.pop(0).end  # noqa: PLW2901 -- the finding, cut
        if inside and inside[-1].end > end:
            end = inside.pop().start  # noqa: PLW2901 -- the finding, cut
        if start < end and (not inside or _says_more(text[start:end])):
            spared.append((start, end, rank))
    return spared


def _says_more(text: str) -> bool:
    """Whether there are words or numbers beside the placeholders."""
    return any(character.isalnum() for character in PLACEHOLDER.sub("", text))
