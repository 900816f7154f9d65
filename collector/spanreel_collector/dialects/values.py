"""Attribute values as dialects meet them: typed look-ups, JSON in strings, tools, failures; with their fidelity."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from spanreel.memory import Memory, known
from spanreel.model import Error, ErrorCategory, Fidelity, Json, Status, ToolDefinition, Usage
from spanreel_collector import json_text
from spanreel_collector.span import Attributes, RawSpan

_ROLES = {"model": "assistant", "ai": "assistant", "human": "user", "developer": "system", "function": "tool"}
_PARAMETERS = ("input_schema", "inputSchema", "parameters_json_schema")
"""What Anthropic, the AI SDK and Google call a tool's parameters."""
_EXCEPTION = "gen_ai.client.operation.exception"
_DECLARATIONS = ("function_declarations", "functionDeclarations")
_TOOL_NAME = re.compile(r"[\w.:/-]{1,128}", re.ASCII)
_KEYWORDS = frozenset({"type", "$ref", "anyOf", "allOf", "oneOf", "enum"})
"""By these the schema of one property is known."""
MOST_WRITTEN = 3
"""How often a value is taken to have been written as JSON text, one inside the other."""


def marks(states: Mapping[str, Fidelity]) -> dict[str, Fidelity]:
    """The states worth keeping: those of the fields that are not whole."""
    return {field: state for field, state in states.items() if state is not Fidelity.WHOLE}


def text(attributes: Attributes, *keys: str) -> str | None:
    """The first of these attributes that holds text."""
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, str) and value:
            return value
    return None


def number(attributes: Attributes, *keys: str) -> int | float | None:
    """The first of these attributes that holds a number."""
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return value
    return None


def integer(attributes: Attributes, *keys: str) -> int | None:
    """The first of these attributes that holds a whole number, as a number or as text."""
    for key in keys:
        value = attributes.get(key)
        if value is None:
            continue
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
            return int(value)
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


_NUMERIC = (
    *("temperature", "top_p", "top_k", "max_tokens", "seed", "frequency_penalty", "presence_penalty"),
    *("choice_count", "dimensions"),
)
_NUMBER = re.compile(r"-?\d{1,18}(?:\.\d{1,18})?(?:[eE]-?\d{1,2})?", re.ASCII)


def with_numbers(settings: dict[str, Json]) -> dict[str, Json]:
    """A request's settings, of which numbers may come as text: there are stores that keep texts alone."""
    for name, value in settings.items():
        if isinstance(value, str) and name in _NUMERIC and _NUMBER.fullmatch(value):
            settings[name] = int(value) if value.removeprefix("-").isdigit() else float(value)
    return settings


def texts(attributes: Attributes, key: str) -> list[str]:
    """The texts of an attribute that holds a list of them, or such a list as JSON, or one text."""
    given = attributes.get(key)
    value, _ = (given, None) if given is None else decode(given)
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def decode(value: Json) -> tuple[Json, Fidelity]:
    """A value that may be JSON text: what it holds, and whether it is whole. Text that is no JSON is itself."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[", '"')):
        return json_text.plain(value), Fidelity.WHOLE
    try:
        return json_text.parse(value), Fidelity.WHOLE
    except ValueError as error:
        return value, Fidelity.TRUNCATED if json_text.is_cut(error) else Fidelity.WHOLE


def decoded(attributes: Attributes, key: str) -> Json:
    """What an attribute that may be JSON text holds."""
    return decode(attributes.get(key))[0]


def members(value: Json) -> dict[str, Json]:
    """The members of an object; of one that was cut off, those that are whole."""
    found, state = decode(value)
    if state is Fidelity.TRUNCATED:
        try:
            found, _ = json_text.parse_prefix(value)
        except ValueError:
            return {}
    found = _unwrapped(found)
    return found if isinstance(found, dict) else {}


def _unwrapped(value: Json) -> Json:
    """A list or an object that was written as text more than once; only for what must be one of these."""
    for _ in range(MOST_WRITTEN - 1):
        if not isinstance(value, str) or not value.lstrip().startswith(("{", "[", '"')):
            break
        try:
            value = json_text.parse(value)
        except ValueError:
            break
    return value


def role(name: str) -> str:
    """The role of a message by the conventions' names; an enumeration's member is its name, as `Role.USER` is."""
    if "." in name:
        name = name.rpartition(".")[2].lower().replace("_", "-")
    elif name.isupper():
        name = name.lower()
    return _ROLES.get(name, name)


def arguments(value: Json) -> Json:
    """Arguments of a tool call, which some writers encode twice."""
    found, _ = decode(value)
    again = _unwrapped(found)
    return again if isinstance(again, dict) else found


def unwrap_result(text: str) -> Json:
    """A tool's result as a message tells it, out of the AI SDK's ``{"type": "text", "value"}``."""
    found, _ = decode(text)
    if isinstance(found, dict) and set(found) == {"type", "value"} and found["type"] in ("text", "json"):
        return found["value"]
    return text


_COUNTS = tuple(field.name for field in fields(Usage))


def whole_usage(usage: Usage) -> Usage:
    """The usage with cached tokens in the input, thoughts in the output: a part that is more than all was left out.

    A count below zero is none: so some write what they do not know.
    """
    unknown = {name: None for name in _COUNTS if (getattr(usage, name) or 0) < 0}
    usage = replace(usage, **unknown) if unknown else usage
    cached = (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
    if usage.input_tokens is not None and cached > usage.input_tokens:
        usage = replace(usage, input_tokens=usage.input_tokens + cached)
    thoughts = usage.reasoning_tokens or 0
    if usage.output_tokens is not None and thoughts > usage.output_tokens:
        usage = replace(usage, output_tokens=usage.output_tokens + thoughts)
    return usage


def failure(span: RawSpan, category: ErrorCategory) -> Error | None:
    """How the span failed, by its status, ``error.type`` and exception event or log; None where it did not."""
    kind = text(span.attributes, "error.type")
    logged = [log.attributes for log in span.logs if log.event_name == _EXCEPTION]
    if span.status != 2 and kind is None and not logged:
        return None
    message = span.status_message or None
    for told_of in (*(event.attributes for event in span.events if event.name == "exception"), *logged):
        kind = kind or text(told_of, "exception.type")
        told = text(told_of, "exception.message")
        # Some put the exception's repr and its traceback into the status.
        message = told if told and (message is None or told in message) else message
    kind = kind or "error"
    if kind.rsplit(".", 1)[-1] in ("CancelledError", "cancelled"):
        category = ErrorCategory.CANCELLED
    elif "timeout" in kind.lower():
        category = ErrorCategory.TIMEOUT
    # OpenInference's status repeats the exception's name.
    return Error(category, kind, message and message.removeprefix(f"{kind.rsplit('.', 1)[-1]}: "))


def status_of(error: Error | None) -> Status:
    """How a call ended that failed so."""
    if error is None:
        return Status.OK
    return Status.CANCELLED if error.category is ErrorCategory.CANCELLED else Status.ERROR


_tools_before = Memory[tuple[tuple[ToolDefinition, ...], Fidelity]](1024 * 1024)
"""Each call of an agent offers the same tools."""


def tools(value: Json) -> tuple[tuple[ToolDefinition, ...], Fidelity]:
    """The tool definitions of an attribute, in one form whatever the nesting. Shared: nobody may change them."""
    found = _tools_before.find(value) if isinstance(value, str) else None
    if found is None:
        items, fidelity = items_of(value, parts_depth=2)
        each = [one for item in map(_listed, items) if isinstance(item, dict) for one in _declared(item)]
        read = tuple(known(tool_definition(item)) for item in each if isinstance(item, dict) and item)
        if any(set(item) == {"name"} for item in each if isinstance(item, dict)):
            fidelity = Fidelity.TRUNCATED
        found = read, Fidelity.ABSENT if not read else fidelity
        if isinstance(value, str):
            _tools_before.keep(value, found)
    return found


def _listed(item: Any) -> Any:
    """A tool in a list of tools, which may be the JSON of one, or a name alone."""
    if not isinstance(item, str):
        return item
    found, _ = decode(item)
    return found if isinstance(found, dict) else {"name": item} if _TOOL_NAME.fullmatch(item) else None


def _declared(item: dict[str, Any]) -> list[Any]:
    """The functions that one tool of Gemini's declares; any other tool is itself."""
    declared = next((item[key] for key in _DECLARATIONS if isinstance(item.get(key), list)), None)
    return [item] if declared is None else declared


