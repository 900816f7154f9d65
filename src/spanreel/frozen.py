"""Frozen data that is made fast: frozen for the type checker, which is what keeps others from changing it.

A dataclass that is frozen at run time too sets each field by a call, and takes three times as long to make. Records and
spans are made by the thousand: their modules take `dataclass` from here, all others from the standard library.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass
else:
    T = TypeVar("T")

    def dataclass(*, frozen: bool, slots: bool) -> Callable[[type[T]], type[T]]:
        """As the standard library's, and as equal and hashable; its fields are not guarded at run time."""
        return dataclasses.dataclass(slots=slots, unsafe_hash=frozen)


__all__ = ["dataclass"]
