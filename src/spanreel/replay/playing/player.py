"""Answers in the place of the world, from one session: the `spanreel.player.Player` that the boundary asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from spanreel.exchange import HttpAnswer, HttpRequest, ModelProtocol
from spanreel.model import Answer, Json, Operation
from spanreel.player import LiveRun
from spanreel.point import RunRequest, RunResult, ToolRequest
from spanreel.protocols.paths import read_request
from spanreel.replay.changing.changes import Changes
from spanreel.replay.comparing.placeholders import Placeholders
from spanreel.replay.guarding import gate
from spanreel.replay.matching import mcp_requests
from spanreel.replay.matching.events import Event
from spanreel.replay.playing import answering_models, answering_runs, answering_tools
from spanreel.replay.playing.freezing import Frozen
from spanreel.replay.playing.ledger import Ledger
from spanreel.replay.playing.play import Play
from spanreel.session import Run, Session
from spanreel.session_files import load_sessions


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
        self.changes = changes or Changes()
        self.freezes = self.changes.freeze or any(one.draws for one in session.runs)
        """Whether what the agent's own code draws from the clock, uuid4 and random is given by us."""
        self._frozen = Frozen(session)
        self._ledger = Ledger(session.id, on_event)
        self._lock = self._ledger.lock
        self._play = Play(session, run, placeholders or Placeholders(), self.changes, self._ledger)
        self._others = [found for one in self.changes.tool_policy.sessions for found in load_sessions(one)]

    @property
    def events(self) -> tuple[Event, ...]:
        """What has happened so far."""
        return self._ledger.events

    def close(self) -> None:
        """The replay is over; whoever still asks is stopped."""
        for site in self._frozen.unknown:
            self.note(f"drawn where nothing was drawn when it was recorded, and so made up: {site}")
        self._ledger.close()

    def log(self, event: Event) -> None:
        """Keep an event; the same note is kept once."""
        self._ledger.log(event)

    # -- what the boundary calls ---------------------------------------------------------------------------------------

    def begin_run(self, run: LiveRun, request: RunRequest) -> Mapping[str, Json] | None:
        """A run starts: a root run gets its recorded arguments."""
        with self._lock:
            return answering_runs.begin_run(self._play, run, request)

    def end_run(self, run: LiveRun, result: RunResult | None, error: BaseException | None) -> None:
        """A run has ended."""
        answering_runs.end_run(self._play, run, result, error)

    def answer_model(
        self, run: LiveRun | None, protocol: ModelProtocol, operation: Operation, request: HttpRequest
    ) -> HttpAnswer | HttpRequest:
        """The recorded answer to a model request, as a stream where the request asks for one; what to send, if live."""
        with self._lock:
            self._play.check(run)
        try:
            read = read_request(protocol, operation, request.path, request.body)
        except ValueError as error:
            with self._lock:
                answering_models.stop_unreadable(self._play, run, error)
        with self._lock:
            self._play.check(run)
            sent = answering_models.send_live(self._play, run, protocol, request, read)
            if sent is not None:
                gate.know(self, sent.host)
                return sent.request
            write = answering_models.answer_request(self._play, run, protocol, read)
        return write()

    def hear_model(self, run: LiveRun | None, read: Callable[[], Answer | None]) -> None:
        """A live model has answered, or failed to."""
        answer = read()
        with self._lock:
            answering_models.hear_model(self._play, run, answer)

    def answer_tool(self, run: LiveRun | None, request: ToolRequest) -> answering_tools.Answer | None:
        """What answers a tool call, by its policy; None lets agents and handoffs run, and meet theirs inside."""
        if not mcp_requests.is_mcp_request(request):
            return answering_tools.answer_tool(self._play, self._others, run, request)
        with self._lock:
            return answering_tools.answer_mcp_request(self._play, run, request)

    def connects(self) -> bool:
        """Whether servers of tools are connected to."""
        return self.changes.tool_policy.lets_run

    def draw(self, run: LiveRun | None, kind: str, site: str) -> str | None:
        """What the agent's own code draws from the clock, uuid4 or random."""
        if not self.freezes:
            return None
        with self._lock:
            role = self._play.casting.role_of(run)
            if role is None and not self.changes.freeze:
                return None
            return self._frozen.draw(role.run if role is not None else None, kind, site)

    def refuse(self, what: str) -> NoReturn:
        """Something went past every point: nothing more is answered in the whole replay."""
        self._ledger.refuse(what)

    def note(self, what: str) -> None:
        """Something worth knowing that changes nothing."""
        self._ledger.note(what)
