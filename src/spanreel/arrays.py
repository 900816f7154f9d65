"""Arrays and scalars of numpy: as JSON, and made again. What is larger than `LARGEST` is not kept by its values."""

from __future__ import annotations

import sys
from typing import Any, Final

LARGEST: Final = 20_000
"""Items of an array: more would keep the caller waiting."""
NAME: Final = "numpy"
"""What the shape of an array or scalar is called; its argument is the type of its items."""
_VALUES: Final = "biufMU"
"""Kinds of items, as numpy calls them, that JSON tells whole: truths, numbers, times, texts."""


def listed(value: Any) -> Any:
    """The values of an array or scalar, as Python's own; the value itself where it is none, or too large."""
    return value.tolist() if is_numeric(value) else value


def is_numeric(value: Any) -> bool:
    """Whether it is an array or scalar of numpy that is kept by its values."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not (type(value) is numpy.ndarray or isinstance(value, numpy.generic)):
        return False
    # A list does not tell how wide an array without items is.
    return value.dtype.kind in _VALUES and value.size <= LARGEST and (value.size > 0 or value.ndim == 1)


def type_of_items(value: Any) -> str:
    """What the items are, as numpy writes it: ``<f8``."""
    return str(value.dtype.str)


def made_again(recorded: Any, of_items: str) -> Any:
    """The array of these values, or the scalar, where it is one; the values themselves where numpy is not loaded."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return recorded
    array = numpy.array(recorded, dtype=of_items)
    return array if isinstance(recorded, list) else array[()]