def tool_definition(item: dict[str, Any]) -> ToolDefinition:
    """A tool definition in one form, whichever provider's it came in."""
    within = next((name for name in ("function", "toolSpec") if isinstance(item.get(name), dict)), None)
    flat = {**{key: value for key, value in item.items() if key != within}, **item[within]} if within else item
    read = {key: value for key, value in flat.items() if value is not None}
    for other in _PARAMETERS:
        if other in read and "parameters" not in read:
            read["parameters"] = read.pop(other)
    parameters = read.get("parameters")
    if isinstance(parameters, dict) and set(parameters) == {"json"} and isinstance(parameters["json"], dict):
        read["parameters"] = parameters["json"]  # as Bedrock has it
    elif isinstance(parameters, dict) and _are_properties(parameters):
        read["parameters"] = {"type": "object", "properties": parameters}  # as DSPy leaves it out
    read.setdefault("type", "function")
    return read


def _are_properties(parameters: dict[str, Any]) -> bool:
    """Whether these are the properties of a schema without the schema around them: each says a type of its own."""
    return (
        bool(parameters)
        and "properties" not in parameters
        and all(isinstance(item, dict) and not _KEYWORDS.isdisjoint(item) for item in parameters.values())
    )


def items_of(value: Json, parts_depth: int, parts_key: str = "parts") -> tuple[list[Any], Fidelity]:
    """The list that an attribute holds; of cut text, without the part that the cut went through.

    Parts begin ``parts_depth`` brackets deep: at 2 they are the items, at 4 what the items have under ``parts_key``.
    """
    if isinstance(value, (list, dict)):
        plain = json_text.plain(value)
        return plain if isinstance(plain, list) else [plain], Fidelity.WHOLE
    if not isinstance(value, str):
        return [], Fidelity.ABSENT
    try:
        found = _unwrapped(json_text.parse(value))
        if isinstance(found, dict):
            return [found], Fidelity.WHOLE
        return (found, Fidelity.WHOLE) if isinstance(found, list) else ([], Fidelity.ABSENT)
    except ValueError as error:
        if not json_text.is_cut(error):
            return [], Fidelity.ABSENT
    try:
        found, depth = json_text.parse_prefix(value)
    except ValueError:
        return [], Fidelity.TRUNCATED
    if not isinstance(found, list) or not found:
        return [], Fidelity.TRUNCATED
    _drop_cut(found, depth, parts_depth, parts_key)
    return found, Fidelity.TRUNCATED


def _drop_cut(items: list[Any], depth: int, parts_depth: int, parts_key: str) -> None:
    """Take the part away that a cut went through: the last one, where its own bracket was still open."""
    if depth < parts_depth:
        return
    last = items[-1]
    if parts_depth == 2 or not isinstance(last, dict) or not isinstance(last.get(parts_key), list):
        items.pop()
    elif last[parts_key]:
        last[parts_key].pop()
