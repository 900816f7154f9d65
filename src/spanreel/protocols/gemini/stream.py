"""Streams of Gemini: responses that each bring the next parts of their candidates; as events, or as one JSON list."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from spanreel.exchange import Piece
from spanreel.model import Answer, Json
from spanreel.protocols.gemini.answers import read_body, write_body
from spanreel.protocols.joining import append, settle
from spanreel.protocols.openai_errors import write_error
from spanreel.protocols.repeats import Repeats, read
from spanreel.protocols.residue import read_json, same, write_json
from spanreel.protocols.sse import EVENT, Event, frame, write_event
from spanreel.protocols.weaving import Item, Spot, Woven, as_event, record, restore

LIST: Final = "$list"
"""In an answer's ``provider_fields``: it was streamed as one JSON list, as Gemini does for who does not ask for SSE."""

_TEXT_KEYS: Final = {"text", "thought", "thoughtSignature"}
_PIECES: Final = re.compile(r"(?:\s*\S+){1,12}\s*|\s+")


class Joined:
    """A response in the making."""

    def __init__(self) -> None:
        self._top: dict[str, Json] = {}
        self._candidates: dict[Json, dict[str, Json]] = {}
        self._has_candidates = False

    @property
    def finished(self) -> bool:
        """Whether every candidate has said why it ended, or the prompt was refused."""
        feedback = self._top.get("promptFeedback")
        if isinstance(feedback, dict) and feedback.get("blockReason"):
            return True
        return bool(self._candidates) and all(one.get("finishReason") for one in self._candidates.values())

    def add(self, chunk: Mapping[str, Json]) -> list[Spot]:
        """Take in one response; where the pieces stand that it brought."""
        self._top.update({key: value for key, value in chunk.items() if key != "candidates" and value is not None})
        candidates = chunk.get("candidates")
        self._has_candidates = self._has_candidates or "candidates" in chunk
        spots: list[Spot] = []
        for number, candidate in enumerate(candidates if isinstance(candidates, list) else ()):
            index = candidate.get("index", number)
            key = index if isinstance(index, int) else number
            known = self._candidates.setdefault(key, {"content": {"parts": []}})
            place = ("candidates", list(self._candidates).index(key), "content", "parts")
            known.update({name: value for name, value in candidate.items() if name != "content"})
            content = candidate.get("content")
            if not isinstance(content, dict):
                continue
            known["content"].update({name: value for name, value in content.items() if name != "parts"})
            parts = content.get("parts")
            for position, part in enumerate(parts if isinstance(parts, list) else ()):
                at = ("candidates", number, "content", "parts", position)
                spots += _add_part(known["content"]["parts"], part, at, place)
        return spots

    def body(self) -> dict[str, Json]:
        """The response."""
        body = dict(self._top)
        if self._has_candidates:
            body = {"candidates": [settle(candidate) for candidate in self._candidates.values()], **body}
        return body


def join(pieces: Sequence[Piece]) -> Answer:
    """Read a streamed body, whole or cut off; ValueError where it holds no event at all."""
    parsed = [item for item in read(pieces, _parse, lambda _: ()) if not isinstance(item, Repeats)]
    if not parsed:
        raise ValueError("gemini stream: holds no event")
    return _join((event, fields, frame(event, None)) for event, fields in parsed)


def join_list(chunks: Sequence[Json]) -> Answer:
    """Read the responses of a stream that is one JSON list."""
    events = ((Event(0.0), chunk if _is_chunk(chunk) else None, ()) for chunk in chunks)
    listed = [
        (event if fields is not None else Event(0.0, data=write_json(chunk).decode()), fields, around)
        for (event, fields, around), chunk in zip(events, chunks, strict=True)
    ]
    answer = _join(listed)
    return replace(answer, provider_fields={**answer.provider_fields, LIST: True})


def split(answer: Answer) -> list[Piece]:
    """Write an answer as a stream: as its chunks say, where they still carry what it holds; else as Gemini would."""
    if answer.status >= 400:
        return [(0.0, write_error(answer))]
    body = write_body(answer)
    items = restore(answer.chunks, body, partial(_came_to, body)) or [Woven(0.0, chunk) for chunk in _cut(body)]
    if answer.provider_fields.get(LIST):
        return [(0.0, write_json([_as_json(item) for item in items]))]
    return [(item.time, write_event(as_event(item))) for item in items]


