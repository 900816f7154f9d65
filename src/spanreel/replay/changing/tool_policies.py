"""What answers a tool call in a replay: the recording, fixed cases, or the tool itself. Data, and the choice among it.

Nothing runs unless it is named; what is known to change something in the world needs a second switch. The form is that
of Kitaru's ``tool_policy``, and more: globs, predicates, normal forms of arguments.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from spanreel.errors import SettingsError
from spanreel.model import Json
from spanreel.places import pointer_steps
from spanreel.replay.comparing.canonical import NOTHING, Nothing, canonical, first_difference, text


class OnMiss(StrEnum):
    """What follows a call that the recording does not have."""

    FAIL = "fail"
    """The run ends."""
    ERROR_RESULT = "error_result"
    """The agent is told that there is no such result, and goes on."""
    PASSTHROUGH = "passthrough"
    """The tool runs."""


def _checked(pointer: str) -> str:
    try:
        pointer_steps(pointer)
    except SettingsError as error:
        raise ValueError(str(error)) from error
    return pointer


Pointer = Annotated[str, AfterValidator(_checked)]


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class History(_Frozen):
    """Answered from the recording. ``scope``: this session, or others too (the newest equal call that succeeded).

    ``positional``: the call that the model's recorded answer asks for by its id is that one, whatever its arguments
    have become; always told, and never for what changes something in the world.
    """

    type: Literal["history"] = "history"
    scope: Literal["baseline", "agent", "cohort_version"] = "baseline"
    on_miss: OnMiss = OnMiss.FAIL
    positional: bool = False


class Case(_Frozen):
    """A fixed answer to calls whose arguments are ``match``, or hold all of it; null matches any."""

    match: dict[str, JsonValue] | None = None
    match_mode: Literal["exact", "subset"] = "exact"
    result: JsonValue = None
    error: str | None = None

    def fits(self, arguments: Json) -> bool:
        """Whether a call of these canonical arguments is meant."""
        if self.match is None:
            return True
        wanted = canonical(self.match)
        if self.match_mode == "exact" or not isinstance(arguments, dict) or not isinstance(wanted, dict):
            return first_difference(wanted, arguments) is None
        return all(first_difference(wanted[key], arguments.get(key, NOTHING)) is None for key in wanted)


class Static(_Frozen):
    """Answered by the first case that fits."""

    type: Literal["static"]
    cases: tuple[Case, ...] = ()
    on_miss: OnMiss = OnMiss.FAIL


class Passthrough(_Frozen):
    """The tool itself runs. ``side_effects``: even where it is known to change something in the world."""

    type: Literal["passthrough"]
    side_effects: bool = False


Policy = Annotated[History | Static | Passthrough, Field(discriminator="type")]


class Rule(_Frozen):
    """A policy for the tools that a glob names, where the arguments hold these values at these JSON pointers."""

    tool: str
    when: dict[Pointer, JsonValue] = {}
    policy: Policy


class NormalForm(_Frozen):
    """What two calls of a tool may differ in and still be equal, by JSON pointers into its arguments.

    ``ignore``: left out. ``unordered``: lists whose order says nothing. ``strip``: texts without the blanks around.
    """

    ignore: tuple[Pointer, ...] = ()
    unordered: tuple[Pointer, ...] = ()
    strip: tuple[Pointer, ...] = ()


class ToolPolicies(_Frozen):
    """Rules first, in their order; then the tool by name, then by the first glob that fits; then the default.

    ``side_effects`` are globs of tools known to change something in the world, ``pure`` of those of which equal
    arguments always give the same result, beside what the code declares.
    ``keys``: ``kitaru`` compares arguments as that does, defaults not filled and ``1`` not ``1.0``. ``sessions`` are
    the files that wider scopes look into.
    """

    default: Policy = History()
    tools: dict[str, Policy] = {}
    rules: tuple[Rule, ...] = ()
    side_effects: tuple[str, ...] = ()
    pure: tuple[str, ...] = ()
    normal_forms: dict[str, NormalForm] = {}
    keys: Literal["canonical", "kitaru"] = "canonical"
    sessions: tuple[str, ...] = ()

    def changes_the_world(self, name: str, declared: bool | None) -> bool:
        """Whether a tool is known to have side effects."""
        return bool(declared) or any(fnmatch.fnmatchcase(name, glob) for glob in self.side_effects)

    def is_pure(self, name: str, declared: bool) -> bool:
        """Whether a recorded result may be given once more."""
        return declared or any(fnmatch.fnmatchcase(name, glob) for glob in self.pure)

    @property
    def lets_run(self) -> bool:
        """Whether there is a policy by which a tool itself may run."""
        given = (self.default, *self.tools.values(), *(rule.policy for rule in self.rules))
        return any(isinstance(one, Passthrough) or one.on_miss is OnMiss.PASSTHROUGH for one in given)

    def normal_form(self, name: str) -> NormalForm | None:
        """The normal form of a tool's arguments, where one is given."""
        return next((form for glob, form in self.normal_forms.items() if fnmatch.fnmatchcase(name, glob)), None)


