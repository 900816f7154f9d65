"""A call's arguments by name. What a function takes is found out once; held process-wide and weakly.

At each call the standard library's ``Signature.bind`` would cost more than all else there is to do.
"""

from __future__ import annotations

import inspect
import types
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_MISSING: Any = object()


@dataclass(eq=False, slots=True)
class Parameters:
    """What a function takes, the instance of a method left out.

    ``template`` has every argument but those of ``**more``, with its default or as missing, in the function's order.
    """

    signature: inspect.Signature
    template: dict[str, Any]
    positional: tuple[str, ...]
    keywords: frozenset[str]
    hidden: frozenset[str]
    """Those that no keyword gives."""
    required: tuple[str, ...]
    rest: str | None
    more: bool

    def by_name(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call, defaults filled, those of ``**kwargs`` beside the others.

        Raises:
            TypeError: the function does not take these.
        """
        arguments = self.template.copy()
        positional = self.positional
        arguments.update(zip(positional, args, strict=False))
        if len(args) > len(positional) and self.rest is None:
            raise TypeError("too many positional arguments")
        if self.rest is not None:
            arguments[self.rest] = args[len(positional) :]
        if kwargs:
            named = kwargs.keys()
            if args and not self.keywords.intersection(positional[: len(args)]).isdisjoint(named):
                raise TypeError("multiple values for an argument")
            if named <= self.keywords:
                arguments.update(kwargs)
            elif not self.more:
                raise TypeError("got an unexpected keyword argument")
            elif self.hidden.isdisjoint(named):
                arguments.update(kwargs)
            else:  # of two of one name, the one that stands by its position is kept
                arguments |= {name: value for name, value in kwargs.items() if name not in self.hidden}
        for name in self.required:
            if arguments[name] is _MISSING:
                raise TypeError(f"missing a required argument: {name!r}")
        return arguments


_functions: weakref.WeakKeyDictionary[Any, Parameters] = weakref.WeakKeyDictionary()
_methods: weakref.WeakKeyDictionary[Any, Parameters] = weakref.WeakKeyDictionary()
"""Of functions that were called as methods, whose instance is left out."""


def parameters_of(wrapped: Callable[..., Any]) -> Parameters:
    """What a call takes."""
    function: Any = getattr(wrapped, "__func__", wrapped)
    if function is wrapped and type(function) is not types.FunctionType:  # what other objects take may change
        return _parameters(_signature(wrapped))
    known = _functions if function is wrapped else _methods
    found = known.get(function)
    if found is None:
        found = known[function] = _parameters(_signature(wrapped))
    return found


def _signature(wrapped: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(wrapped)
    except ValueError:  # written in C, and does not say what it takes
        return _ANY


_ANY = inspect.Signature(
    [
        inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
        inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD),
    ]
)


def _parameters(signature: inspect.Signature) -> Parameters:
    every = signature.parameters.values()
    named = [one for one in every if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    defaults = {one.name: _MISSING if one.default is one.empty else one.default for one in named}
    rest = next((one.name for one in every if one.kind is one.VAR_POSITIONAL), None)
    template = {one.name: defaults.get(one.name, ()) for one in every if one.kind is not one.VAR_KEYWORD}
    keywords = frozenset(one.name for one in named if one.kind is not one.POSITIONAL_ONLY)
    return Parameters(
        signature,
        template,
        positional=tuple(one.name for one in named if one.kind is not one.KEYWORD_ONLY),
        keywords=keywords,
        hidden=frozenset(template) - keywords,
        required=tuple(name for name, default in defaults.items() if default is _MISSING),
        rest=rest,
        more=any(one.kind is one.VAR_KEYWORD for one in every),
    )


def defaults_of(function: Callable[..., Any]) -> dict[str, Any]:
    """What a function's arguments are where its caller does not give them; nothing of one that cannot be inspected."""
    try:
        every = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {one.name: one.default for one in every if one.default is not one.empty}
