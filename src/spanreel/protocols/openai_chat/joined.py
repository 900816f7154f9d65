"""A completion put together from the chunks of an OpenAI chat stream."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Final

from spanreel.model import Json
from spanreel.protocols.joining import Text, append, settle
from spanreel.protocols.openai_chat.walking import LISTS, TEXT, Place, Positions, choice_index, walk
from spanreel.protocols.repeats import find, put

_FIRST_COUNTS = ("id", "model", "created")
_PLAIN: Final = 3
"""How long the place of content is that is no list."""
_NOT_JOINED = ("choices", "object", "obfuscation")


class Joined:
    """A completion in the making; ``texts`` of deltas and ``lists`` of log probabilities by their place."""

    def __init__(self) -> None:
        self.texts: dict[Place, list[str]] = {}
        self.lists: dict[Place, list[Json]] = {}
        self._top: dict[str, Json] = {}
        self._choices: dict[int, dict[str, Json]] = {}
        self._positions = Positions()
        self._walked = Positions()
        self._has_choices = False

    @property
    def finished(self) -> bool:
        """Whether every choice has said why it ended."""
        return bool(self._choices) and all(choice.get("finish_reason") for choice in self._choices.values())

    def add(self, chunk: Mapping[str, Json]) -> None:
        """Take in one chunk."""
        for key, value in chunk.items():
            if key not in _NOT_JOINED and value is not None and not (key in _FIRST_COUNTS and self._top.get(key)):
                self._top[key] = value
        self._has_choices = self._has_choices or "choices" in chunk
        for choice in chunk.get("choices", ()):
            self._add_choice(choice)
            walk(choice, self._walked, self._note)

    def body(self) -> dict[str, Json]:
        """The completion."""
        body: dict[str, Json] = {"object": "chat.completion", **self._top}
        if self._has_choices:
            body["choices"] = [_finish(self._choices[index]) for index in sorted(self._choices)]
        return body

    def _note(self, place: Place, value: Json) -> Json:
        if isinstance(value, str):
            self.texts.setdefault(place, []).append(value)
        return value

    def _add_choice(self, choice: Mapping[str, Json]) -> None:
        index = choice_index(choice)
        empty = {"index": index, "message": {"content": None}, "logprobs": None, "finish_reason": None}
        joined = self._choices.setdefault(index, empty)
        for key, value in choice.items():
            if key == "delta" and isinstance(value, dict):
                self._add_delta(joined["message"], value, index)
            elif key == "text" and isinstance(value, str):
                append(joined, key, value)
                self._note((index, key), value)
            elif key == "logprobs" and isinstance(value, dict):
                _extend(joined, key, value)
                for name, entries in value.items():
                    self.lists.setdefault((index, key, name), []).extend(entries if isinstance(entries, list) else [])
            elif key == "message" and "delta" in choice:
                continue  # all that the deltas have said so far, as Perplexity repeats it
            elif key not in ("delta", "index") and value is not None:
                joined[key] = deepcopy(value) if key == "message" else value  # further deltas are added to it

    def _add_delta(self, message: dict[str, Json], delta: Mapping[str, Json], index: int) -> None:
        for key, value in delta.items():
            if key == "role":
                message[key] = value or message.get(key)
            elif key in LISTS and isinstance(value, list) and all(isinstance(entry, dict) for entry in value):
                entries = _as_objects(message.get(key))
                message[key] = entries
                for entry in value:
                    position, _ = self._positions.find(index, key, entry)
                    entries.extend({} for _ in range(position + 1 - len(entries)))
                    _merge(entries[position], {name: part for name, part in entry.items() if name != "index"})
            elif key == "content" and isinstance(value, list):
                message[key] = _as_list(message.get(key))
                for entry in value:
                    _add_entry(message[key], entry, *self._positions.find_entry(index, entry))
            elif key == "content" and isinstance(value, str):
                place = self._positions.find_text(index, value)
                if len(place) == _PLAIN:
                    append(message, key, value)
                elif value:
                    _add_entry(message[key], {"type": "text", "text": value}, int(place[_PLAIN]), TEXT)
            else:
                _merge(message, {key: value})


def _merge(target: dict[str, Json], delta: Mapping[str, Json]) -> None:
    """Texts are put together, but for names of kinds; objects are merged; lists grow; of all else the last counts."""
    for key, value in delta.items():
        known = target.get(key)
        if isinstance(value, str) and key not in ("id", "type", "format"):
            # Some providers repeat the whole name with every piece of the arguments.
            if not (key == "name" and str(known) == value):
                append(target, key, value)
        elif isinstance(value, dict):
            if not isinstance(known, dict):
                target[key] = {}
            _merge(target[key], value)
        elif isinstance(value, list):
            target[key] = [*known, *value] if isinstance(known, list) else list(value)
        elif value is not None:
            target[key] = value if not (key == "id" and known) else known
        else:
            target.setdefault(key, None)


def _extend(target: dict[str, Json], key: str, lists: Mapping[str, Json]) -> None:
    known = target[key] if isinstance(target.get(key), dict) else {}
    target[key] = dict(known)
    for name, value in lists.items():
        if isinstance(value, list):
            target[key][name] = (
                [*(known.get(name) or []), *value] if isinstance(known.get(name), list | None) else value
            )
        elif value is not None or name not in known:
            target[key][name] = value


def _add_entry(content: list[Json], entry: Json, position: int, text: Place | None) -> None:
    """Add to a list of content an entry, or its text to the one that stands there."""
    if text is None:
        content.append(deepcopy(entry))
        return
    if position == len(content):
        content.append(put(deepcopy(entry), text, Text()))
    find(content[position], text).pieces.append(str(find(entry, text)))


def _as_objects(entries: Json) -> list[dict[str, Json]]:
    """What came before as entries to add to; what else stood there gives way."""
    is_open = isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)
    return entries if is_open else []


def _as_list(content: Json) -> list[Json]:
    if isinstance(content, Text):
        return [{"type": "text", "text": content}] if str(content) else []
    return content if isinstance(content, list) else []


def _finish(choice: dict[str, Json]) -> Json:
    """The joined choice; a content that is empty is none, as in an answer that was not streamed."""
    finished = settle(choice)
    if finished["message"]["content"] == "":
        finished["message"]["content"] = None
    return finished
