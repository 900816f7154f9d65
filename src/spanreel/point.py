"""What a point is: a place in a library where a boundary is, how to read what crosses it, and how to answer there.

Frameworks, clients and protocols are tables of these; they import this module and `model`, and nothing else of ours.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NoReturn, Protocol

from spanreel import frozen
from spanreel.model import Agent, Answer, ErrorCategory, Json, Message, Operation, Request, Status, ToolKind

Piece = tuple[float, bytes]
"""Bytes of a response body, decoded, with the milliseconds between the request and their arrival."""


@frozen.dataclass(frozen=True, slots=True)
class HttpRequest:
    """An HTTP request as a client is about to send it. ``path`` is without the query.

    ``url`` may be the client's own, which nobody can change: ``str`` makes the text of it, where somebody wants that.
    """

    method: str
    url: object
    host: str
    path: str
    body: bytes
    port: int | None = None


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
class HttpAnswer:
    """An HTTP answer that a replay gives: ``pieces`` carry the body, each with the milliseconds from the start.

    Where the call was ``broken_off``, nothing more comes after the pieces; without any, there is no answer at all.
    """

    status: int
    headers: Mapping[str, str]
    pieces: Sequence[Piece]
    broken_off: BrokenOff | None = None

    @property
    def body(self) -> bytes:
        """The whole body."""
        return b"".join(piece for _, piece in self.pieces)


class ModelProtocol(Protocol):
    """How a provider writes exchanges; each module in `spanreel.protocols` has these names. Pure, no I/O.

    What a protocol reads and writes again is the same exchange: ``read_request(write_request(r)) == r``, and likewise
    for answers. Reading never raises on unknown fields (they are kept in ``provider_fields``); on what is not of the
    protocol's form at all it raises ValueError saying what and where.
    """

    NAME: str
    """The protocol's name, as recorded (``openai_chat``)."""
    PROVIDER: str
    """The provider's name by the GenAI conventions, where the host does not say otherwise."""
    PATHS: Mapping[str, Operation]
    """Ends of URL paths that carry this protocol by POST, and what they ask for."""
    STREAM_TYPE: str
    """The content type of a streamed answer."""

    def read_request(self, body: bytes, operation: Operation) -> Request:
        """Read a request body."""
        ...

    def write_request(self, request: Request) -> bytes:
        """Write a request body."""
        ...

    def read_response(self, body: bytes, status: int) -> Answer:
        """Read a plain (not streamed) response body, errors (status from 400 on) included."""
        ...

    def write_response(self, answer: Answer) -> bytes:
        """Write a plain response body, errors included."""
        ...

    def join(self, pieces: Sequence[Piece]) -> Answer:
        """Read a streamed body, whole or cut off, into the answer it amounts to."""
        ...

    def split(self, answer: Answer) -> list[Piece]:
        """Write an answer as a stream: cut as its ``chunks`` say, or as the provider would where it has none."""
        ...


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
class Live:
    """A replay lets a tool act on the world."""


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
    ``outermost`` is for tool calls that are part of the tool call around them, where there is one. Exceptions whose
    class names stand in
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


class BodyKind(StrEnum):
    """How a client reads the body of a response."""

    ITERATOR = "iterator"
    ASYNC_ITERATOR = "async_iterator"
    ASYNC_READER = "async_reader"
    """By the methods of asyncio's stream readers: ``read``, ``readline``, ``iter_any``, ..."""


@dataclass(frozen=True, slots=True)
class ClientPoint:
    """One HTTP client's `send`: where exchanges are caught.

    ``bind(wrapped, args, kwargs)`` gives a call's arguments by name, as the other functions get them.
    ``read_request(arguments)`` gives the request with its body, or None where the body is not in memory;
    ``peek(arguments)`` gives (method, path) cheaply. ``read_body(response)`` gives the body where it has already been
    read and decoded, else None. ``pass_body(response, wrap)`` puts ``wrap(stream)`` in the place of the body stream
    that is still to come. ``decode(response, pieces)`` undoes the content encoding, piece by piece.
    ``build(arguments, answer)`` makes the native response of a replay, and ``settle(arguments, response)`` does with it
    what the client does before it returns one; ``rewrite(arguments, request)`` gives the arguments that send this
    request's body to its URL in the place of their own. ``expose(arguments, see)`` is for clients that may raise for a
    response inside their `send`: it gives the arguments with which the client shows it to ``see`` first, or None where
    it raises for none.
    """

    target: str
    library: str
    is_async: bool
    body: BodyKind
    bind: Callable[[Any, tuple[Any, ...], Mapping[str, Any]], Mapping[str, Any]]
    peek: Callable[[Mapping[str, Any]], tuple[str, str]]
    read_request: Callable[[Mapping[str, Any]], HttpRequest | None]
    read_status: Callable[[Any], int]
    read_headers: Callable[[Any], Mapping[str, str]]
    read_body: Callable[[Any], bytes | None]
    pass_body: Callable[[Any, Callable[[Any], Any]], None]
    decode: Callable[[Mapping[str, str], Sequence[Piece]], list[Piece]]
    build: Callable[[Mapping[str, Any], HttpAnswer], Any]
    settle: Callable[[Mapping[str, Any], Any], Any]
    rewrite: Callable[[Mapping[str, Any], HttpRequest], Mapping[str, Any]]
    expose: Callable[[Mapping[str, Any], Callable[[Any], None]], Mapping[str, Any] | None] | None = None


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
