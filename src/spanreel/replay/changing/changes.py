"""What a replay changes: a model, its settings, its instructions, its tools, where it is; the input; recorded answers.

Read from a file or from options, and refused before anything runs where a value is of a wrong type or out of bounds.
Changing is pure: a request in, a request out. When the model is asked live is decided by the player.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    HttpUrl,
    JsonValue,
    StringConstraints,
)

from spanreel.model import Json, Request
from spanreel.replay.changing.tool_policies import Pointer, ToolPolicies

ROOT: Final = "root"

_Text = Annotated[str, StringConstraints(min_length=1, strict=True)]
_Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
_Switch = Annotated[bool, Field(strict=True)]
_Count = Annotated[int, Field(strict=True, ge=1)]


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
    return pattern


_Pattern = Annotated[_Text, AfterValidator(_compiles)]


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Settings(_Frozen):
    """Settings of model requests, by the names that sessions give them; the bounds are those that all keep."""

    temperature: Annotated[_Number, Field(ge=0, le=2)] | None = None
    top_p: Annotated[_Number, Field(ge=0, le=1)] | None = None
    top_k: _Count | None = None
    max_tokens: _Count | None = None
    frequency_penalty: Annotated[_Number, Field(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[_Number, Field(ge=-2, le=2)] | None = None
    seed: Annotated[int, Field(strict=True)] | None = None
    stop_sequences: tuple[_Text, ...] | None = None
    reasoning_effort: _Text | None = None
    tool_choice: JsonValue = None
    parallel_tool_calls: _Switch | None = None
    response_format: dict[str, JsonValue] | None = None

    @property
    def given(self) -> dict[str, Json]:
        """The settings that are set."""
        return {name: value for name, value in self.model_dump(mode="json").items() if value is not None}


class ToolDefinition(_Frozen):
    """A tool as it is offered to the model."""

    name: _Text
    description: str | None = None
    parameters: dict[str, JsonValue] = {"type": "object", "properties": {}}


class Override(_Frozen):
    """What becomes different in the model requests of one agent.

    ``agent`` is the path of its run in the session (``root``, ``root/researcher#0``). ``of_model`` names the model
    whose requests are meant, where the agent asks several; without it the one that its first turn asks.
    """

    agent: _Text = ROOT
    of_model: _Text | None = None
    model: _Text | None = None
    base_url: HttpUrl | None = None
    instructions: str | None = None
    settings: Settings = Settings()
    tools: tuple[ToolDefinition, ...] | None = None


class Edit(_Frozen):
    """A recorded answer that becomes another one.

    ``call`` is the id of a recorded model or tool call, as `spanreel show` names it. ``value`` is the result of a tool
    call, or the text that a model answers.
    """

    call: _Text
    value: JsonValue


class Volatile(_Frozen):
    """What differs by itself in model requests, and so says nothing: the time, an id that is made anew.

    ``at`` are JSON pointers as a divergence names them, ``*`` being any step. With ``pattern``, a regular expression,
    only what it matches in the texts there; without it the whole value. ``agent`` is a path, or a glob of paths.
    """

    agent: _Text = "*"
    at: Annotated[tuple[Pointer, ...], Field(min_length=1)]
    pattern: _Pattern | None = None


class Price(_Frozen):
    """What a model costs, in US dollars a million tokens; the user's word, since none is built in."""

    input: Annotated[_Number, Field(ge=0)]
    output: Annotated[_Number, Field(ge=0)]


class Changes(_Frozen):
    """All that a replay changes. ``from_turn``: from this turn of each root run on (0 is the first) the model is live.

    Where it is given, the overrides count from there on only.
    ``models`` are globs of those that may be asked live, where not all may.
    ``input`` takes the place of the recorded input of the first root run. ``pace``: streams take the time they took.
    ``map_ids``: ids that are made anew stand for the recorded ones. ``recovered``: every tool crosses a point of ours,
    and those that nothing recorded are answered with what the model was told of them. ``prices`` are by the model's
    name, for the report. ``freeze``: the agent's own code reads the recorded time, and draws the same uuids and random
    numbers every time.
    """

    overrides: tuple[Override, ...] = ()
    edits: tuple[Edit, ...] = ()
    from_turn: Annotated[int, Field(strict=True, ge=0)] | None = None
    models: tuple[_Text, ...] | None = None
    input: str | None = None
    pace: _Switch = False
    freeze: _Switch = False
    recovered: _Switch = False
    map_ids: _Switch = False
    volatile: tuple[Volatile, ...] = ()
    tool_policy: ToolPolicies = ToolPolicies()
    prices: dict[str, Price] = {}

    def __bool__(self) -> bool:
        return self != Changes()

    def may_ask(self, model: str | None) -> bool:
        """Whether this model may be asked live."""
        return self.models is None or any(fnmatch.fnmatchcase(model or "", glob) for glob in self.models)

    @property
    def touches_models(self) -> bool:
        """Whether the model will be asked live."""
        return bool(self.overrides or self.edits) or self.from_turn is not None or self.input is not None

    def describe(self) -> list[str]:
        """What changes, a sentence each, for the report."""
        said = [f"{one.agent}: {what}" for one in self.overrides for what in _said(one)]
        if self.from_turn is not None:
            said.append(f"the model is live from turn {self.from_turn} on")
        if self.input is not None:
            said.append("another input than the recorded one")
        return said + (["tools are answered by the policies given"] if self.tool_policy != ToolPolicies() else [])

    def volatile_in(self, path: str) -> tuple[Volatile, ...]:
        """What differs by itself in the requests of the agent at this path."""
        return tuple(one for one in self.volatile if fnmatch.fnmatchcase(path, one.agent))

    @property
    def edited(self) -> Mapping[str, Json]:
        """The answers that take the place of recorded ones, by the ids of their calls."""
        return {edit.call: edit.value for edit in self.edits}


def _said(override: Override) -> list[str]:
    given = override.settings.given
    said = [f"model {override.model}"] if override.model else []
    said += [f"requests go to {override.base_url}"] if override.base_url else []
    said += ["other instructions"] if override.instructions is not None else []
    said += [f"{name} {json.dumps(value)}" for name, value in given.items()]
    return (
        [*said, f"the tools {', '.join(tool.name for tool in override.tools)}"] if override.tools is not None else said
    )


def overrides_of(changes: Changes, path: str, asked: str | None, principal: str | None) -> list[Override]:
    """The overrides that are meant for a request: ``asked`` is its model, ``principal`` its run's first."""
    meant = principal if principal is not None else asked
    return [one for one in changes.overrides if one.agent == path and asked == (one.of_model or meant)]


def apply(overrides: Sequence[Override], request: Request) -> Request:
    """The request as these overrides make it."""
    for override in overrides:
        request = _changed(override, request)
    return request


def url_of(overrides: Sequence[Override], url: str) -> str:
    """Where the request goes: the last of its own path, below the base that an override names."""
    for override in overrides:
        if override.base_url is not None:
            path = urlsplit(url).path
            end = path.partition("/v1/")[2] or path.rpartition("/")[2]
            url = f"{str(override.base_url).rstrip('/')}/{end}"
    return url


def _changed(override: Override, request: Request) -> Request:
    given = override.settings.given
    # What was kept of a setting's own form must not beat what takes its place.
    changed = replace(
        request,
        model=override.model or request.model,
        settings={**request.settings, **given} if given else request.settings,
    )
    if override.instructions is not None:
        changed = _instructed(changed, override.instructions)
    if override.tools is not None:
        tools = [{"type": "function", **tool.model_dump(exclude_none=True)} for tool in override.tools]
        changed = replace(changed, tools=tuple(tools))
    return changed


def _instructed(request: Request, text: str) -> Request:
    """With these instructions in the place where its own stand: beside the messages, or first among them."""
    part = {"type": "text", "content": text}
    first = request.messages[0] if request.messages else None
    if first is not None and first["role"] == "system" and not request.instructions:
        message = {key: value for key, value in first.items() if key != "provider_fields"} | {"parts": [part]}
        return replace(request, messages=(message, *request.messages[1:]))
    return replace(request, instructions=(part,))
