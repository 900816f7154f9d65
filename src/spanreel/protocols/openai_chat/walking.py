"""The deltas of an OpenAI chat stream, gone through: which of their values are pieces of which text.

A place is the path of a text in the joined choices: ``(choice, "message", "tool_calls", 0, "function", "arguments")``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from spanreel.model import Json

Place = tuple[int | str, ...]
Leaf = Callable[[Place, Json], Json]

RAW: Final = "$raw"
"""In a hidden delta: what is no text, as it was; also text that the joined answer does not hold."""

# Objects of a delta with texts inside.
_OBJECTS = {"function_call": ("arguments",), "audio": ("data", "transcript")}
# Lists of a delta whose entries are joined by position, with the paths of the texts inside.
LISTS: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "tool_calls": (("function", "arguments"), ("custom", "input")),
    "reasoning_details": (("text",), ("summary",), ("data",)),
}

# Names and kinds: said again, they are not put together.
_KINDS = ("id", "type", "format", "name")


class Positions:
    """Where the entries of streamed lists belong: by their index, else by their id, else to the entry before.

    Some providers number every call 0: a name under another id begins another one. An id alone does not, there are
    providers that make up a new one for each piece.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], list[Json]] = {}
        self._begun: dict[tuple[int, str, int], tuple[Json, Json]] = {}

    def find(self, choice: int, field: str, entry: Mapping[str, Json]) -> int:
        """The position of an entry in the joined list."""
        known = self._known.setdefault((choice, field), [])
        index, identity = entry.get("index"), entry.get("id")
        if isinstance(index, int):
            begun, key = self._begun.get((choice, field, index), (None, index))
            if identity and _is_named(entry):
                if begun and begun != identity:
                    key = f"id {identity}"
                self._begun[choice, field, index] = identity, key
        elif identity or not known:
            key = f"id {identity}"
        else:
            return len(known) - 1
        if key not in known:
            known.append(key)
        return known.index(key)


def _is_named(entry: Mapping[str, Json]) -> bool:
    """Whether an entry says which function it calls."""
    function = entry.get("function")
    return isinstance(function, dict) and bool(function.get("name"))


def choice_index(choice: Mapping[str, Json]) -> int:
    """The number of a choice; 0 where it has none."""
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def choices_of(body: Mapping[str, Json]) -> list[dict[str, Json]]:
    """The choices of a completion; none where that is not what it has."""
    choices = body.get("choices")
    return [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []


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
        elif key in _OBJECTS and _is_open(value):
            walked[key] = _walk_paths(value, place, [(name,) for name in _OBJECTS[key]], leaf)
        elif key in LISTS and isinstance(value, list) and all(isinstance(entry, dict) for entry in value):
            walked[key] = [
                _walk_paths(entry, (*place, positions.find(index, key, entry)), LISTS[key], leaf) for entry in value
            ]
        else:
            walked[key] = leaf(place, value)
    return walked


def _is_open(value: Json) -> bool:
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


def spots(chunk: Mapping[str, Json]) -> list[Place]:
    """The paths at which a chunk may differ from the one that it repeats: texts of one choice, and what pads it.

    None where it says anything else, save what stays when it is said again. The chunk may be hidden.
    """
    choices = chunk.get("choices")
    if not isinstance(choices, list) or len(choices) != 1:
        return []
    delta = choices[0].get("delta")
    others = (value for key, value in choices[0].items() if key not in ("index", "delta"))
    if not isinstance(delta, dict) or any(value is not None for value in others):
        return []
    paths: list[Place] = []
    for key, value in delta.items():
        if key == "role" or value is None:
            continue
        path: Place | None = ("choices", 0, "delta", key)
        if key == "tool_calls":
            path = _spot_in_call(value)
        elif key in _OBJECTS or key in LISTS or key in _KINDS or not _is_text(value):
            path = None
        if path is None:
            return []
        paths.append(path)
    return [*paths, *((key,) for key in ("obfuscation",) if isinstance(chunk.get(key), str))] if paths else []


def _spot_in_call(calls: Json) -> Place | None:
    """Where the arguments of a delta's only tool call stand, where it brings nothing but these."""
    call = calls[0] if isinstance(calls, list) and len(calls) == 1 else None
    if not isinstance(call, dict) or not {"index", "id", "type", "function"}.issuperset(call):
        return None
    function = call.get("function")
    if not isinstance(function, dict) or function.keys() != {"arguments"} or not _is_text(function["arguments"]):
        return None
    return ("choices", 0, "delta", "tool_calls", 0, "function", "arguments")


def _is_text(value: Json) -> bool:
    """Whether a value of a delta is text, or what hides it."""
    return isinstance(value, (str, int)) or (isinstance(value, dict) and value.keys() == {RAW})


def find(choices: Mapping[int, Json], place: Place) -> Json:
    """What stands at a place; None where nothing does."""
    value: Json = choices
    for step in place:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value
