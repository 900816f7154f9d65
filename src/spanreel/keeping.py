"""What a run or a tool call keeps between its start and its end: a record that grows, and the capture it becomes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Protocol

from spanreel.capture import RecordCapture
from spanreel.failures import parts_of
from spanreel.held import Held, size_of
from spanreel.model import Error, Fidelity, Message, Status
from spanreel.player import LiveRun
from spanreel.point import ReadFrom, RunRequest, RunResult, ToolResult
from spanreel.quiet import quietly
from spanreel.records import Draw, RunRecord, ToolRecord
from spanreel.scope import ToolScope
from spanreel.shapes import given_before
from spanreel.snapshot import snapshot


class Kept(Protocol):
    """What a crossing keeps; a model call's is the exchange itself.

    Where it ``reads`` what the program made, whose code may run by that, it is ended inside the crossing.
    """

    reads: ClassVar[bool]

    def end(self, result: Any, error: Error | None, status: Status) -> None:
        """The call has ended."""
        ...

    def capture(self) -> Any:
        """What is handed over when the span ends."""
        ...


class DrawsKept:
    """The draws of one run, as they are noted; bounded, the first kept. Thread-safe."""

    MOST = 1_000

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], list[str]] = {}
        self._kept = 0
        self._lock = threading.Lock()

    def note(self, kind: str, site: str, value: str) -> None:
        """Keep one draw."""
        with self._lock:
            if self._kept < self.MOST:
                self._kept += 1
                self._values.setdefault((kind, site), []).append(value)

    def taken(self) -> tuple[Draw, ...]:
        """What has been kept so far."""
        with self._lock:
            return tuple(Draw(kind, site, tuple(values)) for (kind, site), values in self._values.items())


@dataclass(eq=False, slots=True)
class RunKept:
    """What a run keeps. ``content`` is whether any content is kept; ``draws`` are, where they are asked for."""

    reads: ClassVar[bool] = True

    live: LiveRun
    content: bool
    read_result: Callable[[Any], RunResult]
    draws: DrawsKept | None = None
    held: Held | None = None
    """The arguments, where content is kept."""
    came_of: int = 64
    """About how many bytes the result takes."""
    asked: dict[str, Any] = field(default_factory=dict)
    """What the record says from the run's start; likewise from its end."""
    came: dict[str, Any] = field(default_factory=dict)
    messages: tuple[Message, ...] | ReadFrom = ()
    """What the agent was asked, as messages, or how they are read from the arguments when somebody looks."""

    def start(self, request: RunRequest, *, root: bool) -> None:
        """Take the input as it is now; of a root run also how the process was started."""
        if not self.content:
            return
        given = request.arguments() if callable(request.arguments) else request.arguments
        held = self.held = Held(given)
        self.asked = {
            "argv": tuple(sys.orig_argv) if root else None,
            "callable": request.callable,
            "defaults": request.defaults,
        }
        asked = request.input
        if not isinstance(asked, ReadFrom):
            self.messages = asked() if callable(asked) else asked
        elif held.can_wait:
            self.messages = asked
        else:
            self.messages = asked.read(given.get(asked.argument))

    def started(self) -> RecordCapture:
        """What is known so far."""
        return RecordCapture(partial(self._record, started_only=True), self.content, self.given)

    def end(self, result: Any, error: Error | None, status: Status) -> None:
        """Take the result as it is now."""
        self.came = {"status": status, "error": error}
        if error is None:
            read = self.read_result(result)
            if status is Status.OK:
                self.came["status"] = read.status
            if self.content:
                value = read.value if type(read.value) is str else snapshot(read.value).value
                self.came["output"], self.came["result"] = read.output, value
                self.came_of = size_of(value)

    def capture(self) -> RecordCapture:
        """The whole record."""
        drawn = self.draws.taken() if self.draws is not None else ()
        size = self.given + self.came_of
        size += sum(len(draw.site) + sum(map(len, draw.values)) for draw in drawn)
        return RecordCapture(partial(self._record, draws=drawn, **self.came), self.content, size)

    @property
    def given(self) -> int:
        """About how many bytes the arguments take."""
        return 64 if self.held is None else self.held.size

    def _record(self, **came: Any) -> RunRecord:
        live, held = self.live, self.held
        record = partial(RunRecord, run_id=live.id, path=live.path, agent=live.agent, **self.asked, **came)
        if held is None:
            return record()
        with quietly("read what an agent was asked"):
            if isinstance(self.messages, ReadFrom):
                self.messages = self.messages.read(held.argument(self.messages.argument))
        taken = held.snapshot()
        return record(
            input=() if isinstance(self.messages, ReadFrom) else self.messages,
            arguments=taken.value or None,
            # What a repr stands for cannot be given to the agent again.
            fidelity={"arguments": Fidelity.RECONSTRUCTED} if taken.weak else {},
        )


@dataclass(eq=False, slots=True)
class ToolKept:
    """A tool call's record. An exception that the framework swallowed leaves both an error and a result."""

    reads: ClassVar[bool] = True

    record: ToolRecord
    content: bool
    scope: ToolScope
    read_result: Callable[[Any], ToolResult]

    def end(self, result: Any, error: Error | None, status: Status) -> None:
        """Take the result as it is now."""
        broken_off = status is not Status.OK and self.scope.failure is None
        if broken_off and isinstance(result, list):
            self._end_within(result, error, status)
            return
        if broken_off and getattr(result, "value", None) is None:  # an interrupt has a value: what it asks
            self.record = replace(self.record, status=status, error=error, fidelity={"result": Fidelity.ABSENT})
            return
        read = self.read_result(result)
        value = snapshot(read.value).value if self.content else None
        status = status if error else read.status
        self.record = replace(self.record, status=status, error=error, target=read.target, result=value)
        if self.content:
            self.record = replace(self.record, result_type=read.type, arguments_after=read.changed)

    def fail(self, error: BaseException) -> None:
        """Take what the exception is made of, before the end is told."""
        if self.content:
            self.record = replace(self.record, raised=parts_of(error))

    def _end_within(self, items: list[Any], error: Error | None, status: Status) -> None:
        """A generator has failed after it had given these items."""
        self.record = replace(self.record, status=status, error=error, fidelity={"result": Fidelity.ABSENT})
        if self.content:
            read = self.read_result(items)
            shape = given_before(read.type)
            self.record = replace(self.record, result=snapshot(read.value).value, result_type=shape, fidelity={})

    def capture(self) -> RecordCapture:
        """The whole record."""
        record = self.record
        return RecordCapture(lambda: record, self.content, size_of(record.arguments) + size_of(record.result))
