"""What a run or a tool call keeps between its start and its end: a record that grows, and the capture it becomes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from spanreel import json_text
from spanreel.capture import RecordCapture
from spanreel.model import Draw, Error, Fidelity, RunRecord, Status, ToolRecord
from spanreel.point import RunRequest, RunResult, ToolResult
from spanreel.scope import ToolScope
from spanreel.shapes import given_before
from spanreel.snapshot import snapshot


class Kept(Protocol):
    """What a crossing keeps; a model call's is the exchange itself."""

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
    """A run's record. ``content`` is whether any content is kept; ``draws`` are, where they are asked for."""

    record: RunRecord
    content: bool
    read_result: Callable[[Any], RunResult]
    draws: DrawsKept | None = None
    given: int = 0
    """About how many bytes the arguments take."""

    def start(self, request: RunRequest, *, root: bool) -> None:
        """Take the input as it is now; of a root run also how the process was started."""
        if self.content:
            taken = snapshot(request.arguments)
            self.record = replace(
                self.record,
                input=request.input() if callable(request.input) else request.input,
                arguments=taken.value or None,
                # What a repr stands for cannot be given to the agent again.
                fidelity={"arguments": Fidelity.RECONSTRUCTED} if taken.weak else {},
                argv=tuple(sys.orig_argv) if root else None,
                callable=request.callable,
            )
        self.given = size_of(self.record.arguments)

    def started(self) -> RecordCapture:
        """What is known so far."""
        return RecordCapture(replace(self.record, started_only=True), self.content, self.given)

    def end(self, result: Any, error: Error | None, status: Status) -> None:
        """Take the result as it is now."""
        self.record = replace(self.record, status=status, error=error)
        if error is None:
            read = self.read_result(result)
            status = read.status if status is Status.OK else status
            if self.content:
                value = snapshot(read.value).value
                self.record = replace(self.record, status=status, output=read.output, result=value)
            elif status is not self.record.status:
                self.record = replace(self.record, status=status)

    def capture(self) -> RecordCapture:
        """The whole record."""
        drawn = self.draws.taken() if self.draws is not None else ()
        size = self.given + size_of(self.record.result)
        size += sum(len(draw.site) + sum(map(len, draw.values)) for draw in drawn)
        return RecordCapture(replace(self.record, draws=drawn) if drawn else self.record, self.content, size)


@dataclass(eq=False, slots=True)
class ToolKept:
    """A tool call's record. An exception that the framework swallowed leaves both an error and a result."""

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

    def _end_within(self, items: list[Any], error: Error | None, status: Status) -> None:
        """A generator has failed after it had given these items."""
        self.record = replace(self.record, status=status, error=error, fidelity={"result": Fidelity.ABSENT})
        if self.content:
            read = self.read_result(items)
            shape = given_before(read.type)
            self.record = replace(self.record, result=snapshot(read.value).value, result_type=shape, fidelity={})

    def capture(self) -> RecordCapture:
        """The whole record."""
        size = size_of(self.record.arguments) + size_of(self.record.result)
        return RecordCapture(self.record, self.content, size)


def size_of(value: Any) -> int:
    """About how many bytes a JSON value takes, for the bound of the queue."""
    return 64 + len(value if isinstance(value, str) else json_text.encode(value))
