"""Messages that were laid out in attributes, ``gen_ai.prompt.<i>.role`` and so on, as OpenLLMetry began to."""

from __future__ import annotations

from collections.abc import Iterable

from spanreel.model import Message
from spanreel_collector.dialects.content import bedrock, messages
from spanreel_collector.dialects.content.decoding import decode
from spanreel_collector.dialects.content.indexed import Tree, listed, numbered
from spanreel_collector.span import Attributes

_THINKING = "thinking"
"""The role of what was thought, of Anthropic's models until 0.4x; the same under which it is kept with its answer."""


def read(attributes: Attributes, prefix: str, role: str) -> list[Message]:
    """The messages under the prefix, in their order; those without a role are of this one."""
    found: list[Message] = []
    for item in _with_thoughts(numbered(attributes, prefix).values()):
        blocks, _ = decode(item.get("content"))
        if (
            isinstance(blocks, list)
            and blocks
            and bedrock.is_blocks(blocks)
            and not any("type" in one for one in blocks)
        ):
            found += bedrock.read_messages(str(item.get("role") or role), blocks)
        elif (message := messages.read_message(_plain(item, role))) is not None:
            thought = item.get(_THINKING)
            reasoning = [{"type": "reasoning", "content": thought}] if isinstance(thought, str) and thought else []
            found.append({**message, "parts": [*reasoning, *message["parts"]]} if reasoning else message)
    return found


def _with_thoughts(items: Iterable[Tree]) -> list[Tree]:
    """The messages, each with what was thought before it, which some have as a message of its own before the answer."""
    found: list[Tree] = []
    for item in items:
        before = found[-1] if found else {}
        if before.get("role") == _THINKING and item.get("role") == "assistant":
            found.pop()
            ended = {key: before[key] for key in ("finish_reason",) if key in before}
            found.append({**ended, **item, _THINKING: before.get("content")})
        else:
            found.append(item)
    alone = {"role": "assistant", "content": None}
    return [
        {**item, **alone, _THINKING: item.get("content")} if item.get("role") == _THINKING else item for item in found
    ]


def _plain(item: Tree, role: str) -> Tree:
    """An indexed message as OpenAI writes it; content may be JSON of blocks."""
    content = item.get("content", item.get("user"))
    blocks, _ = decode(content)
    is_blocks = isinstance(blocks, list) and blocks and all(isinstance(one, dict) and "type" in one for one in blocks)
    item = {key: value for key, value in item.items() if key != _THINKING}
    plain = {"role": role, **item, "content": blocks if is_blocks else content}
    if content == "[]" or (content == "null" and plain["role"] == "assistant"):
        plain["content"] = None  # JSON of blocks that were left out, or of no content beside tool calls
    plain["tool_calls"] = [
        {"id": call.get("id"), "function": {"name": call.get("name"), "arguments": call.get("arguments")}}
        for call in listed(item.get("tool_calls"))
    ]
    return plain
