"""What a point is: a place in a library where a boundary is, how to read what crosses it, and how to answer there.

Frameworks are tables of these; they import this module and `model`, and nothing else of ours.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NoReturn, Protocol

from spanreel import frozen
from spanreel.model import Agent, Answer, ErrorCategory, Json, Message, Request, Status, ToolKind


class Kind(StrEnum):
    """What crosses at a point."""

    RUN = "run"
    TOOL = "tool"
    MODEL = "model"
    """A model that is not reached over HTTP."""
    HANDOFF = "handoff"
    FAILURE = "failure"
    """Not a call of its own: an exception that the framework swallows inside the tool call around it."""
    OUTCOME = "outcome"
    """Not a call of its own: what the run around it comes to, where the run's own call returns something else."""
    MEMORY = "memory"
    """Not recorded: a look at what an agent keeps between its runs, or a change of it."""
    CONNECTION = "connection"
    """Not recorded: a way to a server whose requests cross points of their own; in a replay it leads nowhere."""


@frozen.dataclass(frozen=True, slots=True)
class ReadFrom:
    """Messages that stand in an argument: where that is plain JSON, they are read later, from its snapshot."""

    argument: str
    read: Callable[[Any], tuple[Message, ...]]


@frozen.dataclass(frozen=True, slots=True)
class RunRequest:
    """What an agent is asked. ``input`` are messages, or how they are read, which is done only where they are kept.

    ``arguments`` is the native input by name, for a replay, or a function likewise; any values, the boundary takes the
    snapshot.

    ``callable`` is ``module:function`` where the recorded arguments suffice to call it again. ``defaults`` are those
    arguments that the caller has left to the function.
    """

    agent: Agent
    input: tuple[Message, ...] | Callable[[], tuple[Message, ...]] | ReadFrom = ()
    arguments: Mapping[str, Json] | Callable[[], Mapping[str, Json]] = field(default_factory=dict)
    callable: str | None = None
    conversation_id: str | None = None
    user_id: str | None = None
    defaults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Begun:
    """What is known of a run once its block has been entered.

    ``conversation_id`` is the id that the library has made up for a conversation that begins here. ``sees_tools``:
    every tool that runs in it crosses a point; what a model is told of other calls, the library says by itself.
    """

    conversation_id: str | None = None
    sees_tools: bool = False


@frozen.dataclass(frozen=True, slots=True)
class RunResult:
    """What an agent answered: ``output`` are messages, ``value`` the native result as JSON."""

    output: tuple[Message, ...] = ()
    value: Json = None
    status: Status = Status.OK


@frozen.dataclass(frozen=True, slots=True)
class ToolRequest:
    """A tool about to be called. ``arguments`` as executed, by name; the boundary takes their snapshot.

    ``weak`` names arguments (JSON pointers) that could not be read by their fields. ``side_effect`` is True where the
    code or a policy says so, None where nothing is known; ``pure`` where equal arguments always give the same result.
    """

    name: str
    arguments: Json
    call_id: str | None = None
    kind: ToolKind = ToolKind.FUNCTION
    description: str | None = None
    side_effect: bool | None = None
    weak: tuple[str, ...] = ()
    pure: bool = False


@frozen.dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered (any value, the boundary takes its snapshot).

    ``status`` is BLOCKED or INTERRUPTED where it did not run; ``target`` names the agent of a handoff. ``type`` names
    the value's class, as the tool's own module does; ``changed`` are arguments that the tool has changed, by name;
    ``raises`` is what a generator raised after it had given the values.
    """

    value: Json = None
    status: Status = Status.OK
    target: str | None = None
    weak: tuple[str, ...] = ()
    type: str | None = None
    changed: Mapping[str, Json] | None = None
    raises: RecordedError | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception that a framework swallows: it marks the tool call around it."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run comes to: the run point's ``read_result`` gets ``value`` when the run ends, not what its call gave."""

    value: Any


@dataclass(frozen=True, slots=True)
class RecordedError:
    """A recorded failure that a replay raises again: the exception's full class name, its text, its `parts`."""

    type: str
    message: str | None
    category: ErrorCategory = ErrorCategory.TOOL
    parts: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class BrokenOff:
    """A call that its caller broke off when it was recorded: a replay waits until that happens again.

    It waits for ``seconds`` at most; ``give_up()`` ends the run, also where the caller cannot be waited with.
    ``before`` is what a generator had given until then.
    """

    seconds: float
    give_up: Callable[[], NoReturn]
    before: ToolResult | None = None

    async def wait(self) -> NoReturn:
        """Wait to be cancelled."""
        import asyncio  # noqa: PLC0415 - who waits has it already; who only reads protocols need not

        await asyncio.sleep(self.seconds)
        self.give_up()


