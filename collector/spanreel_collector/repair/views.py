"""Two spans compared: whether they tell of one call, and which of them tells more. Making them one is others'."""

from __future__ import annotations

from collections.abc import Iterable

from spanreel.model import Json, Message, Status, ToolKind
from spanreel.records import ModelRecord, Record, ToolRecord
from spanreel_collector.repair.merging import has_answer
from spanreel_collector.trace import Placed

_SAID = ("type", "content", "name", "arguments", "response")
"""What of a message's part is compared."""


def is_ours(placed: Placed) -> bool:
    """Whether this is a model call that spanreel recorded."""
    return isinstance(placed.record, ModelRecord) and placed.record.call_id is not None


def richness(placed: Placed) -> tuple[bool, bool, bool, bool]:
    """How much a model call's span tells: ours is replayed byte by byte; else content, an answer, a body as sent."""
    record = placed.record
    if not isinstance(record, ModelRecord):
        return False, False, False, False
    return is_ours(placed), has_content(record), has_answer(record), record.protocol is not None


def has_content(record: Record | None) -> bool:
    """Whether a model call tells what was asked or answered."""
    if not isinstance(record, ModelRecord):
        return False
    return bool(record.request.messages) or has_answer(record)


def response_id(record: Record | None) -> str | None:
    """The id that the provider gave its answer."""
    return record.answer.response_id if isinstance(record, ModelRecord) and record.answer else None


def requested_model(record: Record | None) -> str | None:
    """The model that was asked."""
    return record.request.model if isinstance(record, ModelRecord) else None


def same_answer(first: Record | None, second: Record | None) -> bool:
    """Whether two model calls came to the same, word for word."""
    one, other = _answered(first), _answered(second)
    return bool(one) and one == other


def failed_alike(first: Record | None, second: Record | None) -> bool:
    """Whether two model calls asked the same, and both failed without an answer."""
    if not isinstance(first, ModelRecord) or not isinstance(second, ModelRecord) or not _failed(first, second):
        return False
    return bool(first.request.messages) and said(first.request.messages) == said(second.request.messages)


def failed_untold(first: Record | None, second: Record | None) -> bool:
    """Whether two model calls both failed without an answer, and one of them does not tell what it asked."""
    if not isinstance(first, ModelRecord) or not isinstance(second, ModelRecord) or not _failed(first, second):
        return False
    return not (first.request.messages and second.request.messages)


def _failed(first: ModelRecord, second: ModelRecord) -> bool:
    return first.status is second.status is Status.ERROR and not has_answer(first) and not has_answer(second)


def is_one_tool(inner: ToolRecord, outer: ToolRecord) -> bool:
    """Whether two tools are one; what an MCP server calls its tool, its clients put the server's name before."""
    return inner.name == outer.name or (inner.kind is ToolKind.MCP and outer.name.endswith(f"_{inner.name}"))


def said(messages: Iterable[Message]) -> list[dict[str, Json]]:
    """What messages say, without ids of tool calls, which some writers make up, and thoughts, which some leave out."""
    parts = [part for message in messages for part in message.get("parts") or () if isinstance(part, dict)]
    told = [{key: part[key] for key in _SAID if part.get(key) not in (None, "")} for part in parts]
    return [one for one in told if one.get("type") != "reasoning" and one != {"type": "text"}]


def _answered(record: Record | None) -> list[dict[str, Json]]:
    answer = record.answer if isinstance(record, ModelRecord) else None
    return said(answer.messages if answer else ())
