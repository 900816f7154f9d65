"""Model calls of a replay: answered from the recording, or sent on to a live model, whose answer is heard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NoReturn

from spanreel.exchange import HttpAnswer, HttpRequest, ModelProtocol
from spanreel.model import Answer, Request
from spanreel.player import LiveRun
from spanreel.replay.comparing.placeholders import redact_request
from spanreel.replay.matching.answers import edited_answer, model_answer
from spanreel.replay.matching.casting import Role
from spanreel.replay.matching.events import Event, Happening, Subject
from spanreel.replay.matching.matching import Match, Miss, first_match
from spanreel.replay.matching.model_matching import LiveModel, match_model
from spanreel.replay.matching.slots import ModelSlot
from spanreel.replay.playing.live_models import Sent
from spanreel.replay.playing.play import Play


def send_live(
    play: Play, run: LiveRun | None, protocol: ModelProtocol, request: HttpRequest, read: Request
) -> Sent | None:
    """What goes to a live model in the place of this request; None where the recording answers it."""
    role = play.casting.find(run)
    sent = play.models.send(play.casting.root(run), role, protocol, request, read)
    role.turns += read.operation.opens_turn
    if sent is not None:
        role.asked += 1
        if not play.changes.may_ask(sent.model):
            missed = Event(Happening.MISSED, Subject.MODEL, role.path, sent.model, role.asked, role.recorded_id)
            play.miss(run, replace(missed, reason="not_allowed"))
        role.live_model = sent.model
        play.ledger.tell(Event(Happening.LIVE, Subject.MODEL, role.path, sent.model, role.asked, role.recorded_id))
    return sent


def answer_request(play: Play, run: LiveRun | None, protocol: ModelProtocol, read: Request) -> Callable[[], HttpAnswer]:
    """What writes the recorded answer to a request, as a stream where that asks for one; a miss ends the run."""
    role = play.casting.find(run)
    ways = [redact_request(redact, read) for redact in play.placeholders.ways] or [read]
    asked = ways[0]
    role.scope.learn([dict(tool) for tool in asked.tools])
    found = _match(play, run, role, protocol, ways)
    if isinstance(found, Miss) or found.attempt == 0:
        role.asked += 1
    slot = play.decide(run, role, Event(Happening.SERVED, Subject.MODEL, role.path, asked.model, role.asked), found)
    assert isinstance(slot, ModelSlot)
    assert isinstance(found, Match)
    if slot.call.id in play.changes.edited:
        play.edit(run, role, slot)
        return partial(edited_answer, slot, str(play.changes.edited[slot.call.id]), protocol, asked)
    give_up = partial(play.give_up, run, role, slot)
    return partial(model_answer, slot, found.attempt, protocol, asked, give_up, pace=play.changes.pace)


def _match(play: Play, run: LiveRun | None, role: Role, protocol: ModelProtocol, ways: list[Request]) -> Match | Miss:
    apart, volatile = play.is_apart(run.id if run is not None else None), play.changes.volatile_in(role.path)
    return first_match(
        partial(
            match_model,
            role.scope,
            LiveModel(one, protocol.NAME, play.imported, apart, known, volatile, play.ids),
        )
        for one, known in play.with_known(ways)
    )


def stop_unreadable(play: Play, run: LiveRun | None, error: ValueError) -> NoReturn:
    """A request that its protocol cannot read has no counterpart."""
    role = play.casting.find(run)
    event = Event(Happening.MISSED, Subject.MODEL, role.path, recorded_id=role.recorded_id)
    play.miss(run, replace(event, reason="unreadable", detail=str(error)))


def hear_model(play: Play, run: LiveRun | None, answer: Answer | None) -> None:
    """A live model has answered, or failed to."""
    usage = answer.usage if answer is not None else None
    tokens = {"input_tokens": usage.input_tokens or 0, "output_tokens": usage.output_tokens or 0} if usage else None
    failed = answer.error if answer is not None else None
    role = play.casting.find(run)
    said = f"{failed.type}: {failed.message}" if failed is not None else None
    heard = Event(Happening.ANSWERED, Subject.MODEL, role.path, role.live_model, recorded_id=role.recorded_id)
    play.ledger.tell(replace(heard, tokens=tokens, detail=said))
