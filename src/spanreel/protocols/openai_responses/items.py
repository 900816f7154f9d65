"""Items of OpenAI responses: what a model said, thought and called, and what came back, read into parts and written.

An assistant's items are parts of one message. Where one item is several parts (a message, a reasoning), the first holds
what the item had beside them, under ITEM, and the others follow it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from spanreel.model import Json
from spanreel.protocols.media import OTHER, read_own, write_own
from spanreel.protocols.openai_responses.parts import read_content, write_content
from spanreel.protocols.residue import EXACT, keep, kept, overlay, read_arguments, residue, write_arguments
from spanreel.protocols.shaped import Free, said

ITEM: Final = "$item"
"""In a part that begins an item: what the item had beside its parts. Where it is absent, the item is made up."""
FREE: Final = {
    **said("id", "call_id", "text", "content", "output", "refusal", "encrypted_content"),
    "arguments": Free.ARGUMENTS,
}
"""What stands in items and their content and is handed through as it is."""
FORM: Final = "$form"
"""The form that a thing stood in, where we would write another: ``text`` of content; ``content`` of a reasoning."""

# Tool calls that the client executes: the tool's name (None: the item says it) and what are the arguments.
_CALLS: dict[str, tuple[str | None, tuple[str, ...]]] = {
    "function_call": (None, ("arguments",)),
    "custom_tool_call": (None, ("input",)),
    "computer_call": ("computer", ("action", "actions")),
    "local_shell_call": ("local_shell", ("action",)),
    "shell_call": ("shell", ("action",)),
    "apply_patch_call": ("apply_patch", ("operation",)),
}
# Tool calls that the provider executes: the tool's name, and the field that holds what came of it.
_SERVER_CALLS: dict[str, tuple[str | None, str | None]] = {
    "web_search_call": ("web_search", None),
    "file_search_call": ("file_search", "results"),
    "code_interpreter_call": ("code_interpreter", "outputs"),
    "image_generation_call": ("image_generation", "result"),
    "mcp_call": (None, "output"),
}
_REASONING_TEXTS = {"summary": "summary_text", "content": "reasoning_text"}


def is_output(item: Mapping[str, Json]) -> bool:
    """Whether an item is what a tool call of the client's came to."""
    kind = item.get("type")
    return isinstance(kind, str) and kind.endswith("_call_output") and "output" in item


def read_output(item: Mapping[str, Json]) -> dict[str, Any]:
    """Read what a tool call came to."""
    part: dict[str, Any] = {"type": "tool_call_response", "response": item["output"]}
    identity = item.get("call_id", item.get("id"))
    if identity is not None:
        part["id"] = identity
    return keep(part, residue(item, write_output(part)))


def write_output(part: dict[str, Json]) -> dict[str, Json]:
    """Write what a tool call came to."""
    response = part.get("response")
    output = response if isinstance(response, str | list | dict) else write_arguments(response)
    return overlay({"type": "function_call_output", "call_id": part.get("id"), "output": output}, kept(part))


def read_items(items: Sequence[Mapping[str, Json]]) -> list[dict[str, Any]]:
    """Read an assistant's items into the parts of one message."""
    parts: list[dict[str, Any]] = []
    for item in items:
        parts.extend(_read_item(item))
    return parts


def write_items(parts: Sequence[dict[str, Json]]) -> list[Json]:
    """Write an assistant's parts as items."""
    items: list[Json] = []
    for group in _groups(parts):
        first = group[0]
        kind = first.get("type")
        if kind == "tool_call":
            items.append(_write_call(first))
        elif kind == "server_tool_call":
            items.extend(_write_server_call(group))
        elif kind == "reasoning":
            items.append(_write_reasoning(group, len(items)))
        elif kind in ("text", "refusal") or ITEM in kept(first):
            items.append(_write_message(group, len(items)))
        elif kind != "server_tool_call_response":
            items.append(write_own(first))
    return items


