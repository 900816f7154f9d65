"""Messages, their parts and tool definitions in the form of OpenAI chat completions, read and written."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any, Final

from spanreel.model import Json, Message, ToolDefinition
from spanreel.protocols.function_tools import read_function, write_function
from spanreel.protocols.media import read_audio, read_own, read_url, write_audio, write_own, write_url
from spanreel.protocols.message_lists import write_apart
from spanreel.protocols.residue import EXACT, keep, kept, overlay, read_arguments, residue, unexpected, write_arguments
from spanreel.protocols.shaped import Free, said

FORM: Final = "$form"
"""The form that a thing stood in, where we would write another.

``list`` of content; ``content`` for a refusal in that list; ``function_call`` and ``functions`` of the legacy API.
"""
THOUGHT: Final = "$thought"
"""How a thought in the content's list was written: ``text``, or the lengths of its texts where these are not one."""
FIELD: Final = "$field"
"""The field that reasoning stood in, where it is not the first of `REASONING_FIELDS`."""
FREE: Final = {
    **said("content", "text", "id", "tool_call_id", "reasoning_content", "reasoning", "refusal"),
    "arguments": Free.ARGUMENTS,
}
"""What stands in messages and is handed through as it is."""
REASONING_FIELDS: Final = ("reasoning_content", "reasoning")

_URL_PARTS = {"image_url": "image", "video_url": "video"}
_URL_TYPES = {modality: name for name, modality in _URL_PARTS.items()}
# Fields of their own, or (what a provider's server did) nothing that this protocol can say.
_BESIDE_CONTENT = frozenset({"reasoning", "refusal", "tool_call", "server_tool_call", "server_tool_call_response"})


def read_message(wire: Json, place: str) -> Message:
    """Read one message; ``place`` names it in the ValueError raised where it is no object."""
    if not isinstance(wire, dict):
        raise unexpected(place, wire, "an object")
    role = wire.get("role")
    forms: dict[str, Json] = {}
    if role in ("tool", "function"):
        message: Message = {"role": "tool", "parts": [_read_tool_response(wire)]}
    else:
        parts, forms = _read_parts(wire)
        message = {
            "role": {"developer": "system"}.get(str(role), role) if isinstance(role, str) else "user",
            "parts": parts,
        }
    if isinstance(wire.get("name"), str):
        message["name"] = wire["name"]
    message = keep(message, forms)
    return keep(message, {**forms, **residue(wire, write_messages(message)[0])})


def write_messages(message: Message) -> list[dict[str, Json]]:
    """Write one message: as several where it holds several answers of tools, which are a message each here."""
    return write_apart(message, _write_tool_response, _write_message)


def read_answer(wire: Mapping[str, Json]) -> Message:
    """Read the message of an answer's choice."""
    parts, forms = _read_parts(wire)
    role = wire.get("role")
    message: Message = {"role": role if isinstance(role, str) else "assistant", "parts": parts}
    message = keep(message, forms)
    return keep(message, {**forms, **residue(wire, write_answer(message))})


def write_answer(message: Message) -> dict[str, Json]:
    """Write the message of an answer's choice: text is one string, unless it stood as a list or is not only text."""
    parts = [part for part in message.get("parts") or [] if isinstance(part, dict)]
    content = _content(parts)
    if content and kept(message).get(FORM) != "list" and all(part.get("type") == "text" for part in content):
        text: dict[str, Json] = {"type": "text", "content": "".join(str(part.get("content") or "") for part in content)}
        parts = [*(part for part in parts if part.get("type") in _BESIDE_CONTENT), text]
    return _write_message(message, parts)


def read_legacy_function(wire: Json) -> ToolDefinition:
    """Read an entry of the legacy ``functions``."""
    tool = read_function(wire if isinstance(wire, dict) else {})
    return keep(tool, {FORM: "functions", **residue(wire if isinstance(wire, dict) else {}, write_function(tool))})


def write_legacy_function(tool: ToolDefinition) -> dict[str, Json]:
    """Write an entry of the legacy ``functions``."""
    return overlay(write_function(tool), kept(tool))


def _read_tool_response(wire: Mapping[str, Json]) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "tool_call_response", "response": wire.get("content")}
    if isinstance(wire.get("tool_call_id"), str):
        part["id"] = wire["tool_call_id"]
    return part


