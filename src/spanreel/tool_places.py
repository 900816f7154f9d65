"""Where tools' arguments and results stand: in calls and answers of any form, and in attributes of any convention."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from spanreel import conventions as names
from spanreel import json_text
from spanreel.places import Place
from spanreel.policy import Policy
from spanreel.rules import Decision

Places = tuple[Place[Decision], ...]

_NO_CALLS: Final[Mapping[str, str]] = {}
_ARGUMENTS: Final = ("arguments", "requested", "input", "args", "parameters")
_RESULTS: Final = ("response", "content", "output", "result")
_ANSWERS: Final = frozenset(
    {"tool_call_response", "server_tool_call_response", "tool_result", "function_call_output", "tool"}
)
_IDS: Final = ("call_id", "tool_call_id", "tool_use_id", "id")

_TOOL_NAMES: Final = (names.TOOL_NAME, "tool.name", "traceloop.entity.name")
_ARGUMENT_ATTRIBUTES: Final = (
    *(names.TOOL_CALL_ARGUMENTS, names.TOOL_ARGUMENTS_AFTER),
    *("input.value", "tool.parameters", "traceloop.entity.input"),
)
_RESULT_ATTRIBUTES: Final = (names.TOOL_CALL_RESULT, names.TOOL_RAISED, "output.value", "traceloop.entity.output")
_FLAT_NAME: Final = ".function.name"
_FLAT_ARGUMENTS: Final = ".function.arguments"


def tool_places(value: Mapping[Any, Any], policy: Policy, calls: Mapping[str, str] = _NO_CALLS) -> dict[str, Places]:
    """The places inside the members of an object, where it is a call of a tool or an answer of one."""
    tool = value.get("name")
    if any(isinstance(kind := value.get(key), str) and kind in _ANSWERS for key in ("type", "role")):
        call_id = next((value[key] for key in _IDS if isinstance(value.get(key), str)), None)
        tool = tool if isinstance(tool, str) else calls.get(call_id) if call_id is not None else None
        return {key: _into_blocks(policy.enter_tool(tool, "result"), value[key]) for key in _RESULTS if key in value}
    if not isinstance(tool, str):
        return {}
    places = {key: policy.enter_tool(tool, "arguments") for key in _ARGUMENTS if key in value}
    if "result" in value:
        places["result"] = policy.enter_tool(tool, "result")
    return places


def attribute_places(attributes: Mapping[str, Any], policy: Policy) -> dict[str, Places]:
    """The places inside a span's attributes, where it tells of a call of a tool."""
    places: dict[str, Places] = {}
    tool = next((attributes[name] for name in _TOOL_NAMES if isinstance(attributes.get(name), str)), None)
    if tool is not None:
        places |= {name: policy.enter_tool(tool, "arguments") for name in _ARGUMENT_ATTRIBUTES}
        places |= {name: policy.enter_tool(tool, "result") for name in _RESULT_ATTRIBUTES}
    for name, value in attributes.items():  # messages that are written an attribute a member
        if name.endswith(_FLAT_NAME) and isinstance(value, str):
            flat = name.removesuffix(_FLAT_NAME) + _FLAT_ARGUMENTS
            places[flat] = policy.enter_tool(value, "arguments")
    return places


def calls_in(values: Iterable[Any]) -> dict[str, str]:
    """The names of tools by the ids of their calls, wherever a call stands in these values."""
    return dict(pair for value in values for pair in _calls(value))


def _calls(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str) and value[:1] in {"{", "["}:
        try:
            value = json_text.decode(value)
        except ValueError:
            return
    if isinstance(value, Mapping):
        tool = value.get("name")
        if tool is None and isinstance(value.get("function"), Mapping):
            tool = value["function"].get("name")
        if isinstance(tool, str):
            yield from ((value[key], tool) for key in _IDS if isinstance(value.get(key), str))
        for item in value.values():
            yield from _calls(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _calls(item)


def _into_blocks(places: Places, value: Any) -> Places:
    """The places where a result stands as blocks of text: what they lead into is each block's text."""
    if isinstance(value, list) and value and all(isinstance(one, Mapping) and "type" in one for one in value):
        return tuple(Place(("*", "text", *place.steps), place.what) for place in places)
    return places
