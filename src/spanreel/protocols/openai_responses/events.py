"""Events of a streamed OpenAI response: joined into the response, and hidden as what they differ in from it.

A place is the path of a text in the joined output: ``(item, "content", 0, "text")`` or ``(item, "arguments")``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from operator import eq
from typing import Final, TypeGuard

from spanreel.model import Json
from spanreel.protocols.joining import Text, append, settle
from spanreel.protocols.repeats import Path, Repeats, find
from spanreel.protocols.residue import overlay, residue, same
from spanreel.protocols.typed_events import kind_of

Place = tuple[int | str, ...]

RAW: Final = "raw"
"""In a hidden event: a value as it was, where something hidden was to be expected."""

# Where the text of a delta goes: into which list of the item (the event says which entry), and into which field.
_TEXTS: Final[dict[str, tuple[str | None, str]]] = {
    "response.output_text": ("content", "text"),
    "response.refusal": ("content", "refusal"),
    "response.reasoning_text": ("content", "text"),
    "response.reasoning_summary_text": ("summary", "text"),
    "response.function_call_arguments": (None, "arguments"),
    "response.custom_tool_call_input": (None, "input"),
    "response.mcp_call_arguments": (None, "arguments"),
    "response.code_interpreter_call_code": (None, "code"),
}
_COMMAND: Final = "response.shell_call_command"
_PARTS: Final = {"response.content_part": "content", "response.reasoning_summary_part": "summary"}
_ENTRY_TYPES: Final = {
    "response.output_text": "output_text",
    "response.refusal": "refusal",
    "response.reasoning_text": "reasoning_text",
    "response.reasoning_summary_text": "summary_text",
}
_INDEXES: Final = {"content": "content_index", "summary": "summary_index"}
_NUMBER: Final[Path] = ("sequence_number",)
_MOST_ENTRIES: Final = 10_000
_OBJECTS: Final = frozenset({"response", "item", "part", "error"})
_ENDS: Final = ("response.completed", "response.incomplete", "response.failed", "response.cancelled", "error")


def text_place(event: Mapping[str, Json]) -> tuple[Place, str] | None:
    """Where the text of an event stands in the output, and the event's field that holds it: ``delta``, or all of it."""
    stem, _, verb = kind_of(event).rpartition(".")
    item = item_index(event)
    if verb not in ("delta", "done") or item is None:
        return None
    if stem == _COMMAND:
        number, own = event.get("command_index", 0), "delta" if verb == "delta" else "command"
        return ((item, "action", "commands", number), own) if _is_position(number) else None
    if stem not in _TEXTS:
        return None
    name, field = _TEXTS[stem]
    own = "delta" if verb == "delta" else field
    if name is None:
        return (item, field), own
    index = event.get(_INDEXES[name], 0)
    return ((item, name, index, field), own) if _is_position(index) else None


def item_index(event: Mapping[str, Json]) -> int | None:
    """Which item of the output an event is about, if any; some providers do not say it of the only one."""
    index = event.get("output_index")
    if index is None and kind_of(event).rpartition(".")[0] in _TEXTS:
        index = 0
    return index if isinstance(index, int) and index >= 0 else None


def part_place(event: Mapping[str, Json]) -> Place | None:
    """Where the part of an event stands in the output."""
    name = _PARTS.get(kind_of(event).rpartition(".")[0])
    if name is None or not isinstance(event.get("output_index"), int):
        return None
    index = event.get(_INDEXES[name])
    return (event["output_index"], name, index) if _is_position(index) else None


def spots(event: Mapping[str, Json]) -> list[Path]:
    """The paths at which an event may differ from the one that it repeats: its text, its number, and what pads it.

    None where it is no piece of a text. The event may be hidden.
    """
    found = text_place(event)
    if found is None or found[1] != "delta" or not _OBJECTS.isdisjoint(event) or event.get("delta") is None:
        return []
    paths: list[Path] = [("delta",)]
    if "sequence_number" in event:
        paths.append((*_NUMBER, RAW) if isinstance(event["sequence_number"], dict) else _NUMBER)
    return [*paths, ("obfuscation",)] if isinstance(event.get("obfuscation"), str) else paths


