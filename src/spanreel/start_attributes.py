"""What a span says from its start, for samplers and killed processes: who, in which session, asking what.

Worked out when it is asked for, which is in the export thread where nobody asks before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from opentelemetry.context import Context

from spanreel import conventions, json_text
from spanreel.exchange import HttpRequest, ModelProtocol
from spanreel.model import Agent, Operation, SessionInfo
from spanreel.native import live_span
from spanreel.player import LiveRun, Player
from spanreel.point import ToolRequest
from spanreel.protocols import peek_model, provider_of
from spanreel.protocols.paths import model_in
from spanreel.scope import OpenTurn, RunScope
from spanreel.spans import OwnSpan

Attributes = dict[str, Any]


@dataclass(eq=False, slots=True)
class OperationStart:
    """What the span of a run, a turn or a tool call says: the operation, of what, who, in which session, and more."""

    operation: str
    of: str | None
    agent: Agent
    session: SessionInfo
    player: Player | None
    content: bool
    rest: Attributes | None = None

    def name(self) -> str:
        """The operation, and what it is done to where that is known."""
        return _titled(self.operation, self.of)

    def attributes(self) -> Attributes:
        """All of it."""
        said = agent_attributes(self.operation, self.agent, self.session, self.player, content=self.content)
        return said | self.rest if self.rest is not None else said


@dataclass(eq=False, slots=True)
class ExchangeStart:
    """What the span of a model call says; the model is looked for in the request's bytes."""

    protocol: ModelProtocol
    operation: Operation
    request: HttpRequest
    agent: Agent
    session: SessionInfo
    player: Player | None
    content: bool
    second_view: str | None
    """The other instrumentation that has a span for this call already."""
    found: str | None = None
    """The model, once it has been looked for; empty where there is none."""

    def name(self) -> str:
        """The operation and the model."""
        return _titled(str(self.operation), self._model())

    def attributes(self) -> Attributes:
        """Who asks what of whom."""
        attributes = agent_attributes(str(self.operation), self.agent, self.session, self.player, content=self.content)
        request = self.request
        attributes[conventions.PROVIDER] = provider_of(request.host, self.protocol)
        if request.host:
            attributes[conventions.SERVER_ADDRESS] = request.host
        if request.port:
            attributes[conventions.SERVER_PORT] = request.port
        if model := self._model():
            attributes[conventions.REQUEST_MODEL] = model
        if self.second_view:
            attributes[conventions.SECOND_VIEW] = self.second_view
        return attributes

    def _model(self) -> str:
        if self.found is None:
            self.found = peek_model(self.request.body) or model_in(self.request.path) or ""
        return self.found


def _titled(operation: str, name: str | None) -> str:
    return f"{operation} {name}" if name else operation


def agent_attributes(
    operation: str, agent: Agent, session: SessionInfo, player: Player | None, *, content: bool
) -> Attributes:
    """The operation, the agent, the session; in a replay also what is replayed."""
    attributes: Attributes = {conventions.OPERATION: operation}
    if session.id:
        attributes[conventions.CONVERSATION_ID] = session.id
    if session.user_id and content:
        attributes[conventions.USER_ID] = session.user_id
    if session.name and content:
        attributes[conventions.SESSION_NAME] = session.name
    if session.tags:
        attributes[conventions.SESSION_TAGS] = session.tags
    if session.metadata and content:
        attributes[conventions.SESSION_METADATA] = json_text.encode(session.metadata)
    if player is not None:
        attributes[conventions.ORIGIN] = "replay"
        if baseline := getattr(player, "baseline", None):
            attributes[conventions.BASELINE] = baseline
    if agent.name:
        attributes[conventions.AGENT_NAME] = agent.name
    if agent.id:
        attributes[conventions.AGENT_ID] = agent.id
    if agent.version:
        attributes[conventions.AGENT_VERSION] = agent.version
    return attributes


def run_attributes(live: LiveRun) -> Attributes:
    """Which run."""
    return {conventions.RUN_ID: live.id, conventions.RUN_PATH: live.path}


def tool_attributes(request: ToolRequest, run: RunScope | None, turn: OpenTurn | None) -> Attributes:
    """Which tool, asked for by which call of which turn."""
    attributes: Attributes = {
        conventions.TOOL_NAME: request.name,
        conventions.TOOL_KIND: str(request.kind),
    }
    if request.call_id:
        attributes[conventions.TOOL_CALL_ID] = request.call_id
    if run is not None:
        attributes[conventions.RUN_ID] = run.live.id
    if turn is not None:
        attributes[conventions.TURN_INDEX] = turn.index
    return attributes


def other_instrumentation(context: Context | None = None) -> str | None:
    """The scope of another instrumentation's span for the same call, where one is current."""
    span = live_span(context)
    if type(span) is OwnSpan or not (attributes := getattr(span, "attributes", None)):
        return None
    scope = getattr(getattr(span, "instrumentation_scope", None), "name", None)
    if scope == conventions.SCOPE:
        return None
    model_span = attributes.get(conventions.OPERATION) in ("chat", "text_completion", "generate_content", "embeddings")
    if model_span or attributes.get("openinference.span.kind") == "LLM" or "llm.request.type" in attributes:
        return str(scope)
    return None
