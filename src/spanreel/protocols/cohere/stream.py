"""Streams of Cohere's chat, second version: events that name their own type, as Anthropic's do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from spanreel.exchange import Piece
from spanreel.model import Answer, Json
from spanreel.protocols.cohere.answers import read_body, write_body
from spanreel.protocols.joining import append, settle, words
from spanreel.protocols.openai_errors import write_error
from spanreel.protocols.repeats import Path, Repeats, read
from spanreel.protocols.residue import write_json
from spanreel.protocols.sse import EVENT, Event, frame, reframe, write_event
from spanreel.protocols.typed_events import kind_of, read_fields
from spanreel.protocols.weaving import Item, Spot, Woven, amounts_to, record, restore

DONE: Final = "[DONE]"
_EMPTY: Final = ("content", "tool_plan", "tool_calls", "citations")


class Joined:
    """An answer in the making."""

    def __init__(self) -> None:
        self._top: dict[str, Json] = {}
        self._message: dict[str, Json] | None = None
        self._positions: dict[tuple[str, Json], int] = {}
        self._tokens: list[Json] = []
        self.ended = False

    def add(self, event: Mapping[str, Json]) -> list[Spot]:
        """Take in one event; where the pieces stand that it brought."""
        kind, delta = kind_of(event), event.get("delta")
        delta = delta if isinstance(delta, dict) else {}
        if kind == "message-start":
            self._top.update({key: value for key, value in event.items() if key not in ("type", "delta")})
            given = delta.get("message")
            self._message = _copied(given) if isinstance(given, dict) else {}
            self._positions.clear()
            return []
        if kind == "message-end":
            self.ended = True
            self._top.update(delta)
            return []
        message = delta.get("message")
        if not isinstance(message, dict):
            return []
        if kind == "tool-plan-delta" and isinstance(message.get("tool_plan"), str):
            append(self._open(), "tool_plan", message["tool_plan"])
            return [(("delta", "message", "tool_plan"), ("message", "tool_plan"))]
        if kind == "citation-start" and "citations" in message:
            return self._add_entry("citations", event, message["citations"])
        field = {"content": "content", "tool-call": "tool_calls"}.get(kind.rpartition("-")[0])
        if field is None or not isinstance(message.get(field), dict):
            return []
        if kind.endswith("-start"):
            return self._add_entry(field, event, message[field])
        return self._add_pieces(field, event, message[field]) if kind.endswith("-delta") else []

    def body(self) -> dict[str, Json]:
        """The answer."""
        top = {**self._top, "logprobs": list(self._tokens)} if self._tokens else dict(self._top)
        if self._message is None:
            return top
        message = {key: value for key, value in self._message.items() if value or key not in _EMPTY}
        return {**top, "message": settle(message)}

    def _open(self) -> dict[str, Json]:
        if self._message is None:
            self._message = {}
        return self._message

    def _add_entry(self, field: str, event: Mapping[str, Json], entry: Json) -> list[Spot]:
        message = self._open()
        known = message[field] if isinstance(message.get(field), list) else []
        position = len(known)
        self._positions[field, _key(event)] = position
        message[field] = [*known, _copied(entry) if isinstance(entry, dict) else entry]
        at: Path = ("delta", "message", field)
        if field == "citations" or not isinstance(entry, dict):
            return [(at, ("message", field, position))]
        return _text_spots(entry, at, ("message", field, position))

    def _add_pieces(self, field: str, event: Mapping[str, Json], given: dict[str, Json]) -> list[Spot]:
        position = self._positions.get((field, _key(event)))
        entries = self._open().get(field)
        if position is None or not isinstance(entries, list) or not isinstance(entries[position], dict):
            return []
        spots = _text_spots(given, ("delta", "message", field), ("message", field, position))
        _merge(entries[position], given)
        if "logprobs" in event:  # of the tokens, which are the text once more
            spots.append((("logprobs",), ("logprobs", len(self._tokens))))
            self._tokens.append(event["logprobs"])
        return spots


def join(pieces: Sequence[Piece]) -> Answer:
    """Read a streamed body, whole or cut off; ValueError where it holds no event at all."""
    parsed = [item for item in read(pieces, _parse, lambda _: ()) if not isinstance(item, Repeats)]
    if not parsed:
        raise ValueError("cohere stream: holds no event")
    joined = Joined()
    items: list[Item] = []
    for event, fields in parsed:
        if fields is None:
            items.append(event)
        else:
            items.append(Woven(event.time, fields, joined.add(fields), frame(event, kind_of(fields) or None)))
    answer = read_body(joined.body())
    complete = joined.ended or answer.error is not None
    return replace(answer, streamed=True, complete=complete, chunks=record(items, write_body(answer)))


def split(answer: Answer) -> list[Piece]:
    """Write an answer as a stream: as its chunks say, where they still carry what it holds; else as Cohere would."""
    if answer.status >= 400:
        return [(0.0, write_error(answer))]
    body = write_body(answer)
    items = restore(answer.chunks, body, partial(amounts_to, body, ("message",), Joined())) or list(_cut(body))
    return [(item.time, write_event(_as_event(item))) for item in items]


def _parse(event: Event) -> dict[str, Json] | None:
    fields = read_fields(event)
    return None if fields is None or EVENT in fields else fields


def _as_event(item: Item) -> Event:
    if isinstance(item, Event):
        return item
    kind = kind_of(item.fields) or None
    return reframe(Event(item.time, kind, write_json(item.fields).decode()), item.around)


def _text_spots(given: Mapping[str, Json], at: Path, of: Path) -> list[Spot]:
    """The texts of an entry, or of an addition to it: of content, of thinking, of a call's arguments."""
    spots: list[Spot] = []
    for key, value in given.items():
        if key in ("text", "thinking") and isinstance(value, str):
            spots.append(((*at, key), (*of, key)))
        elif key == "function" and isinstance(value, dict) and isinstance(value.get("arguments"), str):
            spots.append(((*at, key, "arguments"), (*of, key, "arguments")))
    return spots


