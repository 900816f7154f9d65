"""Providers' typed blocks that stand as JSON in the texts of messages: as a list, or each in a text of its own."""

from __future__ import annotations

from collections.abc import Callable

from spanreel.model import Json, Message
from spanreel_collector.dialects.content.blocks import parts_of
from spanreel_collector.dialects.content.decoding import decode

_LONE = ("tool_use", "thinking", "redacted_thinking", "reasoning")


def read_lists(found: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages, with the parts that are written in a text as a list of blocks."""
    return tuple(_with_parts(message, "[{", _of_list) for message in found)


def read_lone(found: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages, with the block that is a text's whole content; one that asks for a tool is a part as well."""
    return tuple(_with_parts(message, '{"', _of_block) for message in found)


def read_thoughts(found: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages, with Bedrock's block of reasoning that is a text's whole content."""
    return tuple(_with_parts(message, '{"reasoningContent"', _of_thought) for message in found)


def _with_parts(message: Message, begins: str, read: Callable[[Json], list[dict[str, Json]] | None]) -> Message:
    parts: list[dict[str, Json]] = []
    changed = False
    for part in message.get("parts") or ():
        text = part.get("content") if part.get("type") == "text" else None
        blocks = read(decode(text)[0]) if isinstance(text, str) and text.startswith(begins) else None
        changed = changed or blocks is not None
        parts += [part] if blocks is None else blocks
    return {**message, "parts": parts} if changed else message


def _of_list(blocks: Json) -> list[dict[str, Json]] | None:
    typed = isinstance(blocks, list) and blocks and all(isinstance(one, dict) and "type" in one for one in blocks)
    return parts_of(blocks) if typed else None


def _of_block(block: Json) -> list[dict[str, Json]] | None:
    if not isinstance(block, dict) or block.get("type") not in _LONE:
        return None
    return parts_of([block]) if block["type"] != "tool_use" else []


def _of_thought(block: Json) -> list[dict[str, Json]] | None:
    return parts_of([block]) if isinstance(block, dict) and set(block) == {"reasoningContent"} else None
