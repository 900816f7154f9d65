"""What has to hold before a replay starts: one session that can be read, compared and answered. Runs nothing."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from spanreel.draws import can_stop_the_clock
from spanreel.errors import ReplayRefused, SessionError
from spanreel.replay.changing.changes import ROOT, Changes, Override
from spanreel.replay.changing.tool_policies import History
from spanreel.replay.matching.naming import name_of
from spanreel.replay.matching.recording import Recording
from spanreel.replay.matching.slots import ModelSlot, Slot, ToolSlot
from spanreel.replay.playing.answering_tools import RUNNING
from spanreel.replay.running.recovered import ran_unseen
from spanreel.replay.running.served import fetch, is_served
from spanreel.session import CANON, Run, Session, was_made_up
from spanreel.session_files import load_sessions, read_session

SHOWN = 5
"""Calls that a sentence names."""


def find_session(source: Session | str | Path) -> Session:
    """The session itself, or the one of a file, or of a service by its URL.

    Raises:
        ReplayRefused: it cannot be had or read, or the file holds several sessions.
    """
    if isinstance(source, Session):
        return source
    try:
        if isinstance(source, str) and is_served(source):
            return read_session(fetch(source))
        sessions = load_sessions(source)
    except SessionError as error:
        raise ReplayRefused(str(error)) from error
    if len(sessions) != 1:
        ids = ", ".join([repr(session.id) for session in sessions[:5]] + ["..."] * (len(sessions) > 5))
        raise ReplayRefused(
            f"{str(source)!r} holds {len(sessions)} sessions ({ids}); a replay takes one: "
            "spanreel convert FILE --out FOLDER/ writes a file for each"
        )
    return sessions[0]


def find_run(session: Session, selector: str | None) -> Run | None:
    """The one run to replay, or None for all.

    Raises:
        ReplayRefused: there is no such run.
    """
    if selector is None:
        return None
    try:
        return session.run(selector)
    except SessionError as error:
        raise ReplayRefused(str(error)) from error


def check(session: Session, run: Run | None, changes: Changes | None = None, *, serve_redacted: bool = False) -> None:
    """Look whether a replay can tell the truth, with these changes.

    ``serve_redacted`` consents to placeholders in answers.

    Raises:
        ReplayRefused: it cannot; says why, and what to do.
    """
    if session.canon != CANON:
        raise ReplayRefused(
            f"session {session.id!r} is to be compared by {session.canon!r}, this release compares by {CANON!r}; "
            "convert it again from its traces with this release"
        )
    slots = [slot for scope in Recording(session, run).all_scopes() for slot in scope.slots]
    _check_changes(changes or Changes(), slots)
    unanswered = _unanswered(session, run)
    if unanswered:
        raise ReplayRefused(
            f"nothing would answer the tool{'s' * (len(unanswered) > 1)} {', '.join(map(repr, unanswered))}: "
            "the recording knows their results only from what the model was told, so they would run for real. "
            "Decorate each with @spanreel.tool() and the agent around them with @spanreel.run(), and record again; if "
            "spanreel sees each of them now, as it does those of the frameworks it knows, --recovered answers them "
            "with what the model was told"
        )
    if not slots:
        what = f"run {run.id!r} of session {session.id!r}" if run is not None else f"session {session.id!r}"
        raise ReplayRefused(f"{what} holds no call: there is nothing to answer with. Was anything instrumented?")
    redacted = [] if serve_redacted else _redacted(session, run)
    if redacted:
        raise ReplayRefused(
            f"{_few(redacted)}: the recorded answer is redacted, so the agent would get "
            "placeholders. To consent: --serve-redacted, or spanreel.replay(..., serve_redacted=True)"
        )


def _check_changes(changes: Changes, slots: Sequence[Slot]) -> None:
    """Whether what is to change is there.

    Raises:
        ReplayRefused: an edit names no recorded call, an override no recorded agent, or a fork a turn past the end.
    """
    for file in changes.tool_policy.sessions:
        try:
            load_sessions(file)
        except SessionError as error:
            raise ReplayRefused(f"tool_policy.sessions: {error}") from error
    if changes.freeze and not can_stop_the_clock():
        raise ReplayRefused("the clock cannot be frozen without time-machine: pip install 'spanreel[freeze]'")
    calls = {slot.call.id: slot for slot in slots}
    twice = [call for call, number in Counter(edit.call for edit in changes.edits).items() if number > 1]
    if twice:
        raise ReplayRefused(f"the answer of {twice[0]!r} is edited more than once; leave one of the edits")
    for edit in changes.edits:
        slot = calls.get(edit.call)
        if slot is None:
            raise ReplayRefused(_no_such_call(edit.call, slots))
        if isinstance(slot, ModelSlot) and not isinstance(edit.value, str):
            raise ReplayRefused(f"the edited answer of {name_of(slot)} is a {type(edit.value).__name__}, expected text")
    _check_fork(changes, slots)
    paths = {slot.run.path for slot in slots} | {ROOT}
    for override in changes.overrides:
        if override.agent not in paths:
            known = ", ".join(sorted(paths))
            raise ReplayRefused(
                f"no agent {override.agent!r} was recorded, whose requests could change; known: {known}"
            )
        _check_models(changes, override, slots)


def _check_models(changes: Changes, override: Override, slots: Sequence[Slot]) -> None:
    """Whether the model that an override is meant for was asked, and the one that it names may be."""
    asked = {slot.call.model for slot in slots if isinstance(slot, ModelSlot) and slot.run.path == override.agent}
    known = ", ".join(sorted(filter(None, asked)))
    if override.of_model is not None and asked and override.of_model not in asked:
        raise ReplayRefused(f"no model {override.of_model!r} was recorded at {override.agent}; known: {known}")
    if override.model is not None and not changes.may_ask(override.model):
        allowed = ", ".join(changes.models or ())
        raise ReplayRefused(f"the model {override.model!r} may not be asked live; `models` allows: {allowed}")


def _no_such_call(named: str, slots: Sequence[Slot]) -> str:
    """What to write in the place of an id that no call has; a tool's name is none, but tells which calls are meant."""
    meant = [slot for slot in slots if isinstance(slot, ToolSlot) and slot.call.name == named]
    if not meant:
        return f"no call {named!r} was recorded, whose answer could be edited; spanreel show --full gives the ids"
    ids = ", ".join(f"{slot.call.id} is {name_of(slot)}" for slot in meant[:SHOWN])
    return f"{named!r} is the name of a tool, and calls are edited by their ids: {ids}"


