"""Events of a streamed Anthropic message: joined into the message, and hidden as what they differ in from it.

A place is a text in the joined content: the position of its block and the block's field. Blocks stand in the order in
which they began; an event's ``index`` names the last one that began under it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from spanreel.model import Json
from spanreel.protocols.anthropic.synthesis import DELTA_FIELDS, begin_block, begin_message
from spanreel.protocols.joining import append, settle
from spanreel.protocols.repeats import Path
from spanreel.protocols.residue import overlay, read_arguments, residue, same
from spanreel.protocols.typed_events import kind_of

Place = tuple[int, str]

RAW: Final = "raw"
"""In a hidden event: a value as it was, where something hidden was to be expected."""

DELTA: Final = "content_block_delta"

_ENDS: Final = ("message_stop", "error")
_FIELDS_SET: Final = {"compaction_delta": ("content", "encrypted_content")}
"""Deltas that bring fields of the block whole."""


def spots(event: Mapping[str, Json]) -> list[Path]:
    """The path at which an event may differ from the one that it repeats: its text. The event may be hidden."""
    delta = event.get("delta")
    if kind_of(event) != DELTA or not isinstance(delta, dict) or len(delta) != 2:
        return []
    field, own = DELTA_FIELDS.get(str(delta.get("type")), ("", ""))
    # Of signatures the last one counts: they are not put together.
    return [("delta", own)] if own in delta and field != "signature" else []


class Positions:
    """Where the blocks of events stand, learnt as a stream goes by."""

    def __init__(self) -> None:
        self.count = 0
        self._known: dict[int, int] = {}

    def find(self, event: Mapping[str, Json]) -> int | None:
        """The position of an event's block; a block that begins is the next one. None for what is of no block."""
        index, kind = event.get("index"), kind_of(event)
        if not isinstance(index, int):
            return None
        if kind == "content_block_start" and event.get("content_block") is not None:
            self._known[index] = self.count
            self.count += 1
        return self._known.get(index)


class Joined:
    """A message in the making. ``texts`` are all texts of deltas; ``forms`` say how inputs were written."""

    def __init__(self) -> None:
        self.texts: dict[Place, list[str]] = {}
        self.forms: dict[int, str] = {}
        self.ended = False
        self._message: dict[str, Json] = {}
        self._blocks: list[dict[str, Json]] = []
        self._positions = Positions()

    def add(self, event: Mapping[str, Json]) -> None:
        """Take in one event."""
        kind = kind_of(event)
        self.ended = self.ended or kind in _ENDS
        position = self._positions.find(event)
        if kind == "message_start" and isinstance(event.get("message"), dict):
            self._message = dict(event["message"])
        elif kind == "content_block_start" and position is not None:
            block = event["content_block"]
            self._blocks.append(dict(block) if isinstance(block, dict) else {"type": "other", "value": block})
        elif kind == DELTA and position is not None and isinstance(event.get("delta"), dict):
            self._add_delta(position, event["delta"])
        elif kind == "message_delta":
            self._end_message(event)
        elif kind == "error" and event.get("error") is not None:
            self._message["error"] = event["error"]

    def body(self) -> dict[str, Json]:
        """The message."""
        body = dict(self._message)
        if not self._blocks:
            return body
        content = [settle(block) for block in self._blocks]
        for position, block in enumerate(content):
            if (position, "input") in self.texts:
                text = "".join(self.texts[position, "input"])
                block["input"], exact = read_arguments(text) if text else ({}, None)
                if exact is not None:
                    self.forms[position] = exact
        return {**body, "content": content}

    def _add_delta(self, position: int, delta: Mapping[str, Json]) -> None:
        block, kind = self._blocks[position], delta.get("type")
        field, own = DELTA_FIELDS.get(str(kind), ("", ""))
        if kind == "citations_delta" and "citation" in delta:
            known = block.get("citations")
            block["citations"] = [*(known if isinstance(known, list) else []), delta["citation"]]
        for name in _FIELDS_SET.get(str(kind), ()):
            if name in delta:
                block[name] = delta[name]
                if isinstance(delta[name], str):
                    self.texts.setdefault((position, name), []).append(delta[name])
        text = delta.get(own)
        if not isinstance(text, str):
            return
        self.texts.setdefault((position, field), []).append(text)
        if field == "signature":
            # The SDK takes the last one, whole.
            block[field] = text
        elif field != "input":
            append(block, field, text)

    def _end_message(self, event: Mapping[str, Json]) -> None:
        delta, usage = event.get("delta"), event.get("usage")
        for key, value in (delta if isinstance(delta, dict) else {}).items():
            if value is not None or key not in self._message:
                self._message[key] = value
        known = self._message.get("usage")
        if isinstance(usage, dict):
            known = known if isinstance(known, dict) else {}
            counted = {key: value for key, value in usage.items() if value is not None}
            # They count all so far: what a gateway has not counted any more is what it was.
            kept = {key: known[key] for key, value in counted.items() if value == 0 and _is_count(known.get(key))}
            self._message["usage"] = {**known, **counted, **kept}
        for key, value in event.items():
            if key not in ("type", "delta", "usage") and value is not None:
                self._message[key] = value


