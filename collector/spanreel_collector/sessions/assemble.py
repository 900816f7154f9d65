"""Traces -> sessions: root runs are grouped by conversation and written down, the session's facts drawn from them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from spanreel.conventions import SESSION_NAMESPACE
from spanreel.model import GRAVITY, Fidelity, SessionInfo, Status, ToolKind
from spanreel.session import Cost, Key, ModelCall, Parent, Redaction, Run, Session, Usage
from spanreel_collector import json_text
from spanreel_collector.dialects.content import costs
from spanreel_collector.evaluation import Evaluation
from spanreel_collector.sessions.call_ids import name_calls
from spanreel_collector.sessions.conversations import Conversations, is_nameless
from spanreel_collector.sessions.drafts import Draft, draft_runs
from spanreel_collector.sessions.eligibility import judge, mark_missing_models
from spanreel_collector.sessions.facts import Origins, merge_sessions
from spanreel_collector.sessions.loops import is_loop, join_loops
from spanreel_collector.sessions.runs import RunPlace, child_places, write_run
from spanreel_collector.sessions.tables import COUNTS, Tables, evaluations_info
from spanreel_collector.trace import Trace

KeyKind = Literal["conversation", "trace"]
_BookKey = tuple[KeyKind, str, str]
"""The kind and value of a session's key, and its namespace."""


Failed = Callable[[str, Exception], None]
"""Told of what could not be written: the place, and why."""


class Assembly:
    """Sessions while their traces arrive, each put right: runs are written down at once, and their spans let go.

    Of all traces that may share a session. Only loops without an agent wait: another trace may go on with them.
    """

    def __init__(self, failed: Failed, namespace: str | None = None) -> None:
        self._failed = failed
        self._namespace = namespace
        self._books: dict[_BookKey, _Book] = {}
        self._waiting: list[Draft] = []
        self._conversations = Conversations[_BookKey]()

    def add(self, trace: Trace) -> list[Draft]:
        """Write down the runs of a trace; returns its root runs, which other traces may go on with."""
        roots = draft_runs(trace)
        for root in roots:
            if is_loop(root):
                self._waiting.append(root)
            else:
                self._write(root, root)
        return roots

    def finish(self) -> Iterator[Finished]:
        """The documents, oldest first."""
        for conversation in join_loops(self._waiting):
            for root in conversation:
                self._write(conversation[0], root)
        self._waiting = []
        books = [(book.began, *key, book) for key, book in self._books.items() if book.roots]
        for began, kind, value, namespace, book in sorted(books, key=lambda one: one[:4]):
            try:
                yield Finished(began, book.bind(kind, value, namespace or None))
            except Exception as error:  # noqa: BLE001 - what strangers wrote may fail anywhere: a session costs only itself
                self._failed(f"session of {kind} {value!r}", error)

    def _write(self, first: Draft, root: Draft) -> None:
        namespace = self._namespace or _namespace_of(first) or ""
        key: _BookKey = ("trace", first.trace_id, namespace)
        if first.session.id is not None:
            key = ("conversation", first.session.id, namespace)
        try:
            if is_nameless(root):
                key = self._conversations.join(root, key)
            self._books.setdefault(key, _Book()).write(root)
        except Exception as error:  # noqa: BLE001 - as in finish: a run costs only itself
            self._failed(f"run {root.id} of trace {root.trace_id}", error)


@dataclass(frozen=True, slots=True)
class Finished:
    """A document, and by what it is ordered among others: when it began, and as the how-many-eth span it came."""

    began: tuple[int, int]
    session: Session


