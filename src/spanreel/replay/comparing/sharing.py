"""What a live request and a recording of others can both say: the rest is left out of the comparison, and told.

Works on identities (`identity`), both sides alike. Whether they are then the same request is decided in `matching`.
"""

from __future__ import annotations

from typing import Any, Final

from spanreel.json_text import decode
from spanreel.model import Json
from spanreel.replay.comparing.canonical import canonical_json, first_difference
from spanreel.replay.comparing.identity import forget_provider_fields


def shared_fields(
    recorded: dict[str, Json], asked: dict[str, Json], uncompared: list[str]
) -> tuple[dict[str, Json], dict[str, Json]]:
    """Both without what a foreign recording does not hold: the provider's own fields, and settings it does not name.

    Its conventions do not count either: where messages of one speaker end, who is named in them, how results are spelt.
    """
    recorded, asked = forget_provider_fields(recorded), forget_provider_fields(asked)
    if "provider_fields" not in uncompared:
        uncompared.append("provider_fields")
    if "settings" in recorded:
        known, said = recorded["settings"], asked["settings"]
        recorded["settings"] = known = {
            name: value for name, value in known.items() if name in said or not is_default(name, value)
        }
        uncompared += [f"settings/{name}" for name in sorted(said) if name not in known]
        asked["settings"] = {name: value for name, value in said.items() if name in known}
    for name in ("model", "tools"):
        if name in recorded and not recorded[name]:
            uncompared.append(name)
            del recorded[name], asked[name]
    if "tools" in recorded:
        recorded["tools"], asked["tools"] = _shared_tools(recorded["tools"], asked["tools"], uncompared)
    recorded["messages"], asked["messages"] = shared_messages(recorded["messages"], asked["messages"])
    return recorded, asked


def shared_messages(recorded: list[Json], asked: list[Json]) -> tuple[list[Json], list[Json]]:
    """Messages of both sides in the conventions that both have."""
    return _shared_names(conversation(recorded), conversation(asked))


def shared_outcome(recorded: list[Json], asked: list[Json]) -> tuple[list[Json], list[Json]]:
    """What a run gave, on both sides: some recorders keep all that was said in it, others its last message."""
    one, other = conversation(recorded), conversation(asked)
    return _shared_names(one[-1:], other[-1:]) if len(one) != len(other) else _shared_names(one, other)


_DEFAULTS: Final[dict[str, Json]] = {
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "temperature": 1,
    "top_p": 1,
    "frequency_penalty": 0,
    "presence_penalty": 0,
}
"""What providers answer to have used where nothing was asked for."""


def is_default(name: str, value: Json) -> bool:
    """Whether this is what a provider says to have used where nothing was asked for."""
    return name in _DEFAULTS and first_difference(_DEFAULTS[name], value) is None


def _shared_tools(
    recorded: list[dict[str, Any]], asked: list[dict[str, Any]], uncompared: list[str]
) -> tuple[list[Json], list[Json]]:
    """Tools by the fields that both sides have of them."""
    pairs = list(zip(recorded, asked, strict=False))
    lacking = sorted({name for one, other in pairs for name in {*one} ^ {*other} if name != "name"})
    uncompared += [f"tools/{name}" for name in lacking]

    def left(tools: list[dict[str, Any]]) -> list[Json]:
        return [{name: value for name, value in tool.items() if name not in lacking} for tool in tools]

    return left(recorded), left(asked)


def conversation(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages of one speaker in a row as one, tool calls numbered through: ``#0``, ``#1``, ..."""
    joined: list[dict[str, Any]] = []
    numbers: dict[str, str] = {}
    for message in messages:
        parts = [_renumbered(part, numbers) for part in message["parts"]]
        if joined and joined[-1]["role"] == message["role"]:
            joined[-1] = {**joined[-1], "parts": [*joined[-1]["parts"], *parts]}
        else:
            joined.append({**message, "parts": parts})
    # Whether a message's text or its calls came first is nothing that every protocol says.
    return [{**message, "parts": sorted(message["parts"], key=is_call)} for message in joined]


def is_call(part: dict[str, Any]) -> bool:
    """Whether a part of a message asks for a tool."""
    return part.get("type") in ("tool_call", "server_tool_call")


def _renumbered(part: dict[str, Any], numbers: dict[str, str]) -> dict[str, Any]:
    kind = part.get("type")
    if is_call(part):
        # Of a call without arguments some recorders keep none, others an empty object.
        return {"arguments": {}, **part, "id": numbers.setdefault(part["id"], f"#{len(numbers)}")}
    if kind in ("tool_call_response", "server_tool_call_response"):
        told = {"response": _read(part["response"])} if "response" in part else {}
        return {**part, **told, "id": numbers.get(part["id"], part["id"])}
    return part


def _read(response: Json) -> Json:
    """A result that is JSON in text, as some recorders keep it read."""
    if not isinstance(response, str) or response.lstrip()[:1] not in {"{", "["}:
        return response
    try:
        return canonical_json(decode(response))
    except ValueError:
        return response


def _shared_names(
    recorded: list[dict[str, Any]], asked: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Names of speakers, and of tools at their results, only where both sides give them."""
    pairs = [_both_named(one, other) for one, other in zip(recorded, asked, strict=False)]
    for one, other in pairs:
        parts = [_both_named(*pair) for pair in zip(one["parts"], other["parts"], strict=False)]
        one["parts"] = [part for part, _ in parts] + one["parts"][len(parts) :]
        other["parts"] = [part for _, part in parts] + other["parts"][len(parts) :]
    return (
        [one for one, _ in pairs] + recorded[len(pairs) :],
        [other for _, other in pairs] + asked[len(pairs) :],
    )


def _both_named(one: dict[str, Any], other: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    named = "name" in one and "name" in other
    return (dict(one), dict(other)) if named else (_nameless(one), _nameless(other))


def _nameless(value: dict[str, Any]) -> dict[str, Any]:
    # The name of a tool that is asked for is what is asked.
    return {key: item for key, item in value.items() if key != "name" or is_call(value)}