def _write_tool_response(part: dict[str, Json], message: Message) -> dict[str, Json]:
    response = part.get("response")
    wire: dict[str, Json] = {"role": "tool"}
    if part.get("id") is not None:
        wire["tool_call_id"] = part["id"]
    if "name" in message:
        wire["name"] = message["name"]
    wire["content"] = response if isinstance(response, str | list | None) else write_arguments(response)
    return overlay(wire, kept(message))


def _read_parts(wire: Mapping[str, Json]) -> tuple[list[dict[str, Any]], dict[str, Json]]:
    """The parts of a message in the order reasoning, content, refusal, calls, and the forms they stood in."""
    forms: dict[str, Json] = {}
    parts: list[dict[str, Any]] = []
    for field in REASONING_FIELDS:
        if isinstance(wire.get(field), str) and wire[field]:
            reasoning: dict[str, Any] = {"type": "reasoning", "content": wire[field]}
            parts.append(keep(reasoning, {} if field == REASONING_FIELDS[0] else {FIELD: field}))
            break
    content = wire.get("content")
    if isinstance(content, str) and content:
        parts.append({"type": "text", "content": content})
    elif isinstance(content, list) and content:
        entries = [read_part(entry) for entry in content]
        parts.extend(entries)
        if all(entry["type"] == "text" for entry in entries):
            forms[FORM] = "list"
    if isinstance(wire.get("refusal"), str) and wire["refusal"]:
        parts.append({"type": "refusal", "content": wire["refusal"]})
    parts.extend(_read_calls(wire))
    return parts, forms


def _read_calls(wire: Mapping[str, Json]) -> list[dict[str, Any]]:
    calls = wire.get("tool_calls")
    parts = []
    if isinstance(calls, list) and all(isinstance(call, dict) for call in calls):
        parts = [_read_call(call) for call in calls]
    legacy = wire.get("function_call")
    if isinstance(legacy, dict) and isinstance(legacy.get("arguments"), str):
        part: dict[str, Any] = {"type": "tool_call", "name": legacy.get("name")}
        part["arguments"], exact = read_arguments(legacy["arguments"])
        parts.append(keep(part, {FORM: "function_call", **({EXACT: exact} if exact else {})}))
    return parts


def _read_call(wire: Mapping[str, Json]) -> dict[str, Any]:
    """A call of a function; of a custom tool, whose arguments are the text of its input."""
    kind = "custom" if wire.get("type") == "custom" else "function"
    inner = wire.get(kind)
    inner = inner if isinstance(inner, dict) else {}
    text = inner.get("input" if kind == "custom" else "arguments")
    part: dict[str, Any] = {"type": "tool_call", "id": wire.get("id"), "name": inner.get("name"), "arguments": text}
    rest: dict[str, Json] = {"type": kind} if kind == "custom" else {}
    if kind == "function" and isinstance(text, str):
        part["arguments"], exact = read_arguments(text)
        if exact:
            rest[EXACT] = exact
    part = keep(part, rest)
    return keep(part, {**rest, **residue(wire, _write_call(part))})


def _write_call(part: dict[str, Json]) -> dict[str, Json]:
    rest = kept(part)
    if rest.get("type") == "custom":
        inner: dict[str, Json] = {"name": part.get("name"), "input": part.get("arguments")}
        return overlay({"id": part.get("id"), "type": "custom", "custom": inner}, rest)
    inner = {"name": part.get("name"), "arguments": write_arguments(part.get("arguments"), rest.get(EXACT))}
    return overlay({"id": part.get("id"), "type": "function", "function": inner}, rest)


def _write_message(message: Message, parts: list[dict[str, Json]]) -> dict[str, Json]:
    rest = kept(message)
    wire: dict[str, Json] = {"role": message.get("role")}
    if "name" in message:
        wire["name"] = message["name"]
    content = _content(parts)
    wire["content"] = _write_content(content, rest)
    calls: list[Json] = []
    for part in parts:
        kind = part.get("type")
        if kind == "reasoning" and part not in content:
            field = kept(part).get(FIELD)
            field = field if isinstance(field, str) else REASONING_FIELDS[0]
            wire[field] = f"{wire.get(field, '')}{part.get('content') or ''}"
        elif kind == "refusal" and part not in content:
            wire["refusal"] = part.get("content")
        elif kind == "tool_call" and kept(part).get(FORM) == "function_call":
            arguments = write_arguments(part.get("arguments"), kept(part).get(EXACT))
            wire["function_call"] = {"name": part.get("name"), "arguments": arguments}
        elif kind == "tool_call":
            calls.append(_write_call(part))
    if calls:
        wire["tool_calls"] = calls
    # What was kept beside the parts must not beat parts that have been put in since.
    carried = {"content": bool(content), "tool_calls": bool(calls), "refusal": "refusal" in wire}
    return overlay(wire, {key: value for key, value in rest.items() if not carried.get(key)})