@dataclass(frozen=True, slots=True)
class Choice:
    """The policy for one call; ``named`` where it was chosen by the tool's very name."""

    policy: History | Static | Passthrough
    named: bool

    @property
    def on_miss(self) -> OnMiss:
        """What follows a miss."""
        return OnMiss.FAIL if isinstance(self.policy, Passthrough) else self.policy.on_miss

    def may_run(self, *, changes_the_world: bool) -> bool:
        """Whether the tool itself may run: what changes the world only where it is named and that is said too."""
        if not changes_the_world:
            return True
        return self.named and isinstance(self.policy, Passthrough) and self.policy.side_effects


def choose(policies: ToolPolicies, name: str, arguments: Json) -> Choice:
    """The policy for a call of these canonical arguments."""
    for rule in policies.rules:
        if fnmatch.fnmatchcase(name, rule.tool) and _holds(rule.when, arguments):
            return Choice(rule.policy, rule.tool == name)
    if name in policies.tools:
        return Choice(policies.tools[name], named=True)
    for glob, policy in policies.tools.items():
        if fnmatch.fnmatchcase(name, glob):
            return Choice(policy, named=False)
    return Choice(policies.default, named=False)


def normalised(form: NormalForm, arguments: Json) -> str:
    """Canonical arguments in the normal form, as text: equal texts are equal arguments."""
    value: Json = arguments
    for pointer in form.ignore:
        value = mapped(value, pointer_steps(pointer), lambda _: NOTHING)
    for pointer in form.unordered:
        value = mapped(value, pointer_steps(pointer), _sorted)
    for pointer in form.strip:
        value = mapped(value, pointer_steps(pointer), lambda one: one.strip() if isinstance(one, str) else one)
    return text(value)


def _holds(when: Mapping[str, JsonValue], arguments: Json) -> bool:
    return all(
        first_difference(canonical(value), _at(arguments, pointer_steps(pointer))) is None
        for pointer, value in when.items()
    )


def _at(value: Json, steps: tuple[str, ...]) -> Any:
    for step in steps:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return NOTHING
    return value


def mapped(value: Json, steps: tuple[str, ...], change: Any) -> Any:
    """The value with what stands at the end of the steps changed; ``*`` is any step, and NOTHING takes away."""
    if not steps:
        return change(value)
    step, rest = steps[0], steps[1:]
    if isinstance(value, dict):
        changed = {key: mapped(item, rest, change) if step in ("*", key) else item for key, item in value.items()}
        return {key: item for key, item in changed.items() if not isinstance(item, Nothing)}
    if isinstance(value, list):
        items = [mapped(one, rest, change) if step in ("*", str(place)) else one for place, one in enumerate(value)]
        return [item for item in items if not isinstance(item, Nothing)]
    return value


def _sorted(value: Json) -> Json:
    return sorted(value, key=text) if isinstance(value, list) else value
