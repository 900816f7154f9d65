"""Streams of Bedrock's Converse: framed events, each an object whose only field is its type."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from spanreel.exchange import Piece
from spanreel.model import Answer, Json
from spanreel.protocols.bedrock.answers import read_body, write_body, write_failure
from spanreel.protocols.bedrock.messages import CITED
from spanreel.protocols.frames import Frame, Header, read_frames, write_frame
from spanreel.protocols.joining import append, settle, slices, words
from spanreel.protocols.openai_errors import write_error
from spanreel.protocols.repeats import Path
from spanreel.protocols.residue import EXACT, read_arguments, read_json, write_arguments, write_json
from spanreel.protocols.sse import EVENT, Event
from spanreel.protocols.weaving import Item, Spot, Woven, amounts_to, record, restore

_KINDS: Final = (":event-type", ":exception-type")
_CONTENT: Final[Path] = ("output", "message", "content")
_DELTAS: Final[tuple[tuple[Path, Path], ...]] = (
    (("text",), ("text",)),
    (("toolUse", "input"), ("toolUse", "input")),
    (("reasoningContent", "text"), ("reasoningContent", "reasoningText", "text")),
    (("reasoningContent", "signature"), ("reasoningContent", "reasoningText", "signature")),
    (("reasoningContent", "redactedContent"), ("reasoningContent", "redactedContent")),
)
"""Where the text of a delta stands in it, and where in the block that it is a piece of."""


class Joined:
    """An answer in the making; what a tool is called with is text in it."""

    def __init__(self) -> None:
        self.ended = False
        self._top: dict[str, Json] = {}
        self._role: Json = None
        self._blocks: list[dict[str, Json]] = []
        self._positions: dict[Json, int] = {}
        self._cited: dict[int, list[Json]] = {}

    @property
    def count(self) -> int:
        """How many blocks have begun."""
        return len(self._blocks)

    def add(self, fields: Mapping[str, Json]) -> list[Spot]:
        """Take in one event; where the pieces stand that it brought."""
        kind, told = next(iter(fields.items()))
        told = told if isinstance(told, dict) else {}
        if kind == "messageStart":
            self._role = told.get("role")
        elif kind == "messageStop":
            self._top.update({key: value for key, value in told.items() if key != "p"})
            self.ended = True
        elif kind == "metadata":
            self._top.update({key: value for key, value in told.items() if key != "p"})
        elif kind == "contentBlockStart" and isinstance(told.get("start"), dict):
            self._begin(told, told["start"])
        elif kind == "contentBlockDelta" and isinstance(told.get("delta"), dict):
            return self._add_delta(told, told["delta"])
        elif kind.endswith("Exception"):
            self._top.update({"error": {"type": kind, "message": told.get("message")}})
            self.ended = True
        return []

    def body(self) -> dict[str, Json]:
        """The answer."""
        if self._role is None and not self._blocks:
            return self._top
        content = [self._cite(position, settle(block)) for position, block in enumerate(self._blocks)]
        return {**self._top, "output": {"message": {"role": self._role or "assistant", "content": content}}}

    def placed(self, spots: Sequence[Spot]) -> Sequence[Spot]:
        """Where pieces stand now that all has come: a text that cites anything stands with what it cites."""
        if not self._cited:
            return spots
        begin = len(_CONTENT)
        return [
            (
                at,
                (*of[: begin + 1], CITED, "content", 0, "text")
                if of[begin + 1 :] == ("text",) and of[begin] in self._cited
                else of,
            )
            for at, of in spots
        ]

    def _cite(self, position: int, block: Json) -> Json:
        """The block as it would have come at once."""
        if position not in self._cited or "text" not in block:
            return block
        return {CITED: {"content": [{"text": block["text"]}], "citations": self._cited[position]}}

    def _begin(self, told: Mapping[str, Json], start: Mapping[str, Json]) -> dict[str, Json]:
        block = {key: dict(value) if isinstance(value, dict) else value for key, value in start.items()}
        if isinstance(block.get("toolUse"), dict):
            block["toolUse"].setdefault("input", "")
        self._positions[_key(told)] = len(self._blocks)
        self._blocks.append(block)
        return block

    def _add_delta(self, told: Mapping[str, Json], delta: Mapping[str, Json]) -> list[Spot]:
        found = [(at, of, text) for at, of in _DELTAS if isinstance(text := _text(delta, at), str)]
        given = [key for key in ("citation", "toolResult", "image") if isinstance(delta.get(key), dict | list)]
        if not found and not given:
            return []
        position = self._positions.get(_key(told))
        if position is None:
            position = len(self._blocks)
            self._begin(told, {})
        spots = [spot for key in given for spot in self._add_given(position, key, delta[key])]
        for _, of, text in found:
            holder: dict[str, Any] = self._blocks[position]
            for step in of[:-1]:
                holder = holder.setdefault(str(step), {})
            append(holder, str(of[-1]), text)
        spots += [(at, of) for at, of, _ in found]
        return [(("contentBlockDelta", "delta", *at), (*_CONTENT, position, *of)) for at, of in spots]

    def _add_given(self, position: int, key: str, value: Any) -> list[Spot]:
        """Add what comes whole: a citation, what a tool of the provider's gave, the source of an image."""
        if key == "citation":
            self._cited.setdefault(position, []).append(value)
            return []
        block = self._blocks[position]
        holder = block[key] = block[key] if isinstance(block.get(key), dict) else {}
        if isinstance(value, dict):
            holder.update(value)
            return [((key, name), (key, name)) for name in value]
        before = holder["content"] if isinstance(holder.get("content"), list) else []
        holder["content"] = [*before, *value]
        return [((key, number), (key, "content", len(before) + number)) for number in range(len(value))]