@dataclass(frozen=True, slots=True)
class Point:
    """One place in a library where a boundary is.

    ``target`` is ``module:Class.method``. ``read(instance, arguments)`` gets the call's arguments by name and gives the
    request, or None where this call is none. ``read_result(result)`` reads the native result; of a generator that is
    the list of its values, and nothing where ``values`` is False. For tools, ``rebuild(result, arguments)`` makes the
    native result from a recorded one; the arguments hold the instance as ``self``; ``rebuild_answer``
    likewise for models; of a connection ``rebuild`` gives what leads nowhere. ``raise_again(error, arguments)``
    raises what the library itself raises before a tool's own code runs, where the recorded error is of that kind. For
    runs, ``rewrite(arguments, recorded)`` gives the arguments by name with the recorded ones in the place of the
    caller's; ``isolate(arguments, memory)``, with the instance as ``self``, with a store of the replay's own in the
    place of the agent's, so that a replay neither reads nor writes what outlives it (``memory`` lives as long as it).
    ``work(result)`` is for a call that returns a handle at once: the task or future whose end is the end of the call;
    ``block`` for one that returns a context manager, whose block is the call and whose entered value is the result, and
    ``read_begun(entered)`` reads what has come to be known by then. ``mutable``: a tool may change its arguments, which
    is kept and done again, as are changes of what it shares with its agent, which ``shared(arguments)`` gives by name.
    ``outermost`` is for tool calls that are part of the tool call around them, where there is one. ``streams``: where
    the call returns a generator, or a streamed response, it ends where that does. Exceptions whose class names stand in
    ``control_flow`` are no errors: the call is interrupted, or what ``read_control_flow(exception)`` says; in
    ``errors`` their category is given.
    """

    target: str
    kind: Kind
    read: Callable[[Any, Mapping[str, Any]], RunRequest | ToolRequest | Request | Failure | Outcome | None]
    read_result: Callable[[Any], RunResult | ToolResult | Answer]
    rebuild: Callable[[ToolResult, Mapping[str, Any]], Any] | None = None
    rebuild_answer: Callable[[Answer, Mapping[str, Any]], Any] | None = None
    raise_again: Callable[[RecordedError, Mapping[str, Any]], None] | None = None
    rewrite: Callable[[Mapping[str, Any], Mapping[str, Json]], Mapping[str, Any]] | None = None
    isolate: Callable[[Mapping[str, Any], dict[Any, Any]], Mapping[str, Any]] | None = None
    work: Callable[[Any], Awaitable[Any] | None] | None = None
    block: bool = False
    outermost: bool = False
    mutable: bool = False
    shared: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    read_begun: Callable[[Any], Begun] | None = None
    values: bool = True
    streams: bool = False
    control_flow: tuple[str, ...] = ()
    read_control_flow: Callable[[BaseException], RunResult | ToolResult] | None = None
    errors: Mapping[str, ErrorCategory] = field(default_factory=dict)


class Cross(Protocol):
    """Takes a call through a point's crossing, as if what it calls had been wrapped, and gives what the call gives."""

    def __call__(self, point: Point, call: Callable[..., Any], instance: Any, /, *arguments: Any, **named: Any) -> Any:
        """Call with these arguments, read by the names of ``call``'s own signature."""
        ...


@dataclass(frozen=True, slots=True)
class Injection:
    """A public middleware interface to stand in, where a library has one that can substitute an answer.

    ``factory(given, cross)`` makes what ``target`` gets as ``argument`` of what its caller gave (None where that was
    nothing): an adapter whose methods only translate to ``cross(point, handler, self, ...)``.
    """

    target: str
    argument: str
    factory: Callable[[Any, Cross], Any]


@dataclass(frozen=True, slots=True)
class Framework:
    """One library's points. ``replay_environment`` is set while a replay runs (placeholder keys, exporters off).

    ``native_scopes`` are the instrumentation scopes of the spans that the library makes of the same calls by itself, by
    the module whose import brings them.
    """

    library: str
    releases: str
    points: tuple[Point, ...]
    injections: tuple[Injection, ...] = ()
    replay_environment: Mapping[str, str] = field(default_factory=dict)
    native_scopes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
