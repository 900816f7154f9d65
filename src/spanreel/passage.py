"""A call of a point under way, and what a replay answers to it: a result, an error, or nothing for a while."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from spanreel.crossing import Crossing
from spanreel.failures import rebuild_error
from spanreel.model import Status
from spanreel.point import BrokenOff, Kind, Point, RecordedError, RunResult, ToolResult
from spanreel.rebuilding import change_again
from spanreel.surroundings import change_shared

_NOTHING: Any = object()


@dataclass(eq=False, slots=True)
class Passage:
    """A call under way: its crossing (None where nothing is recorded), its arguments, what a replay answers to it."""

    crossing: Crossing
    bound: inspect.BoundArguments | None
    served: Any = _NOTHING
    error: BaseException | None = None
    error_after: BaseException | None = None
    """What a generator raises after what it has given."""
    broken_off: BrokenOff | None = None
    """The call was broken off when it was recorded, and is to be waited with."""

    @property
    def is_served(self) -> bool:
        """Whether a replay has answered."""
        return self.served is not _NOTHING

    def proceed(self, wrapped: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """What a replay answered, else what the call itself gives."""
        if self.error is not None:
            raise self.error
        if self.broken_off is not None:
            self.broken_off.give_up()
        if self.served is not _NOTHING:
            return self.served
        if self.bound is not None:
            return wrapped(*self.bound.args, **self.bound.kwargs)
        return wrapped(*args, **kwargs)


def serve(passage: Passage, point: Point, answer: ToolResult, arguments: Mapping[str, Any]) -> None:
    """Answer with the recorded result; what interrupted the call interrupts it again."""
    try:
        passage.served = point.rebuild(answer, arguments) if point.rebuild is not None else answer.value
        if answer.raises is not None:
            passage.error_after = error_again(point, answer.raises, arguments)
        if answer.changed:
            change_again(arguments, answer.changed)
            if point.shared is not None:
                change_shared(point.shared(arguments), answer.changed)
    except BaseException as error:
        if read_control_flow(point, error) is None:
            raise
        passage.error = error


def error_again(point: Point, recorded: RecordedError, arguments: Mapping[str, Any]) -> BaseException:
    """The library's own error where it raises the recorded one by itself, else one made from the recorded text."""
    if point.raise_again is not None:
        try:
            point.raise_again(recorded, arguments)
        except Exception as error:  # noqa: BLE001 - whether it is the recorded one is seen below
            if type(error).__qualname__ == recorded.type.rpartition(".")[2]:
                return error
    return rebuild_error(recorded)


def read_control_flow(point: Point, error: BaseException) -> RunResult | ToolResult | None:
    """What an exception amounts to that is no error; None for all others."""
    if not {kind.__name__ for kind in type(error).__mro__} & set(point.control_flow):
        return None
    if point.read_control_flow is not None:
        return point.read_control_flow(error)
    kind = RunResult if point.kind is Kind.RUN else ToolResult
    return kind(status=Status.INTERRUPTED)
