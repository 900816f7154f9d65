"""LangChain's objects made again from what their snapshot says of their fields, and what its exceptions mean."""

from __future__ import annotations

from typing import Any

from spanreel.model import ErrorCategory, Json

ERRORS = {"GraphRecursionError": ErrorCategory.MAX_TURNS, "OpenAIError": ErrorCategory.MODEL}
CONTROL_FLOW = ("GraphBubbleUp",)

_MESSAGE = {"type", "content", "additional_kwargs", "response_metadata"}
_DOCUMENT = {"type", "page_content", "metadata"}
_COMMAND = {"graph", "update", "resume", "goto"}


def rebuild(value: Json, call_id: str | None = None) -> Any:
    """Messages, documents and commands from their fields, wherever they stand; a tool's messages answer its call."""
    if isinstance(value, list):
        return [rebuild(item, call_id) for item in value]
    if not isinstance(value, dict):
        return value
    fields = {name: rebuild(item, call_id) for name, item in value.items()}
    if fields.keys() >= _MESSAGE:
        from langchain_core.messages import messages_from_dict

        told = {"tool_call_id": call_id} if call_id is not None and "tool_call_id" in fields else {}
        return messages_from_dict([{"type": fields["type"], "data": {**fields, **told}}])[0]
    if fields.keys() >= _DOCUMENT:
        from langchain_core.documents import Document

        return Document(**fields)
    if fields.keys() == _COMMAND:
        from langgraph.types import Command

        return Command(**fields)
    return fields


def asked_in(interrupted: BaseException | None) -> list[Any]:
    """What the interrupts of a graph ask, one by one; their ids are made of random ones."""
    given = interrupted.args[0] if interrupted is not None and interrupted.args else ()
    return [one.value for one in given if hasattr(one, "value")] if isinstance(given, (list, tuple)) else []
