"""What several recorders wrote of the same beside each other made one: model calls, and the runs that these were in."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace

from spanreel.model import Json
from spanreel.records import ModelRecord, Record, RunRecord, ToolRecord
from spanreel_collector.repair.merging import fill_model, fill_run, fill_tool
from spanreel_collector.repair.views import (
    failed_alike,
    failed_untold,
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
    calls = [placed for placed in trace if isinstance(placed.record, ModelRecord)]
    doubles.fold_calls(sorted(calls, key=lambda call: (call.span.start, -call.span.end)))
    doubles.fold_runs(trace)
    folded = tuple(doubles.current[placed.id] for placed in trace if placed.id in doubles.current)
    return moved(folded, doubles.gone)


def fold_tools_beside(trace: Trace) -> Trace:
    """Tools' spans of two writers beside each other, at the same time and of the same call, become one."""
    tools = [placed for placed in trace if isinstance(placed.record, ToolRecord)]
    if len({placed.span.origin.scope for placed in tools}) < 2:
        return trace
    current = {placed.id: placed for placed in trace}
    gone: dict[str, str] = {}
    open_ones: list[str] = []
    told: dict[str, set[str]] = {}
    for call in sorted(tools, key=lambda call: (call.span.start, -call.span.end)):
        scope = call.span.origin.scope
        open_ones = [one for one in open_ones if current[one].span.end >= call.span.start]
        twin = next((one for one in open_ones if scope not in told[one] and _is_one_call(current[one], call)), None)
        if twin is None:
            open_ones.append(call.id)
            told[call.id] = {scope}
            continue
        kept, other = (call, current[twin]) if _is_our_tool(call) else (current[twin], call)
        assert isinstance(other.record, ToolRecord)
        record = kept.record if _is_our_tool(kept) else fill_tool(kept.record, other.record)
        current[kept.id] = replace(kept, record=record)
        told[kept.id] = {*told[twin], scope}
        open_ones[open_ones.index(twin)] = kept.id
        gone[other.id] = kept.id
        del current[other.id]
    return moved(tuple(current[placed.id] for placed in trace if placed.id in current), gone)


def _is_our_tool(placed: Placed) -> bool:
    return getattr(placed.record, "run_id", None) is not None


def fold_empty_runs(trace: Trace) -> Trace:
    """A run without calls within the time of another writer's run of the same agent, which has them, is its view."""
    runs = [placed for placed in trace if isinstance(placed.record, RunRecord) and placed.record.agent.name]
    if len({placed.span.origin.scope for placed in runs}) < 2:
        return trace
    forest = Forest(trace)
    busy = {holder for holder in _holders(trace, forest).values() if holder is not None}
    named: dict[str | None, list[Placed]] = defaultdict(list)
    for placed in runs:
        if placed.id in busy:
            named[_agent(placed)].append(placed)
    folded: dict[str, Placed] = {}
    for placed in runs:
        homes = [run for run in named[_agent(placed)] if _at_once(run, placed)] if placed.id not in busy else []
        if len(homes) == 1:
            folded[placed.id] = replace(placed, record=None)
            folded[homes[0].id] = fill_run(folded.get(homes[0].id, homes[0]), placed)
    return tuple(folded.get(placed.id, placed) for placed in trace)


def fold_runs_around(trace: Trace) -> Trace:
    """A run without model calls around one of the same agent that has them, and no tool between, is one with it."""
    runs = [placed for placed in trace if isinstance(placed.record, RunRecord) and placed.record.agent.name]
    if len(runs) < 2 or len({_agent(run) for run in runs}) == len(runs):
        return trace
    forest = Forest(trace)
    holders = _holders(trace, forest)
    asking = {holders[placed.id] for placed in trace if _is_model(placed)}
    folded: dict[str, Placed] = {}
    for placed in runs:
        outer = forest.record_above(placed)
        if outer is None or _agent(outer) != _agent(placed) or outer.id in asking or placed.id not in asking:
            continue
        folded[placed.id] = replace(placed, record=None)
        folded[outer.id] = fill_run(folded.get(outer.id, outer), placed)
    return tuple(folded.get(placed.id, placed) for placed in trace)


def _agent(run: Placed) -> str | None:
    return run.record.agent.name if isinstance(run.record, RunRecord) else None


