"""Messages and parts in the form of the conventions, as an attribute holds them: the fidelity is told with them."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from spanreel import loss_markers
from spanreel.memory import Known, Memory, known
from spanreel.model import Fidelity, Json, Message
from spanreel.protocols import media
from spanreel_collector import json_text
from spanreel_collector.dialects.content import ai_sdk, gemini
from spanreel_collector.dialects.content.blocks import is_item, parts_of
from spanreel_collector.dialects.content.decoding import plain_text
from spanreel_collector.dialects.content.messages import read_message
from spanreel_collector.dialects.values import arguments, decode, items_of, role

_CONTENT = {
    "text": "content",
    "reasoning": "content",
    "blob": "content",
    "uri": "uri",
    "file": "file_id",
    "tool_call_response": "response",
}
"""Where the types of parts have their content, which a writer leaves out that captures none."""
_CALLS = ("tool_call", "tool_call_response")
_BLOCKS = (
    "tool_use",
    "tool_result",
    "tool-call",
    "tool-result",
    "input_text",
    "output_text",
    "image_url",
    "input_audio",
)
"""Types that providers' and SDKs' own blocks have; of no other form is a part with one of these."""
_BESIDE_CONTENT = ("refusal", "reasoning_content", "function_call")
_FOREIGN = ("type", "data", "kwargs", "lc")
"""By these a message without a role may be known, which is a framework's or the Responses API's."""
_read_before = Memory[Known](4 * 1024 * 1024)
"""A conversation repeats its history in every call: a message is read once."""
_parts_before = Memory[tuple[tuple[dict[str, Json], ...], Fidelity]](1024 * 1024)
"""And so do an agent's instructions."""


def messages(value: Json, speaker: str = "user") -> tuple[tuple[Message, ...], Fidelity]:
    """The messages of a messages attribute; of one that was cut off, those parts that are whole.

    What has no role is the speaker's: a text alone, or texts in the list. They are shared with those of other calls
    that say the same: nobody may change them.
    """
    if isinstance(value, str) and (known_ones := _one_by_one(value)) is not None:
        return known_ones, captured(known_ones, Fidelity.WHOLE)
    items, fidelity = items_of(value, parts_depth=4)
    if not items and (text := plain_text(value)):
        items, fidelity = [text], Fidelity.WHOLE
    if len(items) == 1 and isinstance(items[0], dict) and isinstance(items[0].get("messages"), list):
        items = items[0]["messages"]
    read = tuple(message for item in items if (message := _message(item, speaker)) is not None)
    return read, captured(read, fidelity)


def _one_by_one(text: str) -> tuple[Message, ...] | None:
    """The messages of a list's text, those read before not read again; None where they cannot be told apart so."""
    found = []
    for each in json_text.split_objects(text) or ():
        message = _read_before.find(each)
        if message is None:
            try:
                item = json_text.parse(each)
            except ValueError:
                return None
            made = _message(item, "") if isinstance(item.get("role"), str) else None
            if made is None:
                return None
            message = known(made)
            loss_markers.glance(message, each)
            _read_before.keep(each, message)
        found.append(message)
    return tuple(found) or None


def captured(read: Iterable[Message], fidelity: Fidelity) -> Fidelity:
    """The fidelity of messages whose content may have been left out, all of it or some, by the writer's settings."""
    content = [says for message in read for part in message["parts"] if (says := _content_of(part)) is not None]
    if not content or fidelity is not Fidelity.WHOLE:
        told = any(message["parts"] for message in read) or fidelity is Fidelity.TRUNCATED
        return fidelity if told else Fidelity.ABSENT
    missing = content.count(False)
    return Fidelity.WHOLE if not missing else Fidelity.ABSENT if missing == len(content) else Fidelity.REDACTED


def parts(value: Json) -> tuple[tuple[dict[str, Json], ...], Fidelity]:
    """The parts of an attribute that holds parts without a role. Shared, as messages are."""
    found = _parts_before.find(value) if isinstance(value, str) else None
    if found is None:
        items, fidelity = items_of(value, parts_depth=2)
        if not items and (text := plain_text(value)):
            items, fidelity = [text], Fidelity.WHOLE
        read = tuple(part for item in items for part in _parts_of_item(item))
        found = read, fidelity if read or fidelity is Fidelity.TRUNCATED else Fidelity.ABSENT
        if isinstance(value, str):
            _parts_before.keep(value, found)
    return found


def _content_of(part: Mapping[str, Json]) -> bool | None:
    """Whether the part's content was captured; None of parts that may have none."""
    key = _CONTENT.get(part["type"])
    if part["type"] == "tool_call":
        # Called with nothing, or not captured: only what stands beside it tells.
        return True if "arguments" in part else None
    return None if key is None else key in part


def _parts_of_item(item: Any) -> list[dict[str, Json]]:
    """The parts of one of a list's: a part, a text, or a whole message, as LiteLLM writes its instructions."""
    if isinstance(item, str):
        return parts_of(item)
    if not isinstance(item, dict) or not item:
        return []
    if "parts" in item or ("role" in item and "content" in item):
        message = _message(item, "system")
        return list(message["parts"]) if message is not None else []
    return [_part(item)]


