"""Traces -> sessions: root runs are grouped by conversation and written down, the session's facts drawn from them."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from spanreel import conventions as names
from spanreel.model import Fidelity, Status, ToolKind
from spanreel.session import Key, Parent, Redaction, Run, Session, Usage
from spanreel_collector import json_text
from spanreel_collector.dialects import spanreel as own_dialect
from spanreel_collector.dialects import values
from spanreel_collector.drafts import Draft, draft_runs, join_loops
from spanreel_collector.eligibility import judge
from spanreel_collector.facts import merge_sessions, read_redaction, read_source
from spanreel_collector.runs import Place, child_places, write_run
from spanreel_collector.tables import Tables
from spanreel_collector.trace import Placed, Trace

_GRAVITY = (Fidelity.WHOLE, Fidelity.RECONSTRUCTED, Fidelity.REDACTED, Fidelity.TRUNCATED, Fidelity.ABSENT)


@dataclass(frozen=True, slots=True)
class Group:
    """The root runs of one session, and what makes them one."""

    kind: Literal["conversation", "trace"]
    value: str
    roots: tuple[Draft, ...]


def group(traces: Iterable[Trace]) -> list[Group]:
    """The sessions that these (repaired) traces make, oldest first."""
    roots = [root for trace in traces for root in draft_runs(trace)]
    keyed: dict[tuple[Literal["conversation", "trace"], str], list[Draft]] = defaultdict(list)
    for conversation in join_loops(roots):
        first = conversation[0]
        if first.session.id is not None:
            keyed["conversation", first.session.id] += conversation
        else:
            keyed["trace", first.trace_id] += conversation
    groups = [
        Group(kind, value, tuple(sorted(drafts, key=lambda root: root.started)))
        for (kind, value), drafts in keyed.items()
    ]
    return sorted(groups, key=lambda one: (one.roots[0].started, one.kind, one.value))


def assemble(one: Group) -> Session:
    """The session document of a group."""
    drafts = [draft for root in one.roots for draft in root.all()]
    pages = _Pages(_unique_ids(drafts))
    for draft in drafts:
        if draft.tool is not None and draft.parent is not None:
            pages.runs_of_tools[draft.tool.id] = pages.ids[id(draft)]
    for root in one.roots:
        path = (root.record.path if root.record else None) or "root"
        pages.write(root, Place(pages.ids[id(root)], path))
    return _bind(one, pages, [placed for draft in drafts for placed in (*draft.own(), *draft.around)])


@dataclass(eq=False, slots=True)
class _Pages:
    """A session's runs while they are written. ``ids`` are the runs' by their drafts' identity."""

    ids: dict[int, str]
    tables: Tables = field(default_factory=Tables)
    runs_of_tools: dict[str, str] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)

    def write(self, draft: Draft, place: Place) -> Run:
        """Write a run, and after it those inside it."""
        run = write_run(draft, place, self.tables, self.runs_of_tools)
        self.runs.append(run)
        for child, path in child_places(draft, place):
            parent = Parent(run=place.id, tool_call=child.tool.id if child.tool else None)
            _link_handoff(run, self.write(child, Place(self.ids[id(child)], path, parent)))
        return run


def _unique_ids(drafts: list[Draft]) -> dict[int, str]:
    """Ids of runs: the span's, with its trace's where two traces of the session have the same."""
    ids: dict[int, str] = {}
    used = set[str]()
    for draft in drafts:
        identity = draft.id if draft.id not in used else f"{draft.id}.{draft.trace_id}"
        used.add(identity)
        ids[id(draft)] = identity
    return ids


def _bind(one: Group, pages: _Pages, spans: list[Placed]) -> Session:
    """The document around the runs."""
    runs = pages.runs
    said = merge_sessions(root.session for root in one.roots)
    policy, key_ids = read_redaction(placed.span for placed in spans)
    origin, baseline = _origin(spans)
    session = Session(
        id="s-" + hashlib.sha256(f"{one.kind}:{one.value}".encode("utf-8", "replace")).hexdigest()[:16],
        key=Key(kind=one.kind, value=one.value),
        origin=origin,
        baseline=baseline,
        user_id=said.user_id,
        name=said.name,
        tags=list(said.tags),
        metadata=json_text.plain(dict(said.metadata)),
        started_at=min((run.started_at for run in runs if run.started_at), default=None),
        ended_at=max((run.ended_at for run in runs if run.ended_at), default=None),
        status=_status([run for run in runs if run.parent is None]),
        source=read_source((placed.span for placed in spans), (placed.dialect for placed in spans if placed.dialect)),
        messages=pages.tables.messages,
        tools=pages.tables.tools,
        runs=runs,
        usage=_usage(runs),
        fidelity=_fidelity(runs),
        redaction=Redaction(policy=policy, key_ids=key_ids),
    )
    session.replay = judge(session)
    return session


def _link_handoff(run: Run, child: Run) -> None:
    """A run that no tool call holds was handed over to by the first handoff to its agent that is still without one."""
    if child.parent is None or child.parent.tool_call is not None or child.agent.name is None:
        return
    for call in run.tool_calls():
        if call.kind is ToolKind.HANDOFF and call.target == child.agent.name and call.run is None:
            call.run, child.parent.tool_call = child.id, call.id
            return


def _status(roots: list[Run]) -> Status:
    """Unfinished while a root run is; else how the last one ended."""
    if any(run.status is Status.UNFINISHED for run in roots):
        return Status.UNFINISHED
    return roots[-1].status if roots else Status.OK


def _origin(spans: list[Placed]) -> tuple[Literal["recorded", "imported", "replay"], str | None]:
    for placed in spans:
        if placed.span.attributes.get(names.ORIGIN) == "replay":
            return "replay", values.text(placed.span.attributes, names.BASELINE)
    ours = any(placed.dialect == own_dialect.NAME for placed in spans)
    return ("recorded" if ours else "imported"), None


def _usage(runs: list[Run]) -> Usage:
    """The sum over model calls; what no call says stays unknown."""
    total = Usage()
    for run in runs:
        for call in run.model_calls():
            for name in Usage.model_fields:
                count = getattr(call.usage, name) if call.usage else None
                if count is not None:
                    setattr(total, name, (getattr(total, name) or 0) + count)
    return total


def _fidelity(runs: list[Run]) -> dict[str, Fidelity]:
    """The gravest state of each kind of field, where it is not whole."""
    worst: dict[str, Fidelity] = {}
    for run in runs:
        marks = [
            run.fidelity,
            *(call.fidelity for call in run.model_calls()),
            *(call.fidelity for call in run.tool_calls()),
        ]
        for name, state in (item for mark in marks for item in mark.items()):
            if _GRAVITY.index(state) > _GRAVITY.index(worst.get(name, Fidelity.WHOLE)):
                worst[name] = state
    return worst