def _groups(parts: Sequence[dict[str, Json]]) -> Iterator[list[dict[str, Json]]]:
    """The parts of each item."""
    group: list[dict[str, Json]] = []
    for part in parts:
        if group and not _belongs(part, group):
            yield group
            group = []
        group.append(part)
    if group:
        yield group


def _belongs(part: dict[str, Json], group: list[dict[str, Json]]) -> bool:
    first, kind = group[0], part.get("type")
    if kind == "server_tool_call_response":
        return first.get("type") == "server_tool_call" and part.get("id") == first.get("id")
    if ITEM in kept(part) or kind in ("tool_call", "server_tool_call"):
        return False
    if first.get("type") == "reasoning":
        return kind == "reasoning"
    return (first.get("type") in ("text", "refusal") or ITEM in kept(first)) and (
        kind in ("text", "refusal") or (kind == OTHER and FORM in kept(part))
    )


def _read_item(item: Mapping[str, Json]) -> list[dict[str, Any]]:
    kind = item.get("type", "message" if "role" in item else None)
    content = item.get("content")
    if kind == "message" and (isinstance(content, str) or (isinstance(content, list) and content)):
        return _read_message(item)
    if kind == "reasoning" and _is_reasoning(item):
        return _read_reasoning(item)
    if isinstance(kind, str) and kind in _CALLS:
        return [_read_call(item, kind)]
    if isinstance(kind, str) and kind in _SERVER_CALLS:
        return _read_server_call(item, kind)
    return [read_own(item)]


def _read_message(item: Mapping[str, Json]) -> list[dict[str, Any]]:
    content = item["content"]
    if isinstance(content, str):
        parts: list[dict[str, Any]] = [{"type": "text", "content": content}]
        form: dict[str, Json] = {FORM: "text"}
    else:
        parts = [_content_part(entry) for entry in content]
        form = {}
    rest = {**form, **residue({**item, "content": None}, {**_write_message(parts, None), "content": None})}
    # An item that has nothing beside its content still says that it begins here.
    parts[0] = {**parts[0], "provider_fields": {**kept(parts[0]), ITEM: rest}}
    return parts


def _content_part(entry: Json) -> dict[str, Any]:
    """Text and refusals; all else is wrapped, since as a part it would be taken for an item."""
    part = read_content(entry, "assistant")
    return part if part["type"] in ("text", "refusal") else keep({"type": OTHER, "value": entry}, {FORM: "content"})


def _write_message(parts: Sequence[dict[str, Json]], number: int | None) -> dict[str, Json]:
    """Write a message; ``number`` is for the id of one that was never an item."""
    rest = kept(parts[0]).get(ITEM)
    wire: dict[str, Json] = {"type": "message", "role": "assistant"}
    if not isinstance(rest, dict) and number is not None:
        wire |= {"id": f"msg_{number}", "status": "completed"}
    rest = rest if isinstance(rest, dict) else {}
    if rest.get(FORM) == "text" and len(parts) == 1 and parts[0].get("type") == "text":
        wire["content"] = parts[0].get("content")
    else:
        wire["content"] = [write_content(part, "assistant") for part in parts]
    return overlay(wire, rest)


def _is_reasoning(item: Mapping[str, Json]) -> bool:
    return all(
        isinstance(entry, dict) and entry.get("type") == kind and isinstance(entry.get("text"), str)
        for field, kind in _REASONING_TEXTS.items()
        for entry in (item[field] if isinstance(item.get(field), list) else [])
    )


def _read_reasoning(item: Mapping[str, Json]) -> list[dict[str, Any]]:
    """A part a text; an item without texts (its content is encrypted) is one part that is empty."""
    parts: list[dict[str, Any]] = []
    for field in _REASONING_TEXTS:
        for entry in item[field] if isinstance(item.get(field), list) else []:
            part: dict[str, Any] = {"type": "reasoning", "content": entry["text"]}
            form: dict[str, Json] = {FORM: field} if field == "content" or not entry["text"] else {}
            part = keep(part, form)
            parts.append(keep(part, {**form, **residue(entry, _write_thought(part))}))
    parts = parts or [{"type": "reasoning", "content": ""}]
    rest = residue(item, _write_reasoning(parts, None))
    parts[0] = {**parts[0], "provider_fields": {**kept(parts[0]), ITEM: rest}}
    return parts


