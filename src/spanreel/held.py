"""Values of the user's program, held as they are now at the least price; made into JSON when somebody asks for it.

What is made of Python's own kinds is pickled, in one pass of C, and read again by whoever wants to know, which is the
export thread nearly always. Of what holds anything else a snapshot is taken at once: only that is known not to change.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping
from typing import Any, NoReturn

from spanreel import json_text
from spanreel.json_text import plain
from spanreel.model import Dumped
from spanreel.snapshot import Snapshot, snapshot


class Held:
    """Arguments by name, as they were. ``size`` is about how many bytes they take."""

    __slots__ = ("_native", "_pickled", "_snapshot", "size")

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._pickled = _pickled(given)
        self._native: Any = None
        self._snapshot: Snapshot | None = None
        if self._pickled is None:
            self._snapshot = snapshot(given)
            self.size = 64 + sum(len(name) + size_of(value) for name, value in self._snapshot.value.items())
        else:
            self.size = 64 + len(self._pickled)

    @property
    def can_wait(self) -> bool:
        """Whether an argument can be read later as well as now: nobody can have changed it."""
        return self._pickled is not None

    def argument(self, name: str) -> Any:
        """An argument that could wait, as it was given; None where it was not."""
        taken = self.snapshot()
        return (taken.value if taken.plain else self._native).get(name)

    def snapshot(self) -> Snapshot:
        """The arguments as JSON."""
        if self._snapshot is None:
            assert self._pickled is not None
            self._native = pickle.loads(self._pickled)  # noqa: S301 - written here, of nothing but Python's own kinds
            self._snapshot = taken = snapshot(self._native)
            if taken.plain:
                for name, value in taken.value.items():
                    if type(value) is list:
                        taken.value[name] = plain(value)
        return self._snapshot


class _ForeignError(Exception):
    """A value is of none of Python's own kinds."""


class _Pickler(pickle.Pickler):
    """Writes Python's own kinds, and runs nobody's code."""

    def reducer_override(self, _value: Any) -> NoReturn:
        """Asked for all else."""
        raise _ForeignError


def _pickled(given: Mapping[str, Any]) -> bytes | None:
    if Dumped in map(type, given.values()):  # which is held already
        return None
    written = io.BytesIO()
    try:
        _Pickler(written, pickle.HIGHEST_PROTOCOL).dump(given)
    except Exception:  # noqa: BLE001 - too deep, changed meanwhile, or foreign: a snapshot takes what there is
        return None
    return written.getvalue()


def size_of(value: Any) -> int:
    """About how many bytes a JSON value takes, for the bound of the queue."""
    if type(value) is Dumped:
        return value.size
    return 64 + len(value if isinstance(value, str) else json_text.encode(value))
