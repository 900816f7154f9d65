"""The session document, `spanreel.session/1`: what a conversation's runs were asked, did and answered.

Messages and tool definitions are stored once and referred to by their index. A field that is None is absent; where
absence and JSON null differ, ``fidelity`` says ``absent`` of a tool's result, ``whole`` of a run's null. Times are UTC,
in RFC 3339 with up to nine digits of seconds, as text, so that nanoseconds survive.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from spanreel.errors import SessionError
from spanreel.model import ErrorCategory, Fidelity, Json, Status, ToolKind

SCHEMA = "spanreel.session/1"
CANON = "spanreel.canon/1"
"""The version of the canonical form that replay compares in."""

INSTRUCTIONS: Final[dict[str, Json]] = {"place": "instructions"}
"""The provider fields of a system message whose text was given beside the messages."""


class Document(BaseModel):
    """What all parts of the document share: unknown fields are kept, so that newer documents survive older readers."""

    model_config = ConfigDict(extra="allow")


class Message(Document):
    """One message; parts as in `spanreel.model.Message`."""

    role: str
    parts: list[dict[str, Json]] = Field(default_factory=list)
    name: str | None = None
    finish_reason: str | None = None
    provider_fields: dict[str, Json] = Field(default_factory=dict)


class ErrorInfo(Document):
    """A failure; raw text only where content is kept."""

    category: ErrorCategory = ErrorCategory.OTHER
    type: str | None = None
    message: str | None = None


class AgentInfo(Document):
    """Who ran."""

    name: str | None = None
    id: str | None = None
    version: str | None = None


class Usage(Document):
    """Token counts; input includes cached tokens, output includes reasoning."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


class Cost(Document):
    """What it cost, and who says so."""

    usd: float
    source: Literal["reported", "calculator", "estimated"]


class Evaluation(Document):
    """What somebody or something thought of a run or a call: a score, a label, or why it could not be judged.

    ``evaluator`` says what judged (``LLM``, ``CODE``, ``HUMAN``), ``response_id`` which of a model's answers, where
    the evaluation says so. ``provider_fields`` are what else it says, under its recorder's names.
    """

    name: str | None = None
    score: float | None = None
    label: str | None = None
    explanation: str | None = None
    error_type: str | None = None
    evaluator: str | None = None
    response_id: str | None = None
    judged_at: str | None = None
    provider_fields: dict[str, Json] = Field(default_factory=dict)


class Attempt(Document):
    """One HTTP attempt of a model call."""

    started_at: str | None = None
    ended_at: str | None = None
    status: int | None = None
    error: ErrorInfo | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    provider_fields: dict[str, Json] = Field(default_factory=dict)
    raw_response: str | None = None


class ModelCall(Document):
    """One request to a model and its answer. ``input``, ``output``, ``tools`` are indexes into the session's tables."""

    id: str
    operation: str = "chat"
    provider: str | None = None
    protocol: str | None = None
    model: str | None = None
    response_model: str | None = None
    response_id: str | None = None
    settings: dict[str, Json] = Field(default_factory=dict)
    input: list[int] = Field(default_factory=list)
    output: list[int] = Field(default_factory=list)
    tools: list[int] = Field(default_factory=list)
    finish_reasons: list[str] = Field(default_factory=list)
    usage: Usage | None = None
    streamed: bool = False
    complete: bool = True
    chunks: list[list[Json]] = Field(default_factory=list)
    attempts: list[Attempt] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)
    guardrails: list[dict[str, Json]] = Field(default_factory=list)
    request_fields: dict[str, Json] = Field(default_factory=dict)
    provider_fields: dict[str, Json] = Field(default_factory=dict)
    headers: dict[str, str] = Field(default_factory=dict)
    raw_request: str | None = None
    raw_response: str | None = None
    status: Status = Status.OK
    http_status: int | None = None
    error: ErrorInfo | None = None
    started_at: str | None = None
    ended_at: str | None = None
    fidelity: dict[str, Fidelity] = Field(default_factory=dict)
    evaluations: list[Evaluation] | None = None


class RequestedBy(Document):
    """The model call that asked for a tool call, and the request's place in its answer."""

    model_call: str
    position: int


class ToolCall(Document):
    """One call of a tool: what the model asked for, what was executed, what came of it.

    ``executed`` is False where no span tells of it, only a model's request and perhaps what the model was told.
    """

    id: str
    call_id: str | None = None
    name: str
    kind: ToolKind = ToolKind.FUNCTION
    requested: Json = None
    arguments: Json = None
    result: Json = None
    status: Status = Status.OK
    error: ErrorInfo | None = None
    requested_by: RequestedBy | None = None
    run: str | None = None
    target: str | None = None
    side_effect: bool | None = None
    result_type: str | None = None
    arguments_after: dict[str, Json] | None = None
    raised: dict[str, Json] | None = None
    executed: bool = True
    started_at: str | None = None
    ended_at: str | None = None
    fidelity: dict[str, Fidelity] = Field(default_factory=dict)
    evaluations: list[Evaluation] | None = None


class Turn(Document):
    """One round of the agent's loop."""

    index: int
    model_call: ModelCall | None = None
    tool_calls: list[ToolCall] = Field(default_factory=list)


class Parent(Document):
    """Where a run hangs: the run around it, and the tool call it was made in, if any."""

    run: str
    tool_call: str | None = None