def _is_position(index: Json) -> TypeGuard[int]:
    """Whether it can be the place of an entry; a bound, since lists are filled up to it."""
    return isinstance(index, int) and 0 <= index < _MOST_ENTRIES


def _typed(item: dict[str, Json]) -> dict[str, Json]:
    """An item that no event began, as some providers stream them: what has come of it says what it is."""
    if "type" in item:
        return item
    if "content" in item:
        return {"type": "message", "role": "assistant", **item}
    return {"type": "reasoning", **item} if "summary" in item else item


class Joined:
    """A response in the making; ``texts`` are all texts of deltas by their place."""

    def __init__(self) -> None:
        self.texts: dict[Place, list[str]] = {}
        self.ended = False
        self._response: dict[str, Json] = {}
        self._items: dict[int, dict[str, Json]] = {}
        self._error: Json = None

    def add(self, event: Mapping[str, Json]) -> None:
        """Take in one event."""
        kind = kind_of(event)
        self.ended = self.ended or kind in _ENDS
        if isinstance(event.get("response"), dict):
            self._response = event["response"]
        if kind == "error" or (not kind and event.get("error")):
            inner = event.get("error")
            self._error = inner or {key: event[key] for key in event if key not in ("type", "sequence_number")}
            self.ended = True
        index = item_index(event)
        if index is not None:
            self._add_to_item(event, self._items.setdefault(index, {}))

    def body(self) -> dict[str, Json]:
        """The response; some providers leave the output out of the last event."""
        body = dict(self._response)
        if self._items and not body.get("output"):
            body["output"] = [_typed(settle(self._items[index])) for index in sorted(self._items)]
        if self._error and not body.get("error"):
            body["error"] = self._error
        return body

    def _add_to_item(self, event: Mapping[str, Json], item: dict[str, Json]) -> None:
        if isinstance(event.get("item"), dict):
            item.clear()
            item.update(event["item"])
        place = part_place(event)
        if place is not None and isinstance(event.get("part"), dict):
            _entry(item, place).update(event["part"])
        found = text_place(event)
        if found is None or not isinstance(event.get(found[1]), str):
            return
        place, field = found
        text, name = event[field], str(place[-1])
        if place[1] == "action":
            _add_command(item, int(place[-1]), text, is_piece=field == "delta")
            if field == "delta":
                self.texts.setdefault(place, []).append(text)
            return
        target = item if len(place) == 2 else _entry(item, place, _ENTRY_TYPES[kind_of(event).rpartition(".")[0]])
        if field != "delta":
            target[name] = text
            return
        self.texts.setdefault(place, []).append(text)
        append(target, name, text)


