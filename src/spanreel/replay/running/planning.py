"""What a replay will do, said before anything runs: for every tool its policy, for every call what answers it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spanreel.errors import ReplayRefused
from spanreel.model import Status, ToolKind
from spanreel.replay.changing.changes import ROOT, Changes, overrides_of
from spanreel.replay.changing.tool_policies import Choice, History, OnMiss, Passthrough, choose
from spanreel.replay.comparing.canonical import canonical_arguments
from spanreel.replay.matching.naming import name_of
from spanreel.replay.matching.recording import OUTSIDE, RecordedScope, Recording
from spanreel.replay.matching.slots import ModelSlot, Slot
from spanreel.replay.playing.answering_tools import RUNNING
from spanreel.replay.running.preflight import check, doubts
from spanreel.session import Run, Session


@dataclass(frozen=True, slots=True)
class Plan:
    """What will happen, line by line; ``refused`` says why the replay will not start at all, None where it will."""

    lines: tuple[str, ...]
    refused: str | None


def plan(session: Session, run: Run | None, changes: Changes, *, serve_redacted: bool = False) -> Plan:
    """The plan of a replay of this session, or of one run of it, with these changes."""
    refused = None
    try:
        check(session, run, changes, serve_redacted=serve_redacted)
    except ReplayRefused as error:
        refused = str(error)
    scopes = [scope for scope in Recording(session, run).all_scopes() if scope.slots]
    lines = [f"replay of {session.id}" + (f"#{run.id}" if run is not None else "")]
    lines += [f"  changed   {said}" for said in changes.describe()]
    lines += [f"  tools     {said}" for said in _tools(scopes, changes)]
    live: set[str] = set()
    for scope in scopes:
        lines += [f"  call      {said}" for said in _calls(scope, changes, live)]
    lines += [f"  model     {said}" for said in _provider_tools(scopes)]
    lines += [f"  note      {said}" for said in doubts(session, run)]
    return Plan((*lines, f"refused: {refused}" if refused else "it would start"), refused)


def _tools(scopes: list[RecordedScope], changes: Changes) -> Iterator[str]:
    """What answers each tool that was called or offered."""
    called = {slot.call.name: slot for scope in scopes for slot in scope.tools if slot.call.kind not in RUNNING}
    names = dict.fromkeys([*called, *(name for scope in scopes for name in scope.schemas)])
    for name in names:
        if name in called or not _is_running(scopes, name):
            choice = choose(changes.tool_policy, name, {})
            writes = changes.tool_policy.changes_the_world(
                name, called[name].call.side_effect if name in called else None
            )
            effect = ", changes something in the world" if writes else ""
            unused = "" if name in called else "; was not called"
            yield f"{name}: {_said(choice, writes=writes)}{effect}{unused}"


def _is_running(scopes: list[RecordedScope], name: str) -> bool:
    return any(slot.call.name == name and slot.call.kind in RUNNING for scope in scopes for slot in scope.tools)


def _said(choice: Choice, *, writes: bool) -> str:
    policy = choice.policy
    if isinstance(policy, Passthrough):
        return "runs for real" if choice.may_run(changes_the_world=writes) else "may not run, and ends the run"
    if isinstance(policy, History):
        source = "from the recording" if policy.scope == "baseline" else "from the recording, or from other sessions"
    else:
        source = f"one of {len(policy.cases)} fixed answers"
    miss = {
        OnMiss.FAIL: "ends the run",
        OnMiss.ERROR_RESULT: "is told to the agent",
        OnMiss.PASSTHROUGH: "may not run, and ends the run" if writes else "runs for real",
    }
    return f"{source}; a call that is not there {miss[policy.on_miss]}"


def _calls(scope: RecordedScope, changes: Changes, live: set[str]) -> Iterator[str]:
    """What answers each recorded call, should it come again."""
    turn = 0
    path = ROOT if scope.label == OUTSIDE else scope.label
    root = path.partition("/")[0]
    for slot in sorted(scope.slots, key=lambda one: one.started or ("~", "")):
        if isinstance(slot, ModelSlot):
            forked = changes.from_turn is not None and path == ROOT and turn >= changes.from_turn
            overridden = bool(overrides_of(changes, path, slot.call.model, scope.principal))
            touched = (overridden and changes.from_turn is None) or changes.input is not None
            if touched or forked:
                live.add(root)
            turn += 1
        yield f"{name_of(slot)}: {_answer(slot, scope, changes, root in live)}"
        if slot.call.id in changes.edited:
            live.add(root)


def _answer(slot: Slot, scope: RecordedScope, changes: Changes, live: bool) -> str:
    if isinstance(slot, ModelSlot):
        if live:
            return "asked live"
        if slot.call.id in changes.edited:
            return "answered with the edited answer"
        return _lost(slot.lossy, slot.answer_lost) or _from_recording(slot)
    if slot.call.kind in RUNNING:
        return "runs, and meets recorded answers inside"
    if slot.call.id in changes.edited:
        return "answered with the edited answer"
    if slot.call.status is Status.BLOCKED:
        return "stays blocked, as it was"
    choice = choose(
        changes.tool_policy, slot.call.name, canonical_arguments(slot.call.arguments, scope.schemas.get(slot.call.name))
    )
    if not isinstance(choice.policy, History):
        writes = changes.tool_policy.changes_the_world(slot.call.name, slot.call.side_effect)
        return _said(choice, writes=writes).partition(";")[0]
    return _lost(slot.lossy, slot.result_lost) or _from_recording(slot)


def _from_recording(slot: Slot) -> str:
    """What comes of a call whose recording has all that is needed."""
    if slot.call.status is Status.CANCELLED:
        return "waited with until it is broken off, as it was"
    if slot.call.status is Status.UNFINISHED and not slot.answered:
        return "never served: the recording ended before its answer came"
    return "answered from the recording"


def _lost(asked: bool, answered: bool) -> str | None:
    if asked:
        return "never matched: the recording has lost what was asked"
    return "never served: the recording has lost the answer" if answered else None


def _provider_tools(scopes: list[RecordedScope]) -> list[str]:
    """The tools that the provider's server ran: they cannot be intercepted, and stand in the model's answers."""
    calls = [call for scope in scopes for run in scope.runs for call in run.tool_calls()]
    names = dict.fromkeys(call.name for call in calls if call.kind is ToolKind.PROVIDER)
    return [f"{name}: ran at the provider; its results stand in the model's answers" for name in names]
