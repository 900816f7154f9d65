"""What a span says from its start, for samplers and killed processes: who, in which session, asking what."""

from __future__ import annotations

from typing import Any

import pydantic_core

from spanreel import conventions
from spanreel.model import Agent, Operation, SessionInfo
from spanreel.native import live_span
from spanreel.point import HttpRequest, ModelProtocol, Player, ToolRequest
from spanreel.protocols import provider_of
from spanreel.scope import RunScope, Turn
from spanreel.snapshot import snapshot

Attributes = dict[str, Any]


def titled(operation: str, name: str | None) -> str:
    """A span's name: the operation, and what it is done to where that is known."""
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
        attributes[conventions.SESSION_METADATA] = pydantic_core.to_json(snapshot(session.metadata).value).decode()
    if player is not None:
        attributes[conventions.ORIGIN] = "replay"
        if baseline := getattr(player, "baseline", None):
            attributes[conventions.BASELINE] = baseline
    named = {
        conventions.AGENT_NAME: agent.name,
        conventions.AGENT_ID: agent.id,
        conventions.AGENT_VERSION: agent.version,
    }
    attributes.update((key, value) for key, value in named.items() if value)
    return attributes


def exchange_attributes(
    protocol: ModelProtocol, operation: Operation, request: HttpRequest, model: str | None
) -> Attributes:
    """Where a model request goes, and whether another instrumentation has a span for it already."""
    attributes: Attributes = {
        conventions.PROVIDER: provider_of(request.host, protocol),
    }
    if request.host:
        attributes[conventions.SERVER_ADDRESS] = request.host
    if request.port:
        attributes[conventions.SERVER_PORT] = request.port
    if model:
        attributes[conventions.REQUEST_MODEL] = model
    if other := other_instrumentation():
        attributes[conventions.SECOND_VIEW] = other
    return attributes


def tool_attributes(request: ToolRequest, run: RunScope | None, turn: Turn | None) -> Attributes:
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


def other_instrumentation() -> str | None:
    """The scope of another instrumentation's span for the same call, where one is current."""
    attributes = getattr(live_span(), "attributes", None)
    if not attributes:
        return None
    scope = getattr(getattr(live_span(), "instrumentation_scope", None), "name", None)
    if scope == conventions.SCOPE:
        return None
    model_span = attributes.get(conventions.OPERATION) in ("chat", "text_completion", "generate_content", "embeddings")
    if model_span or attributes.get("openinference.span.kind") == "LLM" or "llm.request.type" in attributes:
        return str(scope)
    return None
