"""Runs before they are written down: which calls belong to which run. Conversations of several are `conversations`'."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from spanreel.model import SessionInfo
from spanreel.records import ModelRecord, RunRecord, ToolRecord, TurnRecord
from spanreel_collector.sessions.continuing import begins_anew
from spanreel_collector.sessions.facts import merge_sessions, read_resource
from spanreel_collector.trace import Forest, Placed, Trace


@dataclass(eq=False, slots=True)
class Draft:
    """A run being put together. ``run`` is None for an implicit one; ``tool`` is the tool call it was made in.

    ``asked_in`` says inside which model call a tool's span stood, ``turns`` what turn a span stood in.
    """

    id: str
    trace_id: str
    run: Placed | None = None
    parent: Draft | None = None
    tool: Placed | None = None
    models: list[Placed] = field(default_factory=list)
    tools: list[Placed] = field(default_factory=list)
    asked_in: dict[str, str] = field(default_factory=dict)
    turns: dict[str, int] = field(default_factory=dict)
    children: list[Draft] = field(default_factory=list)
    around: list[Placed] = field(default_factory=list)
    session: SessionInfo = field(default_factory=SessionInfo)

    @property
    def record(self) -> RunRecord | None:
        """What the run's own span says."""
        return self.run.record if self.run is not None and isinstance(self.run.record, RunRecord) else None

    @property
    def started(self) -> tuple[int, int]:
        """When it started (0 where unknown), and as the how-many-eth span it came."""
        starts = [placed.started for placed in ([self.run] if self.run else self.own()) if placed.started]
        return min(starts, default=0), min((placed.arrival for placed in self.own()), default=0)

    @property
    def ended(self) -> int:
        """When it ended; nanoseconds, 0 where unknown."""
        return self.run.span.end if self.run else max((placed.span.end for placed in self.own()), default=0)

    def own(self) -> list[Placed]:
        """Its own spans: the run's and its calls'."""
        return [*([self.run] if self.run else []), *self.models, *self.tools]

    def all(self) -> Iterator[Draft]:
        """This run, and those inside it, depth first."""
        yield self
        for child in self.children:
            yield from child.all()


def draft_runs(trace: Trace) -> list[Draft]:
    """The root runs of a trace, with all that belongs to them."""
    forest = Forest(trace)
    drafts: dict[str, Draft] = {
        placed.id: Draft(placed.id, placed.span.trace_id, run=placed)
        for placed in trace
        if isinstance(placed.record, RunRecord)
    }
    loose: dict[str | None, Draft] = {}
    for placed in trace:
        if placed.record is None or isinstance(placed.record, (TurnRecord, RunRecord)):
            continue
        holder = forest.holder(placed)
        if holder is None:
            root = _root_around(forest, placed)
            draft = loose[root] if root in loose else loose.setdefault(root, _loose_run(forest, placed))
        else:
            if holder.id not in drafts:
                drafts[holder.id] = Draft(holder.id, holder.span.trace_id, tool=holder)
            draft = drafts[holder.id]
        _put(draft, placed, forest)
    roots = _hang(drafts, [request for draft in loose.values() for request in _requests(draft)], forest)
    _tell_sessions(roots, trace, forest)
    return sorted(roots, key=lambda root: root.started)


def _root_around(forest: Forest, placed: Placed) -> str | None:
    """The span that a trace began with around a call; a trace with several of these is of as many requests."""
    top = forest.top(placed)
    return top.id if top.record is None and top.parent is None else None


def _requests(draft: Draft) -> list[Draft]:
    """An implicit run cut where a model had answered and is told new words of the user's: each is a request."""
    found, last = [draft], None
    models, tools, draft.models, draft.tools = draft.models, draft.tools, [], []
    homes: dict[str, Draft] = {}
    for placed in models:
        if opens_turn(placed):
            if last is not None and begins_anew(last.record, placed.record):
                found.append(replace(draft, id=f"{placed.id}-run", models=[], tools=[], children=[], run=None))
            last = placed
        found[-1].models.append(placed)
        homes[placed.id] = found[-1]
    for placed in tools:
        before = (one for one in reversed(found) if one.models and one.models[0].started <= placed.started)
        home = homes.get(draft.asked_in.get(placed.id, "")) or next(before, found[0])
        home.tools.append(placed)
    return found


