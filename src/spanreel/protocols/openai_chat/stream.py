"""Streams of OpenAI chat completions: joined into the completion they amount to, and cut again as they were.

A chunk is recorded as ``[milliseconds, fields]``: what differs from the chunk before it, with lengths in the place of
texts. The text itself stands only once, in the answer's messages, so that what is redacted there is redacted. Chunks
that repeat the one before them are recorded as one (`protocols.chunks`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from spanreel.exchange import Piece
from spanreel.model import Answer, Json
from spanreel.protocols.chunks import REPEATS, Chunks, read_back
from spanreel.protocols.joining import slices, words
from spanreel.protocols.openai_chat.answers import read_body, write_body
from spanreel.protocols.openai_chat.hiding import Shown, hide
from spanreel.protocols.openai_chat.joined import Joined
from spanreel.protocols.openai_chat.walking import Place, Positions, choice_index, choices_of, settled, spots
from spanreel.protocols.openai_errors import write_error
from spanreel.protocols.repeats import Fields, Item, Repeats, find, read, said
from spanreel.protocols.residue import overlay, read_json, residue, same, write_json
from spanreel.protocols.sse import EVENT, Event, frame, rebuild, reframe, write_event

DONE: Final = "[DONE]"
_CONTENT: Final[Place] = ("choices", 0, "delta", "content")
# Fields of a choice that are recorded with every chunk.
_DIRECT = ("index", "delta")


def join(pieces: Sequence[Piece]) -> Answer:
    """Read a streamed body, whole or cut off; ValueError where it holds no event at all."""
    items = list(read(pieces, _parse, spots))
    if not items:
        raise ValueError("openai_chat stream: holds no event")
    joined = Joined()
    for chunk in said(items):
        joined.add(chunk)
    answer = read_body(joined.body())
    events = [item[0] for item in items if not isinstance(item, Repeats)]
    done = any(event.data == DONE or event.other == (f"data: {DONE}",) for event in events)
    complete = done or answer.error is not None or (joined.finished and events[-1].ended)
    return replace(answer, streamed=True, complete=complete, chunks=_record(items, joined, write_body(answer)))


def split(answer: Answer) -> list[Piece]:
    """Write an answer as a stream: as its chunks say, where they still carry what it holds; else as OpenAI would.

    Without chunks, usage is sent where it is known; whoever was not asked for it leaves it out of the answer.
    """
    if answer.status >= 400:
        return [(0.0, write_error(answer))]
    body = write_body(answer)
    events = _restore(answer.chunks, body)
    if events is None:
        events = [*(Event(0.0, data=write_json(chunk).decode()) for chunk in _cut(body)), Event(0.0, data=DONE)]
    return [(event.time, write_event(event)) for event in events]


def _parse(event: Event) -> dict[str, Json] | None:
    """The chunk in an event, whatever lines stand around it; None where it is something else."""
    if event.data is None:
        return None
    try:
        chunk = read_json(event.data)
    except ValueError:
        return None
    if not isinstance(chunk, dict) or EVENT in chunk or REPEATS in chunk:
        return None
    choices = chunk.get("choices", [])
    if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
        return None
    return chunk


def _record(items: Sequence[Item], joined: Joined, body: Mapping[str, Json]) -> tuple[list[Json], ...]:
    """The chunks that say how the events were cut."""
    choices = {choice_index(choice): choice for choice in choices_of(body)}
    whole = _whole(joined, choices)
    positions = Positions()
    choice = 0
    chunks = Chunks(lambda hidden, before: [_difference(hidden, before or {})], spots, _kind_of)
    for item in items:
        if isinstance(item, Repeats):
            chunks.repeats(item)
            positions.find_text(choice, any(item.columns.get(_CONTENT, ())))
            continue
        event, chunk = item
        if chunk is None:
            chunks.other(event)
            continue
        hidden = dict(chunk)
        if "choices" in chunk:
            hidden["choices"] = [hide(choice, positions, whole) for choice in chunk["choices"]]
            choice = next((choice_index(choice) for choice in chunk["choices"]), choice)
        chunks.event(event.time, hidden, frame(event, None))
    return chunks.finish()


def _whole(joined: Joined, choices: Mapping[int, Json]) -> dict[Place, str]:
    """The places of what the joined answer holds: texts with what they are, and lists of log probabilities."""
    texts: dict[Place, str] = {}
    for place, pieces in joined.texts.items():
        stands = settled(choices, place)
        texts[stands] = texts.get(stands, "") + "".join(pieces)
    whole = {place: "" for place, entries in joined.lists.items() if same(find(choices, place), entries)}
    for place in joined.texts:
        stands = settled(choices, place)
        if (find(choices, stands) or "") == texts[stands]:
            whole[place] = texts[stands]
    return whole


def _restore(chunks: Sequence[list[Json]], body: Mapping[str, Json]) -> list[Event] | None:
    """The events that chunks record; None where there are none, or they do not add up to the answer (any more)."""
    hidden = read_back(chunks, _read_back, _kind_of)
    if hidden is None:
        return None
    ours = [fields for _, fields, added in hidden if added is not None]
    shown = Shown(body, (choice for fields in ours for choice in fields.get("choices", ())))
    joined = Joined()
    events = []
    for time, recorded, around in hidden:
        if around is not None:
            chunk_body = dict(recorded)
            if "choices" in recorded:
                chunk_body["choices"] = [shown.show(choice) for choice in recorded["choices"]]
            joined.add(chunk_body)
            events.append(reframe(Event(time, data=write_json(chunk_body).decode()), around))
        else:
            events.append(rebuild(time, recorded))
    return events if chunks and same(joined.body().get("choices"), body.get("choices")) else None


def _kind_of(_: Fields) -> str:
    """Chunks are all of one kind."""
    return ""


def _read_back(written: list[Json], before: Mapping[str, Fields]) -> tuple[Fields, list[Json]] | None:
    match written:
        case [dict() as fields, *added]:
            return _undo_difference(fields, before.get("", {})), added
    return None


def _difference(chunk: Mapping[str, Json], previous: Mapping[str, Json]) -> dict[str, Json]:
    """What a chunk has that the one before it had not; its choices always, each without what its forerunner had."""
    fields = residue(
        {key: value for key, value in chunk.items() if key != "choices"},
        {key: value for key, value in previous.items() if key != "choices"},
    )
    if "choices" in chunk:
        before = _by_index(previous)
        fields["choices"] = [
            residue(_without_direct(choice), _without_direct(before.get(_index(choice), {})))
            | {key: choice[key] for key in _DIRECT if key in choice}
            for choice in chunk["choices"]
        ]
    return fields


def _undo_difference(fields: Mapping[str, Json], previous: Mapping[str, Json]) -> dict[str, Json]:
    chunk = overlay(
        {key: value for key, value in previous.items() if key != "choices"},
        {key: value for key, value in fields.items() if key != "choices"},
    )
    if "choices" in fields:
        before = _by_index(previous)
        chunk["choices"] = [
            {key: choice[key] for key in _DIRECT if key in choice}
            | overlay(_without_direct(before.get(_index(choice), {})), _without_direct(choice))
            for choice in fields["choices"]
        ]
    return chunk


def _without_direct(choice: Mapping[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in choice.items() if key not in _DIRECT}


def _index(choice: Mapping[str, Json]) -> str:
    return str(choice.get("index"))


def _by_index(chunk: Mapping[str, Json]) -> dict[str, Mapping[str, Json]]:
    return {_index(choice): choice for choice in chunk.get("choices", [])}


def _cut(body: Mapping[str, Json]) -> Iterator[dict[str, Json]]:
    """The chunks that OpenAI would send for a completion: role, reasoning, content, calls, end; then the usage."""
    own = ("choices", "usage", "object")
    envelope = {"object": "chat.completion.chunk", **{key: value for key, value in body.items() if key not in own}}
    choices = choices_of(body)
    for choice in choices:
        for delta in _cut_message(choice.get("message")):
            yield {**envelope, "choices": [_chunk_choice(choice, delta)]}
        around = {key: value for key, value in choice.items() if key not in ("message", "index")}
        yield {**envelope, "choices": [{**_chunk_choice(choice, {}), **around}]}
    if isinstance(body.get("usage"), dict):
        yield {**envelope, "choices": [], "usage": body["usage"]}


def _chunk_choice(choice: Mapping[str, Json], delta: Mapping[str, Json]) -> dict[str, Json]:
    return {"index": choice_index(choice), "delta": delta, "logprobs": None, "finish_reason": None}


def _cut_message(message: Json) -> Iterator[dict[str, Json]]:
    if not isinstance(message, dict):
        return
    texts = [key for key, value in message.items() if isinstance(value, str) and key not in ("role", "content")]
    plain = isinstance(message.get("content"), str) and not texts
    started: dict[str, Json] = {"role": message.get("role", "assistant"), "content": "" if plain else None}
    rest = {
        key: value for key, value in message.items() if key not in (*started, *texts, "tool_calls", "function_call")
    }
    yield {**started, **rest}
    content = message.get("content")
    for key in (*texts, "content"):
        if isinstance(message.get(key), str):
            for piece in words(message[key]):
                yield {key: piece}
    if isinstance(content, list):
        yield {"content": content}
    yield from _cut_calls(message)


def _cut_calls(message: Mapping[str, Json]) -> Iterator[dict[str, Json]]:
    calls = message.get("tool_calls")
    for index, call in enumerate(calls if isinstance(calls, list) else []):
        if not isinstance(call, dict):
            continue
        kind, field = ("custom", "input") if "custom" in call else ("function", "arguments")
        inner: Json = call.get(kind)
        inner = inner if isinstance(inner, dict) else {}
        text = str(inner.get(field) or "")
        yield {"tool_calls": [{"index": index, **call, kind: {**inner, field: ""}}]}
        for piece in slices(text):
            yield {"tool_calls": [{"index": index, kind: {field: piece}}]}
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        yield {"function_call": legacy}