@dataclass(eq=False, slots=True)
class _Book:
    """A session's document while its runs are written; ``roots`` are the root runs, each with those inside it."""

    tables: Tables = field(default_factory=Tables)
    origins: Origins = field(default_factory=Origins)
    roots: list[tuple[tuple[int, int], SessionInfo, list[Run]]] = field(default_factory=list)
    evaluations: list[Evaluation] = field(default_factory=list)
    _used: set[str] = field(default_factory=set)

    @property
    def began(self) -> tuple[int, int]:
        """When its first root run did."""
        return min(began for began, _, _ in self.roots)

    def write(self, root: Draft) -> None:
        """Write a root run down, and those inside it."""
        drafts = list(root.all())
        pages = _Pages(self._unique_ids(drafts), self.tables)
        for draft in drafts:
            if draft.tool is not None and draft.parent is not None:
                pages.runs_of_tools[draft.tool.id] = pages.ids[id(draft)]
        path = (root.record.path if root.record else None) or "root"
        pages.write(root, RunPlace(pages.ids[id(root)], path))
        for draft in drafts:
            for placed in (*draft.own(), *draft.around):
                self.origins.add(placed.span, placed.dialect)
                self.evaluations += placed.evaluations
        self.roots.append((root.started, root.session, pages.runs))

    def _unique_ids(self, drafts: list[Draft]) -> dict[int, str]:
        """Ids of runs: the span's, with its trace's where two traces of the session have the same."""
        ids: dict[int, str] = {}
        for draft in drafts:
            identity = draft.id if draft.id not in self._used else f"{draft.id}.{draft.trace_id}"
            self._used.add(identity)
            ids[id(draft)] = identity
        return ids

    def bind(self, kind: KeyKind, value: str, namespace: str | None) -> Session:
        """The document around the runs."""
        source = self.origins.source()
        roots = sorted(self.roots, key=lambda root: root[0])
        runs = [run for _, _, written in roots for run in written]
        said = merge_sessions(session for _, session, _ in roots)
        for _, asked, written in roots:
            if asked.user_id != said.user_id:
                written[0].user_id = asked.user_id
        session = Session(
            id=_identity(kind, value, namespace),
            key=Key(kind=kind, value=value),
            origin=self.origins.origin,
            baseline=self.origins.baseline,
            user_id=said.user_id,
            name=said.name,
            tags=list(said.tags),
            metadata=json_text.plain(dict(said.metadata)),
            source=source if namespace is None else {**source, "namespace": namespace},
            messages=self.tables.messages,
            tools=self.tables.tools,
            runs=runs,
            redaction=Redaction(policy=self.origins.policy, key_ids=sorted(self.origins.key_ids)),
            evaluations=evaluations_info(self.evaluations, of_session=True),
        )
        name_calls(session)
        mark_missing_models(session)
        summarise(session)
        return session


def _identity(kind: str, value: str, namespace: str | None) -> str:
    """The session's id: the same whenever it is imported, and another one of another namespace."""
    named = f"{kind}:{value}" if namespace is None else json_text.canonical([namespace, kind, value])
    return "s-" + hashlib.sha256(named.encode("utf-8", "replace")).hexdigest()[:16]


def _namespace_of(root: Draft) -> str | None:
    """The namespace that a session document says its runs are of."""
    spans = (placed.span for placed in (*([root.run] if root.run else []), *root.around))
    return next((found for span in spans if isinstance(found := span.attributes.get(SESSION_NAMESPACE), str)), None)


def summarise(session: Session) -> None:
    """Set what follows from the runs: times, status, usage, fidelity, and whether a replay can be exact."""
    runs = session.runs
    session.started_at = min((run.started_at for run in runs if run.started_at), default=None)
    session.ended_at = max((run.ended_at for run in runs if run.ended_at), default=None)
    session.status = _status([run for run in runs if run.parent is None])
    calls = [call for run in runs for call in run.model_calls()]
    session.usage = _usage(calls)
    session.cost = _cost(calls) or session.cost
    session.fidelity = _fidelity(runs)
    session.replay = judge(session)


@dataclass(eq=False, slots=True)
class _Pages:
    """A root run's pages while they are written. ``ids`` are the runs' by their drafts' identity."""

    ids: dict[int, str]
    tables: Tables
    runs_of_tools: dict[str, str] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)

    def write(self, draft: Draft, place: RunPlace) -> Run:
        """Write a run, and after it those inside it."""
        run = write_run(draft, place, self.tables, self.runs_of_tools)
        self.runs.append(run)
        for child, path in child_places(draft, place):
            parent = Parent(run=place.id, tool_call=child.tool.id if child.tool else None)
            _link_handoff(run, self.write(child, RunPlace(self.ids[id(child)], path, parent)))
        return run


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


def _usage(calls: list[ModelCall]) -> Usage:
    """The sum over model calls; what no call says stays unknown."""
    total: dict[str, int] = {}
    for call in calls:
        for name in COUNTS if call.usage else ():
            count = getattr(call.usage, name)
            if count is not None:
                total[name] = total.get(name, 0) + count
    return Usage(**total)


def _cost(calls: list[ModelCall]) -> Cost | None:
    """The sum over model calls, of those that say what they cost."""
    known = [cost for call in calls if (cost := costs.of_answer(call.provider_fields)) is not None]
    return Cost(usd=round(sum(known), 12), source="reported") if known else None


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
            if GRAVITY.index(state) > GRAVITY.index(worst.get(name, Fidelity.WHOLE)):
                worst[name] = state
    return worst