class Entrypoint(Document):
    """How to run it again: the process's arguments, and the callable with its recorded arguments where there is one.

    ``defaults`` are the arguments that its caller has left to the function, whose code may have changed since.
    """

    argv: list[str] | None = None
    callable: str | None = None
    arguments: dict[str, Json] | None = None
    defaults: list[str] = Field(default_factory=list)


class Draws(Document):
    """What one place in the agent's own code drew in a run, in its order, as text.

    ``kind`` is ``clock`` (nanoseconds since 1970), ``uuid`` (32 hexadecimal digits), ``random``, or ``bits8`` and the
    like; ``site`` is the function and the text of the line.
    """

    kind: str
    site: str
    values: list[str]


class Run(Document):
    """One request to an agent until its final answer. ``result`` is the native result as JSON.

    ``implicit`` says that no agent was around its calls. ``sees_tools`` says that every tool that ran in it left a
    span: what its model was told of other calls, the framework said by itself. ``user_id`` is who asked, where that is
    another than the session's. ``order`` says what its calls are ordered by: recorded turns and places in answers, else
    their start, else their arrival.
    """

    id: str
    trace_id: str
    path: str = "root"
    parent: Parent | None = None
    agent: AgentInfo = Field(default_factory=AgentInfo)
    implicit: bool = False
    sees_tools: bool = False
    user_id: str | None = None
    draws: list[Draws] | None = None
    entrypoint: Entrypoint | None = None
    input: list[int] = Field(default_factory=list)
    output: list[int] = Field(default_factory=list)
    result: Json = None
    status: Status = Status.OK
    error: ErrorInfo | None = None
    started_at: str | None = None
    ended_at: str | None = None
    turns: list[Turn] = Field(default_factory=list)
    side_calls: list[ModelCall] = Field(default_factory=list)
    loose_tool_calls: list[ToolCall] = Field(default_factory=list)
    order: Literal["cause", "start", "arrival"] = "start"
    fidelity: dict[str, Fidelity] = Field(default_factory=dict)
    evaluations: list[Evaluation] | None = None

    def model_calls(self) -> Iterator[ModelCall]:
        """The run's own model calls, in turn order, then the side calls."""
        for turn in self.turns:
            if turn.model_call is not None:
                yield turn.model_call
        yield from self.side_calls

    def tool_calls(self) -> Iterator[ToolCall]:
        """The run's own tool calls, in turn order, then those of no turn."""
        for turn in self.turns:
            yield from turn.tool_calls
        yield from self.loose_tool_calls


class Key(Document):
    """What makes the session one."""

    kind: Literal["conversation", "trace"]
    value: str


class Redaction(Document):
    """Which policy redacted the recording, and the ids of the keys of its digests."""

    policy: str | None = None
    key_ids: list[str] = Field(default_factory=list)


class Reason(Document):
    """One thing that stands in the way of a replay: where, what, and what to do."""

    place: str
    reason: str
    remedy: str | None = None


class Eligibility(Document):
    """Whether an offline replay can be exact."""

    eligible: bool = True
    reasons: list[Reason] = Field(default_factory=list)


class Session(Document):
    """One conversation: all runs that share a conversation id, else one trace."""

    schema_: str = Field(default=SCHEMA, alias="schema")
    id: str
    revision: int = 1
    key: Key
    origin: Literal["recorded", "imported", "replay"] = "recorded"
    baseline: str | None = None
    user_id: str | None = None
    name: str | None = None
    tags: list[str] = Field(default_factory=list)
    metadata: dict[str, Json] = Field(default_factory=dict)
    started_at: str | None = None
    ended_at: str | None = None
    status: Status = Status.OK
    source: dict[str, Json] = Field(default_factory=dict)
    messages: list[Message] = Field(default_factory=list)
    tools: list[dict[str, Json]] = Field(default_factory=list)
    runs: list[Run] = Field(default_factory=list)
    usage: Usage = Field(default_factory=Usage)
    cost: Cost | None = None
    fidelity: dict[str, Fidelity] = Field(default_factory=dict)
    evaluations: list[Evaluation] | None = None
    redaction: Redaction = Field(default_factory=Redaction)
    canon: str = CANON
    replay: Eligibility = Field(default_factory=Eligibility)

    model_config = ConfigDict(extra="allow", populate_by_name=True, serialize_by_alias=True)

    def roots(self) -> list[Run]:
        """The runs that no other run made, in their order."""
        return [run for run in self.runs if run.parent is None]

    def run(self, selector: str) -> Run:
        """The run with this id, path, or number (from 0, among the root runs).

        Raises:
            SessionError: there is no such run.
        """
        for run in self.runs:
            if selector == run.id:
                return run
        if selector.isdecimal() and int(selector) < len(self.roots()):
            return self.roots()[int(selector)]
        for run in self.runs:
            if selector == run.path:
                return run
        known = [f"{number}={run.id}" for number, run in enumerate(self.roots())]
        raise SessionError(f"session {self.id!r} has no run {selector!r}; its root runs: {', '.join(known)}")


def was_made_up(session: Session, run: Run, call: ToolCall) -> bool:
    """Whether a model asked for a tool that was never offered to it, so that there is nothing to run."""
    asked_by = call.requested_by.model_call if call.requested_by is not None else None
    for model_call in run.model_calls():
        if model_call.id == asked_by and model_call.tools:
            return all(session.tools[number].get("name") != call.name for number in model_call.tools)
    return False