def _at_once(one: Placed, other: Placed) -> bool:
    """Whether two writers' spans went on at the same time, but for what beginning and ending them took."""
    if _alike(one, other):
        return False
    shared = min(one.span.end, other.span.end) - max(one.span.start, other.span.start)
    return shared > 0 and 2 * shared > max(one.span.end - one.span.start, other.span.end - other.span.start)


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
            around = [one for one in around if one in self.current and self.current[one].span.end >= call.span.start]
            views = [self.current[one] for one in around if self._is_seen_twice(self.current[one], call)]
            around.append(call.id)
            if views:
                # Of calls side by side, the one that it fits most closely.
                self._fold(min(views, key=lambda view: view.span.end - view.span.start), call)

    def _is_seen_twice(self, outer: Placed, inner: Placed) -> bool:
        """Whether two model calls are one; a span without content is a view only of a call in its own run."""
        near = self.holders[inner.id] in (None, self.holders[outer.id]) or self.holders[outer.id] is None
        return _is_seen_twice(outer, inner) and (near or has_content(inner.record))

    def _fold(self, outer: Placed, inner: Placed) -> None:
        kept, other = (inner, outer) if self._tells_more(inner, outer) else (outer, inner)
        record = kept.record if is_ours(kept) else fill_model(kept.record, other.record)
        if self.holders[kept.id] is None and not self._is_inside(other, kept):
            # A client's span of its own trace belongs where the framework's stands.
            kept = replace(kept, parent=other.parent)
            self.holders[kept.id] = self.holders[other.id]
        self._put(kept, other, record)
        if self.holders[kept.id] != self.holders[other.id] and (view := self.holders[other.id]) is not None:
            self.views[view].add(self.holders[kept.id])

    def _is_inside(self, placed: Placed, outer: Placed) -> bool:
        """Whether the span stands somewhere in the other, which cannot go where it is then."""
        walked = set[str]()
        parent = placed.parent
        while parent is not None and parent not in walked:
            if parent == outer.id:
                return True
            walked.add(parent)
            above = self.current.get(parent)
            parent = above.parent if above is not None else self.gone.get(parent)
        return False

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
            home = _around_all(forest, view, kept)
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
            twin = next((one for one in kept if _is_one_call(self.current[one], placed)), None)
            if twin is None:
                self.current[placed.id] = replace(self.current[placed.id], parent=home)
            else:
                self._put(self.current[twin], placed, fill_tool(self.current[twin].record, placed.record))
                kept.remove(twin)


def _around_all(forest: Forest, view: str, kept: set[str | None]) -> str | None:
    """The innermost run around (or among) these runs; None where there is none, or the view is around one itself."""
    chains = []
    for identity in kept:
        placed = forest.by_id[identity] if identity is not None else None
        around = [placed, *forest.records_above(placed)] if placed is not None else []
        chains.append([one.id for one in around if isinstance(one.record, RunRecord)])
    shared = set(chains[0]).intersection(*chains[1:])
    if any(view in chain for chain in chains):
        return None
    return next((one for one in chains[0] if one in shared), None)


def _alike(one: Placed, other: Placed) -> bool:
    return one.span.origin.scope == other.span.origin.scope


def _is_one_call(one: Placed, other: Placed) -> bool:
    """Whether two tools' spans tell of one call: at the same time, and of the same id or arguments, if both say."""
    first, second = one.record, other.record
    if not isinstance(first, ToolRecord) or not isinstance(second, ToolRecord):
        return False
    if not is_one_tool(second, first) and not is_one_tool(first, second):
        return False
    if one.span.start > other.span.end or other.span.start > one.span.end:
        return False
    if first.call_id and second.call_id:
        return first.call_id == second.call_id
    unknown = "arguments" in first.fidelity or "arguments" in second.fidelity
    alike = first.arguments == second.arguments
    return unknown or alike or second.arguments in _given(first) or first.arguments in _given(second)


def _given(record: ToolRecord) -> list[Json]:
    """A single argument without its name, as LangChain tells it."""
    return list(record.arguments.values()) if isinstance(record.arguments, dict) and len(record.arguments) == 1 else []


def _is_model(placed: Placed) -> bool:
    return isinstance(placed.record, ModelRecord)


def _are_versions(models: set[str | None]) -> bool:
    """Whether names are of one model: who did not see the request has the name of the version that answered."""
    shortest = min((model or "" for model in models), key=len, default="")
    return all((model or "").startswith(shortest) for model in models)


def _is_seen_twice(outer: Placed, inner: Placed) -> bool:
    """Whether two spans of different writers, the second begun within the time of the first, tell of one call."""
    if _alike(outer, inner) or (is_ours(outer) and is_ours(inner)):
        return False
    models = {requested_model(outer.record), requested_model(inner.record)}
    first, second = response_id(outer.record), response_id(inner.record)
    if first and second:
        return first == second and _are_versions(models - {None})
    if len(models) > 1:
        return False
    within = inner.span.end <= outer.span.end
    if has_content(inner.record):
        same = same_answer(outer.record, inner.record) or failed_alike(outer.record, inner.record)
        return (same and (within or _at_once(outer, inner))) or (within and failed_untold(outer.record, inner.record))
    told = has_content(outer.record) or failed_untold(outer.record, inner.record)
    return within and told and not is_ours(inner)
