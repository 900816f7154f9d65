"""The chunks of an OpenAI chat stream with their pieces of text hidden as lengths, and shown again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from spanreel.model import Json
from spanreel.protocols.openai_chat.walking import RAW, Place, Positions, choice_index, choices_of, settled, walk
from spanreel.protocols.repeats import find

CUT: Final = "cut"
"""In a hidden choice: how much of a text, or how many entries of each list of ``logprobs``, came with this chunk."""


def hide(choice: Mapping[str, Json], positions: Positions, whole: Mapping[Place, str]) -> dict[str, Json]:
    """A choice with lengths in the places of texts. ``whole`` is what the joined answer holds, texts by place."""

    def length(place: Place, value: Json) -> Json:
        if value is None:
            return None
        return len(value) if isinstance(value, str) and place in whole else {RAW: value}

    hidden = walk(choice, positions, length)
    place = (choice_index(choice), "text")
    if isinstance(choice.get("text"), str) and place in whole:
        hidden["text"] = {CUT: len(choice["text"])}
    message, said = choice.get("message"), whole.get((choice_index(choice), "message", "content"))
    if said and isinstance(message, dict) and "delta" in choice and isinstance(message.get("content"), str):
        hidden["message"] = {**message, "content": _hide_repeated(message["content"], said)}
    logprobs = choice.get("logprobs")
    if isinstance(logprobs, dict) and all(
        value is None or (isinstance(value, list) and (choice_index(choice), "logprobs", key) in whole)
        for key, value in logprobs.items()
    ):
        hidden["logprobs"] = {CUT: {key: None if value is None else len(value) for key, value in logprobs.items()}}
    return hidden


def _hide_repeated(content: str, said: str) -> Json:
    """The beginning of a text that a chunk repeats: its length, None for all of it; as it is where it is another."""
    if not content or not said.startswith(content):
        return content
    return {CUT: None if content == said else len(content)}


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
        message = hidden.get("message")
        if isinstance(message, dict) and isinstance(message.get("content"), dict) and CUT in message["content"]:
            text = self._find((index, "message", "content"))
            count = message["content"][CUT]
            choice["message"] = {**message, "content": text[:count] if isinstance(text, str) else ""}
        cut = hidden["logprobs"].get(CUT) if isinstance(hidden.get("logprobs"), dict) else None
        if isinstance(cut, dict):
            choice["logprobs"] = {key: self._entries((index, "logprobs", key), count) for key, count in cut.items()}
        return choice

    def _count(self, place: Place, value: Json) -> Json:
        if isinstance(value, int):
            self._left[settled(self._choices, place)] += 1
        return value

    def _show(self, place: Place, value: Json) -> Json:
        if not isinstance(value, int):
            return value[RAW] if isinstance(value, dict) and RAW in value else value
        place = settled(self._choices, place)
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
