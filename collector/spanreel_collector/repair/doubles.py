"""What several recorders wrote of the same beside each other made one: model calls, and the runs that these were in."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from spanreel.model import ModelRecord, Record, RunRecord, ToolRecord
from spanreel_collector.repair.merging import fill_model, fill_run, fill_tool
from spanreel_collector.repair.views import (
    failed_alike,
    has_content,
    is_one_tool,
    is_ours,
    requested_model,
    response_id,
    richness,
    same_answer,
)
from spanreel_collector.sessions.facts import merge_sessions
from spanreel_collector.trace import Forest, Placed, Trace, moved


def fold_beside(trace: Trace) -> Trace:
    """Spans beside each other by which two writers tell of one call, one within the other's time, become one.

    So come SDKs' own spans and those of several instrumentations where the one around is not made the current one.
    Where the writers tell of whole runs, these become one too, and their tools.
    """
    if len({placed.span.origin.scope for placed in trace if isinstance(placed.record, ModelRecord)}) < 2:
        return trace
    forest = Forest(trace)
    doubles = _Doubles({placed.id: placed for placed in trace}, _told(trace), _holders(trace, forest))
    for calls in _beside(trace, doubles.holders):
        doubles.fold_calls(calls)
    doubles.fold_runs(trace)
    folded = tuple(doubles.current[placed.id] for placed in trace if placed.id in doubles.current)
    return moved(folded, doubles.gone)


def _told(trace: Trace) -> Counter[str]:
    """How much each writer tells of calls."""
    return Counter(
        placed.span.origin.scope
        for placed in trace
        if isinstance(placed.record, ToolRecord) or has_content(placed.record)
    )


def _holders(trace: Trace, forest: Forest) -> dict[str, str | None]:
    """The run or tool call that each call is in."""
    calls = (placed for placed in trace if isinstance(placed.record, ModelRecord | ToolRecord))
    holders = ((placed.id, forest.holder(placed)) for placed in calls)
    return {identity: holder.id if holder is not None else None for identity, holder in holders}


def _beside(trace: Trace, holders: dict[str, str | None]) -> Iterator[list[Placed]]:
    """Model calls that may be the same: those of one response id, wherever they stand, and those of one run."""
    beside: dict[tuple[str, str | None], list[Placed]] = defaultdict(list)
    for placed in trace:
        if isinstance(placed.record, ModelRecord):
            beside["in", holders[placed.id]].append(placed)
            if identity := response_id(placed.record):
                beside["answered", identity].append(placed)
    for calls in beside.values():
        if len({call.span.origin.scope for call in calls}) > 1:
            yield sorted(calls, key=lambda call: (call.span.start, -call.span.end))


@dataclass(eq=False, slots=True)
class _Doubles:
    """A trace while its doubles are folded. ``views`` are the runs that calls went from, each with where they went."""

    current: dict[str, Placed]
    told: Counter[str]
    holders: dict[str, str | None]
    gone: dict[str, str] = field(default_factory=dict)
    views: dict[str, set[str | None]] = field(default_factory=lambda: defaultdict(set))

    def fold_calls(self, calls: list[Placed]) -> None:
        """Fold model calls, which are ordered by start."""
        around: list[str] = []
        for call in calls:
            if call.id not in self.current:
                continue
            around = [one for one in around if one in self.current and self.current[one].span.end >= call.span.start]
            views = [self.current[one] for one in around if _is_seen_twice(self.current[one], self.current[call.id])]
            around.append(call.id)
            if views:
                # Of calls side by side, the one that it fits most closely.
                self._fold(min(views, key=lambda view: view.span.end - view.span.start), self.current[call.id])

    def _fold(self, outer: Placed, inner: Placed) -> None:
        kept, other = (inner, outer) if self._tells_more(inner, outer) else (outer, inner)
        record = kept.record if is_ours(kept) else fill_model(kept.record, other.record)
        self._put(kept, other, record)
        if self.holders[kept.id] != self.holders[other.id] and (view := self.holders[other.id]) is not None:
            self.views[view].add(self.holders[kept.id])

    def _put(self, kept: Placed, other: Placed, record: Record | None) -> None:
        session = merge_sessions((kept.session, other.session))
        self.current[kept.id] = replace(kept, record=record, session=session)
        self.gone[other.id] = kept.id
        del self.current[other.id]

    def _tells_more(self, inner: Placed, outer: Placed) -> bool:
        """Whether the inner one is kept. Of two runs' calls all are, or none: those of who tells more altogether."""
        if richness(inner) != richness(outer) or self.holders[inner.id] == self.holders[outer.id]:
            return richness(inner) > richness(outer)
        return self.told[inner.span.origin.scope] > self.told[outer.span.origin.scope]

    def fold_runs(self, trace: Trace) -> None:
        """Fold runs whose model calls all went to another's: views of that one. What else is in them goes there too."""
        busy = {self.holders[identity] for identity, placed in self.current.items() if _is_model(placed)}
        forest = Forest(trace)
        homes: dict[str, str] = {}
        for view, kept in self.views.items():
            home = _around_all(forest, kept)
            if home is not None and view not in busy and isinstance(self.current[view].record, RunRecord):
                homes[view] = home
        for placed in trace if homes else ():
            holder = forest.holder(placed) if isinstance(placed.record, RunRecord) else None
            if holder is not None and holder.id in homes and placed.id not in busy and _alike(placed, holder):
                homes.setdefault(placed.id, homes[holder.id])
        for view, home in homes.items():
            if isinstance(self.current[home].record, RunRecord):
                self.current[home] = fill_run(self.current[home], self.current[view])
            self.current[view] = replace(self.current[view], record=None)
        if homes:
            self._fold_tools(trace, homes)

    def _fold_tools(self, trace: Trace, homes: dict[str, str]) -> None:
        kept = [placed.id for placed in trace if isinstance(placed.record, ToolRecord)]
        kept = [identity for identity in kept if self.holders[identity] not in homes]
        for placed in trace:
            home = homes.get(self.holders.get(placed.id) or "")
            if home is None or not isinstance(placed.record, ToolRecord):
                continue
            twin = next((one for one in kept if self._is_one(one, placed.id)), None)
            if twin is None:
                self.current[placed.id] = replace(self.current[placed.id], parent=home)
            else:
                self._put(self.current[twin], placed, fill_tool(self.current[twin].record, placed.record))
                kept.remove(twin)

    def _is_one(self, kept: str, other: str) -> bool:
        """Whether two tools' spans tell of one call: at the same time, and of the same id or arguments, if both say."""
        one, two = self.current[kept], self.current[other]
        if not isinstance(one.record, ToolRecord) or not isinstance(two.record, ToolRecord):
            return False
        if not is_one_tool(two.record, one.record) and not is_one_tool(one.record, two.record):
            return False
        if one.span.start > two.span.end or two.span.start > one.span.end:
            return False
        if one.record.call_id and two.record.call_id:
            return one.record.call_id == two.record.call_id
        unknown = "arguments" in one.record.fidelity or "arguments" in two.record.fidelity
        return unknown or one.record.arguments == two.record.arguments


