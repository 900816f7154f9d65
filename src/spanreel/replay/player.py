"""Answers in the place of the world, from one session: the `spanreel.point.Player` that the boundary asks.

One lock a player; what a call has to wait for under it is matching alone. Every decision becomes an `Event`; whether
they amount to PASS is decided in `verdict`.
"""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn, TypeVar

from spanreel import conventions as names
from spanreel.errors import ReplayStop
from spanreel.model import Answer, Fidelity, Json, Operation, ToolKind
from spanreel.point import (
    HttpAnswer,
    HttpRequest,
    Live,
    LiveRun,
    ModelProtocol,
    RecordedError,
    RunRequest,
    RunResult,
    ToolRequest,
    ToolResult,
)
from spanreel.replay import gate, mcp_requests
from spanreel.replay.answers import edited_answer, model_answer, tool_answer
from spanreel.replay.canonical import canonical, canonical_arguments, first_difference
from spanreel.replay.casting import Casting, Role
from spanreel.replay.changes import Changes
from spanreel.replay.events import REWORDED, Event, Happening, Subject, contrast, describe, told, without_secrets
from spanreel.replay.freezing import Frozen
from spanreel.replay.lanes import Lane, current_lane
from spanreel.replay.live_models import LiveModels
from spanreel.replay.matching import LiveTool, Match, Miss, Reason, Tier, first_match, match_tool
from spanreel.replay.model_matching import LiveModel, match_model
from spanreel.replay.naming import name_of
from spanreel.replay.outcome import compare_form, compare_outcome
from spanreel.replay.placeholders import Placeholders, Redact, redact_request, redact_tool_arguments, redact_value
from spanreel.replay.recording import Recording
from spanreel.replay.rulings import Asked, missed, rule
from spanreel.replay.slots import ModelSlot, Slot, ToolSlot
from spanreel.replay.tool_policies import Choice, History, choose, normalised
from spanreel.replay.value_map import ValueMap
from spanreel.session import Run, Session, load_sessions
from spanreel.snapshot import snapshot

Way = TypeVar("Way")

RUNNING = (ToolKind.AGENT, ToolKind.HANDOFF)
"""Kinds of tool calls that run, and meet recorded answers inside."""

FROM_HISTORY = Choice(History(), named=False)


