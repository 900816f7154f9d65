"""Messages and tool definitions, stored once each, and how records' values become the document's."""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from spanreel.memory import Known
from spanreel.model import Agent, Error, Usage
from spanreel.records import ModelRecord
from spanreel.session import INSTRUCTIONS, AgentInfo, ErrorInfo
from spanreel.session import Evaluation as EvaluationInfo
from spanreel.session import Message as StoredMessage
from spanreel.session import Usage as UsageInfo
from spanreel_collector import json_text
from spanreel_collector.evaluation import Evaluation, Scope

COUNTS = tuple(UsageInfo.model_fields)
"""The counts of a usage, looked up once: to ask the model each time is slow."""
_ALWAYS_FIT = frozenset({"role", "parts"})


class Tables:
    """A session's messages and tool definitions: each is stored once, and found again by its content."""

    def __init__(self) -> None:
        self.messages: list[StoredMessage] = []
        self.tools: list[dict[str, Any]] = []
        self._known_messages = _Known()
        self._known_tools = _Known()

    def add_messages(self, messages: Iterable[Any]) -> list[int]:
        """The indexes of these messages."""
        indexes = []
        for message in messages:
            index = self._known_messages.find(message)
            if index is None:
                index = self._known_messages.add(message, len(self.messages))
            if index == len(self.messages):
                self.messages.append(StoredMessage.model_validate(_well_formed(json_text.plain(message))))
            indexes.append(index)
        return indexes

    def add_input(self, record: ModelRecord) -> list[int]:
        """The indexes of a request's messages, its instructions first, as a system message that says so."""
        messages: list[Any] = list(record.request.messages)
        if record.request.instructions:
            parts = list(record.request.instructions)
            messages.insert(0, {"role": "system", "parts": parts, "provider_fields": INSTRUCTIONS})
        return self.add_messages(messages)

    def add_tools(self, tools: Iterable[Any]) -> list[int]:
        """The indexes of these tool definitions."""
        indexes = []
        for tool in tools:
            index = self._known_tools.find(tool)
            if index is None:
                index = self._known_tools.add(tool, len(self.tools))
            if index == len(self.tools):
                self.tools.append(
                    json_text.plain(tool) if isinstance(tool, dict) else {"type": "unknown", "value": tool}
                )
            indexes.append(index)
        return indexes


class _Known:
    """Values by their content, with their indexes. Most come again as they came before: those are found fast."""

    def __init__(self) -> None:
        self._alike: dict[bytes, int] = {}
        # Objects that readers share, each held so that its id stays its own.
        self._shared: dict[int, tuple[Known, int]] = {}
        self._equal: dict[bytes, int] = {}

    def find(self, value: Any) -> int | None:
        """The index of a value that came in these very words before."""
        if type(value) is Known:
            shared = self._shared.get(id(value))
            return None if shared is None else shared[1]
        return self._alike.get(_words(value))

    def add(self, value: Any, index: int) -> int:
        """The index of an equal value, in whatever order its keys stand; where there is none, it is this one's."""
        text = json_text.canonical(value).encode("utf-8", "surrogatepass")
        index = self._equal.setdefault(_digest(text), index)
        if type(value) is Known:
            self._shared[id(value)] = (value, index)
        else:
            self._alike[_words(value)] = index
        return index


def _words(value: Any) -> bytes:
    """Bytes that are equal for values that came alike; no more is asked of them, and they are the fastest to be had."""
    try:
        return marshal.dumps(value, 0)
    except ValueError:  # not of plain types alone
        return repr(value).encode("utf-8", "surrogatepass")


def _digest(data: bytes) -> bytes:
    """What stands for a value in a table that would else hold all of a long conversation twice."""
    return hashlib.blake2b(data, digest_size=16).digest()


def _well_formed(message: Any) -> dict[str, Any]:
    """The message, or what came in its place inside one; nothing is lost, and the document stays valid."""
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        return {"role": "unknown", "parts": [{"type": "unknown", "content": message}]}
    parts = message.get("parts", [])
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        return {**message, "parts": [{"type": "unknown", "content": parts}]}
    if message.keys() <= _ALWAYS_FIT:
        return message
    texts = {key: message[key] for key in ("name", "finish_reason") if isinstance(message.get(key), str)}
    rest = {key: value for key, value in message.items() if key not in ("name", "finish_reason")}
    if not isinstance(rest.get("provider_fields", {}), dict):
        rest["provider_fields"] = {"value": rest["provider_fields"]}
    return {**rest, **texts}


def timestamp(nanoseconds: int) -> str | None:
    """RFC 3339 in UTC with nine digits of seconds; None where unknown."""
    if nanoseconds <= 0:
        return None
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{_second(seconds)}.{rest:09}Z"


@lru_cache(maxsize=4096)
def _second(seconds: int) -> str:
    """The date and time this many seconds after the beginning of 1970; calls that follow each other share many."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def error_info(error: Error | None) -> ErrorInfo | None:
    """The document's form of a failure."""
    if error is None:
        return None
    message: Any = error.message  # as it stood in a span, which may be a stranger's
    if not isinstance(message, str | None):
        message = json_text.canonical(message)
    return ErrorInfo(category=error.category, type=str(error.type), message=message)


def usage_info(usage: Usage | None) -> UsageInfo | None:
    """The document's form of token counts."""
    if usage is None:
        return None
    return UsageInfo(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        reasoning_tokens=usage.reasoning_tokens,
    )


def evaluations_info(found: Iterable[Evaluation], *, of_session: bool = False) -> list[EvaluationInfo] | None:
    """Evaluations as the document has them, of a session or of its parts; None where there are none."""
    told = [
        EvaluationInfo(
            name=one.name,
            score=one.score,
            label=one.label,
            explanation=one.explanation,
            error_type=one.error_type,
            evaluator=one.evaluator,
            response_id=one.response_id,
            judged_at=timestamp(one.time),
            provider_fields=json_text.plain(dict(one.fields)),
        )
        for one in found
        if (one.scope is Scope.SESSION) is of_session
    ]
    return told or None


def agent_info(agent: Agent) -> AgentInfo:
    """The document's form of an agent."""
    return AgentInfo(name=agent.name, id=agent.id, version=agent.version)
