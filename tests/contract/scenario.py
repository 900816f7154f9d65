"""What the contract suite asks of a framework's scenario: how to build an agent and to run it, as its users would."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from spanreel.testing import ScriptedProvider


class Ability(StrEnum):
    """What not every framework can do. One that a scenario lacks has its reason in ``Scenario.absent``."""

    PLAIN = "plain"
    ASYNC = "async"
    STREAM = "stream"
    ASYNC_STREAM = "async stream"
    HOOKS = "hooks of the user"
    PARALLEL_TOOLS = "parallel tools"
    TOOLS_IN_THREADS = "tools in threads"
    NEVER_READ = "a stream that is never read"


WAYS = (Ability.PLAIN, Ability.ASYNC, Ability.STREAM, Ability.ASYNC_STREAM)
"""The ways to run an agent."""


@dataclass(frozen=True, slots=True)
class Task:
    """What one agent is made of. A scenario builds a new agent, with a new model client, for each task.

    The model is ``provider``, in process: ``provider.transport("httpx2")`` is a transport for the SDK's HTTP client,
    sync and async alike; nothing else may be reached. ``tools`` are plain functions with type hints and a docstring,
    made tools in the framework's own way. ``tell``, where given, is to be called with a word by each hook that the
    framework offers (callbacks, middleware, event handlers), registered as its users would.
    """

    provider: ScriptedProvider
    tools: Sequence[Callable[..., Any]] = ()
    question: str = "How is the weather in Paris?"
    instructions: str = "Be brief."
    agent: str = "weather"
    tell: Callable[[str], None] | None = None


@dataclass(frozen=True, slots=True)
class Streaming:
    """A streamed run in the steps of its user. Of an `ASYNC_STREAM` each may also give an awaitable.

    ``open(task)`` gives the framework's own stream, unread. ``items(stream)`` iterates over it (an async iterator for
    `ASYNC_STREAM`) and gives what the user sees, as comparable values; the text of the final answer among them, in
    order, is what joining those of type str gives. ``close(stream)`` is what a user does who has read enough.
    """

    open: Callable[[Task], Any]
    items: Callable[[Any], Any]
    close: Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One framework. ``name`` is that of its file; ``distribution`` is the package whose version the table shows.

    ``protocol`` is how its model calls are written. ``plain(task)`` and ``asynchronous(task)`` run the agent until its
    final answer and give its text.

    ``tool_result(recorded)`` gives a tool's own return value out of the recorded one, where the framework wraps it.
    ``targets`` are some of the points of the framework, as `wrapped_targets` names them. ``named`` is whether its
    agents have names.
    """

    name: str
    distribution: str
    protocol: str
    plain: Callable[[Task], str] | None = None
    asynchronous: Callable[[Task], Awaitable[str]] | None = None
    streaming: Streaming | None = None
    async_streaming: Streaming | None = None
    tool_result: Callable[[Any], Any] = lambda recorded: recorded
    targets: tuple[str, ...] = ()
    named: bool = True
    absent: Mapping[Ability, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Each way is there, or its absence has a reason."""
        for ability, way in (
            (Ability.PLAIN, self.plain),
            (Ability.ASYNC, self.asynchronous),
            (Ability.STREAM, self.streaming),
            (Ability.ASYNC_STREAM, self.async_streaming),
        ):
            if (way is None) is not (ability in self.absent):
                raise ValueError(f"scenario {self.name!r}: {ability!r} is to be there, or absent with a reason")