def join(pieces: Sequence[Piece]) -> Answer:
    """Read a streamed body, whole or cut off; ValueError where it holds no frame at all."""
    frames = read_frames(pieces)
    if not frames:
        raise ValueError("bedrock_converse stream: holds no frame")
    joined = Joined()
    items: list[Item] = []
    began: dict[int, int] = {}
    for frame in frames:
        fields = _read_fields(frame)
        if fields is None or frame.headers is None:
            items.append(Event(frame.time, data=base64.b64encode(frame.raw).decode()))
            continue
        headers = [list(header) for header in frame.headers]
        around = {} if frame.headers == _headers(next(iter(fields))) else {"headers": headers}
        spots = joined.add(fields)
        began.setdefault(joined.count - 1, len(items))
        items.append(Woven(frame.time, fields, spots, [around] if around else []))
    items = [item if isinstance(item, Event) else replace(item, spots=joined.placed(item.spots)) for item in items]
    body = joined.body()
    read = [None if text is None else read_arguments(text) for text in _inputs(body)]
    answer = read_body(_with_each_input(body, [None if one is None else one[0] for one in read]))
    forms = {position: one[1] for position, one in enumerate(read) if one is not None and one[1] is not None}
    for position, form in forms.items():
        item = items[began[position]]
        assert isinstance(item, Woven)
        told: Any = item.around[0] if item.around else {}
        items[began[position]] = replace(item, around=[{**told, EXACT: [position, form]}])
    return replace(answer, streamed=True, complete=joined.ended, chunks=record(items, _with_texts(answer, forms)))


def split(answer: Answer) -> list[Piece]:
    """Write an answer as a stream: as its chunks say, where they still carry what it holds; else as Bedrock would."""
    if answer.status >= 400:
        return [(0.0, write_error(answer, write_failure))]
    told = (chunk[-1][EXACT] for chunk in answer.chunks if isinstance(chunk[-1], dict) and EXACT in chunk[-1])
    body = _with_texts(answer, {form[0]: form[1] for form in told if isinstance(form, list) and len(form) == 2})
    came_to = partial(amounts_to, body, ("output",), Joined())
    items = restore(answer.chunks, body, came_to) or map(partial(Woven, 0.0), _cut(body))
    return [(item.time, _write_item(item)) for item in items]


def _read_fields(frame: Frame) -> dict[str, Json] | None:
    """An event as its type and its payload; None where it says no type, or is no object."""
    kind = next((value for name, value in frame.headers or () if name in _KINDS), None)
    try:
        payload = read_json(frame.payload)
    except ValueError:
        return None
    return {kind: payload} if kind not in (None, EVENT) and isinstance(payload, dict) else None


