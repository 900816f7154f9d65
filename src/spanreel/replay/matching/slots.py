"""Recorded calls, each to be used up once: what makes one the same, what came of it, which came before which."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from spanreel.loss_markers import is_lost
from spanreel.model import Fidelity, Json, Status
from spanreel.replay.comparing.canonical import canonical, canonical_arguments, text
from spanreel.replay.comparing.identity import identity, request_of
from spanreel.session import ModelCall, Run, Session, ToolCall

Instant = tuple[str, str]
Rank = tuple[int, int, int, Instant, str]

LOST = (Fidelity.TRUNCATED, Fidelity.ABSENT)
"""Of what has come to us so, too little is left to compare or to serve."""


class _Timed:
    """When a recorded call was."""

    call: ModelCall | ToolCall

    @cached_property
    def started(self) -> Instant | None:
        """When it started."""
        return instant(self.call.started_at)

    @cached_property
    def ended(self) -> Instant | None:
        """When it ended, its last attempt included."""
        return instant(self.call.ended_at)


@dataclass(eq=False)
class ModelSlot(_Timed):
    """A recorded model call. ``number`` counts from 1 in its scope; ``served`` of its attempts have been asked for.

    ``covered``: it happened inside a tool call that was served, and so is not asked for.
    """

    session: Session
    run: Run
    call: ModelCall
    number: int
    rank: Rank
    served: int = 0
    spent: bool = False
    covered: bool = False

    @property
    def attempts(self) -> int:
        """How often the call was tried."""
        return max(1, len(self.call.attempts))

    @cached_property
    def identity(self) -> dict[str, Json]:
        """What makes a request this one."""
        return identity(request_of(self.session, self.call))

    @cached_property
    def lossy(self) -> bool:
        """Whether too little of the request is left to know it again."""
        state = self.call.fidelity.get("input")
        messages = [self.session.messages[number].parts for number in self.call.input]
        return is_lost(state, messages, ours=is_ours(self.session))

    @cached_property
    def answer_lost(self) -> bool:
        """Whether too little of the answer is left to serve it; what it asked tools with is part of it."""
        messages = [self.session.messages[number].parts for number in self.call.output]
        states = [self.call.fidelity.get(name) for name in ("output", "arguments")]
        ours = is_ours(self.session)
        return any(is_lost(state, messages, ours=ours) for state in states)

    @property
    def redacted(self) -> bool:
        """Whether its answer, or what that asks tools with, is redacted."""
        return any(self.call.fidelity.get(name) is Fidelity.REDACTED for name in ("output", "arguments"))

    @property
    def answered(self) -> bool:
        """Whether anything of an answer came."""
        return bool(self.call.output)

    @property
    def tools(self) -> Iterator[dict[str, Json]]:
        """The definitions of the tools that the model was offered."""
        return (self.session.tools[number] for number in self.call.tools)

    @property
    def asked_by(self) -> None:
        """No answer asks for a model call."""
        return

    @property
    def outcome(self) -> str:
        """What came of it, as text to compare."""
        return text([self.call.output, self.call.http_status])


@dataclass(eq=False)
class ToolSlot(_Timed):
    """A recorded tool call; ``number`` and ``covered`` as for model calls. ``ours``: recorded, or redacted, by us."""

    run: Run
    call: ToolCall
    number: int
    rank: Rank
    ours: bool
    spent: bool = False
    covered: bool = False
    read: tuple[Json, Json, str] | None = None
    """The schema that the arguments were last read by, and what they are by it."""

    @cached_property
    def lossy(self) -> bool:
        """Whether too little of the arguments is left to know the call again."""
        state = self.call.fidelity.get("arguments")
        return is_lost(state, self.call.arguments, ours=self.ours)

    @cached_property
    def result_lost(self) -> bool:
        """Whether too little of the result is left to serve it."""
        state = self.call.fidelity.get("result")
        if state is Fidelity.ABSENT:
            return False
        return is_lost(state, self.call.result, ours=self.ours)

    @property
    def answered(self) -> bool:
        """Whether a result came."""
        return self.call.status is not Status.UNFINISHED

    @property
    def redacted(self) -> bool:
        """Whether its result is redacted."""
        return self.call.fidelity.get("result") is Fidelity.REDACTED

    @property
    def asked_by(self) -> str | None:
        """The model call whose answer asked for it."""
        return self.call.requested_by.model_call if self.call.requested_by else None

    def arguments(self, schema: Json) -> Json:
        """The arguments in canonical form, defaults filled."""
        return self._read_by(schema)[1]

    def key(self, schema: Json) -> str:
        """The arguments as text: equal texts are equal arguments."""
        return self._read_by(schema)[2]

    def _read_by(self, schema: Json) -> tuple[Json, Json, str]:
        if self.read is None or self.read[0] is not schema:
            arguments = canonical_arguments(self.call.arguments, schema)
            self.read = schema, arguments, text(arguments)
        return self.read

    @cached_property
    def outcome(self) -> str:
        """What came of it, as text to compare."""
        error = self.call.error
        return text([canonical(self.call.result), [error.type, error.message] if error else None])


Slot = ModelSlot | ToolSlot


def precedes(one: Slot, other: Slot) -> bool:
    """Whether one recorded call had ended before the other started; by rank where times are unknown."""
    if one.rank >= other.rank or one.call.status is Status.UNFINISHED:
        return False
    # What one model answer asked for is side by side, however it happened to be scheduled.
    if one.asked_by is not None and one.asked_by == other.asked_by:
        return False
    return one.ended is None or other.started is None or one.ended <= other.started


LAST: Final[Instant] = ("~", "")
"""After every other."""


def instant(time: str | None) -> Instant | None:
    """A time of the document in a form that sorts, to the nanosecond; the document's times are UTC."""
    if time is None:
        return None
    seconds, _, fraction = time.removesuffix("Z").removesuffix("+00:00").partition(".")
    return seconds, fraction.ljust(9, "0")


def is_ours(session: Session) -> bool:
    """Whether we have recorded the session, or a policy of ours was applied to it."""
    return session.origin != "imported" or session.redaction.policy is not None
