"""Our own faults: logged once each and calmly in production, raised where ``SPANREEL_STRICT`` is set, as our tests do.

Holds the process-wide memory of what has been logged, and who hears of faults. Texts of exceptions may quote what
passes, so they are neither logged nor told.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

LOG = logging.getLogger("spanreel")
STRICT = "SPANREEL_STRICT"

Listener = Callable[[str, str | None, str | None], None]
"""Hears (what could not be done, the id of the run where it is known, the id of its session where it is known)."""

_logged: set[str] = set()
_listener: Listener | None = None


@contextlib.contextmanager
def quietly(doing: str) -> Iterator[None]:
    """Run a block of our own that must never reach the user's program; ``doing`` completes "could not ..."."""
    try:
        yield
    except Exception as fault:
        if os.environ.get(STRICT):
            raise
        note_fault(doing, fault)


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
