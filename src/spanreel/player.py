"""What answers in the place of the world: a replay, as the boundary sees it. How it answers is `spanreel.replay`'s."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from spanreel import frozen
from spanreel.exchange import HttpAnswer, HttpRequest, ModelProtocol
from spanreel.model import Agent, Answer, Json, Operation
from spanreel.point import BrokenOff, RecordedError, RunRequest, RunResult, ToolRequest, ToolResult


@dataclass(frozen=True, slots=True)
class Live:
    """A replay lets a tool act on the world."""


@frozen.dataclass(frozen=True, slots=True)
class LiveRun:
    """A run as a replay sees it: ``path`` is ``root`` or ``root/researcher#0``; ``parent`` the id of the run around it.

    ``tool_call`` is the live tool request this run is inside of, where there is one.
    """

    id: str
    path: str
    agent: Agent
    parent: str | None = None
    tool_call: ToolRequest | None = None


class Player(Protocol):
    """What answers instead of the world while a session is replayed. Thread-safe. Raises ReplayStop to end a run.

    The boundary calls it from any thread; ``run`` is None for calls outside every run.
    """

    memory: dict[Any, Any]
    """What frameworks keep for the length of this replay."""

    def begin_run(self, run: LiveRun, request: RunRequest) -> Mapping[str, Json] | None:
        """A run starts; what comes back are the recorded arguments that beat the caller's, or None."""
        ...

    def end_run(self, run: LiveRun, result: RunResult | None, error: BaseException | None) -> None:
        """A run has ended, with its result or the exception that left it."""
        ...

    def answer_model(
        self, run: LiveRun | None, protocol: ModelProtocol, operation: Operation, request: HttpRequest
    ) -> HttpAnswer | HttpRequest:
        """The recorded answer to a model request; or the request to send instead, where the model is live."""
        ...

    def hear_model(self, run: LiveRun | None, read: Callable[[], Answer | None]) -> None:
        """A live model has answered, or failed to (None)."""
        ...

    def answer_tool(
        self, run: LiveRun | None, request: ToolRequest
    ) -> ToolResult | RecordedError | Live | BrokenOff | None:
        """The recorded answer of a tool, or its error; or Live, where the tool itself may act on the world.

        None lets it run and meet recorded answers inside (agents as tools, handoffs).
        """
        ...

    def connects(self) -> bool:
        """Whether servers of tools are connected to, since a tool may act on the world."""
        ...

    def draw(self, run: LiveRun | None, kind: str, site: str) -> str | None:
        """What the user's code draws there from the clock, uuid4 or random; None where it may draw what it likes."""
        ...

    def refuse(self, what: str) -> None:
        """Something went past every point (a socket, a process): note it and raise."""
        ...
