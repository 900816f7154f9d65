"""Our own faults: logged once each and calmly in production, raised where ``SPANREEL_STRICT`` is set, as our tests do.

Holds the process-wide memory of what has been logged.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator

LOG = logging.getLogger("spanreel")
STRICT = "SPANREEL_STRICT"

_logged: set[str] = set()


@contextlib.contextmanager
def quietly(doing: str) -> Iterator[None]:
    """Run a block of our own that must never reach the user's program; ``doing`` completes "could not ..."."""
    try:
        yield
    except Exception as fault:
        if os.environ.get(STRICT):
            raise
        log_once(f"could not {doing}: {type(fault).__name__}: {fault}")


def log_once(text: str) -> None:
    """Log a warning that is worth saying once a process."""
    if text not in _logged and len(_logged) < 1000:
        _logged.add(text)
        LOG.warning("spanreel: %s", text)
