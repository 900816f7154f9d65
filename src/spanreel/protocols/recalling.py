"""Entries of requests that were read before: a conversation repeats its messages and its tools in every call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import pydantic_core

from spanreel.memory import Known, Memory, known
from spanreel.model import Json
from spanreel.protocols.shaped import Free, Shaped

MOST_BYTES: Final = 4 * 1024 * 1024
"""How much of what was read before is known again, a kind of entry."""

Read = tuple[Known, bool]
"""An entry, read, and whether writing it again gives the very same entry."""


class Recalling:
    """Reads entries by ``read``, each once; ``is_same(entry, what was read)`` is asked once too.

    ``free`` says what reading hands through as it is (`Shaped`).
    """

    def __init__(
        self,
        read: Callable[[Json], dict[str, Any]],
        is_same: Callable[[Json, dict[str, Any]], bool],
        free: Mapping[str, Free] = MappingProxyType({}),
    ) -> None:
        self._read = read
        self._is_same = is_same
        self._shaped = Shaped(self._read_now, free)
        self._memory = Memory[Read](MOST_BYTES)

    def __call__(self, entry: Json) -> Read:
        """The entry, read now or before."""
        try:
            # Constants, so that NaN is not taken for null.
            key = pydantic_core.to_json(entry, inf_nan_mode="constants")
        except ValueError:  # text that no JSON can hold
            return self._fresh(entry)
        found = self._memory.find(key)
        if found is None:
            found = self._fresh(entry)
            self._memory.keep(key, found)
        return found

    def _fresh(self, entry: Json) -> Read:
        read, is_same = self._shaped(entry) if type(entry) is dict else self._read_now(entry)
        return known(read), is_same

    def _read_now(self, entry: Json) -> tuple[dict[str, Any], bool]:
        read = self._read(entry)
        return read, self._is_same(entry, read)
