"""Looking through text with many detectors at once, in time linear in its length.

Fragments are looked for first, and patterns tried only there: a pattern searched for through a long text would hold the
interpreter's lock, and delay the streams of the program that is recorded. The searches are those that end in the C
library's `memchr`: for a sign that is rare in text, or for a few letters.
"""

from __future__ import annotations

import re
import string
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from spanreel.detectors.finding import PLACEHOLDER, Detector, Finding, Shape
from spanreel.glance import Glance, pattern_of

_FOLD: Final = bytes.maketrans(
    (string.ascii_uppercase + "123456789").encode(), (string.ascii_lowercase + "000000000").encode()
)
_SIGNS: Final = b"_-.:/=@~$+AKJjzkqx"
"""Characters so rare in text that it is faster to look for one of them, and around it, than for each fragment."""

Owners = tuple[int, ...]
"""The ranks of the detectors that want to know a place."""


@dataclass(frozen=True, slots=True)
class _Sign:
    """A pattern that starts with a rare character, and matches where one of some fragments stands around it.

    By the number of its group: how many characters of fragments end there, and whose these are.
    """

    character: bytes
    pattern: re.Pattern[bytes]
    folded: bool
    groups: tuple[tuple[tuple[int, int], ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """Detectors, ready to look through text; where findings overlap, the first of them names the whole.

    ``words`` are fragments without a rare character, ``signs`` find the others; ``always`` are the detectors that have
    neither fragments nor a shape. ``glances`` are patterns one of which matches wherever there are places to look at;
    none where every text is to be looked at.
    """

    detectors: tuple[Detector, ...]
    words: tuple[tuple[bytes, Owners], ...]
    signs: tuple[_Sign, ...]
    shapes: tuple[tuple[Shape, Owners], ...]
    always: Owners
    glances: tuple[str, ...]
    glance: Glance


def make_search(detectors: Sequence[Detector]) -> Search:
    """The search with these detectors, those that come first before the others."""
    owners: dict[bytes, Owners] = defaultdict(tuple)
    shapes: dict[Shape, Owners] = defaultdict(tuple)
    always = []
    for rank, detector in enumerate(detectors):
        for wanted in detector.fragments:
            owners[_folded(wanted)] += (rank,)
        if detector.shape is not None:
            shapes[detector.shape] += (rank,)
        elif not detector.fragments:
            always.append(rank)
    signs: dict[tuple[int, bool], dict[bytes, Owners]] = defaultdict(dict)
    words = []
    for fragment, ranks in owners.items():
        rare = next((sign for sign in _SIGNS if sign in fragment), None)
        if rare is None:
            words.append((fragment, ranks))
        else:
            signs[rare, fragment == fragment.translate(_FOLD)][fragment] = ranks
    patterns = tuple(_sign_pattern(bytes([sign]), folded, group) for (sign, folded), group in signs.items())
    glances = () if always else (*map(_glance, sorted(owners)), *(shape.glance for shape in shapes))
    return Search(
        tuple(detectors), tuple(words), patterns, tuple(shapes.items()), tuple(always), glances, Glance(glances)
    )


def may_find(text: str, search: Search) -> bool:
    """Whether there may be places to look at: told quickly where there are none, as in nearly all text."""
    return not search.glances or search.glance.sees(text)


def places_in(text: str, search: Search) -> list[int]:
    """The places in the text around which something may be found, in order; it is clean where there are none."""
    if not may_find(text, search):
        return []
    places = _places(text, search)
    return sorted(set().union(*places.values())) if places else []


def find_all(text: str, search: Search) -> list[Finding]:
    """What the detectors find, in order and not overlapping; placeholders, and what stands in them, are not found."""
    if not may_find(text, search):
        return []
    found = [
        (one.start, one.end, rank)
        for rank, places in sorted(_places(text, search).items())
        for one in search.detectors[rank].find(text, sorted(places))
    ]
    if not found:
        return []
    return [Finding(start, end, search.detectors[rank]) for start, end, rank in _spared(text, _merged(found))]


def _folded(fragment: str) -> bytes:
    """As it stands in folded text; with capitals, as it stands in text that is not."""
    encoded = fragment.encode("ascii")
    return encoded.translate(_FOLD) if fragment == fragment.lower() else encoded


def _glance(fragment: bytes) -> str:
    """What matches wherever the fragment is found."""
    text = fragment.decode("ascii")
    return pattern_of(text, folded=fragment == fragment.translate(_FOLD))


def _sign_pattern(sign: bytes, folded: bool, fragments: Mapping[bytes, Owners]) -> _Sign:
    """What finds the sign where one of these fragments stands around it; the longest before those that end it."""
    heads = {fragment: fragment[: fragment.rindex(sign) + 1] for fragment in fragments}
    alike: dict[tuple[int, bytes, Owners], list[bytes]] = defaultdict(list)
    for fragment, owners in fragments.items():
        alike[-len(heads[fragment]), fragment[len(heads[fragment]) :], owners].append(heads[fragment])
    branches: list[bytes] = []
    groups: list[tuple[tuple[int, int], ...]] = [()]
    for (_, tail, _), group in sorted(alike.items()):
        branches.append(b"(?<=" + b"|".join(map(_any, group)) + b")(?=" + re.escape(tail) + b")()")
        ends = {
            (len(head), fragments[fragment])
            for fragment, head in heads.items()
            if any(_may_end(longer, head) for longer in group)
        }
        groups.append(tuple((length, rank) for length, ranks in sorted(ends) for rank in ranks))
    pattern = re.compile(re.escape(sign) + b"(?:" + b"|".join(branches) + b")")
    return _Sign(sign, pattern, folded, tuple(groups))


def _may_end(longer: bytes, head: bytes) -> bool:
    return len(head) <= len(longer) and all(
        one == other or b"?"[0] in {one, other} for one, other in zip(longer[::-1], head[::-1], strict=False)
    )


def _any(fragment: bytes) -> bytes:
    """The pattern of a fragment, in which a question mark stands for any character."""
    return re.escape(fragment).replace(rb"\?", b".")


def _places(text: str, search: Search) -> dict[int, list[int]]:
    """By the rank of the detector, the places where it has to look."""
    plain = text.encode("ascii", "replace")  # a byte a character, so that places stay
    folded = plain.translate(_FOLD)
    places: dict[int, list[int]] = defaultdict(list)
    for fragment, owners in search.words:
        if fragment in folded:
            here = list(_places_of(fragment, folded))
            for rank in owners:
                places[rank] += here
    for sign in search.signs:
        looked_through = folded if sign.folded else plain
        if sign.character not in looked_through:
            continue  # nearly always, in short texts; telling that is cheaper than to begin a search
        for match in sign.pattern.finditer(looked_through):
            for length, rank in sign.groups[match.lastindex or 0]:
                places[rank].append(match.end() - length)
    for shape, owners in search.shapes:
        if shape.pattern.pattern[:1] not in folded:
            continue
        here = [match.start() for match in shape.pattern.finditer(folded)]
        for rank in owners if here else ():
            places[rank] += here
    for rank in search.always:
        places[rank].append(0)
    return places


def _places_of(fragment: bytes, folded: bytes) -> Iterator[int]:
    place = folded.find(fragment)
    while place >= 0:
        yield place
        place = folded.find(fragment, place + 1)


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
    placeholders = [match.span() for match in PLACEHOLDER.finditer(text)]
    if not placeholders:
        return found
    spared = []
    following = 0
    for start, end, rank in found:
        while following < len(placeholders) and placeholders[following][1] <= start:
            following += 1
        first, last = following, following
        while last < len(placeholders) and placeholders[last][0] < end:
            last += 1
        inside = placeholders[first:last]
        if inside and inside[0][0] < start:
            start = inside.pop(0)[1]  # noqa: PLW2901 -- the finding, cut
        if inside and inside[-1][1] > end:
            end = inside.pop()[0]  # noqa: PLW2901 -- the finding, cut
        if start < end and (not inside or _says_more(text[start:end])):
            spared.append((start, end, rank))
    return spared


def _says_more(text: str) -> bool:
    """Whether there are words or numbers beside the placeholders."""
    return any(character.isalnum() for character in PLACEHOLDER.sub("", text))