def _loose_run(forest: Forest, first: Placed) -> Draft:
    """The implicit run of a trace's calls that have no agent around them."""
    top = forest.top(first)
    identity = top.id if top.record is None else f"{first.id}-run"
    return Draft(identity, first.span.trace_id, around=[top] if top.record is None else [])


def _put(draft: Draft, placed: Placed, forest: Forest) -> None:
    (draft.models if isinstance(placed.record, ModelRecord) else draft.tools).append(placed)
    for above in forest.records_above(placed):
        if isinstance(above.record, TurnRecord):
            draft.turns.setdefault(placed.id, above.record.index)
        elif isinstance(above.record, ModelRecord):
            draft.asked_in.setdefault(placed.id, above.id)
        else:
            break


def _hang(drafts: dict[str, Draft], roots: list[Draft], forest: Forest) -> list[Draft]:
    """Put each run into the run (or the tool call of it) that it was made in; returns those that stand alone."""
    homes = {tool.id: draft for draft in (*drafts.values(), *roots) for tool in draft.tools}
    for draft in drafts.values():
        anchor = draft.tool or draft.run
        holder = draft.tool or (forest.holder(anchor) if anchor else None)
        if holder is not None and isinstance(holder.record, ToolRecord):
            draft.tool, draft.parent = holder, homes.get(holder.id)
        elif holder is not None:
            draft.parent = drafts.get(holder.id)
        if draft.parent is None:
            roots.append(draft)
        else:
            draft.parent.children.append(draft)
    for draft in (*drafts.values(), *roots):
        draft.children.sort(key=lambda child: child.started)
    return roots


def _tell_sessions(roots: list[Draft], trace: Trace, forest: Forest) -> None:
    """What each root run knows of its session: from its spans, those around it, the only id in the trace, its resource.

    What spans say counts before what the process says that they are of.
    """
    known = {placed.session.id for placed in trace if placed.session.id}
    for root in roots:
        inside = [placed.session for draft in root.all() for placed in draft.own()]
        around = [placed.session for placed in _above(root, forest)]
        root.session = merge_sessions([*inside, *around])
        if root.session.id is not None and _is_response(root):
            root.session = replace(root.session, id=None)
        elif root.session.id is None and len(known) == 1:
            root.session = merge_sessions([root.session, SessionInfo(id=next(iter(known)))])
        if root.session.id is None or root.session.user_id is None:
            resources = (read_resource(placed.span.origin) for draft in root.all() for placed in draft.own())
            root.session = merge_sessions([root.session, *resources])


def _is_response(root: Draft) -> bool:
    """Whether what is called the session's id is that of an answer in it, which the next call goes on from."""
    identity = root.session.id
    for draft in root.all():
        for placed in draft.models:
            record = placed.record
            if type(record) is ModelRecord and record.answer is not None and record.answer.response_id == identity:
                return True
    return False


def _above(root: Draft, forest: Forest) -> Iterator[Placed]:
    current = forest.by_id.get((root.run.parent if root.run else None) or "")
    yield from root.around
    while current is not None:
        yield current
        current = forest.by_id.get(current.parent or "")


def opens_turn(placed: Placed) -> bool:
    """Whether this is a model call of the loop, and not one beside it."""
    return isinstance(placed.record, ModelRecord) and placed.record.request.operation.opens_turn


def turn_index(draft: Draft, placed: Placed) -> int | None:
    """The turn that was recorded with a call, or with what stands around it."""
    index = getattr(placed.record, "turn_index", None)
    return index if isinstance(index, int) else draft.turns.get(placed.id)


def cause(draft: Draft, placed: Placed) -> tuple[int, int]:
    """By turn and place in the answer where those are known; the sort is stable, so else by start or arrival."""
    index = turn_index(draft, placed)
    position = getattr(placed.record, "position", None)
    return (index if index is not None else -1), (position if isinstance(position, int) else -1)
