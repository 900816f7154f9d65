"""Where a call stands: the run, turn or tool call around it, carried in OpenTelemetry's context. Opens no spans."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Protocol

from opentelemetry import baggage
from opentelemetry.context import Context, create_key, get_value, set_value
from opentelemetry.trace import Span, SpanContext

from spanreel import conventions
from spanreel.capture import ExchangeCapture
from spanreel.model import Agent, SessionInfo
from spanreel.player import LiveRun
from spanreel.point import Outcome, ToolRequest
from spanreel.spans import OwnSpan

SCOPE_KEY = create_key("spanreel-scope")
SESSION_KEY = create_key("spanreel-session")
BUSY_KEY = create_key("spanreel-busy")
"""Set inside a client's `send`: clients nest, and one exchange is one span."""
OPEN_KEY = create_key("spanreel-open")
"""Set inside a call that a replay lets go to the world."""

FAILURES_KEPT = 32
RETRY_WINDOW = 120.0
"""Seconds after which the same request is no retry of the failed one outside a run."""


@dataclass(eq=False, slots=True)
class OpenTurn:
    """One round of a run's loop, open until the next model call starts or the run ends."""

    index: int
    span: Span
    context: Context
    exchanges: list[ExchangeCapture] = field(default_factory=list)
    open_models: int = 0
    last_end: int = 0


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """A failed attempt, which the same request again would continue."""

    call_id: str
    attempt: int
    turn: OpenTurn | None
    origin: SpanContext
    at: float


class DrawNotes(Protocol):
    """Where is noted what a run's own code draws from the clock, uuid4 and random."""

    def note(self, kind: str, site: str, value: str) -> None:
        """Keep one draw."""
        ...


@dataclass(eq=False, slots=True)
class RunScope:
    """A run under way: mutable, found through the context by calls from tasks and threads alike.

    ``delegate`` is the run of the agent that a handoff gave the word to: new calls belong to it.
    """

    live: LiveRun
    span: Span
    context: Context
    session: SessionInfo
    parent: RunScope | None = None
    turns: list[OpenTurn] = field(default_factory=list)
    turn_count: int = 0
    children: Counter[str] = field(default_factory=Counter)
    failures: FailedAttempts = field(default_factory=lambda: FailedAttempts())  # noqa: PLW0108 - defined below
    delegate: RunScope | None = None
    outcome: Outcome | None = None
    draws: DrawNotes | None = None
    ended: bool = False
    lock: threading.RLock = field(default_factory=threading.RLock)

    def active(self) -> RunScope:
        """The run that has the word: this one, or the one it was handed to."""
        delegate = self.delegate
        return self if delegate is None or delegate.ended else delegate.active()

    def child_path(self, name: str | None) -> str:
        """The path of a new run under this one: ``root/researcher#0``."""
        label = (name or "agent").replace("/", "_")
        with self.lock:
            number = self.children[label]
            self.children[label] += 1
        return f"{self.live.path}/{label}#{number}"

    def turn_of(self, call_id: str | None) -> OpenTurn | None:
        """The turn that a tool call joins: the newest, or the one whose answer asked for it where several are open."""
        with self.lock:
            turns = list(self.turns)
        if call_id and len(turns) > 1:
            for turn in reversed(turns):
                if any(exchange.mentions(call_id) for exchange in turn.exchanges):
                    return turn
        return turns[-1] if turns else None


@dataclass(eq=False, slots=True)
class ToolScope:
    """A tool call under way. ``implicit`` is the run of model calls made in it without an agent.

    ``failure`` is an exception of the tool that the framework made into a text for the model.
    """

    run: RunScope | None
    request: ToolRequest
    span: Span
    implicit: LiveRun | None = None
    failure: BaseException | None = None


Scope = RunScope | ToolScope


