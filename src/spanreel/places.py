"""Places in JSON, as patterns that are followed step by step: pointers, and what tools were given and gave."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from spanreel.detectors.finding import PLACEHOLDER
from spanreel.errors import SettingsError
from spanreel.json_pointers import read_step

ANY = "*"
DEEP = "**"
SIDES = ("arguments", "result")

What = TypeVar("What")


@dataclass(frozen=True, slots=True)
class Place(Generic[What]):
    """What holds at the end of these steps: each a name or number, ``*`` for any one, ``**`` for any number of them."""

    steps: tuple[str, ...]
    what: What


def step(places: Iterable[Place[What]], name: str) -> tuple[Place[What], ...]:
    """What is left of the places one step further."""
    left: list[Place[What]] = []
    for place in places:
        steps = place.steps
        while steps and steps[0] == DEEP:
            left.append(Place(steps, place.what))
            steps = steps[1:]
        if steps and steps[0] in (name, ANY):
            left.append(Place(steps[1:], place.what))
    return tuple(left)


def here(places: Iterable[Place[What]]) -> What | None:
    """What holds at this very place: the first that has been reached."""
    return next((place.what for place in places if not place.steps or set(place.steps) == {DEEP}), None)


def unreached(places: Iterable[Place[What]], text: str) -> What | None:
    """What holds for a text in which the steps that are left cannot be followed, since it is no JSON.

    It holds for the whole text where it would hold for all of it, or where the text names what is looked for.
    """
    bare = PLACEHOLDER.sub("", text)
    for place in places:
        names = [name for name in place.steps if name not in (ANY, DEEP)]
        if not names or any(_names(bare, name) for name in names):
            return place.what
    return None


def _names(text: str, name: str) -> bool:
    """Whether the name stands in the text, as a word of it."""
    return re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", text, re.IGNORECASE) is not None


def pointer_steps(pointer: str) -> tuple[str, ...]:
    """The steps of a JSON pointer (RFC 6901).

    Raises:
        SettingsError: it is none.
    """
    if not pointer.startswith("/") or pointer == "/":
        raise SettingsError(f"{pointer!r} is no JSON pointer: it begins with / and an attribute, as in '/user.id'")
    return tuple(read_step(one) for one in pointer[1:].split("/"))


def tool_steps(pattern: str) -> tuple[str, tuple[str, ...]]:
    """The tool and the steps of ``TOOL.arguments.PATH`` or ``TOOL.result.PATH``; the first step is the side.

    Raises:
        SettingsError: it is neither.
    """
    words = pattern.split(".")
    side = next((number for number, word in enumerate(words) if number and word in SIDES), None)
    if side is None or not all(words):
        raise SettingsError(
            f"{pattern!r} names no place in a tool call: TOOL.arguments.PATH or TOOL.result.PATH, with * for any, "
            "as in 'get_customer.result.*' or '*.arguments.email'"
        )
    return ".".join(words[:side]), tuple(words[side:])