def _write_reasoning(parts: Sequence[dict[str, Json]], number: int | None) -> dict[str, Json]:
    rest = kept(parts[0]).get(ITEM)
    wire: dict[str, Json] = {"type": "reasoning"}
    if not isinstance(rest, dict) and number is not None:
        wire["id"] = f"rs_{number}"
    texts: dict[str, list[Json]] = {"summary": [], "content": []}
    for part in parts:
        if part.get("content") or FORM in kept(part):
            texts["content" if kept(part).get(FORM) == "content" else "summary"].append(_write_thought(part))
    wire["summary"] = texts["summary"]
    if texts["content"]:
        wire["content"] = texts["content"]
    return overlay(wire, rest if isinstance(rest, dict) else {})


def _write_thought(part: dict[str, Json]) -> dict[str, Json]:
    kind = _REASONING_TEXTS["content" if kept(part).get(FORM) == "content" else "summary"]
    rest = {key: value for key, value in kept(part).items() if key != ITEM}
    return overlay({"type": kind, "text": part.get("content")}, rest)


def _read_call(item: Mapping[str, Json], kind: str) -> dict[str, Any]:
    name, fields = _CALLS[kind]
    part: dict[str, Any] = {"type": "tool_call", "id": item.get("call_id"), "name": name or item.get("name")}
    rest: dict[str, Json] = {} if kind == "function_call" else {"type": kind}
    if name is not None:
        part["arguments"] = {field: item[field] for field in fields if field in item}
    else:
        part["arguments"] = item.get(fields[0])
    if kind == "function_call" and isinstance(part["arguments"], str):
        part["arguments"], exact = read_arguments(part["arguments"])
        if exact:
            rest[EXACT] = exact
    part = keep(part, rest)
    return keep(part, {**rest, **residue(item, _write_call(part))})


def _write_call(part: dict[str, Json]) -> dict[str, Json]:
    rest = kept(part)
    kind = rest.get("type")
    kind = kind if isinstance(kind, str) and kind in _CALLS else "function_call"
    wire: dict[str, Json] = {"type": kind, "call_id": part.get("id")}
    arguments = part.get("arguments")
    if _CALLS[kind][0] is not None:
        wire |= arguments if isinstance(arguments, dict) else {}
    elif kind == "custom_tool_call":
        wire |= {"name": part.get("name"), "input": arguments}
    else:
        wire |= {"name": part.get("name"), "arguments": write_arguments(arguments, rest.get(EXACT))}
    return overlay(wire, rest)


def _read_server_call(item: Mapping[str, Json], kind: str) -> list[dict[str, Any]]:
    name, field = _SERVER_CALLS[kind]
    identity = item.get("id")
    asked = {key: value for key, value in item.items() if key != field or value is None}
    name = name or str(item.get("name") or kind)
    parts: list[dict[str, Any]] = [
        {"type": "server_tool_call", "id": identity, "name": name, "server_tool_call": asked}
    ]
    if field is not None and field not in asked and field in item:
        result = {"type": kind, field: item[field]}
        parts.append({"type": "server_tool_call_response", "id": identity, "server_tool_call_response": result})
    return parts


def _write_server_call(group: Sequence[dict[str, Json]]) -> list[Json]:
    """One item; none for what another provider's server did."""
    asked = group[0].get("server_tool_call")
    if not isinstance(asked, dict) or asked.get("type") not in _SERVER_CALLS:
        return []
    item = dict(asked)
    for part in group[1:]:
        result = part.get("server_tool_call_response")
        if isinstance(result, dict):
            item |= {key: value for key, value in result.items() if key != "type"}
    return [item]