def _merge(target: dict[str, Json], given: Mapping[str, Json]) -> None:
    for key, value in given.items():
        if key in ("text", "thinking", "arguments") and isinstance(value, str):
            append(target, key, value)
        elif isinstance(value, dict) and isinstance(target.get(key), dict):
            _merge(target[key], value)
        else:
            target[key] = value


def _copied(value: Mapping[str, Json]) -> dict[str, Json]:
    """A copy that can grow without its original."""
    return {key: _copied(inner) if isinstance(inner, dict) else inner for key, inner in value.items()}


def _key(event: Mapping[str, Json]) -> Json:
    index: Any = event.get("index")
    return index if isinstance(index, int | str) else None


def _cut(body: Mapping[str, Json]) -> Iterator[Item]:
    """The events that Cohere would send: the plan, the calls, the content word by word, citations, the end."""
    message = body.get("message")
    message = message if isinstance(message, dict) else {}
    around = {key: value for key, value in message.items() if key not in _EMPTY}
    begun = {**around, "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
    yield Woven(0.0, {"id": body.get("id"), "type": "message-start", "delta": {"message": begun}})
    plan = message.get("tool_plan")
    for piece in words(plan) if isinstance(plan, str) else ():
        yield Woven(0.0, {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": piece}}})
    for kind, field in (("tool-call", "tool_calls"), ("content", "content")):
        entries = message.get(field)
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            yield from _cut_entry(kind, field, index, entry)
    citations = message.get("citations")
    for index, citation in enumerate(citations if isinstance(citations, list) else ()):
        yield _event("citation-start", index, {"citations": citation})
        yield Woven(0.0, {"type": "citation-end", "index": index})
    end = {key: value for key, value in body.items() if key not in ("id", "message")}
    yield Woven(0.0, {"type": "message-end", "delta": end})
    yield Event(0.0, data=DONE)


def _cut_entry(kind: str, field: str, index: int, entry: Json) -> Iterator[Item]:
    texts = _text_spots(entry, (), ()) if isinstance(entry, dict) else []
    started = _copied(entry) if isinstance(entry, dict) else entry
    for path, _ in texts:
        holder: Json = started
        for step in path[:-1]:
            holder = holder[step]
        holder[path[-1]] = ""
    yield _event(f"{kind}-start", index, {field: started})
    for path, _ in texts:
        text: Json = entry
        for step in path:
            text = text[step]
        for piece in words(text):
            said: Json = piece
            for step in reversed(path):
                said = {step: said}
            yield _event(f"{kind}-delta", index, {field: said})
    yield Woven(0.0, {"type": f"{kind}-end", "index": index})


def _event(kind: str, index: int, message: dict[str, Json]) -> Woven:
    return Woven(0.0, {"type": kind, "index": index, "delta": {"message": message}})
