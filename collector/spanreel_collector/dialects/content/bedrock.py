"""Content in the blocks of Bedrock's Converse API, which Strands writes too."""

from __future__ import annotations

from typing import Any

from spanreel.model import Json, Message
from spanreel.protocols import media
from spanreel_collector.dialects import values

_MEDIA = {"image": "image", "video": "video", "audio": "audio", "document": "document"}
_OWN = ("cachePoint", "guardContent", "citationsContent", "interruptResponse", "s3Location")
_KNOWN = ("text", "toolUse", "toolResult", "reasoningContent", *_MEDIA, *_OWN)


def is_blocks(value: Json) -> bool:
    """Whether a value is a list of blocks, and not a list of somebody's own."""
    return isinstance(value, list) and all(
        isinstance(block, dict) and any(key in block for key in _KNOWN) for block in value
    )


def read_parts(blocks: list[Any]) -> list[dict[str, Json]]:
    """The parts that the blocks are; a block of no known form is kept as it came."""
    return [_read_block(block) for block in blocks if isinstance(block, dict)]


def read_messages(role: str, blocks: list[Any]) -> list[Message]:
    """The message of a role; its tool answers, which stand in the user's, as a message of the tool's before it."""
    parts = read_parts(blocks)
    # Strands tells of a failure on the tool's span, and not in all that repeats the history: it must stay equal.
    answers = [
        {key: value for key, value in part.items() if key != "provider_fields"}
        for part in parts
        if part["type"] == "tool_call_response"
    ]
    rest = [part for part in parts if part["type"] != "tool_call_response"]
    found: list[Message] = [{"role": "tool", "parts": answers}] if answers else []
    return [*found, {"role": role, "parts": rest}] if rest or not answers else found


def read_result(content: Json) -> Json:
    """What a tool gave: of one block of text or JSON what it holds, of several blocks the blocks."""
    if not isinstance(content, list) or len(content) != 1 or not isinstance(content[0], dict):
        return content
    (block,) = content
    if set(block) == {"text"} and isinstance(block["text"], str):
        return block["text"]
    return block["json"] if set(block) == {"json"} else content


def _read_block(block: dict[str, Any]) -> dict[str, Json]:
    if isinstance(block.get("text"), str):
        return {"type": "text", "content": block["text"]}
    use, result = block.get("toolUse"), block.get("toolResult")
    if isinstance(use, dict):
        identity, name = values.text(use, "toolUseId"), values.text(use, "name")
        return {"type": "tool_call", "id": identity, "name": name, "arguments": use.get("input")}
    if isinstance(result, dict):
        answer: dict[str, Json] = {"type": "tool_call_response", "id": values.text(result, "toolUseId")}
        if "content" in result:
            answer["response"] = read_result(result["content"])
        return {**answer, "provider_fields": {"status": "error"}} if result.get("status") == "error" else answer
    if isinstance(block.get("reasoningContent"), dict):
        return _read_reasoning(block["reasoningContent"])
    for name, modality in _MEDIA.items():
        if isinstance(block.get(name), dict):
            return _read_media(block[name], modality)
    return media.read_own(block)


def _read_reasoning(content: dict[str, Any]) -> dict[str, Json]:
    inner = content.get("reasoningText")
    inner = inner if isinstance(inner, dict) else {}
    part: dict[str, Json] = {"type": "reasoning"}
    if isinstance(inner.get("text"), str):
        part["content"] = inner["text"]
    kept = {key: value for key, value in (*inner.items(), *content.items()) if key not in ("text", "reasoningText")}
    return {**part, "provider_fields": kept} if kept else part


def _read_media(content: dict[str, Any], modality: str) -> dict[str, Json]:
    source = content["source"] if isinstance(content.get("source"), dict) else {}
    form = values.text(content, "format")
    part: dict[str, Json] = {"type": "blob", "modality": modality}
    if form is not None:
        part["mime_type"] = f"{'application' if modality == 'document' else modality}/{form}"
    return {**part, "content": source["bytes"]} if isinstance(source.get("bytes"), str) else part
