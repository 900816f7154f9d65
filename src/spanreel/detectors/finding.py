"""What a detector is, and what it says it found. What becomes of that is left to the redaction."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import Final

MASK: Final = "[redacted]"

PLACEHOLDER: Final = re.compile(r"\[redacted(?::[A-Za-z0-9_.:+-]{1,160})?\]")
"""What stands where something was: the mask, or one that says more (``[redacted:email:key:digest]``)."""


class Kind(StrEnum):
    """What a detector finds: what opens doors, or what tells who somebody is."""

    CREDENTIAL = auto()
    PERSONAL = auto()


@dataclass(frozen=True, slots=True)
class Found:
    """The characters of a text that are the secret, from ``start`` up to ``end``."""

    start: int
    end: int


Find = Callable[[str, Sequence[int]], Sequence[Found]]
"""From a text, and the places where to look, in order: what is there, in order and not overlapping."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What stands where a detector looks, in the lower-case text: ASCII, every other character a ``?``, digits a ``0``.

    ``pattern`` is written with the very character that it begins with. ``glance`` is for the text as it is, in the
    syntax of `spanreel.glance`: it matches in every text that the pattern matches in, and may in others.
    """

    pattern: re.Pattern[bytes]
    glance: str


@dataclass(frozen=True, slots=True)
class Detector:
    """One kind of secret in text. A secret, or the name before it, starts with one of the lower-case ``fragments``.

    ``find`` is told the places of the fragments, or of what has the ``shape``. A detector that has neither looks at
    every text, from its start.
    """

    name: str
    kind: Kind
    fragments: tuple[str, ...]
    find: Find
    shape: Shape | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """What stands from ``start`` up to ``end`` in a text, and the first of the detectors that found it."""

    start: int
    end: int
    detector: Detector
