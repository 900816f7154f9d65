"""The deltas of an OpenAI chat stream, gone through: which of their values are pieces of which text.

A place is the path of a text in the joined choices: ``(choice, "message", "tool_calls", 0, "function", "arguments")``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from spanreel.model import Json
from spanreel.protocols.repeats import find, put
from spanreel.protocols.residue import read_json

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
    "thinking_blocks": (("thinking",), ("signature",), ("data",)),  # LiteLLM's, of Anthropic's
}

BEGINS: Final = "$begins"
"""In a hidden entry: a call begins with it, which but for the arguments before it nothing tells."""

TEXT: Final[Place] = ("text",)
THOUGHT: Final[Place] = ("thinking", 0, "text")
"""Where the texts of entries of content stand."""

_NO_CONTENT: Final[tuple[int, Place | None, bool]] = (0, None, False)

# Names and kinds: said again, they are not put together.
_KINDS = ("id", "type", "format", "name")


class Positions:
    """Where the entries of streamed lists belong: by their index, else by their id, else to the entry before.

    Some providers number every call 0: a name under another id begins another one. An id alone does not, there are
    providers that make up a new one for each piece. Where there are no ids, arguments behind whole ones begin a call.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], list[Json]] = {}
        self._begun: dict[tuple[int, str, int], tuple[Json, Json]] = {}
        self._content: dict[int, tuple[int, Place | None, bool]] = {}
        self._unidentified: dict[tuple[int, Json], list[tuple[Json, Json]]] = {}

    def find(self, choice: int, field: str, entry: Mapping[str, Json]) -> tuple[int, bool]:
        """The position of an entry in the joined list, and whether `BEGINS` is true of it."""
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
            key = known[-1]
        begins = field == "tool_calls" and not identity and self._begins(choice, key, entry)
        if begins:
            key = f"{key}, then {len(known)}"
            self._begun[choice, field, index if isinstance(index, int) else -1] = None, key
        if field == "tool_calls" and not identity:
            self._unidentified.setdefault((choice, key), []).append(_called_in(entry))
        if key not in known:
            known.append(key)
        return known.index(key), begins

    def _begins(self, choice: int, key: Json, entry: Mapping[str, Json]) -> bool:
        """Whether an entry that names a function cannot go on with the call that it would belong to."""
        before, (name, arguments) = self._unidentified.get((choice, key)), _called_in(entry)
        if BEGINS in entry or not name or not before:
            return BEGINS in entry
        is_other = bool(arguments) or name not in [known for known, _ in before]
        return is_other and _are_whole([piece for _, piece in before])

    def find_text(self, choice: int, text: Json) -> Place:
        """Where a piece of content that stands in no list belongs: in the content, or in the last text of its list."""
        count, last, listed = self._content.get(choice, _NO_CONTENT)
        if not listed:
            if text and not count:
                self._content[choice] = 1, TEXT, False
            return (choice, "message", "content")
        if text and last != TEXT:
            count += 1
            self._content[choice] = count, TEXT, True
        return (choice, "message", "content", max(0, count - 1), *TEXT)

    def find_entry(self, choice: int, entry: Json) -> tuple[int, Place | None]:
        """The position of an entry of a list of content, and where in it its text stands, if it brings nothing else.

        Texts that follow each other are one, as in an answer that was not streamed; thoughts likewise.
        """
        count, last, _ = self._content.get(choice, _NO_CONTENT)
        text = _text_in(entry)
        if text is None or text != last:
            count += 1
        self._content[choice] = count, text, True
        return count - 1, text


def _text_in(entry: Json) -> Place | None:
    """Where the text of an entry of content stands, which may be hidden; None where it says more than that."""
    match entry:
        case {"type": "text", "text": text, **rest} if not rest and _is_text(text):
            return TEXT
        case {"type": "thinking", "thinking": [{"type": "text", "text": text, **more}], **rest} if not (rest or more):
            return THOUGHT if _is_text(text) else None
    return None


def _is_named(entry: Mapping[str, Json]) -> bool:
    """Whether an entry says which function it calls."""
    function = entry.get("function")
    return isinstance(function, dict) and bool(function.get("name"))


def _called_in(entry: Mapping[str, Json]) -> tuple[Json, Json]:
    """The name and the arguments that an entry brings; None where they are hidden."""
    function = entry.get("function")
    if not isinstance(function, dict):
        return None, None
    arguments = function.get("arguments")
    return function.get("name"), arguments if isinstance(arguments, str) or _is_open(arguments) else None


def _are_whole(pieces: Sequence[Json]) -> bool:
    """Whether these pieces of arguments are an object, to which nothing can be added."""
    if any(isinstance(piece, dict) for piece in pieces):
        return True
    try:
        return isinstance(read_json("".join(piece for piece in pieces if isinstance(piece, str))), dict)
    except ValueError:
        return False


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
        elif key == "content" and isinstance(value, str | int):
            walked[key] = leaf(positions.find_text(index, value), value)
        elif key == "content" and isinstance(value, list):
            walked[key] = [_walk_entry(entry, index, positions, leaf) for entry in value]
        elif key in LISTS and isinstance(value, list) and all(isinstance(entry, dict) for entry in value):
            walked[key] = [_walk_item(entry, place, positions, leaf) for entry in value]
        else:
            walked[key] = _walk_inside(value, place, leaf)
    return walked


def _walk_item(entry: Mapping[str, Json], place: Place, positions: Positions, leaf: Leaf) -> dict[str, Json]:
    """An entry of a list that comes in pieces; `BEGINS` is put in where it is not, and taken out where it is."""
    choice, _, field = place
    position, begins = positions.find(int(choice), str(field), entry)
    walked = _walk_paths(entry, (*place, position), LISTS[str(field)], leaf)
    if begins and walked.pop(BEGINS, None) is None:
        walked[BEGINS] = True
    return walked


def _walk_inside(value: Json, place: Place, leaf: Leaf) -> Json:
    """What a provider has of its own: the texts in its objects come in pieces, too."""
    if not _is_open(value):
        return leaf(place, value)
    return {key: _walk_inside(inner, (*place, key), leaf) for key, inner in value.items()}


def _walk_entry(entry: Json, choice: int, positions: Positions, leaf: Leaf) -> Json:
    position, path = positions.find_entry(choice, entry)
    place = (choice, "message", "content", position)
    if path is None:
        return leaf(place, entry)
    return put(entry, path, leaf((*place, *path), find(entry, path)))


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


def settled(choices: Json, place: Place) -> Place:
    """The place of a text in joined choices: what was all of the content is the first of a list where one followed."""
    is_first = place[-1] == "content" and isinstance(find(choices, place), list)
    return (*place, 0, *TEXT) if is_first else place
