"""Functions that `run` and `tool` decorate: the points that they are, and the wraps around them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from spanreel import driving
from spanreel.arguments import defaults_of
from spanreel.model import Agent, Message
from spanreel.point import Kind, Point, RunRequest, RunResult, ToolRequest, ToolResult
from spanreel.rebuilding import code_of, rebuild_arguments
from spanreel.shapes import names_of, result_again, shape_of
from spanreel.wrappers import WrappedFunction

_GIVEN: Any = object()


def decorated(function: Any, point: Point) -> Any:
    """The function, each call of which goes through the point's crossing."""
    return WrappedFunction(function, driving.wrapper_of(point, function))


def run_point(function: Callable[..., Any], agent: Agent) -> Point:
    """What a call of the function says of a run; its name is the agent's where the agent has none."""
    named = agent if agent.name else Agent(_name_of(function), agent.id, agent.version)
    defaults = defaults_of(function)

    def read(_instance: Any, arguments: Mapping[str, Any]) -> RunRequest:
        shown = _without_self(arguments)
        texts = [value for value in shown.values() if isinstance(value, str)]
        return RunRequest(
            agent=named,
            input=said("user", texts[0]) if texts else (),
            arguments=shown,
            callable=_target_of(function),
            defaults=tuple(name for name, value in shown.items() if value is defaults.get(name, _GIVEN)),
        )

    def rewrite(arguments: Mapping[str, Any], recorded: Mapping[str, Any]) -> Mapping[str, Any]:
        return rebuild_arguments(function, arguments, recorded)

    return Point(
        _target_of(function),
        Kind.RUN,
        read,
        lambda result: RunResult(output=said("assistant", _joined(result)), value=result),
        rewrite=rewrite,
        streams=True,
    )


def tool_point(function: Callable[..., Any], known: ToolRequest) -> Point:
    """What a call of the function says of a tool call, beside what is known from where it was decorated."""
    name = known.name or _name_of(function)
    description = known.description or inspect.getdoc(function)

    def read(_instance: Any, arguments: Mapping[str, Any]) -> ToolRequest:
        return ToolRequest(
            name,
            _without_self(arguments),
            known.call_id,
            description=description,
            side_effect=known.side_effect,
            pure=known.pure,
        )

    return Point(
        _target_of(function),
        Kind.TOOL,
        read,
        lambda result: ToolResult(result, type=shape_of(result, names_of(function))),
        rebuild=lambda recorded, _arguments: result_again(recorded.value, recorded.type, function),
        mutable=True,
        streams=True,
        shared=_instance_of,
    )


def said(role: str, value: Any) -> tuple[Message, ...]:
    """A value as one text message; none where it is no text."""
    return ({"role": role, "parts": [{"type": "text", "content": value}]},) if isinstance(value, str) else ()


def _instance_of(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a method shares with its agent."""
    instance = arguments.get("self")
    return {} if instance is None else {"self": instance}


def _name_of(function: Any) -> str:
    """A callable's name; of an object that is called, its class's."""
    return str(getattr(code_of(function), "__name__", "")) if _has_name(function) else type(function).__name__


def _target_of(function: Any) -> str:
    code = code_of(function)
    named = code if hasattr(code, "__qualname__") else type(code)
    return f"{named.__module__ or type(code).__module__}:{named.__qualname__}"


def _has_name(function: Any) -> bool:
    return hasattr(function, "__name__") or isinstance(function, functools.partial)


def _without_self(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name not in ("self", "cls")}


def _joined(result: Any) -> Any:
    """A streamed run's text in one; any other result as it is."""
    if isinstance(result, list) and result and all(isinstance(item, str) for item in result):
        return "".join(result)
    return result
