"""A trace as conversion sees it: what each span says, and where it stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace

from spanreel.frozen import dataclass
from spanreel.model import SessionInfo
from spanreel.records import ModelRecord, Record, RunRecord, ToolRecord
from spanreel_collector.evaluation import Evaluation
from spanreel_collector.span import RawSpan


@dataclass(frozen=True, slots=True)
class Placed:
    """A span, what it says (None: it only groups others), and its place.

    ``id`` is the span's own, or, of a run that left only its start behind, the run's. ``arrival`` counts spans as they
    came. ``earlier`` are the attempts before this one, of the same model call.
    """

    span: RawSpan
    record: Record | None
    dialect: str | None
    id: str
    parent: str | None
    arrival: int
    session: SessionInfo = field(default_factory=SessionInfo)
    earlier: tuple[Placed, ...] = ()
    evaluations: tuple[Evaluation, ...] = ()

    @property
    def started(self) -> int:
        """When it started, its first attempt included; nanoseconds, 0 where unknown."""
        return min(placed.span.start for placed in (*self.earlier, self)) if self.earlier else self.span.start


Trace = tuple[Placed, ...]
_HOLDERS = (RunRecord, ToolRecord)


class Forest:
    """The spans of a trace by id, and the way up from each; linear in the number of spans, whatever their depth.

    Parents must not go round in circles (`repair.cut_circles`).
    """

    def __init__(self, trace: Trace) -> None:
        self.by_id = {placed.id: placed for placed in trace}
        self._nearest: dict[str, str | None] = {}

    def records_above(self, placed: Placed) -> Iterator[Placed]:
        """What the span stands in, innermost first; grouping spans left out."""
        above = self.record_above(placed)
        while above is not None:
            yield above
            above = self.record_above(above)

    def top(self, placed: Placed) -> Placed:
        """The outermost span around this one that is here; itself where there is none."""
        parent = self.by_id.get(placed.parent or "")
        while parent is not None:
            placed, parent = parent, self.by_id.get(parent.parent or "")
        return placed

    def model_above(self, placed: Placed) -> Placed | None:
        """The model call directly around this span, with nothing but grouping between."""
        above = self.record_above(placed)
        return above if above is not None and isinstance(above.record, ModelRecord) else None

    def holder(self, placed: Placed) -> Placed | None:
        """The run or tool call that this span belongs to."""
        above = self.record_above(placed)
        while above is not None and not isinstance(above.record, _HOLDERS):
            above = self.record_above(above)
        return above

    def record_above(self, placed: Placed) -> Placed | None:
        """What the span stands in directly, with nothing but grouping between."""
        parent = self.by_id.get(placed.parent) if placed.parent is not None else None
        if parent is None or parent.record is not None:
            return parent
        walked: list[str] = []
        current = placed
        found: str | None = None
        while True:
            if current.id in self._nearest:
                found = self._nearest[current.id]
                break
            walked.append(current.id)
            parent = self.by_id.get(current.parent or "")
            if parent is None:
                break
            if parent.record is not None:
                found = parent.id
                break
            current = parent
        for step in walked:
            self._nearest[step] = found
        return self.by_id[found] if found is not None else None


def moved(trace: Trace, gone: dict[str, str]) -> Trace:
    """The trace with the children of spans that are gone under those that took their place."""
    if not gone:
        return trace

    def home(parent: str | None) -> str | None:
        seen = set[str]()
        while parent in gone and parent not in seen:
            seen.add(parent)
            parent = gone[parent]
        return parent

    moved = []
    for placed in trace:
        parent = home(placed.parent)
        moved.append(
            replace(placed, parent=None if parent == placed.id else parent) if parent != placed.parent else placed
        )
    return tuple(moved)