def _around_all(forest: Forest, kept: set[str | None]) -> str | None:
    """The innermost run around (or among) these runs; None where there is none around all."""
    chains = []
    for identity in kept:
        placed = forest.by_id[identity] if identity is not None else None
        around = [placed, *forest.records_above(placed)] if placed is not None else []
        chains.append([one.id for one in around if isinstance(one.record, RunRecord)])
    shared = set(chains[0]).intersection(*chains[1:]) if chains else set()
    return next((one for one in chains[0] if one in shared), None) if shared else None


def _alike(one: Placed, other: Placed) -> bool:
    return one.span.origin.scope == other.span.origin.scope


def _is_model(placed: Placed) -> bool:
    return isinstance(placed.record, ModelRecord)


def _is_seen_twice(outer: Placed, inner: Placed) -> bool:
    """Whether two spans of different writers, the second begun within the time of the first, tell of one call."""
    if outer.span.origin.scope == inner.span.origin.scope or (is_ours(outer) and is_ours(inner)):
        return False
    models = {requested_model(outer.record), requested_model(inner.record)}
    first, second = response_id(outer.record), response_id(inner.record)
    if first and second:
        return first == second and len(models - {None}) < 2
    if len(models) > 1 or inner.span.end > outer.span.end:
        return False
    if has_content(inner.record):
        return same_answer(outer.record, inner.record) or failed_alike(outer.record, inner.record)
    return has_content(outer.record) and not is_ours(inner)
