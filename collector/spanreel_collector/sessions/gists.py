"""What messages say, compared: as text that is equal where two say the same, and digests of how a history begins."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from spanreel.model import Json, Message
from spanreel_collector import json_text

_SAID = ("type", "content", "id", "name", "arguments", "response", "uri", "file_id", "data", "digest")
"""What of a message's part is compared."""


def prefixes(gists: Iterable[str]) -> list[bytes]:
    """A digest of each beginning of these messages."""
    running = hashlib.sha256()
    digests = []
    for gist in gists:
        running.update(gist.encode("utf-8", "replace") + b"\x1e")
        digests.append(running.digest())
    return digests


def calls_in(messages: Sequence[Message], kind: str) -> bytes:
    """The tool calls that messages ask for, or answer, by their ids: what else is told of them may differ."""
    parts = [part for message in messages for part in message.get("parts", ()) if isinstance(part, dict)]
    named = sorted(str(part["id"]) for part in parts if part.get("type") == kind and part.get("id"))
    return " ".join(named).encode("utf-8", "replace")


def without_calls(messages: Iterable[Message]) -> list[Message]:
    """The messages as who leaves tool calls out has them, and answers that are nothing else."""
    kept: list[Message] = []
    for message in messages:
        parts = [part for part in message.get("parts", ()) if part.get("type") != "tool_call"]
        if parts or message.get("role") != "assistant":
            kept.append({**message, "parts": parts})
    return kept


def answers_before(messages: Sequence[Message], end: int) -> int:
    """Where the tools' answers begin, all of those that end here."""
    start = end
    if end == len(messages) or messages[end].get("role") != "tool":
        while start and messages[start - 1].get("role") == "tool":
            start -= 1
    return start


def gists(messages: Iterable[Message]) -> list[str]:
    """What the messages say, each; what the model said in several at once is one."""
    return [gist(message) for message in joined(messages)]


def joined(messages: Iterable[Message]) -> list[Message]:
    """The messages, where what the model said in several at once is one, as an answer is."""
    found: list[Message] = []
    for message in messages:
        parts = [part for part in message.get("parts", ()) if not _is_unsaid(part)]
        if message.get("role") != "assistant":
            found.append(message)
        elif parts and found and found[-1].get("role") == "assistant":
            found[-1] = {**found[-1], "parts": [*found[-1].get("parts", ()), *parts]}
        elif parts:
            found.append({**message, "parts": parts})
    return found


def _is_unsaid(part: Json) -> bool:
    """Whether a part is the model's reasoning, which later requests leave out, or stand apart."""
    return isinstance(part, dict) and part.get("type") == "reasoning"


def gist(message: Message) -> str:
    """What a message says, without what differs between an answer and its repetition in the next request."""
    parts: list[Json] = []
    for part in message.get("parts", []):
        if isinstance(part, dict) and not _is_unsaid(part):
            said = {key: part[key] for key in _SAID if part.get(key) not in (None, "")}
            if said != {"type": "text"}:
                parts.append(said)
    return json_text.canonical([message.get("role"), parts])
