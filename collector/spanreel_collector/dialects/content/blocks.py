"""Blocks of a message's content, of whichever provider or SDK, and what OpenAI puts between messages."""

from __future__ import annotations

from typing import Any

from spanreel.model import Json, Message
from spanreel.protocols import media
from spanreel.protocols.openai_responses import items
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content import ai_sdk, bedrock

ITEMS = ("function_call", "function_call_output", "reasoning")
"""What OpenAI's Responses API puts between messages."""
_OF_AI_SDK = ("tool-call", "tool-result")


def parts_of(content: Json) -> list[dict[str, Json]]:
    """The parts of a content as providers write it: a text, or a list of texts and typed blocks."""
    if isinstance(content, str):
        return [{"type": "text", "content": content}] if content else []
    found: list[dict[str, Json]] = []
    for block in content if isinstance(content, list) else []:
        if isinstance(block, str):
            found.append({"type": "text", "content": block})
        elif isinstance(block, dict) and block:
            found.append(_block(block))
    return found


def tool_call(identity: str | None, name: str | None, arguments: Json) -> dict[str, Json]:
    """The part that asks for a tool."""
    return {"type": "tool_call", "id": identity, "name": name, "arguments": arguments}


def is_item(item: dict[str, Any]) -> bool:
    """Whether this is an item of OpenAI's Responses API that is no message."""
    kind = item.get("type")
    known = isinstance(kind, str) and (kind in ITEMS or kind.endswith(("_call", "_call_output")))
    return known and "role" not in item and kind != "tool_call"


def read_item(item: dict[str, Any]) -> Message:
    """An item of OpenAI's Responses API that is no message."""
    identity = values.text(item, "call_id", "id")
    if item["type"] == "function_call":
        asked = tool_call(identity, values.text(item, "name"), values.arguments(item.get("arguments")))
        return {"role": "assistant", "parts": [asked]}
    if item["type"] == "function_call_output":
        part = {"type": "tool_call_response", "id": identity, "response": item.get("output")}
        return {"role": "tool", "parts": [part]}
    if items.is_output(item):
        return {"role": "tool", "parts": [items.read_output(item)]}
    if item["type"] != "reasoning":
        return {"role": "assistant", "parts": items.read_items([item])}
    summary = parts_of(item.get("summary"))
    text = "\n".join(str(part.get("content") or part.get("text") or "") for part in summary)
    return {"role": "assistant", "parts": [{"type": "reasoning", "content": text}]}


def _block(block: dict[str, Any]) -> dict[str, Json]:
    """A block of a content, whose type is left out where there is but one; as it came, where it is of no known form."""
    kind, text = block.get("type", "text"), block.get("text")
    if isinstance(text, str) and kind in ("text", "input_text", "output_text"):
        return {"type": "text", "content": text}
    if kind in _OF_AI_SDK:
        return ai_sdk.parts([block])[0]
    if "type" not in block and bedrock.is_blocks([block]):
        return bedrock.read_parts([block])[0]
    found = _thought(kind, block) or _called(kind, block) or _came(kind, block) or _medium(kind, block)
    return media.read_own(block) if found is None else found


def _thought(kind: Json, block: dict[str, Any]) -> dict[str, Json] | None:
    if kind == "reasoning" and isinstance(block.get("summary"), list):
        return dict(read_item(block)["parts"][0])  # what LangChain keeps of the Responses API
    if kind == "reasoning" and isinstance(block.get("reasoning"), str):
        return {"type": "reasoning", "content": block["reasoning"]}
    if kind == "thinking" and isinstance(block.get("thinking"), str):
        thought: dict[str, Json] = {"type": "reasoning", "content": block["thinking"]}
        signature = values.text(block, "signature")
        return {**thought, "provider_fields": {"signature": signature}} if signature else thought
    return None


