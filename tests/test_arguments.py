"""A call's arguments by name are what the standard library says they are."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from spanreel.arguments import parameters_of


def none() -> None: ...
def plain(a: Any, b: Any = 2, *, c: Any = 3) -> None: ...
def asked(a: Any, *, b: Any) -> None: ...
def positional(a: Any, b: Any = 2, /, c: Any = 3) -> None: ...
def everything(a: Any, *rest: Any, b: Any = 2, **more: Any) -> None: ...
def hidden(a: Any, /, **more: Any) -> None: ...


class Methods:
    def method(self, a: Any, b: Any = 2) -> None: ...

    @classmethod
    def of_class(cls, a: Any, **more: Any) -> None: ...

    @staticmethod
    def static(a: Any, *rest: Any) -> None: ...


FUNCTIONS = (
    none,
    plain,
    asked,
    positional,
    everything,
    hidden,
    Methods().method,
    Methods.of_class,
    Methods.static,
    Methods.method,
    lambda a, b=[]: None,
)


def _by_the_standard_library(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    arguments: dict[str, Any] = {}
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            arguments.update(bound.arguments[name])
        else:
            arguments[name] = bound.arguments[name]
    return list(arguments.items())


@pytest.mark.parametrize("function", FUNCTIONS)
def test_arguments_by_name_are_those_that_the_standard_library_binds(function: Callable[..., Any]) -> None:
    names = ("a", "b", "c", "self", "other")
    for count, length in itertools.product(range(4), range(len(names))):
        for given in itertools.combinations(names, length):
            args, kwargs = tuple(range(10, 10 + count)), {name: name.upper() for name in given}
            try:
                function(*args, **kwargs)
            except TypeError:
                with pytest.raises(TypeError):
                    parameters_of(function).by_name(args, kwargs)
                continue
            found = list(parameters_of(function).by_name(args, kwargs).items())
            if function is hidden:  # of two arguments of one name, the one that stands by its position
                others = [(name, value) for name, value in kwargs.items() if name != "a"]
                assert found == [("a", 10), *others]
            else:
                assert found == _by_the_standard_library(function, args, kwargs)


def test_a_call_does_not_change_what_the_next_one_gets() -> None:
    parameters_of(everything).by_name((1, 2), {"b": 5, "x": 6})
    assert parameters_of(everything).by_name((1,), {}) == {"a": 1, "rest": (), "b": 2}