def _content(parts: list[dict[str, Json]]) -> list[dict[str, Json]]:
    return [part for part in parts if part.get("type") not in _BESIDE_CONTENT or kept(part).get(FORM) == "content"]


def _write_content(content: list[dict[str, Json]], rest: Mapping[str, Json]) -> Json:
    if not content:
        return None
    if len(content) == 1 and content[0].get("type") == "text" and rest.get(FORM) != "list" and not kept(content[0]):
        return content[0].get("content")
    return [write_part(part) for part in content]


def read_part(wire: Json) -> dict[str, Any]:
    """Read one entry of a content list; what is of no known form is kept as it came."""
    part = _read_known_part(wire) if isinstance(wire, dict) else None
    if part is None:
        return read_own(wire)
    form: dict[str, Json] = {FORM: "content"} if part["type"] in ("refusal", "reasoning") else {}
    return keep(part, {**kept(part), **form, **residue(wire, write_part(part))})


def _read_known_part(wire: Mapping[str, Json]) -> dict[str, Any] | None:
    kind = wire.get("type")
    if kind in ("text", "refusal") and isinstance(wire.get(kind), str):
        return {"type": kind, "content": wire[kind]}
    if kind == "thinking":
        return _read_thought(wire.get("thinking"))
    inner = wire.get(kind) if isinstance(kind, str) else None
    if not isinstance(inner, dict):
        return None
    if kind in _URL_PARTS and isinstance(inner.get("url"), str):
        return read_url(inner["url"], _URL_PARTS[kind])
    if kind == "input_audio" and isinstance(inner.get("data"), str) and isinstance(inner.get("format"), str):
        return read_audio(inner["data"], inner["format"])
    if kind == "file" and isinstance(inner.get("file_data"), str):
        part = read_url(inner["file_data"], "document")
        return part if part["type"] == "blob" else None
    if kind == "file" and isinstance(inner.get("file_id"), str):
        return {"type": "file", "modality": "document", "file_id": inner["file_id"]}
    return None


def _read_thought(thought: Json) -> dict[str, Any] | None:
    """What a model has thought, as Mistral says it: in texts; or in one, as gateways to Anthropic's models do."""
    if isinstance(thought, str):
        return {"type": "reasoning", "content": thought, "provider_fields": {THOUGHT: "text"}}
    texts: list[str] = []
    for entry in thought if isinstance(thought, list) else ():
        match entry:
            case {"type": "text", "text": str() as text, **rest} if not rest:
                texts.append(text)
            case _:
                return None
    if not texts:
        return None
    part: dict[str, Any] = {"type": "reasoning", "content": "".join(texts)}
    return part if len(texts) == 1 else keep(part, {THOUGHT: list(map(len, texts))})


def _write_thought(part: dict[str, Json]) -> Json:
    text, form = str(part.get("content") or ""), kept(part).get(THOUGHT)
    if form == "text":
        return text
    ends = list(accumulate(form[:-1])) if isinstance(form, list) else []
    cuts = [text[start:end] for start, end in zip([0, *ends], [*ends, None], strict=True)]
    return [{"type": "text", "text": cut} for cut in cuts]


def write_part(part: dict[str, Json]) -> Json:
    """Write one part as an entry of a content list."""
    kind, modality = part.get("type"), part.get("modality")
    if kind in ("text", "refusal"):
        wire: dict[str, Json] = {"type": kind, str(kind): part.get("content")}
    elif kind == "reasoning":
        wire = {"type": "thinking", "thinking": _write_thought(part)}
    elif kind == "file":
        wire = {"type": "file", "file": {"file_id": part.get("file_id")}}
    elif kind == "blob" and modality == "audio":
        wire = {"type": "input_audio", "input_audio": write_audio(part)}
    elif kind in ("blob", "uri") and modality in _URL_TYPES:
        name = _URL_TYPES[str(modality)]
        wire = {"type": name, name: {"url": write_url(part)}}
    elif kind in ("blob", "uri"):
        wire = {"type": "file", "file": {"file_data": write_url(part)}}
    else:
        return write_own(part)
    return overlay(wire, kept(part))
