"""Runs of pydantic-ai: what an agent is asked, in which conversation, and what it comes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any

from spanreel.frameworks.pydantic_ai.messages import dump_history, dump_prompt, load_history, load_prompt, read_prompt
from spanreel.frameworks.pydantic_ai.tools import is_watched
from spanreel.model import Agent, Json, Message, Status
from spanreel.point import Begun, RunRequest, RunResult

NEW = "new"
"""As a conversation's id: begin another one, whatever the history says."""


def read_run(agent: Any, arguments: Mapping[str, Any]) -> RunRequest:
    """The user's prompt; the history is how the conversation stands, and goes along for a replay."""
    prompt, history = arguments["user_prompt"], _history(arguments)
    return RunRequest(
        agent=Agent(name=agent.name),
        input=lambda: read_prompt(prompt),
        arguments=lambda: {
            **({} if prompt is None else {"user_prompt": dump_prompt(prompt)}),
            **({} if history is None else {"message_history": dump_history(history)}),
        },
        conversation_id=_conversation(arguments, history),
    )


def _history(arguments: Mapping[str, Any]) -> Sequence[Any] | None:
    conversation = arguments.get("conversation")
    found: Sequence[Any] | None = conversation.messages if conversation else arguments.get("message_history")
    return list(found) if found else None


def _conversation(arguments: Mapping[str, Any], history: Sequence[Any] | None) -> str | None:
    said: str | None = arguments.get("conversation_id")
    if said is not None:
        return said if said != NEW else None
    if conversation := arguments.get("conversation"):
        return str(conversation.conversation_id)
    # The last that is known; of a long history that knows none, without a step in Python a message.
    known = map(getattr, reversed(history or ()), repeat("conversation_id"), repeat(None))
    return next(filter(None, known), None)


def rewrite_run(arguments: Mapping[str, Any], recorded: Mapping[str, Json]) -> Mapping[str, Any]:
    """The caller's arguments with the recorded prompt and history; what is the same stays the caller's object."""
    changed: dict[str, Any] = {}
    prompt, history = arguments["user_prompt"], _history(arguments)
    if "user_prompt" in recorded and (prompt is None or dump_prompt(prompt) != recorded["user_prompt"]):
        changed["user_prompt"] = load_prompt(recorded["user_prompt"])
    if "message_history" in recorded and (history is None or dump_history(history) != recorded["message_history"]):
        changed["message_history"] = load_history(recorded["message_history"])
        changed["conversation"] = None  # the two exclude each other
    return {**arguments, **changed}


def read_begun(run: Any) -> Begun:
    """The id that the library has made up where a conversation begins, and whether the run's tools are watched."""
    conversation = getattr(run, "conversation_id", None)
    return Begun(
        conversation_id=conversation if isinstance(conversation, str) else None,
        sees_tools=is_watched(run.ctx.deps.tool_manager.toolset),
    )


def read_run_result(run: Any) -> RunResult:
    """What the run came to; nothing where its user left before its end, interrupted where tools wait for an answer."""
    result = getattr(run, "result", None)
    if result is None:
        return RunResult()
    output = result.output
    messages: tuple[Message, ...] = ()
    if isinstance(output, str):
        messages = ({"role": "assistant", "parts": [{"type": "text", "content": output}]},)
    deferred = type(output).__name__ == "DeferredToolRequests"
    return RunResult(messages, output, Status.INTERRUPTED if deferred else Status.OK)