def _called(kind: Json, block: dict[str, Any]) -> dict[str, Json] | None:
    identity, name = values.text(block, "id"), values.text(block, "name")
    if kind == "function_call":
        return dict(read_item(block)["parts"][0])  # what LangChain keeps of the Responses API
    if kind == "tool_call" and "args" in block:
        return tool_call(identity, name, values.arguments(block["args"]))
    if kind == "tool_use":
        return tool_call(identity, name, values.arguments(block.get("input")))
    if isinstance(block.get("tool_call"), dict):  # Haystack's
        asked = block["tool_call"]
        name = values.text(asked, "tool_name")
        return tool_call(values.text(asked, "id"), name, values.arguments(asked.get("arguments")))
    return None


def _came(kind: Json, block: dict[str, Any]) -> dict[str, Json] | None:
    if kind == "tool_result":
        given = parts_of(block.get("content"))
        text_only = all(part["type"] == "text" for part in given)
        response: Json = "".join(str(part["content"]) for part in given) if text_only else given
        answer: dict[str, Json] = {
            "type": "tool_call_response",
            "id": values.text(block, "tool_use_id"),
            "response": response,
        }
        return {**answer, "provider_fields": {"is_error": True}} if block.get("is_error") is True else answer
    if isinstance(block.get("tool_call_result"), dict):  # Haystack's
        told = block["tool_call_result"]
        origin = told["origin"] if isinstance(told.get("origin"), dict) else {}
        return {"type": "tool_call_response", "id": values.text(origin, "id"), "response": told.get("result")}
    return None


def _medium(kind: Json, block: dict[str, Any]) -> dict[str, Json] | None:
    """An image, a sound or a file: by OpenAI's members, by Anthropic's source, else as the AI SDK has it."""
    image, inner, source = block.get("image_url"), block.get(str(kind)), block.get("source")
    url = image.get("url") if isinstance(image, dict) else image
    if isinstance(url, str):
        return media.read_url(url, "image")
    if kind == "input_audio" and isinstance(inner, dict) and isinstance(inner.get("data"), str):
        return media.read_audio(inner["data"], str(inner.get("format") or "wav"))
    if kind == "file" and isinstance(inner, dict):
        return _file(inner)
    if kind in ("image", "document") and isinstance(source, dict):
        return _sourced(source, str(kind))
    if kind in ("image", "file") and any(isinstance(block.get(key), str | dict) for key in ("image", "data", "url")):
        return ai_sdk.parts([block])[0]
    return None


def _file(file: dict[str, Any]) -> dict[str, Json] | None:
    if isinstance(file.get("file_data"), str):
        return media.read_url(file["file_data"], "document")
    found = values.text(file, "file_id")
    return {"type": "file", "modality": "document", "file_id": found} if found else None


def _sourced(source: dict[str, Any], modality: str) -> dict[str, Json] | None:
    if isinstance(source.get("data"), str) and source.get("type") != "text":
        mime_type = values.text(source, "media_type")
        return {"type": "blob", "modality": modality, "mime_type": mime_type, "content": source["data"]}
    if isinstance(source.get("url"), str):
        return media.read_url(source["url"], modality)
    found = values.text(source, "file_id")
    return {"type": "file", "modality": modality, "file_id": found} if found else None


_BESIDE = {"images": "image", "audio": "audio", "videos": "video", "files": "document"}


def attached(item: dict[str, Any]) -> list[dict[str, Json]]:
    """The images and other files that Agno has beside a message's text: what they are of, and a URL or base64."""
    given = [(modality, one) for key, modality in _BESIDE.items() for one in _objects(item.get(key))]
    parts: list[dict[str, Json]] = []
    for modality, one in given:
        url, data = values.text(one, "url"), values.text(one, "content")
        kind = values.text(one, "mime_type") or (f"{modality}/{one['format']}" if one.get("format") else None)
        if url is not None:
            parts.append(media.read_url(url, modality))
        elif data is not None or "content" in one or "filepath" in one:
            told = {"mime_type": kind, "content": data}
            parts.append({"type": "blob", "modality": modality, **{key: one for key, one in told.items() if one}})
    return parts


def _objects(value: Json) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
