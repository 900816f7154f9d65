"""What a replay keeps from the live world beside its answers: what calls go to a memory instead, and connections."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from spanreel import boundary as boundaries
from spanreel.arguments import parameters_of
from spanreel.playing import current_player
from spanreel.point import Point
from spanreel.quiet import quietly
from spanreel.scope import is_open


def isolated(
    point: Point, wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> inspect.BoundArguments | None:
    """The arguments of a call that goes to the memory of a replay; None where none is played."""
    player = current_player()
    if player is None or point.isolate is None:
        return None
    parameters = parameters_of(wrapped)
    bound = parameters.signature.bind(*args, **kwargs)
    bound.apply_defaults()
    with quietly(f"keep {point.target} from what outlives a replay"):
        given = {**parameters.by_name(args, kwargs), "self": instance}
        return rewritten(bound, point.isolate(given, player.memory))
    player.refuse(f"a call of {point.target} that could not be kept from the live store")
    return None


def leads_nowhere(point: Point) -> bool:
    """Whether a connection is one of a replay that needs none."""
    player = current_player()
    if player is None or boundaries.installed() is None or is_open():
        return False
    return not player.connects()


def rewritten(bound: inspect.BoundArguments, arguments: Mapping[str, Any]) -> inspect.BoundArguments:
    """The arguments of a call with these in the place of those of the same names."""
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            extra = bound.arguments[name]
            bound.arguments[name] = {key: arguments.get(key, value) for key, value in extra.items()}
        elif name in arguments:
            bound.arguments[name] = arguments[name]
    return bound
