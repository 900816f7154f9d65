"""The canonical form of what crosses a boundary: requests, answers, tool calls, runs. Frozen data, no behaviour.

Messages, parts and tool definitions are JSON objects in the form of the OpenTelemetry GenAI conventions
(``{"role", "parts": [{"type", ...}]}``), so that they go into attributes and documents as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, Final

from spanreel.frozen import dataclass

Json = Any
"""A JSON value: None, bool, int, float, str, list of Json, dict of str to Json."""

Message = dict[str, Json]
"""``{"role": system|user|assistant|tool, "parts": [Part], "name"?, "finish_reason"?, "provider_fields"?: {...}}``.

Parts: ``text`` {content}, ``reasoning`` {content}, ``refusal`` {content}, ``tool_call`` {id, name, arguments},
``tool_call_response`` {id, response}, ``server_tool_call`` {id, name, server_tool_call},
``server_tool_call_response`` {id, server_tool_call_response}, ``blob`` {mime_type, modality, content},
``uri`` {uri, modality, mime_type?}, ``file`` {file_id, modality, mime_type?}; any other type is the provider's own,
kept as it came. Each part may hold ``provider_fields``: what the provider said and the conventions have no name for.
"""

ToolDefinition = dict[str, Json]
"""``{"type": "function", "name", "description"?, "parameters"?: JSON Schema, "provider_fields"?}`` or its own."""


class Dumped(list[Json]):
    """A list that its library has just written as JSON values, and that nobody else holds: it is its own snapshot.

    ``size`` is about how many bytes they take.
    """

    __slots__ = ("size",)

    def __init__(self, values: Iterable[Json], size: int) -> None:
        super().__init__(values)
        self.size = size


class Operation(StrEnum):
    """What a model is asked to do (``gen_ai.operation.name``)."""

    CHAT = "chat"
    EMBEDDINGS = "embeddings"
    MODERATION = "moderation"
    RERANK = "rerank"

    @property
    def opens_turn(self) -> bool:
        """Whether a call of this operation is a step of the agent's loop."""
        return self is Operation.CHAT


class Fidelity(StrEnum):
    """How a recorded field came to us."""

    WHOLE = "whole"
    TRUNCATED = "truncated"
    REDACTED = "redacted"
    RECONSTRUCTED = "reconstructed"
    ABSENT = "absent"


GRAVITY: Final = (Fidelity.WHOLE, Fidelity.RECONSTRUCTED, Fidelity.REDACTED, Fidelity.TRUNCATED, Fidelity.ABSENT)
"""How fields came to us, from the least that was lost to the most."""


class Status(StrEnum):
    """How a session, run or call ended."""

    OK = "ok"
    ERROR = "error"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"
    UNFINISHED = "unfinished"
    BLOCKED = "blocked"


class ErrorCategory(StrEnum):
    """The closed set of reasons for a failure."""

    MAX_TURNS = "max_turns"
    CANCELLED = "cancelled"
    APPROVAL_REQUIRED = "approval_required"
    MODEL = "model"
    TOOL = "tool"
    POLICY = "policy"
    TIMEOUT = "timeout"
    GUARDRAIL = "guardrail"
    INTERNAL = "internal"
    OTHER = "other"


class ToolKind(StrEnum):
    """Who runs a tool."""

    FUNCTION = "function"
    MCP = "mcp"
    PROVIDER = "provider"
    AGENT = "agent"
    HANDOFF = "handoff"
    RETRIEVER = "retriever"


MCP_REQUESTS: Final = frozenset(
    {
        "initialize",
        "server/discover",
        "ping",
        "logging/setLevel",
        "tools/list",
        "prompts/list",
        "prompts/get",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
        "completion/complete",
    }
)
"""What a client asks of an MCP server beside calls of its tools: the names of such tool calls, by MCP's methods."""


@dataclass(frozen=True, slots=True)
class Error:
    """A failure: its category, the exception's full class name (or the provider's error type), and its text."""

    category: ErrorCategory
    type: str
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one model call; input includes cached tokens, output includes reasoning, None is unknown."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """One model request, whatever the provider.

    ``instructions`` are parts (system text given beside the messages); ``settings`` holds temperature, top_p, top_k,
    max_tokens, stop_sequences (list), seed, frequency_penalty, presence_penalty, choice_count, tool_choice,
    parallel_tool_calls, response_format, reasoning_effort, previous_response_id, conversation_id, service_tier,
    dimensions, encoding_formats under these names; ``provider_fields`` all else, as the provider names it.
    """

    operation: Operation
    model: str | None
    messages: tuple[Message, ...] = ()
    instructions: tuple[dict[str, Json], ...] = ()
    tools: tuple[ToolDefinition, ...] = ()
    settings: Mapping[str, Json] = field(default_factory=dict)
    stream: bool = False
    provider_fields: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """One model answer, whatever the provider: a message a choice, each with its ``finish_reason``.

    ``status`` is the HTTP status; from 400 on ``error`` is set. ``chunks`` is the protocol's own record of how a stream
    was cut: lists that begin with the milliseconds since the request. ``complete`` is False where a stream was cut off.
    """

    response_id: str | None = None
    model: str | None = None
    messages: tuple[Message, ...] = ()
    usage: Usage | None = None
    status: int = 200
    error: Error | None = None
    streamed: bool = False
    complete: bool = True
    chunks: tuple[list[Json], ...] = ()
    provider_fields: Mapping[str, Json] = field(default_factory=dict)

    @property
    def finish_reasons(self) -> list[str]:
        """Why each choice ended, in the order of the choices."""
        return [message["finish_reason"] for message in self.messages if message.get("finish_reason")]


@dataclass(frozen=True, slots=True)
class Agent:
    """Who runs: the agent's name, and its id and version where it has them."""

    name: str | None = None
    id: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """What is known about the session that a call belongs to."""

    id: str | None = None
    user_id: str | None = None
    name: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Json] = field(default_factory=dict)