def _headers(kind: str) -> tuple[Header, ...]:
    return ((":event-type", kind), (":content-type", "application/json"), (":message-type", "event"))


def _write_item(item: Item) -> bytes:
    if isinstance(item, Event):
        return base64.b64decode(item.data or "")
    kind, payload = next(iter(item.fields.items()))
    told: Any = item.around[0] if item.around else {}
    headers = [(str(name), str(value)) for name, value in told.get("headers") or _headers(kind)]
    return write_frame(headers, write_json(payload))


def _with_texts(answer: Answer, forms: Mapping[int, Json]) -> dict[str, Json]:
    """An answer as JSON, with texts of what tools are called with, as a stream has them."""
    texts: list[Json] = []
    for position, part in enumerate(answer.messages[0]["parts"] if answer.messages else ()):
        own = part.get("server_tool_call")
        value, exact = own.get("input") if isinstance(own, dict) else part.get("arguments"), forms.get(position)
        empty = value is None or (value == {} and exact is None)
        calls = part.get("type") in ("tool_call", "server_tool_call")
        texts.append(("" if empty else write_arguments(value, exact)) if calls else None)
    return _with_each_input(write_body(answer), texts)


def _with_each_input(body: Mapping[str, Json], inputs: Sequence[Json]) -> dict[str, Json]:
    blocks = _blocks(body)
    if not any(isinstance(block, dict) and "toolUse" in block for block in blocks):
        return dict(body)
    changed = [
        {**block, "toolUse": {**block["toolUse"], "input": {} if given in ("", None) and _is_text(block) else given}}
        if isinstance(block, dict) and isinstance(block.get("toolUse"), dict)
        else block
        for block, given in zip(blocks, inputs, strict=True)
    ]
    message: Any = body["output"]
    return {**body, "output": {**message, "message": {**message["message"], "content": changed}}}


def _is_text(block: Mapping[str, Any]) -> bool:
    return isinstance(block["toolUse"].get("input"), str)


def _inputs(body: Mapping[str, Json]) -> list[str | None]:
    """What the tools of a joined answer are called with, by block; None for blocks that call none."""
    return [
        block["toolUse"]["input"]
        if isinstance(block, dict)
        and isinstance(block.get("toolUse"), dict)
        and isinstance(block["toolUse"].get("input"), str)
        else None
        for block in _blocks(body)
    ]


def _blocks(body: Mapping[str, Json]) -> list[Json]:
    match body.get("output"):
        case {"message": {"content": list() as blocks}}:
            return blocks
    return []


def _key(told: Mapping[str, Json]) -> Json:
    index = told.get("contentBlockIndex")
    return index if isinstance(index, int) else None


def _text(delta: Mapping[str, Json], at: Path) -> Json:
    value: Json = delta
    for step in at:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _cut(body: Mapping[str, Json]) -> Iterator[dict[str, Json]]:
    """The events that Bedrock would send: text word by word, calls in pieces, the end, then what was counted."""
    yield {"messageStart": {"role": "assistant"}}
    for index, block in enumerate(_blocks(body)):
        yield from _cut_block(index, block if isinstance(block, dict) else {})
        yield {"contentBlockStop": {"contentBlockIndex": index}}
    if "stopReason" in body:
        yield {"messageStop": {"stopReason": body["stopReason"]}}
    yield {"metadata": {"usage": body.get("usage") or {}, "metrics": body.get("metrics") or {"latencyMs": 0}}}


def _cut_block(index: int, block: Mapping[str, Json]) -> Iterator[dict[str, Json]]:
    asked = block.get("toolUse")
    if isinstance(asked, dict):
        begun = {key: value for key, value in asked.items() if key != "input"}
        yield {"contentBlockStart": {"start": {"toolUse": begun}, "contentBlockIndex": index}}
    for at, of in _DELTAS:
        text = _text(block, of)
        if not isinstance(text, str):
            continue
        for piece in words(text) if of[-1] == "text" else slices(text):
            said: Json = piece
            for step in reversed(at):
                said = {step: said}
            yield {"contentBlockDelta": {"delta": said, "contentBlockIndex": index}}
