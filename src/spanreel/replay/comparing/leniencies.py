"""In which of their conventions a live request and a recording of others differ, where they are equal but for those.

What `sharing` leaves out of the comparison is told with these, so that a PASS says what it does not rest on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import pairwise, zip_longest
from typing import Any

from spanreel.model import Json
from spanreel.replay.comparing.sharing import conversation, is_call, is_default


class Leniency(StrEnum):
    """What recorders write each in their own way."""

    MESSAGES = "where messages of one speaker end"
    CALLS = "whether a text or its tool calls come first"
    NAMES = "who is named in messages and at results"
    ARGUMENTS = "empty arguments and none"
    RESULTS = "a result in JSON and its text"
    DEFAULTS = "settings that are the provider's defaults"
    LAST = "all that a run said and its last message"


def leniencies(recorded: dict[str, Any], asked: dict[str, Any]) -> tuple[str, ...]:
    """Those that two identities needed to be equal."""
    found = list(_of_messages(recorded["messages"], asked["messages"]))
    settings, given = recorded.get("settings") or {}, asked.get("settings") or {}
    if any(is_default(name, value) for name, value in settings.items() if name not in given):
        found.append(Leniency.DEFAULTS)
    return tuple(map(str, found))


def outcome_leniencies(recorded: list[Json], asked: list[Json]) -> tuple[str, ...]:
    """Those that two outcomes needed to be equal."""
    if len(conversation(recorded)) != len(conversation(asked)):
        return (str(Leniency.LAST),)
    return tuple(map(str, _of_messages(recorded, asked)))


def _of_messages(recorded: Sequence[Any], asked: Sequence[Any]) -> Iterator[Leniency]:
    sizes = [[(one["role"], len(one["parts"])) for one in side] for side in (recorded, asked)]
    if sizes[0] != sizes[1]:
        yield Leniency.MESSAGES
    if _turns(recorded) != _turns(asked):
        yield Leniency.CALLS
    messages = list(zip(conversation(list(recorded)), conversation(list(asked)), strict=False))
    parts = [pair for one, other in messages for pair in zip(one["parts"], other["parts"], strict=False)]
    written = list(_parts_as_written(recorded, asked))
    if any(("name" in one) != ("name" in other) for one, other in [*messages, *parts]):
        yield Leniency.NAMES
    if any(is_call(one) and ("arguments" in one) != ("arguments" in other) for one, other in written):
        yield Leniency.ARGUMENTS
    if any(type(one.get("response")) is not type(other.get("response")) for one, other in written):
        yield Leniency.RESULTS


def _turns(messages: Sequence[Any]) -> list[tuple[str, bool]]:
    """Texts and tool calls by turns, whatever the messages that they stand in."""
    kinds = [(one["role"], is_call(part)) for one in messages for part in one["parts"]]
    return kinds[:1] + [after for before, after in pairwise(kinds) if before != after]


def _parts_as_written(recorded: Sequence[Any], asked: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """The tool calls of both sides, pair by pair, and then their results."""
    sides = [[part for one in side for part in one["parts"]] for side in (recorded, asked)]
    for wanted in (is_call, lambda part: "response" in part):
        chosen = [[part for part in side if wanted(part)] for side in sides]
        yield from ((one, other) for one, other in zip_longest(*chosen) if one is not None and other is not None)
