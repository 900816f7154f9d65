"""Answers of Cohere's chat, first version: a text and calls, as an object or as a line for each piece."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from spanreel.exchange import Piece
from spanreel.model import Answer, Json, Message
from spanreel.protocols.cohere.answers import WRITE_REASON, read_reason, read_usage, write_failure, write_usage
from spanreel.protocols.joining import words
from spanreel.protocols.lines import read_items, write_item
from spanreel.protocols.openai_errors import describe_error, write_error
from spanreel.protocols.residue import keep, kept, overlay, residue
from spanreel.protocols.weaving import Spot, Woven, amounts_to, record, restore


def read_body(body: Mapping[str, Json]) -> Answer:
    """Read an answer; one without a text is an answer without messages."""
    identity, text, calls = (body.get(name) for name in ("response_id", "text", "tool_calls"))
    messages: tuple[Message, ...] = ()
    if isinstance(text, str):
        parts: list[dict[str, Any]] = [{"type": "text", "content": text}] if text else []
        if isinstance(calls, list) and all(isinstance(call, dict) for call in calls):
            parts += map(read_call, calls)
        message: Message = {"role": "assistant", "parts": parts}
        reason = read_reason(body.get("finish_reason"))
        # It is complete to Cohere, too, when it asks for tools.
        asks = reason == "stop" and any(part["type"] == "tool_call" for part in parts)
        if reason is not None:
            message["finish_reason"] = "tool_call" if asks else reason
        messages = (message,)
    failed = not messages and isinstance(body.get("message"), str)
    answer = Answer(
        response_id=identity if isinstance(identity, str) else None,
        messages=messages,
        usage=read_usage(body.get("meta")),
        error=describe_error(body, 200) if failed else None,
    )
    return replace(answer, provider_fields=residue(body, write_body(answer)))


def write_body(answer: Answer) -> dict[str, Json]:
    """Write an answer; what is not known is made up as far as the SDK insists on it."""
    message = next(iter(answer.messages), None)
    body: dict[str, Json] = {"response_id": answer.response_id or "spanreel-replayed"}
    if message is not None:
        parts = message.get("parts") or []
        body["text"] = "".join(str(part.get("content") or "") for part in parts if part.get("type") == "text")
        calls = [write_call(part) for part in parts if part.get("type") == "tool_call"]
        if calls:
            body["tool_calls"] = calls
        reason = message.get("finish_reason")
        written = "stop" if reason in (None, "tool_call") else str(reason)
        body["finish_reason"] = WRITE_REASON.get(written, written.upper())
    if answer.usage is not None:
        body["meta"] = write_usage(answer.usage)
    rest = dict(answer.provider_fields)
    # What was kept must not beat what has been put in since.
    if message is not None:
        for name in ("text", "tool_calls"):
            rest.pop(name, None)
    return overlay(body, rest)


def read_call(wire: Mapping[str, Json]) -> dict[str, Any]:
    """Read a call of a tool, which has no id here."""
    part: dict[str, Any] = {"type": "tool_call", "name": wire.get("name"), "arguments": wire.get("parameters")}
    return keep(part, residue(wire, write_call(part)))


def write_call(part: Mapping[str, Json]) -> dict[str, Json]:
    """Write a call of a tool."""
    return overlay({"name": part.get("name"), "parameters": part.get("arguments")}, kept(part))


class Joined:
    """An answer in the making; the last line says all of it once more."""

    def __init__(self) -> None:
        self.ended = False
        self._top: dict[str, Json] = {}
        self._texts: list[str] = []
        self._calls: Json = None
        self._response: dict[str, Json] | None = None

    def add(self, line: Mapping[str, Json]) -> list[Spot]:
        """Take in one line; where the pieces stand that it brought."""
        kind, text = line.get("event_type"), line.get("text")
        if kind == "stream-start" and "generation_id" in line:
            self._top["generation_id"] = line["generation_id"]
        elif kind == "text-generation" and isinstance(text, str):
            self._texts.append(text)
            return [(("text",), ("text",))]
        elif kind == "tool-calls-generation" and "tool_calls" in line:
            self._calls = line["tool_calls"]
            return [(("tool_calls",), ("tool_calls",))]
        elif kind == "stream-end":
            self.ended = True
            if isinstance(line.get("response"), dict):
                self._response = line["response"]
                return [(("response",), ())]
            self._top["finish_reason"] = line.get("finish_reason")
        return []

    def body(self) -> dict[str, Json]:
        """The answer."""
        if self._response is not None:
            return self._response
        said = {"text": "".join(self._texts)} if self._texts or self._calls is not None else {}
        return {**self._top, **said, **({} if self._calls is None else {"tool_calls": self._calls})}


def join(pieces: Sequence[Piece]) -> Answer:
    """Read a streamed body, whole or cut off; ValueError where it holds no line at all."""
    joined = Joined()
    items = read_items(pieces, joined, "cohere_chat_v1")
    answer = read_body(joined.body())
    return replace(answer, streamed=True, complete=joined.ended, chunks=record(items, write_body(answer)))


def split(answer: Answer) -> list[Piece]:
    """Write an answer as a stream: as its chunks say, where they still carry what it holds; else as Cohere would."""
    if answer.status >= 400:
        return [(0.0, write_error(answer, write_failure))]
    body = write_body(answer)
    came_to = partial(amounts_to, body, ("text", "tool_calls"), Joined())
    return [write_item(item) for item in restore(answer.chunks, body, came_to) or map(partial(Woven, 0.0), _cut(body))]


def _cut(body: Mapping[str, Json]) -> Iterator[dict[str, Json]]:
    """The lines that Cohere would send: the start, the text word by word, the calls, and all of it once more."""
    generation = body.get("generation_id", "spanreel-replayed")
    yield {"is_finished": False, "event_type": "stream-start", "generation_id": generation}
    for piece in words(str(body.get("text") or "")):
        yield {"is_finished": False, "event_type": "text-generation", "text": piece}
    if body.get("tool_calls"):
        yield {"is_finished": False, "event_type": "tool-calls-generation", "tool_calls": body["tool_calls"]}
    reason = body.get("finish_reason", "COMPLETE")
    yield {"is_finished": True, "event_type": "stream-end", "response": dict(body), "finish_reason": reason}