def _join(parsed: Iterable[tuple[Event, dict[str, Json] | None, Sequence[Json]]]) -> Answer:
    joined = Joined()
    items: list[Item] = []
    for event, fields, around in parsed:
        items.append(event if fields is None else Woven(event.time, fields, joined.add(fields), around))
    answer = read_body(joined.body())
    last = items[-1]
    ended = not isinstance(last, Event) or last.ended
    chunks = record(items, write_body(answer))
    return replace(
        answer, streamed=True, complete=answer.error is not None or (joined.finished and ended), chunks=chunks
    )


def _parse(event: Event) -> dict[str, Json] | None:
    try:
        chunk = read_json(event.data or "")
    except ValueError:
        return None
    return chunk if _is_chunk(chunk) else None


def _is_chunk(chunk: Any) -> bool:
    """Whether it is a response, and no candidate of it anything but an object."""
    if not isinstance(chunk, dict) or EVENT in chunk:
        return False
    candidates = chunk.get("candidates", [])
    return isinstance(candidates, list) and all(isinstance(candidate, dict) for candidate in candidates)


def _add_part(parts: list[Json], part: Json, at: tuple[Any, ...], place: tuple[Any, ...]) -> list[Spot]:
    """Add a part: to the text before it where that goes on, else behind all others."""
    if isinstance(part, dict) and isinstance(part.get("text"), str) and part.keys() <= _TEXT_KEYS:
        last = parts[-1] if parts else None
        goes_on = isinstance(last, dict) and _goes_on(last, part)
        if not goes_on and not part["text"] and "thoughtSignature" not in part:
            return []
        if isinstance(last, dict) and goes_on:
            append(last, "text", part["text"])
            last.update({key: value for key, value in part.items() if key == "thoughtSignature"})
        else:
            parts.append(dict(part))
    elif isinstance(part, dict):
        parts.append(dict(part))
    else:
        parts.append(part)
        return []
    position = len(parts) - 1
    return [((*at, key), (*place, position, key)) for key in part if key != "thought"]


def _goes_on(last: Mapping[str, Json], part: Mapping[str, Json]) -> bool:
    """Whether a text is more of the one before it; an empty one only brings a signature."""
    is_open = "text" in last and last.keys() <= _TEXT_KEYS - {"thoughtSignature"}
    return is_open and (last.get("thought") == part.get("thought") or not part["text"])


def _came_to(body: Mapping[str, Json], chunks: Sequence[Mapping[str, Json]]) -> bool:
    joined = Joined()
    for chunk in chunks:
        if not _is_chunk(chunk):
            return False
        joined.add(chunk)
    return same(joined.body().get("candidates"), body.get("candidates"))


def _as_json(item: Item) -> Json:
    return item.fields if isinstance(item, Woven) else read_json(item.data or "null")


def _cut(body: Mapping[str, Json]) -> Iterator[dict[str, Json]]:
    """The responses that Gemini would send: the parts of each candidate, texts in pieces; the rest with the last."""
    shared = {key: body[key] for key in ("modelVersion", "responseId", "createTime") if key in body}
    candidates = [one for one in body.get("candidates") or () if isinstance(one, dict)]
    chunks: list[dict[str, Json]] = []
    for number, candidate in enumerate(candidates):
        content = candidate.get("content")
        content = content if isinstance(content, dict) else {}
        index = {"index": candidate.get("index", number)} if len(candidates) > 1 or "index" in candidate else {}
        role = {key: value for key, value in content.items() if key != "parts"}
        around = {key: value for key, value in candidate.items() if key != "content"}
        parts = content.get("parts")
        pieces = [piece for part in (parts if isinstance(parts, list) else ()) for piece in _cut_part(part)]
        for piece in pieces or [None]:
            given = [] if piece is None else [piece]
            chunks.append({"candidates": [{"content": {"parts": given, **role}, **index}], **shared})
        chunks[-1]["candidates"] = [{**chunks[-1]["candidates"][0], **around}]
    yield from chunks[:-1]
    last = chunks[-1] if chunks else dict(shared)
    yield {**last, **{key: value for key, value in body.items() if key not in ("candidates", *shared)}}


def _cut_part(part: Json) -> Iterator[Json]:
    if not isinstance(part, dict) or not isinstance(part.get("text"), str) or not part.keys() <= _TEXT_KEYS:
        yield part
        return
    around = {key: value for key, value in part.items() if key not in ("text", "thoughtSignature")}
    pieces = _PIECES.findall(part["text"]) or [""]
    for piece in pieces[:-1]:
        yield {"text": piece, **around}
    yield {**part, "text": pieces[-1]}