class FailedAttempts:
    """The failed attempts that a retry may continue, newest kept; by digest, so that no body is held."""

    def __init__(self) -> None:
        self._failed: dict[bytes, FailedAttempt] = {}

    def take(self, body: bytes) -> FailedAttempt | None:
        """The failure that this request continues, removed; at no price where nothing has failed."""
        if not self._failed:
            return None
        failure = self._failed.pop(_digest(body), None)
        return failure if failure and time.monotonic() - failure.at < RETRY_WINDOW else None

    def add(self, body: bytes, failure: FailedAttempt) -> None:
        """Remember a failed attempt."""
        while len(self._failed) >= FAILURES_KEPT:
            self._failed.pop(next(iter(self._failed)))
        self._failed[_digest(body)] = failure


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=16).digest()


def scope_in(context: Context) -> Scope | None:
    """The innermost scope of a context that is still open."""
    scope = context.get(SCOPE_KEY)
    if isinstance(scope, RunScope):
        return None if scope.ended else scope.active()
    return scope if isinstance(scope, ToolScope) else None


def run_in(context: Context) -> RunScope | None:
    """The run that a model call made here would belong to; none directly inside a tool."""
    scope = scope_in(context)
    return scope if isinstance(scope, RunScope) else None


def opened(context: Context) -> Context:
    """The context of a call that a replay lets go to the world: what is called in it may reach the network."""
    return set_value(OPEN_KEY, True, context)


def is_open() -> bool:
    """Whether this is called in a call that a replay has let go to the world."""
    return get_value(OPEN_KEY) is True


def session_in(context: Context) -> SessionInfo:
    """The session of a context: said in the code, else what the run knows, else baggage."""
    if not context:
        return _UNSAID
    said = context.get(SESSION_KEY)
    if isinstance(said, SessionInfo) and said.id:
        return said
    scope = scope_in(context)
    run = scope.run if isinstance(scope, ToolScope) else scope
    known = run.session if run else _UNSAID
    base = said if isinstance(said, SessionInfo) else _UNSAID
    return merge(base, merge(known, _baggage(context)))


def merge(first: SessionInfo, second: SessionInfo) -> SessionInfo:
    """Both, the first beating the second."""
    if second is _UNSAID or first is _UNSAID:
        return first if second is _UNSAID else second
    return SessionInfo(
        id=first.id or second.id,
        user_id=first.user_id or second.user_id,
        name=first.name or second.name,
        tags=first.tags or second.tags,
        metadata=first.metadata or second.metadata,
    )


_UNSAID: Final = SessionInfo()


def _baggage(context: Context) -> SessionInfo:
    entries = baggage.get_all(context)
    if not entries:
        return _UNSAID
    session = entries.get(conventions.CONVERSATION_ID) or entries.get("session.id")
    user = entries.get(conventions.USER_ID)
    return SessionInfo(id=str(session) if session else None, user_id=str(user) if user else None)


def span_id_of(span: Span) -> str | None:
    """The span's id in hex; None for spans that are not recorded at all."""
    if type(span) is OwnSpan:
        return format(span.span_id, "016x")
    identity = span.get_span_context()
    return format(identity.span_id, "016x") if identity.is_valid else None


def leave_exchange(run: RunScope, turn: OpenTurn, end_time: int) -> None:
    """A model call of the turn has ended."""
    with run.lock:
        turn.open_models -= 1
    leave_turn(turn, end_time)


def leave_turn(turn: OpenTurn, end_time: int) -> None:
    """A call of the turn has ended: the turn lasted until then at least."""
    turn.last_end = max(turn.last_end, end_time)


def implicit_run(context: Context) -> LiveRun | None:
    """The run of model calls made inside a tool without an agent."""
    scope: Scope | None = scope_in(context)
    if not isinstance(scope, ToolScope):
        return None
    if scope.implicit is None:
        path = scope.run.child_path(scope.request.name) if scope.run else f"root/{scope.request.name}#0"
        parent = scope.run.live.id if scope.run else None
        scope.implicit = LiveRun(span_id_of(scope.span) or secrets.token_hex(8), path, Agent(), parent, scope.request)
    return scope.implicit