def _message(item: Any, speaker: str) -> Message | None:
    item = _whole_item(item, speaker)
    if not isinstance(item, dict):
        return None
    if not isinstance(item.get("role"), str) or _is_foreign(item):
        return read_message(item)  # a provider's or a framework's own form, under the conventions' name
    message: Message = {"role": role(item["role"]), "parts": _message_parts(item)}
    kinds = {part["type"] for part in message["parts"]}
    if kinds == {"tool_call_response"}:
        message["role"] = "tool"  # which Anthropic's form and pydantic-ai's give to the user
    if message["role"] == "tool" and kinds == {"text"}:
        told = "".join(str(part.get("content", "")) for part in message["parts"])
        captured_any = any("content" in part for part in message["parts"])
        answer: dict[str, Json] = {"type": "tool_call_response", "id": _identity(item)}
        message["parts"] = [{**answer, "response": told} if captured_any else answer]
    if message["role"] != item["role"]:
        message["provider_fields"] = {"role": item["role"]}
    for key in ("name", "finish_reason"):
        if isinstance(item.get(key), str) and item[key]:
            message[key] = item[key]
    return message


def _whole_item(item: Any, speaker: str) -> Any:
    """A message with its role: one that is JSON inside of the list, a text alone, or one that says no role at all."""
    if isinstance(item, str):
        found, _ = decode(item)
        item = found if isinstance(found, dict) else {"content": item} if item.strip() else None
    if not isinstance(item, dict) or isinstance(item.get("role"), str):
        return item
    told = any(isinstance(item.get(key), str | list) for key in ("parts", "content"))
    return {**item, "role": speaker} if told and not any(key in item for key in _FOREIGN) else item


def _is_foreign(item: dict[str, Any]) -> bool:
    """Whether the message is of a provider's form: its content a list or an object, or something said beside it."""
    if "parts" in item:
        return False
    if is_item(item) or any(item.get(key) is not None for key in _BESIDE_CONTENT):
        return True
    return any(isinstance(item.get(key), list) for key in ("content", "tool_calls"))


def _identity(item: dict[str, Any]) -> str | None:
    """The call that a tool's message answers, where the message and not a part of it says so."""
    found = item.get("tool_call_id", item.get("id"))
    return found if isinstance(found, str) and found else None


def _message_parts(item: dict[str, Any]) -> list[dict[str, Json]]:
    given = item.get("parts")
    if isinstance(given, list):
        return [_part(part) for part in given if isinstance(part, dict) and part]
    content = item.get("content", item.get("text"))
    if isinstance(content, dict) and content:
        told = role(str(item.get("role"))) == "tool" and not isinstance(content.get("type"), str)
        answer: dict[str, Json] = {"type": "tool_call_response", "id": _identity(item), "response": content}
        return [answer if told else _part(content)]
    return [{"type": "text", "content": content}] if isinstance(content, str) else []


def _part(part: dict[str, Any]) -> dict[str, Json]:
    if part.get("type") in _BLOCKS:
        return parts_of([part])[0]
    if part.get("type") == "file" and not {"file_id", "content"} & set(part):
        return ai_sdk.parts([part])[0]
    if "type" not in part and "content" not in part:
        found = gemini.read_message({"parts": [part]})["parts"]
        if found and found[0]["type"] != media.OTHER:
            return dict(found[0])
    if part.get("type") == "uri" and isinstance(part.get("uri"), str) and part["uri"].startswith("data:"):
        return media.read_url(part["uri"], str(part.get("modality") or "image"))  # as Logfire puts content there
    read = dict(part)
    if read.get("type") == "blob":
        _settle_blob(read)
    if not isinstance(read.get("type"), str):
        read["type"] = "text" if isinstance(read.get("content"), str) else "unknown"
    if read["type"] in ("text", "reasoning") and "content" not in read and isinstance(read.get("text"), str):
        read["content"] = read.pop("text")
    if read["type"] == "tool_call" and isinstance(read.get("arguments"), str):
        read["arguments"] = arguments(read["arguments"])
    if read["type"] in _CALLS and read.get("id") == "":
        read["id"] = None  # of providers that give none
    if read["type"] == "tool_call_response" and "result" in read:
        # The schema says `response`; the specification's old example and pydantic-ai say `result`.
        result = read.pop("result")
        if read.get("response") is None:
            read["response"] = result
    if read["type"] == "tool_call_response" and "response" not in read:
        said = next((key for key in ("content", "output") if key in read), None)
        if said is not None:
            read["response"] = read.pop(said)
    if read["type"] == "thinking":
        # As pydantic-ai and providers themselves say for `reasoning`.
        content = read.pop("thinking", None)
        read = {"type": "reasoning", **{key: value for key, value in read.items() if key not in ("type", "signature")}}
        if content is not None:
            read["content"] = content
        if part.get("signature") is not None:
            read["provider_fields"] = {"signature": part["signature"]}
    return read


def _settle_blob(read: dict[str, Json]) -> None:
    """Put binary content under its name, which google-genai's users call ``data``, as base64; and say what it is of."""
    if "content" not in read and "data" in read:
        read["content"] = read.pop("data")
    content = read.get("content")
    if isinstance(content, bytes):
        read["content"] = base64.b64encode(content).decode("ascii")
    kind = read.get("mime_type")
    if not read.get("modality") and isinstance(kind, str):
        found = kind.partition("/")[0]
        read["modality"] = found if found in ("image", "audio", "video") else "document"
