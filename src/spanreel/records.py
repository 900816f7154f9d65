"""What a span says, as data: a run, a turn, a model call, a tool call. `wire` writes and reads it, dialects read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from spanreel.frozen import dataclass
from spanreel.model import Agent, Answer, Error, Fidelity, Json, Message, Request, Status, ToolDefinition, ToolKind


@dataclass(frozen=True, slots=True)
class Draw:
    """What one place in the user's code drew in a run, in its order: ``clock`` (nanoseconds), ``uuid``, ``random``.

    ``site`` is the function and the text of the line. ``bits8`` and the like are numbers of so many random bits.
    """

    kind: str
    site: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run, or (``started_only``) what was known when it started. ``result`` is absent where fidelity says so.

    ``outermost_only`` is a step of a framework's, which is a run only where no run stands around it. ``tools`` are what
    the run offers its models, where its model calls do not say it.
    """

    run_id: str | None = None
    path: str | None = None
    agent: Agent = Agent()
    input: tuple[Message, ...] = ()
    output: tuple[Message, ...] = ()
    arguments: Mapping[str, Json] | None = None
    argv: tuple[str, ...] | None = None
    callable: str | None = None
    defaults: tuple[str, ...] = ()
    result: Json = None
    status: Status = Status.OK
    error: Error | None = None
    started_only: bool = False
    sees_tools: bool = False
    outermost_only: bool = False
    tools: tuple[ToolDefinition, ...] = ()
    draws: tuple[Draw, ...] = ()
    fidelity: Mapping[str, Fidelity] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """A turn of a run."""

    run_id: str | None = None
    index: int = 0


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """One attempt of a model call. ``answer`` is None where none came; ``error`` then says why.

    ``raw_request`` and ``raw_response`` hold the text of bodies that the protocol could not read. ``continues``: the
    request's messages are only what is new since the model call before it, as the writer left the others out.
    Fidelity keys: input, output, instructions, tools, settings, arguments (of tool calls in the output), usage.
    """

    request: Request
    answer: Answer | None = None
    provider: str | None = None
    protocol: str | None = None
    call_id: str | None = None
    attempt: int = 0
    run_id: str | None = None
    turn_index: int | None = None
    agent: Agent = Agent()
    host: str | None = None
    port: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    time_to_first_chunk: float | None = None
    error: Error | None = None
    status: Status = Status.OK
    raw_request: str | None = None
    raw_response: str | None = None
    continues: bool = False
    fidelity: Mapping[str, Fidelity] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolRecord:
    """One tool call as executed; ``position`` is its place among those of its model answer.

    Fidelity keys: arguments, result. A result that is None with fidelity ``absent`` was not recorded. ``parameters`` is
    the JSON Schema of the arguments, where the call's span says it, as it may say the tool's ``description``.
    ``result_type`` says what a result was before it became JSON, as `shapes` does. ``arguments_after`` are those
    arguments that the tool has changed, as they were when it ended. ``raised`` are the parts of its exception, where
    class and text do not say all (`failures`).
    """

    name: str
    arguments: Json = None
    result: Json = None
    call_id: str | None = None
    kind: ToolKind = ToolKind.FUNCTION
    description: str | None = None
    parameters: Json = None
    side_effect: bool | None = None
    target: str | None = None
    position: int | None = None
    run_id: str | None = None
    turn_index: int | None = None
    result_type: str | None = None
    arguments_after: Mapping[str, Json] | None = None
    raised: Mapping[str, Json] | None = None
    status: Status = Status.OK
    error: Error | None = None
    fidelity: Mapping[str, Fidelity] = field(default_factory=dict)


Record = RunRecord | TurnRecord | ModelRecord | ToolRecord
