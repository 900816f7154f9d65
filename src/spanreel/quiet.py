"""Our own faults: logged once each and calmly in production, raised where ``SPANREEL_STRICT`` is set, as our tests do.

Holds the process-wide memory of what has been logged, and who hears of faults. Texts of exceptions may quote what
passes, so they are neither logged nor told.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

LOG = logging.getLogger("spanreel")
STRICT = "SPANREEL_STRICT"

Listener = Callable[[str, str | None, str | None], None]
"""Hears (what could not be done, the id of the run where it is known, the id of its session where it is known)."""

_logged: set[str] = set()
_listener: Listener | None = None


@functools.lru_cache(1000)
def quietly(doing: str) -> _Quietly:
    """Run a block of our own that must never reach the user's program; ``doing`` completes "could not ...".

    Where each call of the program passes, it is entered in an ``except`` that raises again inside it: what goes well
    then costs nothing.
    """
    return _Quietly(doing)


class _Quietly:
    """A class, since a generator costs several times as much; without state, so that one serves for all."""

    __slots__ = ("_doing",)

    def __init__(self, doing: str) -> None:
        self._doing = doing

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: object) -> bool:
        if not isinstance(fault, Exception) or os.environ.get(STRICT):
            return False
        note_fault(self._doing, fault)
        return True


def note_fault(doing: str, fault: Exception, run: str | None = None, session: str | None = None) -> None:
    """Log a fault once, by its class and place, and tell who listens."""
    frames = traceback.extract_tb(fault.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    log_once(f"could not {doing}: {type(fault).__name__}{place}")
    if _listener is not None:
        with contextlib.suppress(Exception):
            _listener(doing, run, session)


def log_once(text: str) -> None:
    """Log a warning that is worth saying once a process."""
    if text not in _logged and len(_logged) < 1000:
        _logged.add(text)
        LOG.warning("spanreel: %s", text)


def say(line: str) -> None:
    """Say a line at start: through the log where the program has set one up for such lines, else to stderr."""
    if LOG.isEnabledFor(logging.INFO) and LOG.hasHandlers():
        LOG.info("%s", line)
    else:
        sys.stderr.write(f"{line}\n")


def listen(listener: Listener | None) -> None:
    """Let this hear of faults, in the place of whoever did; it must return at once."""
    global _listener  # noqa: PLW0603 - the holder that the module docstring names
    _listener = listener
