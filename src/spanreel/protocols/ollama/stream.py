"""Streams of Ollama's chat: an object a line, each with the next piece of the message, the last with the counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from spanreel.exchange import Piece
from spanreel.model import Answer, Json
from spanreel.protocols.joining import append, settle, words
from spanreel.protocols.lines import read_items, write_item
from spanreel.protocols.ollama.messages import read_body, write_body
from spanreel.protocols.openai_errors import write_error
from spanreel.protocols.weaving import Spot, Woven, amounts_to, record, restore

_TEXTS: Final = ("content", "thinking")
_LISTS: Final = ("tool_calls", "images")
_TOKENS: Final = "logprobs"


class Joined:
    """An answer in the making."""

    def __init__(self) -> None:
        self._top: dict[str, Json] = {}
        self._message: dict[str, Json] | None = None

    @property
    def ended(self) -> bool:
        """Whether the last line has come, or an error."""
        return self._top.get("done") is True or "error" in self._top

    def add(self, line: Mapping[str, Json]) -> list[Spot]:
        """Take in one line; where the pieces stand that it brought."""
        self._top.update({key: value for key, value in line.items() if key not in ("message", _TOKENS)})
        spots = self._add_tokens(line[_TOKENS]) if _TOKENS in line else []
        given = line.get("message")
        if not isinstance(given, dict):
            return spots
        message = self._message = self._message if self._message is not None else {}
        for key, value in given.items():
            at = ("message", key)
            if key in _TEXTS and isinstance(value, str):
                append(message, key, value)
                spots.append((at, at))
            elif key in _LISTS and isinstance(value, list):
                known = message[key] if isinstance(message.get(key), list) else []
                spots += [((*at, number), (*at, len(known) + number)) for number in range(len(value))]
                message[key] = [*known, *value]
            else:
                message[key] = value
        return spots

    def _add_tokens(self, tokens: Json) -> list[Spot]:
        """Add the log probabilities of a line's tokens, which are its words once more."""
        known = self._top.get(_TOKENS)
        if not isinstance(tokens, list):
            self._top[_TOKENS] = tokens if known is None else known
            return []
        before = known if isinstance(known, list) else []
        self._top[_TOKENS] = [*before, *tokens]
        return [((_TOKENS, number), (_TOKENS, len(before) + number)) for number in range(len(tokens))]

    def body(self) -> dict[str, Json]:
        """The answer."""
        return self._top if self._message is None else {**self._top, "message": settle(self._message)}


def join(pieces: Sequence[Piece]) -> Answer:
    """Read a streamed body, whole or cut off; ValueError where it holds no line at all."""
    joined = Joined()
    items = read_items(pieces, joined, "ollama")
    answer = read_body(joined.body())
    return replace(answer, streamed=True, complete=joined.ended, chunks=record(items, write_body(answer)))


def split(answer: Answer) -> list[Piece]:
    """Write an answer as a stream: as its chunks say, where they still carry what it holds; else as Ollama would."""
    if answer.status >= 400:
        return [(0.0, write_error(answer))]
    body = write_body(answer)
    came_to = partial(amounts_to, body, ("message",), Joined())
    return [write_item(item) for item in restore(answer.chunks, body, came_to) or map(partial(Woven, 0.0), _cut(body))]


def _cut(body: Mapping[str, Json]) -> Iterator[dict[str, Json]]:
    """The lines that Ollama would send: thinking and content word by word, the calls, then what was counted."""
    shared = {key: body[key] for key in ("model", "created_at") if key in body}
    message = body.get("message")
    if isinstance(message, dict):
        around = {key: value for key, value in message.items() if key not in (*_TEXTS, *_LISTS)}
        for key in ("thinking", "content"):
            text = message.get(key)
            for piece in words(text) if isinstance(text, str) else ():
                said = {"content": piece} if key == "content" else {"content": "", key: piece}
                yield {**shared, "message": {**around, **said}, "done": False}
        lists = {key: message[key] for key in _LISTS if message.get(key)}
        if lists:
            yield {**shared, "message": {**around, "content": "", **lists}, "done": False}
        yield {**body, "message": {**around, "content": ""}}
    else:
        yield dict(body)
