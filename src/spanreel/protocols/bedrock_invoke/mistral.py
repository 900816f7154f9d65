"""Mistral's chat in Bedrock's invoke: as OpenAI's but for its streams, whose pieces are said to be messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from spanreel.exchange import Piece
from spanreel.model import Answer, Json
from spanreel.protocols import openai_chat
from spanreel.protocols.bedrock_invoke.packing import pack, unpack
from spanreel.protocols.openai_chat import read_request, read_response, write_request, write_response
from spanreel.protocols.residue import write_json
from spanreel.protocols.sse import Event, read_event, read_object, write_event

__all__ = ["join", "read_request", "read_response", "speaks", "split", "write_request", "write_response"]

_NAMES: Final = {"message": "delta", "stop_reason": "finish_reason"}
"""Names in a choice of an event, and OpenAI's for the same."""
_BACK: Final = {theirs: ours for ours, theirs in _NAMES.items()}


def speaks(fields: Mapping[str, Json]) -> bool:
    """Whether an event is of such a stream."""
    choices = fields.get("choices")
    entries = choices if isinstance(choices, list) else []
    return any(isinstance(entry, dict) and "message" in entry and "delta" not in entry for entry in entries)


def join(pieces: Sequence[Piece]) -> Answer:
    """Read a streamed body, whole or cut off; ValueError where it holds no frame at all."""
    return openai_chat.join([(time, _renamed(event, _NAMES)) for time, event in unpack(pieces)])


def split(answer: Answer) -> list[Piece]:
    """Write an answer as a stream: as its chunks say, where they still carry what it holds; else as Bedrock would."""
    return pack([(time, _renamed(event, _BACK)) for time, event in openai_chat.split(answer)])


def _renamed(written: bytes, names: Mapping[str, str]) -> bytes:
    event = read_event(written.rstrip(b"\n"), 0)
    fields: Any = read_object(event)
    choices = fields.get("choices") if fields is not None else None
    if not isinstance(choices, list) or not all(_is_open(choice, names) for choice in choices):
        return written
    changed = [{names.get(name, name): value for name, value in choice.items()} for choice in choices]
    return write_event(Event(0.0, event.name, write_json({**fields, "choices": changed}).decode(), event.other))


def _is_open(choice: Json, names: Mapping[str, str]) -> bool:
    """Whether nothing stands under the names that it would be given."""
    return isinstance(choice, dict) and choice.keys().isdisjoint(names.values())
