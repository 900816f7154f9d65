"""Which recorded run a live run plays: root runs by what they are asked, others by the tool call they are inside of.

Where that tells nothing, their order and their agents do; runs inside others that are side by side are told apart by
what they are asked too. Not thread-safe: the player holds the lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spanreel.model import Json
from spanreel.player import LiveRun
from spanreel.point import ToolRequest
from spanreel.replay.comparing.canonical import canonical, first_difference
from spanreel.replay.matching.recording import OUTSIDE, RecordedScope, Recording
from spanreel.replay.matching.slots import ToolSlot
from spanreel.session import Run


@dataclass(eq=False, slots=True)
class Role:
    """What a live run plays; ``run`` is None outside every run. ``asked`` counts its model calls, ``turns`` turns."""

    scope: RecordedScope
    root: str
    run: Run | None = None
    asked: int = 0
    turns: int = 0
    live_model: str | None = None
    """The model that was asked live last."""

    @property
    def path(self) -> str:
        """The recorded path."""
        return self.run.path if self.run is not None else self.scope.label

    @property
    def recorded_id(self) -> str | None:
        """The recorded run's id."""
        return self.run.id if self.run is not None else None


class Casting:
    """Gives live runs their roles, each recorded run once."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._outside = Role(recording.outside, OUTSIDE)
        self._roles: dict[str, Role] = {}
        self._open: list[str] = []
        self._taken: set[str] = set()
        self._through: list[tuple[str | None, ToolRequest, ToolSlot]] = []

    def cast(self, run: LiveRun, asked: Json = None) -> Role | None:
        """The role of a run that starts; None where the recording has none for it.

        ``asked`` are the canonical arguments of a root run, or of one that starts beside others, where its number says
        nothing.
        """
        parent = self._roles.get(run.parent) if run.parent is not None else None
        recorded = self._choose_root(run, asked) if parent is None else self._choose_inner(run, parent, asked)
        if recorded is not None:
            root = parent.root if parent is not None else run.id
            role = Role(self.recording.scopes[recorded.id], root, recorded)
            self._taken.add(recorded.id)
        elif (borrowed := self._borrow(run, parent)) is not None:
            role = borrowed
        else:
            return None
        self._roles[run.id] = role
        self._open.append(run.id)
        return role

    def find(self, run: LiveRun | None) -> Role:
        """The role in which a call is made; a run that nobody announced is cast when it is first seen."""
        if run is not None:
            return self._roles.get(run.id) or self.cast(run) or self._outside
        outside = self._outside.scope
        roots = [self._roles[name] for name in self._open if self._roles[name].root == name]
        if not (outside.models or outside.tools) and len(roots) == 1:
            # A plain thread has lost its context; where only one run is under way, it is that one's.
            return roots[0]
        return self._outside

    def role_of(self, run: LiveRun | None) -> Role | None:
        """The role of a run that has been cast."""
        return self._roles.get(run.id) if run is not None else None

    def root(self, run: LiveRun | None) -> str:
        """What identifies the root run that a call belongs to."""
        role = self._roles.get(run.id) if run is not None else self.find(None)
        if role is None and run is not None and run.parent in self._roles:
            role = self._roles[run.parent]
        return role.root if role is not None else (run.id if run is not None else OUTSIDE)

    def end(self, run: LiveRun) -> Role | None:
        """The run has ended; its role, if it had one."""
        if run.id in self._open:
            self._open.remove(run.id)
        return self._roles.get(run.id)

    def let_through(self, run: LiveRun | None, request: ToolRequest, slot: ToolSlot) -> None:
        """A tool call runs for real, as this recorded one: runs inside it are those inside that one."""
        self._through.append((run.id if run is not None else None, request, slot))

    def expected(self, run: LiveRun) -> str:
        """What the recording has in the place of a run that it does not have."""
        parent = self._roles.get(run.parent) if run.parent is not None else None
        place = self.recording.roots if parent is None else self.recording.children(parent.scope)
        left = [f"{one.path} of agent {one.agent.name!r}" for one in place if one.id not in self._taken]
        return f"left in the recording: {', '.join(left)}" if left else "the recording has no further run there"

    def _choose_root(self, run: LiveRun, asked: Json) -> Run | None:
        left = self._left(self.recording.roots)
        # Requests that a program serves at once start in any order.
        alike = [one for one in left if one.agent.name == run.agent.name and _was_asked(one, asked)]
        return _pick(alike or left, run)

    def _choose_inner(self, run: LiveRun, parent: Role, asked: Json) -> Run | None:
        left = self._left(self.recording.children(parent.scope))
        alike = [one for one in left if one.agent.name == run.agent.name and _was_asked(one, asked)]
        left = alike or left
        for slot in self._tools_of(run):
            inside = [one for one in left if _is_inside(one, slot)]
            if inside:
                return _pick(inside, run)
        return _pick([one for one in left if one.parent is not None and one.parent.tool_call is None], run, strict=True)

    def _borrow(self, run: LiveRun, parent: Role | None) -> Role | None:
        """Whose calls a run without a counterpart may use: where the recording does not tell runs apart as we do."""
        if parent is None:
            return self._outside if not self.recording.roots else None
        unnamed, foreign = run.agent.name is None, self.recording.session.origin == "imported"
        return Role(parent.scope, parent.root, None) if unnamed or foreign else None

    def _tools_of(self, run: LiveRun) -> Sequence[ToolSlot]:
        """The recorded tool calls that the run may be inside of: the very one first, then those that look like it."""
        through = [(request, slot) for parent, request, slot in self._through if parent == run.parent]
        exact = [slot for request, slot in through if request is run.tool_call]
        return exact or [slot for request, slot in through if request == run.tool_call]

    def _left(self, runs: Sequence[Run]) -> list[Run]:
        return [run for run in runs if run.id not in self._taken]


def _is_inside(run: Run, tool: ToolSlot) -> bool:
    return tool.call.run == run.id or (run.parent is not None and run.parent.tool_call == tool.call.id)


def _was_asked(run: Run, asked: Json) -> bool:
    """Whether a recorded run was called with these arguments."""
    said = run.entrypoint.arguments if run.entrypoint is not None else None
    return bool(said) and first_difference(canonical(said), asked) is None


def _pick(runs: Sequence[Run], live: LiveRun, *, strict: bool = False) -> Run | None:
    """The first of the same path, else of the same agent, else (unless strict) the first."""
    for run in runs:
        if run.path == live.path and run.agent.name == live.agent.name:
            return run
    for run in runs:
        if run.agent.name == live.agent.name:
            return run
    return runs[0] if runs and not strict else None
