"""Messages that were laid out in attributes, ``gen_ai.prompt.<i>.role`` and so on, as OpenLLMetry began to."""

from __future__ import annotations

from spanreel.model import Message
from spanreel_collector.dialects.content import bedrock, messages
from spanreel_collector.dialects.content.decoding import decode
from spanreel_collector.dialects.content.indexed import Tree, listed, numbered
from spanreel_collector.span import Attributes


def read(attributes: Attributes, prefix: str, role: str) -> list[Message]:
    """The messages under the prefix, in their order; those without a role are of this one."""
    found: list[Message] = []
    for item in numbered(attributes, prefix).values():
        blocks, _ = decode(item.get("content"))
        if (
            isinstance(blocks, list)
            and blocks
            and bedrock.is_blocks(blocks)
            and not any("type" in one for one in blocks)
        ):
            found += bedrock.read_messages(str(item.get("role") or role), blocks)
        elif (message := messages.read_message(_plain(item, role))) is not None:
            found.append(message)
    return found


def _plain(item: Tree, role: str) -> Tree:
    """An indexed message as OpenAI writes it; content may be JSON of blocks."""
    content = item.get("content", item.get("user"))
    blocks, _ = decode(content)
    is_blocks = isinstance(blocks, list) and blocks and all(isinstance(one, dict) and "type" in one for one in blocks)
    plain = {"role": role, **item, "content": blocks if is_blocks else content}
    if content == "[]" or (content == "null" and plain["role"] == "assistant"):
        plain["content"] = None  # JSON of blocks that were left out, or of no content beside tool calls
    plain["tool_calls"] = [
        {"id": call.get("id"), "function": {"name": call.get("name"), "arguments": call.get("arguments")}}
        for call in listed(item.get("tool_calls"))
    ]
    return plain
