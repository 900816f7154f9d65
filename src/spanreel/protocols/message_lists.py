"""Conversations as lists of messages with roles: OpenAI's chat completions have them so, and many after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from spanreel.model import Json, Message, Request
from spanreel.protocols.recalling import Recalling
from spanreel.protocols.residue import same
from spanreel.protocols.shaped import Free

Part = dict[str, Json]
Write = Callable[[Message], list[dict[str, Json]]]
"""A message as entries of the list: one, or more."""


def recalling(
    read: Callable[[Json, str], dict[str, Any]],
    write: Write,
    protocol: str,
    free: Mapping[str, Free] = MappingProxyType({}),
) -> Recalling:
    """Reads entries of requests, each once; ``free`` as `Recalling` has it."""
    place = f"{protocol} request: a message"
    return Recalling(lambda entry: read(entry, place), lambda entry, message: same(write(message), [entry]), free)


def write_conversation(request: Request, write: Write) -> list[Json]:
    """The entries of a request; its instructions are a message of the system's, the first."""
    system = [{"role": "system", "parts": list(request.instructions)}] if request.instructions else []
    return [entry for message in (*system, *request.messages) for entry in write(message)]


def write_apart(
    message: Message,
    write_answer: Callable[[Part, Message], dict[str, Json]],
    write_rest: Callable[[Message, list[Part]], dict[str, Json]],
) -> list[dict[str, Json]]:
    """Write one message: as several where it holds several answers of tools, which are a message each here."""
    parts = [part for part in message.get("parts") or [] if isinstance(part, dict)]
    answers = [part for part in parts if part.get("type") == "tool_call_response"]
    rest = [part for part in parts if part.get("type") != "tool_call_response"]
    written = [write_answer(part, message) for part in answers]
    if rest or not written:
        written.append(write_rest(message, rest))
    return written
