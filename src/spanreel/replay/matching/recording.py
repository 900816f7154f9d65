"""A recording as a replay uses it up: its calls by scope, in the order of their causes, and which of them are spent.

A scope is one recorded run, or all that happened outside every run. Not thread-safe: the player holds the lock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from spanreel.model import Json, ToolKind
from spanreel.replay.matching.slots import LAST, ModelSlot, Rank, Slot, ToolSlot, instant, is_ours
from spanreel.session import ModelCall, Run, Session, ToolCall

OUTSIDE = "outside every run"
"""The scope of calls that no agent's run holds."""


@dataclass(eq=False)
class RecordedScope:
    """The calls among which a live call may find its counterpart."""

    label: str
    runs: list[Run]
    models: list[ModelSlot] = field(default_factory=list)
    tools: list[ToolSlot] = field(default_factory=list)
    schemas: dict[str, Json] = field(default_factory=dict)
    lead: Run | None = None
    """The run inside whose calls are those of the run itself, where others recorded one around its agents."""
    asked: int = 0
    """How many model calls the live run has made here."""

    @property
    def principal(self) -> str | None:
        """The model that the first turn asked."""
        turns = (turn.model_call for run in self.runs for turn in run.turns if turn.model_call is not None)
        return next((call.model for call in turns), None)

    @property
    def slots(self) -> list[Slot]:
        """All its calls, the model's first."""
        return [*self.models, *self.tools]

    def learn(self, definitions: Iterable[dict[str, Json]]) -> None:
        """Remember the schemas of tools; what the recording says comes first."""
        for definition in definitions:
            if isinstance(name := definition.get("name"), str) and definition.get("parameters") is not None:
                self.schemas.setdefault(name, definition["parameters"])


class Recording:
    """A session, or one run of it, to be used up."""

    def __init__(self, session: Session, run: Run | None = None) -> None:
        self.session = session
        self.whole = run is None
        roots = [run] if run is not None else session.roots()
        self.roots = [root for root in roots if not root.implicit]
        loose = [root for root in roots if root.implicit]
        self.scopes: dict[str, RecordedScope] = {}
        self.covered: set[str] = set()
        """The runs inside tool calls that have been served, which will not be made."""
        # Others record a loop's calls and the span around them, which says nothing of an agent: still one run.
        alone = session.origin == "imported" and len(loose) == 1 and not self.roots
        self.outside = self._open(loose[0].path if alone else OUTSIDE, loose)
        for one in self._with_descendants(self.roots):
            if one.id not in self.scopes:
                lead = self._lead(one)
                scope = self._open(one.path, [one] if lead is None else [one, lead])
                scope.lead = lead
                self.scopes[one.id] = scope
                if lead is not None:
                    self.scopes[lead.id] = scope
        for one in self._with_descendants(loose):
            self.scopes[one.id] = self._open(one.path, [one]) if one not in loose else self.outside

    def children(self, scope: RecordedScope) -> list[Run]:
        """The runs that happened inside the scope's own."""
        inside = {run.id for run in scope.runs}
        children = [run for run in self.session.runs if run.parent is not None and run.parent.run in inside]
        return [run for run in children if run.id not in inside]

    def cover(self, tool: ToolSlot) -> None:
        """What happened inside a tool call that has been served will not be asked for."""
        inside = [
            run
            for run in self.session.runs
            if run.id == tool.call.run or (run.parent is not None and run.parent.tool_call == tool.call.id)
        ]
        for run in self._with_descendants(inside):
            self.covered.add(run.id)
            scope = self.scopes.get(run.id)
            for slot in scope.slots if scope is not None else []:
                slot.covered = True

    def all_scopes(self) -> list[RecordedScope]:
        """Every scope once, in the order of the recording."""
        return list({id(scope): scope for scope in (*self.scopes.values(), self.outside)}.values())

    def _lead(self, root: Run) -> Run | None:
        """The first of several agents that a workflow of others' holds, each the next one's guest by a handoff.

        Where an agent has handed over to the next, we have that one inside of it; others have both side by side.
        """
        if self.session.origin != "imported" or root.agent.name is not None or root.implicit:
            return None
        inside = [run for run in self.session.runs if run.parent is not None and run.parent.run == root.id]
        calls = any(True for _ in (*root.model_calls(), *root.tool_calls()))
        named = all(run.agent.name is not None and run.parent is not None for run in inside)
        return inside[0] if len(inside) > 1 and named and not calls else None

    def _with_descendants(self, runs: list[Run]) -> list[Run]:
        found = list(runs)
        for run in found:  # grows while it is walked
            known = {id(one) for one in found}
            found += [
                one
                for one in self.session.runs
                if one.parent is not None and one.parent.run == run.id and id(one) not in known
            ]
        return found

    def _open(self, label: str, runs: list[Run]) -> RecordedScope:
        scope = RecordedScope(label, runs)
        for place, run in enumerate(runs):
            calls = list(run.model_calls())
            for number, call in enumerate(calls, len(scope.models) + 1):
                rank = (place, number, -1, instant(call.started_at) or LAST, call.id)
                slot = ModelSlot(self.session, run, call, number, rank)
                scope.models.append(slot)
                scope.learn(slot.tools)
            scope.tools += _tool_slots(self.session, run, calls, place, len(scope.tools))
        return scope


def answerable(call: ToolCall) -> bool:
    """Whether a tool call crosses one of our boundaries, so that a replay is asked for it."""
    return call.executed and call.kind is not ToolKind.PROVIDER


def _tool_slots(session: Session, run: Run, models: list[ModelCall], place: int, before: int) -> list[ToolSlot]:
    turns: dict[str, int] = {call.id: turn.index for turn in run.turns for call in turn.tool_calls}
    order = {call.id: number for number, call in enumerate(models)}

    def rank(call: ToolCall) -> Rank:
        started = instant(call.started_at) or LAST
        asked = call.requested_by
        if asked is not None and asked.model_call in order:
            return place, order[asked.model_call], asked.position, started, call.id
        turn = turns.get(call.id)
        if turn is None:
            ended = [instant(model.ended_at) for model in models]
            turn = sum(1 for end in ended if end is not None and end <= started) - 1
        # After those that a model asked for: when they started is all that is known.
        return place, turn, 1_000_000, started, call.id

    calls = sorted((call for call in run.tool_calls() if answerable(call)), key=rank)
    ours = is_ours(session)
    return [ToolSlot(run, call, number, rank(call), ours) for number, call in enumerate(calls, before + 1)]
