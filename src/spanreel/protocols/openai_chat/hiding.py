"""The chunks of an OpenAI chat stream with their pieces of text hidden as lengths, and shown again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from spanreel.model import Json
from spanreel.protocols.openai_chat.walking import RAW, Place, Positions, choice_index, choices_of, find, walk

CUT: Final = "cut"
"""In a hidden choice: how much of a text, or how many entries of each list of ``logprobs``, came with this chunk."""


def hide(choice: Mapping[str, Json], positions: Positions, whole: frozenset[Place]) -> dict[str, Json]:
    """A choice with lengths in the places of texts. ``whole`` are the places of what the joined answer holds."""

    def length(place: Place, value: Json) -> Json:
        if value is None:
            return None
        return len(value) if isinstance(value, str) and place in whole else {RAW: value}

    hidden = walk(choice, positions, length)
    place = (choice_index(choice), "text")
    if isinstance(choice.get("text"), str) and place in whole:
        hidden["text"] = {CUT: len(choice["text"])}
    logprobs = choice.get("logprobs")
    if isinstance(logprobs, dict) and all(
        value is None or (isinstance(value, list) and (choice_index(choice), "logprobs", key) in whole)
        for key, value in logprobs.items()
    ):
        hidden["logprobs"] = {CUT: {key: None if value is None else len(value) for key, value in logprobs.items()}}
    return hidden


class Shown:
    """The texts of a completion, handed out piece by piece.

    The last piece of a text is all that is left of it: what was redacted since may be longer or shorter than its cuts.
    """

    def __init__(self, body: Mapping[str, Json], hidden: Iterable[Mapping[str, Json]]) -> None:
        self._choices = {choice_index(choice): choice for choice in choices_of(body)}
        self._left: Counter[Place] = Counter()
        self._at: Counter[Place] = Counter()
        self._positions = Positions()
        positions = Positions()
        for choice in hidden:
            walk(choice, positions, self._count)
            if isinstance(choice.get("text"), dict):
                self._count((choice_index(choice), "text"), 0)

    def show(self, hidden: Mapping[str, Json]) -> dict[str, Json]:
        """The inverse of `hide`."""
        choice = walk(hidden, self._positions, self._show)
        index = choice_index(hidden)
        if isinstance(hidden.get("text"), dict):
            choice["text"] = self._show((index, "text"), hidden["text"].get(CUT))
        cut = hidden["logprobs"].get(CUT) if isinstance(hidden.get("logprobs"), dict) else None
        if isinstance(cut, dict):
            choice["logprobs"] = {key: self._entries((index, "logprobs", key), count) for key, count in cut.items()}
        return choice

    def _count(self, place: Place, value: Json) -> Json:
        if isinstance(value, int):
            self._left[place] += 1
        return value

    def _show(self, place: Place, value: Json) -> Json:
        if not isinstance(value, int):
            return value[RAW] if isinstance(value, dict) and RAW in value else value
        text = self._find(place)
        text = text if isinstance(text, str) else ""
        start, self._at[place] = self._at[place], self._at[place] + value
        self._left[place] -= 1
        return text[start : start + value] if self._left[place] else text[start:]

    def _entries(self, place: Place, count: Json) -> Json:
        entries = self._find(place)
        if not isinstance(count, int) or not isinstance(entries, list):
            return None if count is None else []
        start, self._at[place] = self._at[place], self._at[place] + count
        return entries[start : start + count]

    def _find(self, place: Place) -> Json:
        return find(self._choices, place)
