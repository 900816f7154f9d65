"""Chunks of OpenAI chat: joined into a completion; and their pieces of text, hidden as lengths and shown again.

A place is the path of a text in the joined choices: ``(choice, "message", "tool_calls", 0, "function", "arguments")``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from spanreel.model import Json
from spanreel.protocols.joining import Text, append, settle

Place = tuple[int | str, ...]
Leaf = Callable[[Place, Json], Json]

RAW: Final = "$raw"
"""In a hidden delta: what is no text, as it was; also text that the joined answer does not hold."""
CUT: Final = "cut"
"""In a hidden choice: how much of a text, or how many entries of each list of ``logprobs``, came with this chunk."""

# Fields of a delta with texts inside: of the object itself, or of each entry of a list that is joined by position.
_OBJECTS = {"function_call": ("arguments",), "audio": ("data", "transcript")}
_LISTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "tool_calls": (("function", "arguments"), ("custom", "input")),
    "reasoning_details": (("text",), ("summary",), ("data",)),
}
_FIRST_COUNTS = ("id", "model", "created")
_NOT_JOINED = ("choices", "object", "obfuscation")


class Positions:
    """Where the entries of streamed lists belong: by their index, else by their id, else to the entry before."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], list[Json]] = {}

    def find(self, choice: int, field: str, entry: Mapping[str, Json]) -> int:
        """The position of an entry in the joined list."""
        known = self._known.setdefault((choice, field), [])
        index, identity = entry.get("index"), entry.get("id")
        if isinstance(index, int):
            key: Json = index
        elif identity or not known:
            key = f"id {identity}"
        else:
            return len(known) - 1
        if key not in known:
            known.append(key)
        return known.index(key)


def choice_index(choice: Mapping[str, Json]) -> int:
    """The number of a choice; 0 where it has none."""
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def walk(choice: Mapping[str, Json], positions: Positions, leaf: Leaf) -> dict[str, Json]:
    """A choice with ``leaf(place, value)`` in the place of each value of its delta that is, or could be, a text."""
    index = choice_index(choice)
    walked = dict(choice)
    if isinstance(choice.get("delta"), dict):
        walked["delta"] = _walk_delta(choice["delta"], index, positions, leaf)
    return walked


def _walk_delta(delta: Mapping[str, Json], index: int, positions: Positions, leaf: Leaf) -> dict[str, Json]:
    walked: dict[str, Json] = {}
    for key, value in delta.items():
        place = (index, "message", key)
        if key == "role":
            walked[key] = value
        elif key in _OBJECTS and _is_shown(value):
            walked[key] = _walk_paths(value, place, [(name,) for name in _OBJECTS[key]], leaf)
        elif key in _LISTS and isinstance(value, list) and all(isinstance(entry, dict) for entry in value):
            walked[key] = [
                _walk_paths(entry, (*place, positions.find(index, key, entry)), _LISTS[key], leaf) for entry in value
            ]
        else:
            walked[key] = leaf(place, value)
    return walked


def _is_shown(value: Json) -> bool:
    return isinstance(value, dict) and RAW not in value


def _walk_paths(
    entry: Mapping[str, Json], place: Place, paths: Iterable[tuple[str, ...]], leaf: Leaf
) -> dict[str, Json]:
    walked = dict(entry)
    for path in paths:
        if path[0] not in walked:
            continue
        if len(path) == 1:
            walked[path[0]] = leaf((*place, path[0]), walked[path[0]])
        elif isinstance(walked[path[0]], dict):
            walked[path[0]] = _walk_paths(walked[path[0]], (*place, path[0]), [path[1:]], leaf)
    return walked


class Joined:
    """A completion in the making; ``texts`` are all texts of deltas by their place."""

    def __init__(self) -> None:
        self.texts: dict[Place, list[str]] = {}
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
            elif key not in ("delta", "index") and value is not None:
                joined[key] = value

    def _add_delta(self, message: dict[str, Json], delta: Mapping[str, Json], index: int) -> None:
        for key, value in delta.items():
            if key == "role":
                message[key] = value or message.get(key)
            elif key in _LISTS and isinstance(value, list) and all(isinstance(entry, dict) for entry in value):
                entries = message[key] if isinstance(message.get(key), list) else message.setdefault(key, [])
                for entry in value:
                    position = self._positions.find(index, key, entry)
                    entries.extend({} for _ in range(position + 1 - len(entries)))
                    _merge(entries[position], {name: part for name, part in entry.items() if name != "index"})
            elif key == "content" and isinstance(value, list):
                message[key] = [*_as_list(message.get(key)), *value]
            elif key == "content" and isinstance(value, str) and isinstance(message.get(key), list):
                message[key] = [*message[key], {"type": "text", "text": value}] if value else message[key]
            else:
                _merge(message, {key: value})


def hide(choice: Mapping[str, Json], positions: Positions, whole: frozenset[Place]) -> dict[str, Json]:
    """A choice with lengths in the places of texts. ``whole`` are the places whose text the joined answer holds."""

    def length(place: Place, value: Json) -> Json:
        if value is None:
            return None
        return len(value) if isinstance(value, str) and place in whole else {RAW: value}

    hidden = walk(choice, positions, length)
    place = (choice_index(choice), "text")
    if isinstance(choice.get("text"), str) and place in whole:
        hidden["text"] = {CUT: len(choice["text"])}
    logprobs = choice.get("logprobs")
    if isinstance(logprobs, dict) and all(value is None or isinstance(value, list) for value in logprobs.values()):
        hidden["logprobs"] = {CUT: {key: None if value is None else len(value) for key, value in logprobs.items()}}
    return hidden


class Shown:
    """The texts of a completion, handed out piece by piece.

    The last piece of a text is all that is left of it: what was redacted since may be longer or shorter than its cuts.
    """

    def __init__(self, body: Mapping[str, Json], hidden: Iterable[Mapping[str, Json]]) -> None:
        self._choices = {
            choice_index(choice): choice for choice in body.get("choices") or () if isinstance(choice, dict)
        }
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


def find(choices: Mapping[int, Json], place: Place) -> Json:
    """What stands at a place; None where nothing does."""
    value: Json = choices
    for step in place:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


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


def _as_list(content: Json) -> list[Json]:
    if isinstance(content, Text):
        return [{"type": "text", "text": str(content)}] if str(content) else []
    return content if isinstance(content, list) else []


def _finish(choice: dict[str, Json]) -> Json:
    """The joined choice; a content that is empty is none, as in an answer that was not streamed."""
    finished = settle(choice)
    if finished["message"]["content"] == "":
        finished["message"]["content"] = None
    return finished
