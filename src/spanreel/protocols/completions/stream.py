"""Streams of completed texts: server-sent events, each with the next piece of every completion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from spanreel.exchange import Piece
from spanreel.model import Answer, Json
from spanreel.protocols.completions.answers import FORM, METRICS, read_body, write_body
from spanreel.protocols.completions.forms import OPENAI, Form, form_named
from spanreel.protocols.joining import append, settle, words
from spanreel.protocols.openai_errors import write_error
from spanreel.protocols.repeats import Path, Repeats, find, read
from spanreel.protocols.residue import read_json, same
from spanreel.protocols.sse import EVENT, Event, frame, write_event
from spanreel.protocols.weaving import Item, Spot, Woven, as_event, record, restore

DONE: Final = "[DONE]"


class Joined:
    """An answer of a form in the making."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self._top: dict[str, Json] = {}
        self._entries: dict[int, dict[str, Json]] = {}

    @property
    def ended(self) -> bool:
        """Whether every completion has said why it ended, or an error has come."""
        entries = self._entries.values()
        reasons = [find(settle(entry), self._form.reason) for entry in entries]
        return "error" in self._top or METRICS in self._top or (bool(reasons) and all(reasons))

    def add(self, line: Mapping[str, Json]) -> list[Spot]:
        """Take in one event; where the pieces stand that it brought."""
        name = self._form.entries
        if name is None:
            return self._merge(self._entries.setdefault(0, {}), line, (), ())
        self._top.update({key: value for key, value in line.items() if key != name and value is not None})
        entries = line.get(name)
        spots: list[Spot] = []
        for number, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, dict):
                index = _index(entry, number)
                spots += self._merge(self._entries.setdefault(index, {}), entry, (name, number), (name, index))
        return spots

    def body(self) -> dict[str, Json]:
        """The answer; completions stand by their number where these have no gap."""
        if self._form.entries is None:
            whole: dict[str, Json] = settle(self._entries.get(0, {}))
            return whole
        entries = [settle(self._entries[index]) for index in sorted(self._entries)]
        told = {"object": "text_completion"} if self._form.is_openai and "object" not in self._top else {}
        return {**told, **self._top, **({self._form.entries: entries} if entries else {})}

    def _merge(self, target: dict[str, Json], entry: Mapping[str, Json], at: Path, of: Path) -> list[Spot]:
        spots: list[Spot] = []
        for key, value in entry.items():
            if key == self._form.text[0] and isinstance(find(entry, self._form.text), str):
                spots += self._add_text(target, entry, at, of)
            elif key == "logprobs" and isinstance(value, dict):
                spots += _extend(target, value, (*at, key), (*of, key))
            elif value is not None or key not in target:
                target[key] = value
        return spots

    def _add_text(self, target: dict[str, Json], entry: Mapping[str, Json], at: Path, of: Path) -> list[Spot]:
        path = self._form.text
        source: Json = entry
        for step in path[:-1]:
            source = source[step]
            holder = target.setdefault(str(step), {})
            holder.update({key: value for key, value in source.items() if value is not None and key != path[-1]})
            target = holder
        append(target, str(path[-1]), source[path[-1]])
        return [((*at, *path), (*of, *path))]


def join(pieces: Sequence[Piece], form: Form = OPENAI) -> Answer:
    """Read a streamed body, whole or cut off; ValueError where it holds no event at all."""
    parsed = [item for item in read(pieces, _parse, lambda _: ()) if not isinstance(item, Repeats)]
    if not parsed:
        raise ValueError("completions stream: holds no event")
    joined = Joined(form)
    items: list[Item] = []
    done = False
    for event, fields in parsed:
        if fields is None:
            done = done or event.data == DONE
            items.append(event)
        else:
            items.append(Woven(event.time, fields, joined.add(fields), frame(event, None)))
    answer = read_body(joined.body(), form)
    complete = done or (joined.ended and parsed[-1][0].ended)
    return replace(answer, streamed=True, complete=complete, chunks=record(items, write_body(answer)))


def split(answer: Answer) -> list[Piece]:
    """Write an answer as a stream: as its chunks say, where they still carry what it holds; else as OpenAI would."""
    if answer.status >= 400:
        return [(0.0, write_error(answer))]
    form = form_named(answer.provider_fields.get(FORM)) or OPENAI
    body = write_body(answer)
    items = restore(answer.chunks, body, partial(_came_to, form, body)) or list(_cut(body, form))
    return [(item.time, write_event(as_event(item))) for item in items]


def _parse(event: Event) -> dict[str, Json] | None:
    try:
        fields = read_json(event.data or "")
    except ValueError:
        return None
    return fields if isinstance(fields, dict) and EVENT not in fields else None


def _index(entry: Mapping[str, Json], number: int) -> int:
    index = entry.get("index")
    return index if isinstance(index, int) and not isinstance(index, bool) and index >= 0 else number


def _extend(target: dict[str, Json], lists: Mapping[str, Json], at: Path, of: Path) -> list[Spot]:
    """Log probabilities, which come in lists beside each other; each of their entries is a piece."""
    known = target["logprobs"] if isinstance(target.get("logprobs"), dict) else {}
    target["logprobs"] = dict(known)
    spots: list[Spot] = []
    for name, values in lists.items():
        before = known.get(name)
        if isinstance(values, list) and isinstance(before, list | None):
            before = before or []
            target["logprobs"][name] = [*before, *values]
            spots += [((*at, name, number), (*of, name, len(before) + number)) for number in range(len(values))]
        elif values is not None or name not in known:
            target["logprobs"][name] = values
    return spots


def _came_to(form: Form, body: Mapping[str, Json], lines: Sequence[Mapping[str, Json]]) -> bool:
    joined = Joined(form)
    for line in lines:
        joined.add(line)
    came = joined.body()
    if form.entries is None:
        return same(find(came, form.text), find(body, form.text))
    ours, theirs = (value.get(form.entries) or [] for value in (came, body))
    return same([find(entry, form.text) for entry in ours], [find(entry, form.text) for entry in theirs])


def _cut(body: Mapping[str, Json], form: Form) -> Iterator[Item]:
    """The events that a provider would send: the text word by word, then why it ended and what was counted."""
    entries = [body] if form.entries is None else body.get(form.entries) or []
    around = {} if form.entries is None else {key: body[key] for key in body if key not in (form.entries, "usage")}
    for index, entry in enumerate(entries):
        text = find(entry, form.text)
        for piece in words(text) if isinstance(text, str) else ():
            yield Woven(0.0, _event(form, around, _said(form, {"index": index} if form.is_openai else {}, piece)))
        rest = {key: value for key, value in entry.items() if key != form.text[0]}
        yield Woven(0.0, _event(form, around, _said(form, rest, "")))
    if form.is_openai:
        if body.get("usage"):
            yield Woven(0.0, {**around, "choices": [], "usage": body["usage"]})
        yield Event(0.0, data=DONE)


def _said(form: Form, entry: Mapping[str, Json], piece: str) -> dict[str, Json]:
    said: Json = piece
    for step in reversed(form.text):
        said = {step: said}
    return {**entry, **said}


def _event(form: Form, around: Mapping[str, Json], entry: dict[str, Json]) -> dict[str, Json]:
    return entry if form.entries is None else {**around, form.entries: [entry]}