def _check_fork(changes: Changes, slots: Sequence[Slot]) -> None:
    """The turn after the last one is still one to fork at: there, what was recorded goes on."""
    longest = max((len(slot.run.turns) for slot in slots if "/" not in slot.run.path), default=0)
    if changes.from_turn is not None and changes.from_turn > longest:
        raise ReplayRefused(f"no run of {changes.from_turn} turns was recorded, after which to go on; most: {longest}")


def doubts(session: Session, run: Run | None) -> list[str]:
    """What a replay will not be able to say, before it starts: calls of which too little is left."""
    slots = [slot for scope in Recording(session, run).all_scopes() for slot in scope.slots]
    lost = [name_of(slot) for slot in slots if slot.lossy]
    unserved = [
        name_of(slot)
        for slot in slots
        if not slot.lossy and (slot.answer_lost if isinstance(slot, ModelSlot) else slot.result_lost)
    ]
    notes = [f"never matched, since the recording has lost what was asked: {_few(lost)}"] if lost else []
    return [*notes, f"never served, since the recording has lost the answer: {_few(unserved)}"] if unserved else notes


def idle_policies(changes: Changes, session: Session) -> list[str]:
    """What of the tool policies can have no effect on what was recorded, as a slip of the pen has none."""
    policies = changes.tool_policy
    names = {call.name for run in session.runs for call in run.tool_calls()} | {
        str(tool.get("name")) for tool in session.tools
    }
    idle = [glob for glob in policies.tools if not fnmatch.filter(names, glob)]
    idle += [rule.tool for rule in policies.rules if not fnmatch.filter(names, rule.tool)]
    said = [f"no tool {glob!r} was recorded, for which there is a policy" for glob in dict.fromkeys(idle)]
    given = (policies.default, *policies.tools.values(), *(rule.policy for rule in policies.rules))
    wide = any(isinstance(one, History) and one.scope != "baseline" for one in given)
    if wide and not policies.sessions:
        said.append("tool_policy.sessions names no file, so that history is looked for in this session alone")
    return said


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"


def _redacted(session: Session, run: Run | None) -> list[str]:
    """The calls that would be answered with something that we redacted, by name."""
    recording = Recording(session, run)
    scopes = recording.all_scopes()
    answered = [slot for scope in scopes for slot in scope.tools if slot.call.kind not in RUNNING]
    for slot in answered:
        recording.cover(slot)
    tools = [slot for slot in answered if slot.redacted and not (slot.covered or slot.result_lost)]
    models = [slot for scope in scopes for slot in scope.models if not (slot.covered or slot.answer_lost)]
    slots: list[Slot] = [*(slot for slot in models if slot.redacted), *tools]
    return [name_of(slot) for slot in slots]


def _unanswered(session: Session, run: Run | None) -> Sequence[str]:
    """The names of tools that ran without crossing a boundary, as their results in the next request tell."""
    chosen = {one.id for scope in Recording(session, run).all_scopes() for one in scope.runs}
    blind = [one for one in session.runs if one.id in chosen and not one.sees_tools]
    calls = [(one, call) for one in blind for call in one.tool_calls() if ran_unseen(call)]
    return list(dict.fromkeys(call.name for one, call in calls if not was_made_up(session, one, call)))