class SessionPlayer:
    """Plays one session, or one run of it. ``on_event`` is told of every event in its order, under the lock."""

    def __init__(
        self,
        session: Session,
        run: Run | None = None,
        *,
        placeholders: Placeholders | None = None,
        changes: Changes | None = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        self.session = session
        self.baseline = session.id
        self.memory: dict[Any, Any] = {}
        self._casting = Casting(Recording(session, run))
        self._placeholders = placeholders or Placeholders()
        self._known = self._placeholders.known if self._placeholders.missing else None
        self.changes = changes or Changes()
        self._policies = self.changes.tool_policy
        self._others = [found for one in self._policies.sessions for found in load_sessions(one)]
        self._stale: set[str] = set()
        """The root runs in which something was written that was not as recorded."""
        self._models = LiveModels(session, self.changes)
        self.freezes = self.changes.freeze or any(one.draws for one in session.runs)
        """Whether what the agent's own code draws from the clock, uuid4 and random is given by us."""
        self._frozen = Frozen(session)
        self._ids = ValueMap() if self.changes.map_ids else None
        self._on_event = on_event
        self._events: list[Event] = []
        self._stopped: dict[str, str] = {}
        self._closed = False
        self._lanes: dict[str | None, Lane] = {}
        self._process = os.getpid()
        self._lock = threading.RLock()

    @property
    def events(self) -> tuple[Event, ...]:
        """What has happened so far."""
        with self._lock:
            return tuple(self._events)

    def close(self) -> None:
        """The replay is over; whoever still asks is stopped."""
        for site in self._frozen.unknown:
            self.note(f"drawn where nothing was drawn when it was recorded, and so made up: {site}")
        self._closed = True

    # -- what the boundary calls ---------------------------------------------------------------------------------------

    def begin_run(self, run: LiveRun, request: RunRequest) -> Mapping[str, Json] | None:
        """A run starts: find the recorded run that it is; a root run gets its recorded arguments."""
        with self._lock:
            self._check(run)
            apart = run.parent is not None and self._is_apart(run.parent)
            self._lanes[run.id] = current_lane()
            role = self._casting.cast(run, self._given(_arguments(request)) if apart else None)
            if role is None:
                hint = self._casting.expected(run)
                self._miss(run, Event(Happening.MISSED, Subject.RUN, run.path, run.agent.name, detail=hint))
            self._log(
                Event(Happening.RUN_STARTED, Subject.RUN, role.path, run.agent.name, recorded_id=role.recorded_id)
            )
            if run.parent is not None:
                return None
            try:
                return self._models.arguments(role, self._recorded_arguments(role, request))
            except LookupError as missing:
                self.refuse(str(missing))

    def end_run(self, run: LiveRun, result: RunResult | None, error: BaseException | None) -> None:
        """A run has ended: compare its outcome, unless it was us who ended it."""
        lives: list[RunResult | None] = [result]
        if result is not None and self._placeholders.ways:
            lives = [self._placed(redact, result) for redact in self._placeholders.ways]
        with self._lock:
            role = self._casting.end(run)
            if role is None or role.run is None or self._is_stopped(run):
                return
            see = self._ids.translated if self._ids is not None else lambda value: value
            compared = [compare_outcome(self.session, role.run, live, error, see) for live in lives]
            difference, uncompared = next((one for one in compared if one[0] is None), compared[0])
            keyless = False
            if difference is not None and self._known is not None:
                blurred = self._placeholders.blurred
                keyless = compare_outcome(self.session, role.run, lives[-1], error, blurred)[0] is None
            if keyless:
                difference, uncompared = None, ("outcome",)
            ended = Event(Happening.RUN_ENDED, Subject.RUN, role.path, run.agent.name, recorded_id=role.run.id)
            if difference is not None and self._casting.root(run) in self._models.live:
                words = told(difference) or {}
                difference = compare_form(self.session, role.run, lives[0], error)[0]
                if difference is None:
                    said = f"the outcome of {role.path} is worded differently: {contrast(words)}"
                    ended = replace(ended, reason=REWORDED, detail=said)
            reason = Reason.KEYLESS.value if keyless else ended.reason
            self._log(replace(ended, reason=reason, difference=told(difference), uncompared=uncompared))

    def answer_model(
        self, run: LiveRun | None, protocol: ModelProtocol, operation: Operation, request: HttpRequest
    ) -> HttpAnswer | HttpRequest:
        """The recorded answer to a model request, as a stream where the request asks for one; what to send, if live."""
        with self._lock:
            self._check(run)
        try:
            read = protocol.read_request(request.body, operation)
        except ValueError as error:
            with self._lock:
                role = self._casting.find(run)
            event = Event(Happening.MISSED, Subject.MODEL, role.path, recorded_id=role.recorded_id)
            self._miss(run, replace(event, reason="unreadable", detail=str(error)))
        with self._lock:
            self._check(run)
            role = self._casting.find(run)
            sent = self._models.send(self._casting.root(run), role, protocol, request, read)
            role.turns += operation.opens_turn
            if sent is not None:
                role.asked += 1
                role.live_model = sent.model
                gate.know(self, sent.host)
                self._log(Event(Happening.LIVE, Subject.MODEL, role.path, sent.model, role.asked, role.recorded_id))
                return sent.request
            foreign = self.session.origin == "imported"
            apart = self._is_apart(run.id if run is not None else None)
            ways = [redact_request(redact, read) for redact in self._placeholders.ways] or [read]
            asked = ways[0]
            role.scope.learn([dict(tool) for tool in asked.tools])
            volatile = self.changes.volatile_in(role.path)
            found = first_match(
                partial(
                    match_model, role.scope, LiveModel(one, protocol.NAME, foreign, apart, known, volatile, self._ids)
                )
                for one, known in self._with_known(ways)
            )
            if isinstance(found, Miss) or found.attempt == 0:
                role.asked += 1
            slot = self._decide(
                run, role, Event(Happening.SERVED, Subject.MODEL, role.path, asked.model, role.asked), found
            )
            assert isinstance(slot, ModelSlot)
            assert isinstance(found, Match)
            if slot.call.id in self.changes.edited:
                self._edit(run, role, slot)
                return edited_answer(slot, str(self.changes.edited[slot.call.id]), protocol, asked)
        return model_answer(slot, found.attempt, protocol, asked, pace=self.changes.pace)

    def hear_model(self, run: LiveRun | None, read: Callable[[], Answer | None]) -> None:
        """A live model has answered, or failed to."""
        answer = read()
        usage = answer.usage if answer is not None else None
        tokens = {"input_tokens": usage.input_tokens or 0, "output_tokens": usage.output_tokens or 0} if usage else None
        failed = answer.error if answer is not None else None
        with self._lock:
            role = self._casting.find(run)
            said = f"{failed.type}: {failed.message}" if failed is not None else None
            self._log(
                Event(
                    Happening.ANSWERED,
                    Subject.MODEL,
                    role.path,
                    role.live_model,
                    recorded_id=role.recorded_id,
                    tokens=tokens,
                    detail=said,
                )
            )

    def answer_tool(self, run: LiveRun | None, request: ToolRequest) -> ToolResult | RecordedError | Live | None:
        """What answers a tool call, by its policy; None lets agents and handoffs run, and meet theirs inside."""
        if mcp_requests.is_mcp_request(request):
            return self._answer_mcp_request(run, request)
        runs = request.kind in RUNNING
        arguments, ways = request.arguments, self._placeholders.ways
        if ways:
            arguments = snapshot(arguments).value
        placed = [redact_tool_arguments(redact, request.name, arguments) for redact in ways] or [arguments]
        given = canonical_arguments(placed[0])
        choice = FROM_HISTORY if runs else choose(self._policies, request.name, given)
        with self._lock:
            self._check(run)
            apart = self._is_apart(run.id if run is not None else None)
            role = self._casting.find(run)
            live = self._live_tool(request, choice, apart=apart)
            found = first_match(
                partial(match_tool, role.scope, replace(live, arguments=one, known=known))
                for one, known in self._with_known(placed)
            )
            event = Event(Happening.LET_THROUGH if runs else Happening.SERVED, Subject.TOOL, role.path, request.name)
            if runs and isinstance(found, Miss) and self._hands_over_unseen(request, found):
                self._log(replace(event, recorded_id=role.recorded_id))
                return None
            if runs:
                slot = self._decide(run, role, event, found)
                assert isinstance(slot, ToolSlot)
                self._casting.let_through(run, request, slot)
                return None
            asked = Asked(request, given, choice, self._writes(request), found, event)
            return self._answer_tool(run, role, asked)

    def connects(self) -> bool:
        """Whether servers of tools are connected to."""
        return self._policies.lets_run

    def _answer_mcp_request(self, run: LiveRun | None, request: ToolRequest) -> ToolResult | RecordedError | Live:
        """What a client asks of an MCP server beside calls: lists from the recording, handshakes by the connection."""
        with self._lock:
            self._check(run)
            if mcp_requests.is_handshake(request) and self.connects():
                return Live()
            role = self._casting.find(run)
            found = mcp_requests.answer(self._casting.recording, role.scope, request)
            event = Event(Happening.SERVED, Subject.TOOL, role.path, request.name)
            if found is None:
                self._miss(run, missed(replace(event, recorded_id=role.recorded_id), Miss(Reason.UNKNOWN)))
            if found.slot is not None:
                self._log(replace(event, recorded_id=found.slot.call.id, tier=Tier.EXACT.value))
            elif found.made_up is not None:
                self.note(found.made_up)
            return found.answer

    def draw(self, run: LiveRun | None, kind: str, site: str) -> str | None:
        """What the agent's own code draws from the clock, uuid4 or random."""
        if not self.freezes:
            return None
        with self._lock:
            role = self._casting.role_of(run)
            if role is None and not self.changes.freeze:
                return None
            return self._frozen.draw(role.run if role is not None else None, kind, site)

    def _hands_over_unseen(self, request: ToolRequest, miss: Miss) -> bool:
        """Whether it is a handoff, of which others recorded only that a model asked for it and the next agent ran."""
        return request.kind is ToolKind.HANDOFF and self.session.origin == "imported" and miss.reason is Reason.UNKNOWN

    def _live_tool(self, request: ToolRequest, choice: Choice, *, apart: bool) -> LiveTool:
        """A tool call as matching sees it, but for its arguments; only from the recording does it need a result."""
        form, policy = self._policies.normal_form(request.name), choice.policy
        positional = isinstance(policy, History) and policy.positional and not self._writes(request)
        return LiveTool(
            request.name,
            None,
            request.call_id,
            runs=request.kind in RUNNING or not isinstance(policy, History),
            apart=apart,
            form=None if form is None else partial(normalised, form),
            raw=self._policies.keys == "kitaru",
            positional=positional,
            ids=self._ids,
        )

    def _writes(self, request: ToolRequest) -> bool:
        return self._policies.changes_the_world(request.name, request.side_effect)

    def _answer_tool(self, run: LiveRun | None, role: Role, asked: Asked) -> ToolResult | RecordedError | Live:
        """Answer by the policy, or with what was matched; after a write that was not as recorded, that is told."""
        root, ruling = self._casting.root(run), rule(self._policies, asked, self._others)
        if ruling is not None and ruling.answer is None:
            self._miss(run, replace(ruling.event, recorded_id=role.recorded_id))
        if ruling is not None and ruling.answer is not None:
            self._log(ruling.event)
            if asked.writes:
                self._stale.add(root)
            return ruling.answer
        slot = self._decide(run, role, replace(asked.event, stale=root in self._stale), asked.found)
        assert isinstance(slot, ToolSlot)
        self._casting.recording.cover(slot)
        if slot.call.id not in self.changes.edited:
            return tool_answer(slot.call, imported=self.session.origin == "imported")
        if asked.writes:
            self._stale.add(root)
        self._edit(run, role, slot)
        return ToolResult(copy.deepcopy(self.changes.edited[slot.call.id]))

    def _edit(self, run: LiveRun | None, role: Role, slot: Slot) -> None:
        """What comes after an answer that was changed was never recorded."""
        self._models.live.add(self._casting.root(run))
        subject = Subject.MODEL if isinstance(slot, ModelSlot) else Subject.TOOL
        self._log(Event(Happening.EDITED, subject, role.path, name_of(slot), recorded_id=slot.call.id))

    def refuse(self, what: str) -> NoReturn:
        """Something went past every point: nothing more is answered in the whole replay."""
        if os.getpid() == self._process and not self._closed:
            with self._lock:
                event = Event(Happening.REFUSED, Subject.REPLAY, detail=what)
                self._log(event)
                self._stopped.setdefault("", describe(event))
        raise ReplayStop(f"{what} would have gone past the replay")

    def note(self, what: str) -> None:
        """Something worth knowing that changes nothing."""
        self.log(Event(Happening.NOTED, Subject.REPLAY, detail=what))

    def log(self, event: Event) -> None:
        """Keep an event; the same note is kept once."""
        with self._lock:
            if event.happening is not Happening.NOTED or without_secrets(event) not in self._events:
                self._log(event)

    def _is_apart(self, run_id: str | None) -> bool:
        """Whether this is another thread or task than the run's: that of its first call, where it is none of ours."""
        lane = current_lane()
        return self._lanes.setdefault(run_id, lane) != lane

    # -- deciding ------------------------------------------------------------------------------------------------------

    def _decide(self, run: LiveRun | None, role: Role, event: Event, found: Match | Miss) -> Slot:
        """Log what was found; a miss ends the run."""
        if isinstance(found, Miss):
            self._miss(run, missed(replace(event, recorded_id=role.recorded_id), found))
        slot = found.slot
        redacted = slot.redacted and event.happening is Happening.SERVED
        self._log(
            replace(
                event,
                recorded_id=slot.call.id,
                tier=found.tier.value,
                attempt=found.attempt,
                ambiguous=found.ambiguous,
                redacted=redacted,
                skipped=tuple(one.call.id for one in found.skipped),
                uncompared=found.uncompared,
            )
        )
        return slot

    def _miss(self, run: LiveRun | None, event: Event) -> NoReturn:
        said = describe(without_secrets(event))
        with self._lock:
            self._log(event)
            self._stopped[self._casting.root(run)] = said
        raise ReplayStop(said)

    def _check(self, run: LiveRun | None) -> None:
        if os.getpid() != self._process:
            raise ReplayStop(
                "this process was forked from a replayed one; nothing is answered in it, and nothing runs live"
            )
        if self._closed:
            raise ReplayStop(f"the replay of session {self.baseline!r} is over; nothing runs live after it")
        if (said := self._is_stopped(run)) is not None:
            raise ReplayStop(said)

    def _is_stopped(self, run: LiveRun | None) -> str | None:
        return self._stopped.get("") or self._stopped.get(self._casting.root(run))

    def _log(self, event: Event) -> None:
        event = without_secrets(event)
        self._events.append(event)
        if self._on_event is not None:
            self._on_event(event)

    # -- reading -------------------------------------------------------------------------------------------------------

    def _with_known(self, ways: Sequence[Way]) -> Iterator[tuple[Way, frozenset[str] | None]]:
        """Each way of placing placeholders; in the last, what has a key that is not here is unknown."""
        for number, way in enumerate(ways, 1):
            yield way, self._known if number == len(ways) else None

    def _given(self, arguments: Mapping[str, Any]) -> Json:
        """Arguments of a run, as the recording would have them."""
        value = canonical(arguments)
        ways = self._placeholders.ways
        return canonical(redact_value(ways[0], names.RUN_ARGUMENTS, value)) if ways else value

    def _placed(self, redact: Redact, result: RunResult) -> RunResult:
        output = redact_value(redact, names.OUTPUT_MESSAGES, list(result.output))
        value = redact_value(redact, names.RUN_RESULT, snapshot(result.value).value)
        return RunResult(tuple(output) if isinstance(output, list) else (), value, result.status)

    def _recorded_arguments(self, role: Role, request: RunRequest) -> Mapping[str, Json] | None:
        entrypoint = role.run.entrypoint if role.run is not None else None
        if role.run is None or entrypoint is None or entrypoint.arguments is None:
            return None
        if role.run.fidelity.get("arguments", Fidelity.WHOLE) is not Fidelity.WHOLE:
            return None
        self._note_changes(role.run, request, entrypoint.arguments)
        return entrypoint.arguments

    def _note_changes(self, run: Run, request: RunRequest, recorded: Mapping[str, Json]) -> None:
        if run.agent.name not in (None, request.agent.name):
            self.note(f"the agent of {run.path} was recorded as {run.agent.name!r}, now {request.agent.name!r}")
        given = _arguments(request)
        live = {name: given[name] for name in recorded if name in given}
        found = first_difference(canonical(recorded), self._given(live)) if live else None
        if found is not None:
            said = contrast(told(found) or {})
            self.note(f"{run.path} was given the recorded input, not the caller's: {found.pointer}: {said}")


def _arguments(request: RunRequest) -> dict[str, Any]:
    given: Any = request.arguments() if callable(request.arguments) else request.arguments
    return dict(given)