class Hider:
    """Turns events into what they differ in from a response, and back. Goes through a stream once, in its order."""

    def __init__(self, body: Mapping[str, Json], whole: frozenset[Place] = frozenset()) -> None:
        self._body = body
        self._output = body.get("output")
        self._whole = whole
        self._number = -1
        self._at: Counter[Place] = Counter()
        self._left: Counter[Place] = Counter()

    def hide(self, event: Mapping[str, Json]) -> dict[str, Json]:
        """The event with lengths in the place of its text, and differences in the place of what the response holds."""
        hidden = dict(event)
        for field, known in self._known(event).items():
            if field in event:
                value = event[field]
                both = isinstance(value, dict) and isinstance(known, dict)
                hidden[field] = residue(value, known) if both else {RAW: value}
        for field, expected in self._expected(event).items():
            if field in event:
                hidden[field] = True if same(event[field], expected) else {RAW: event[field]}
        found = text_place(event)
        if found is not None and found[1] in event:
            place, field = found
            text = event[field]
            if field != "delta":
                hidden[field] = True if isinstance(text, str) and text == find(self._output, place) else {RAW: text}
            else:
                hidden[field] = len(text) if isinstance(text, str) and place in self._whole else {RAW: text}
        return hidden

    def number(self, repeats: Repeats) -> Repeats:
        """Repeats with what is recorded of their numbers; without these where only some are as expected."""
        numbers = repeats.columns.get(_NUMBER)
        if numbers is None:
            return repeats
        expected = range(self._number + 1, self._number + 1 + len(numbers))
        columns = {path: column for path, column in repeats.columns.items() if path != _NUMBER}
        if numbers == list(expected):
            columns[_NUMBER] = [True] * len(numbers)
        elif not any(map(eq, numbers, expected)):
            columns[*_NUMBER, RAW] = numbers
        return Repeats(repeats.times, columns)

    def skip(self, count: int) -> None:
        """So many events were hidden by other means."""
        self._number += count

    def count(self, hidden: Iterable[Mapping[str, Json]]) -> None:
        """Learn which deltas come, so that the last one of a text is known to be the last."""
        for event in hidden:
            found = text_place(event)
            if found is not None and found[1] == "delta" and isinstance(event.get("delta"), int):
                self._left[found[0]] += 1

    def show(self, hidden: Mapping[str, Json]) -> dict[str, Json]:
        """The inverse of `hide`."""
        event = dict(hidden)
        for field, known in self._known(hidden).items():
            if isinstance(hidden.get(field), dict):
                rest = hidden[field]
                event[field] = overlay(known, rest) if isinstance(known, dict) and RAW not in rest else rest.get(RAW)
        for field, expected in self._expected(hidden).items():
            if field in hidden:
                event[field] = expected if hidden[field] is True else _raw(hidden[field])
        found = text_place(hidden)
        if found is not None and found[1] in hidden:
            place, field = found
            event[field] = self._show_text(place, hidden[field])
        return event

    def _known(self, event: Mapping[str, Json]) -> dict[str, Json]:
        """What the response holds of the objects that an event may carry."""
        known: dict[str, Json] = {"response": self._body}
        index = event.get("output_index")
        if isinstance(index, int):
            known["item"] = find(self._output, (index,))
        place = part_place(event)
        if place is not None:
            known["part"] = find(self._output, place)
        return known

    def _expected(self, event: Mapping[str, Json]) -> dict[str, Json]:
        self._number += 1
        expected: dict[str, Json] = {"sequence_number": self._number}
        index = event.get("output_index")
        if isinstance(index, int):
            expected["item_id"] = find(self._output, (index, "id"))
        return expected

    def _show_text(self, place: Place, value: Json) -> Json:
        text = find(self._output, place)
        text = text if isinstance(text, str) else ""
        if value is True:
            return text
        if not isinstance(value, int):
            return _raw(value)
        start, self._at[place] = self._at[place], self._at[place] + value
        self._left[place] -= 1
        return text[start : start + value] if self._left[place] else text[start:]


def _raw(value: Json) -> Json:
    return value.get(RAW) if isinstance(value, dict) else value


def _add_command(item: dict[str, Json], number: int, text: str, *, is_piece: bool) -> None:
    """Add a piece of a command, or all of it, to those that an item is to run."""
    # What an event brought is its own; it is not ours to change.
    action = dict(item["action"]) if isinstance(item.get("action"), dict) else {}
    commands = list(action["commands"]) if isinstance(action.get("commands"), list) else []
    commands.extend("" for _ in range(number + 1 - len(commands)))
    before = commands[number] if is_piece else ""
    commands[number] = Text(*before.pieces, text) if isinstance(before, Text) else Text(str(before or ""), text)
    item["action"] = {**action, "commands": commands}


def _entry(item: dict[str, Json], place: Place, kind: str | None = None) -> dict[str, Json]:
    """The entry of an item's list at a place, made where it is not there yet."""
    name, index = str(place[1]), int(place[2])
    # The list is the event's own where an item brought it; it is not ours to change.
    entries = list(item[name]) if isinstance(item.get(name), list) else []
    entries.extend({} for _ in range(index + 1 - len(entries)))
    entry = dict(entries[index]) if isinstance(entries[index], dict) else {}
    if kind is not None:
        entry.setdefault("type", kind)
    entries[index] = entry
    item[name] = entries
    return entry
