"""Tool calls of a replay: matched, and answered by their policies; what clients ask MCP servers beside calls, too."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from spanreel.binary import STAND_IN
from spanreel.model import Json, Status, ToolKind
from spanreel.player import Live, LiveRun
from spanreel.point import BrokenOff, RecordedError, ToolRequest, ToolResult
from spanreel.replay.changing.tool_policies import Choice, History, Static, choose, normalised
from spanreel.replay.comparing.canonical import canonical, canonical_arguments, first_difference, text
from spanreel.replay.comparing.placeholders import redact_tool_arguments
from spanreel.replay.matching import mcp_requests
from spanreel.replay.matching.answers import patience, tool_answer
from spanreel.replay.matching.casting import Role
from spanreel.replay.matching.events import Event, Happening, Subject
from spanreel.replay.matching.matching import LiveTool, Match, Miss, MissReason, Tier, first_match, match_tool
from spanreel.replay.matching.naming import name_of
from spanreel.replay.matching.slots import ToolSlot
from spanreel.replay.playing.play import Play
from spanreel.replay.playing.rulings import Asked, missed, rule
from spanreel.session import Session
from spanreel.shapes import before_failure, texts_in
from spanreel.snapshot import snapshot

Answer = ToolResult | RecordedError | Live | BrokenOff

RUNNING = (ToolKind.AGENT, ToolKind.HANDOFF)
"""Kinds of tool calls that run, and meet recorded answers inside."""

FROM_HISTORY = Choice(History(), named=False)

OPAQUE: Final = "what an object holds"
"""The name of arguments of which only the kind is known, so that another object is equal to the recorded one."""
_NAMELESS: Final = re.compile(r"<[\w.<>]+ object>")
"""What a snapshot has of an object without a text of its own."""


def answer_tool(play: Play, others: Sequence[Session], run: LiveRun | None, request: ToolRequest) -> Answer | None:
    """What answers a tool call, by its policy; None lets agents and handoffs run, and meet theirs inside.

    ``others`` are the sessions that wider scopes look into.
    """
    runs = request.kind in RUNNING
    arguments, ways = request.arguments, play.placeholders.ways
    if ways:
        arguments = snapshot(arguments).value
    placed = [redact_tool_arguments(redact, request.name, arguments) for redact in ways] or [arguments]
    given = canonical_arguments(placed[0])
    choice = FROM_HISTORY if runs else choose(play.changes.tool_policy, request.name, given)
    with play.ledger.lock:
        play.check(run)
        apart = play.is_apart(run.id if run is not None else None)
        role = play.casting.find(run)
        live = _live_tool(play, request, choice, apart=apart)
        found = first_match(
            partial(match_tool, role.scope, replace(live, arguments=one, known=known))
            for one, known in play.with_known(placed)
        )
        if isinstance(found, Match) and _is_opaque(given):
            found = replace(found, uncompared=(*found.uncompared, OPAQUE))
        if runs:
            _let_through(play, run, role, request, found)
            return None
        event = Event(Happening.SERVED, Subject.TOOL, role.path, request.name)
        asked = Asked(request, given, choice, _writes(play, request), found, event)
        return _answer(play, others, run, role, asked)


def _is_opaque(value: Json) -> bool:
    """Whether an object without a text of its own is in canonical arguments."""
    if isinstance(value, dict):
        return any(map(_is_opaque, value.values()))
    if isinstance(value, list):
        return any(map(_is_opaque, value))
    return isinstance(value, str) and _NAMELESS.fullmatch(value) is not None


def answer_mcp_request(play: Play, run: LiveRun | None, request: ToolRequest) -> Answer:
    """What a client asks of an MCP server beside calls: lists from the recording, handshakes by the connection."""
    play.check(run)
    if mcp_requests.is_handshake(request) and play.changes.tool_policy.lets_run:
        return Live()
    role = play.casting.find(run)
    found = mcp_requests.answer(play.casting.recording, role.scope, request)
    event = Event(Happening.SERVED, Subject.TOOL, role.path, request.name)
    if found is None:
        play.miss(run, missed(replace(event, recorded_id=role.recorded_id), Miss(MissReason.UNKNOWN)))
    if found.slot is not None:
        play.ledger.tell(replace(event, recorded_id=found.slot.call.id, tier=Tier.EXACT.value))
    elif found.made_up is not None:
        play.ledger.note(found.made_up)
    return found.answer


def _let_through(play: Play, run: LiveRun | None, role: Role, request: ToolRequest, found: Match | Miss) -> None:
    """An agent as a tool, or a handoff."""
    event = Event(Happening.LET_THROUGH, Subject.TOOL, role.path, request.name)
    # Of a handoff, others recorded only that a model asked for it and the next agent ran.
    unseen = request.kind is ToolKind.HANDOFF and play.imported
    if unseen and isinstance(found, Miss) and found.reason is MissReason.UNKNOWN:
        play.ledger.tell(replace(event, recorded_id=role.recorded_id))
        return
    slot = play.decide(run, role, event, found)
    assert isinstance(slot, ToolSlot)
    play.casting.let_through(run, request, slot)


def _answer(play: Play, others: Sequence[Session], run: LiveRun | None, role: Role, asked: Asked) -> Answer:
    """Answer by the policy, or with what was matched; after a write that was not as recorded, that is told."""
    root, ruling = play.casting.root(run), rule(play.changes.tool_policy, asked, others)
    if ruling is not None and ruling.answer is None:
        play.miss(run, replace(ruling.event, recorded_id=role.recorded_id))
    if ruling is not None and ruling.answer is not None:
        play.ledger.tell(ruling.event)
        if root not in play.models.live:
            _note_other_result(play, asked, ruling.answer)
        if asked.writes:
            play.stale.add(root)
        return ruling.answer
    slot = play.decide(run, role, replace(asked.event, stale=root in play.stale), asked.found)
    assert isinstance(slot, ToolSlot)
    play.casting.recording.cover(slot)
    if slot.call.id not in play.changes.edited:
        if slot.call.status is Status.CANCELLED:
            before = tool_answer(slot.call) if before_failure(slot.call.result_type) is not None else None
            given = before if isinstance(before, ToolResult) else None
            return BrokenOff(patience(slot), partial(play.give_up, run, role, slot), given)
        _note_texts(play, slot)
        return tool_answer(slot.call, imported=play.imported)
    if asked.writes:
        play.stale.add(root)
    play.edit(run, role, slot)
    return ToolResult(copy.deepcopy(play.changes.edited[slot.call.id]))


def _note_other_result(play: Play, asked: Asked, answer: Answer) -> None:
    """Say where a fixed answer is another than the recorded one, which the recorded model was not told."""
    if not isinstance(asked.choice.policy, Static) or not isinstance(asked.found, Match):
        return
    slot = asked.found.slot
    assert isinstance(slot, ToolSlot)
    if not isinstance(answer, ToolResult) or first_difference(canonical(slot.call.result), canonical(answer.value)):
        play.ledger.note(
            f"{name_of(slot)} was answered by its policy with something else than was recorded, to which no recorded "
            "model has an answer; from a fork on (--from), or with another model, it is asked live"
        )


def _note_texts(play: Play, slot: ToolSlot) -> None:
    """Say which objects the agent gets as texts, since nothing else was kept of them."""
    for kind in texts_in(slot.call.result_type):
        play.ledger.note(f"{name_of(slot)} gave a {kind}, of which only the text was kept; that is what the agent gets")
    raised = slot.call.raised
    if raised is not None and "raised" in slot.call.fidelity:
        play.ledger.note(
            f"{name_of(slot)} raised an exception of which not all was kept; the agent gets its text, and the rest"
        )
    elif raised is not None and isinstance(shape := raised.get("type"), str):
        for kind in texts_in(shape):
            play.ledger.note(f"{name_of(slot)} raised an exception with a {kind}, which is a text in the agent's")
    if STAND_IN.search(text(slot.call.result)):
        play.ledger.note(f"{name_of(slot)} gave binary content, of which its digest was kept; the agent gets that")


def _live_tool(play: Play, request: ToolRequest, choice: Choice, *, apart: bool) -> LiveTool:
    """A tool call as matching sees it, but for its arguments; only from the recording does it need a result."""
    policies, policy = play.changes.tool_policy, choice.policy
    form = policies.normal_form(request.name)
    positional = isinstance(policy, History) and policy.positional and not _writes(play, request)
    return LiveTool(
        request.name,
        None,
        request.call_id,
        runs=request.kind in RUNNING or not isinstance(policy, History),
        apart=apart,
        form=None if form is None else partial(normalised, form),
        raw=policies.keys == "kitaru",
        positional=positional,
        ids=play.ids,
        pure=policies.is_pure(request.name, request.pure) and not _writes(play, request),
    )


def _writes(play: Play, request: ToolRequest) -> bool:
    return play.changes.tool_policy.changes_the_world(request.name, request.side_effect)
