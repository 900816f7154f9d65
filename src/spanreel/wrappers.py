"""Wrapped functions that are copied and pickled as the functions in them are: agents hold them, and pools send them."""

from __future__ import annotations

import copy
import sys
import types
from importlib import import_module
from operator import attrgetter
from typing import Any

import wrapt


class WrappedMethod(wrapt.BoundFunctionWrapper):  # type: ignore[type-arg]  # generic to type checkers only
    """A wrapped method; pickled by the instance or class and its name, as methods are, a static one by its name."""

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        owner = getattr(self.__wrapped__, "__self__", None)
        if owner is None or isinstance(owner, type):
            return self
        copied = copy.deepcopy(owner, memo)
        return self._self_parent.__get__(copied, type(copied))

    def __reduce_ex__(self, protocol: Any) -> Any:
        owner, function = getattr(self.__wrapped__, "__self__", None), self.__wrapped__
        if owner is not None:
            return getattr, (owner, function.__name__)
        return _find_by_name, (function.__module__, function.__qualname__)


class WrappedFunction(wrapt.FunctionWrapper):  # type: ignore[type-arg]  # generic to type checkers only
    """A wrapped function; copied as itself and pickled by its name, as functions are, for process pools.

    What has no name, as a partial, or stands undecorated under it, is pickled as what it is without us.
    """

    __bound_function_wrapper__ = WrappedMethod

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        wrapped = self.__wrapped__
        name = getattr(wrapped, "__qualname__", None)
        if name is None or isinstance(wrapped, types.BuiltinFunctionType) or _stands_under(name, wrapped):
            return _without_us, (wrapped,)
        return str(name)


def _without_us(function: Any) -> Any:
    return function


def _stands_under(name: str, function: Any) -> bool:
    try:
        return attrgetter(name)(sys.modules[function.__module__]) is function
    except (AttributeError, KeyError):
        return False


def _find_by_name(module: str, qualname: str) -> Any:
    return attrgetter(qualname)(import_module(module))