def _is_count(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


class Hider:
    """Turns events into what they differ in from a message, and back. Goes through a stream once, in its order.

    ``inputs`` are the texts of the inputs of the message's blocks, by position.
    """

    def __init__(
        self, body: Mapping[str, Json], inputs: Mapping[int, str], texts: Mapping[Place, list[str]] | None = None
    ) -> None:
        self._body = body
        content = body.get("content")
        self._content = content if isinstance(content, list) else []
        self._inputs = inputs
        self._whole = {place for place, pieces in (texts or {}).items() if (self._text(place) or "") == "".join(pieces)}
        self._positions = Positions()
        self._cited: Counter[int] = Counter()
        self._at: Counter[Place] = Counter()
        self._left: Counter[Place] = Counter()

    def hide(self, event: Mapping[str, Json]) -> dict[str, Json]:
        """The event with lengths in the place of its text, and differences in the place of what the message holds."""
        hidden = dict(event)
        position = self._positions.find(event)
        for field, known in self._known(event, position).items():
            if field in event:
                hidden[field] = _difference(event[field], known)
        delta = event.get("delta")
        if kind_of(event) == DELTA and position is not None and isinstance(delta, dict):
            hidden["delta"] = {name: self._hide(position, delta, name) for name in delta}
        return hidden

    def count(self, hidden: Iterable[Mapping[str, Json]]) -> None:
        """Learn which deltas come, so that the last one of a text is known to be the last."""
        positions = Positions()
        for event in hidden:
            position, delta = positions.find(event), event.get("delta")
            if position is not None and isinstance(delta, dict):
                field, own = DELTA_FIELDS.get(str(delta.get("type")), ("", ""))
                self._left[position, field] += isinstance(delta.get(own), int)

    def show(self, hidden: Mapping[str, Json]) -> dict[str, Json]:
        """The inverse of `hide`."""
        event = dict(hidden)
        position = self._positions.find(hidden)
        for field, known in self._known(hidden, position).items():
            if field in hidden:
                event[field] = _undo_difference(hidden[field], known)
        delta = hidden.get("delta")
        if kind_of(hidden) == DELTA and position is not None and isinstance(delta, dict):
            event["delta"] = {name: self._show(position, delta, name) for name in delta}
        return event

    def _known(self, event: Mapping[str, Json], position: int | None) -> dict[str, tuple[Json, ...]]:
        """What the message holds of the objects that an event may carry, the likeliest last."""
        body = self._body
        if kind_of(event) == "message_delta":
            ended = {key: body[key] for key in ("stop_reason", "stop_sequence") if key in body}
            return {"delta": (ended,), "usage": (body.get("usage"),)}
        block = self._content[position] if position is not None and position < len(self._content) else None
        known: dict[str, tuple[Json, ...]] = {"message": (begin_message(body),), "error": (body.get("error"),)}
        if kind_of(event) == "content_block_start" and position is not None:
            known["content_block"] = (block, begin_block(block) if isinstance(block, dict) else None)
        return known

    def _expected(self, position: int, delta: Mapping[str, Json], name: str) -> Json:
        """What a field of a delta that is no text should be."""
        block = self._content[position] if position < len(self._content) else None
        block = block if isinstance(block, dict) else {}
        if delta.get("type") == "citations_delta" and name == "citation":
            number, self._cited[position] = self._cited[position], self._cited[position] + 1
            citations = block.get("citations")
            return citations[number] if isinstance(citations, list) and number < len(citations) else None
        return block.get(name)

    def _hide(self, position: int, delta: Mapping[str, Json], name: str) -> Json:
        value = delta[name]
        field, own = DELTA_FIELDS.get(str(delta.get("type")), ("", ""))
        if name == own:
            return len(value) if isinstance(value, str) and (position, field) in self._whole else {RAW: value}
        if _is_expected(delta, name):
            # What is set again may be a text in pieces after all: all of them stand in the record, or none.
            is_last = isinstance(value, str) and (position, name) not in self._whole
            return True if not is_last and same(value, self._expected(position, delta, name)) else {RAW: value}
        return value

    def _show(self, position: int, delta: Mapping[str, Json], name: str) -> Json:
        value = delta[name]
        field, own = DELTA_FIELDS.get(str(delta.get("type")), ("", ""))
        if name == own and isinstance(value, int):
            return self._next(value, (position, field))
        if _is_expected(delta, name):
            expected = self._expected(position, delta, name)
            return expected if value is True else _raw(value)
        return _raw(value) if name == own else value

    def _next(self, length: int, place: Place) -> str:
        text = self._text(place) or ""
        start, self._at[place] = self._at[place], self._at[place] + length
        self._left[place] -= 1
        return text[start : start + length] if self._left[place] else text[start:]

    def _text(self, place: Place) -> str | None:
        position, field = place
        if field == "input":
            return self._inputs.get(position)
        block = self._content[position] if position < len(self._content) else None
        text = block.get(field) if isinstance(block, dict) else None
        return text if isinstance(text, str) else None


def _is_expected(delta: Mapping[str, Json], name: str) -> bool:
    kind = delta.get("type")
    return (kind == "citations_delta" and name == "citation") or name in _FIELDS_SET.get(str(kind), ())


def _difference(value: Json, known: tuple[Json, ...]) -> Json:
    """True for the first known value itself; else what the value differs in from the last."""
    if len(known) > 1 and same(value, known[0]):
        return True
    both = isinstance(value, dict) and isinstance(known[-1], dict)
    return residue(value, known[-1]) if both else {RAW: value}


def _undo_difference(hidden: Json, known: tuple[Json, ...]) -> Json:
    if hidden is True:
        return known[0]
    if isinstance(hidden, dict) and isinstance(known[-1], dict) and RAW not in hidden:
        return overlay(known[-1], hidden)
    return _raw(hidden)


def _raw(value: Json) -> Json:
    return value.get(RAW) if isinstance(value, dict) else value
