"""How long one thread waits for another: seconds in which this process ran, whatever the clock says."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

LOOK: Final = 0.25
"""Seconds after which who waits looks again; a machine that stops meanwhile takes no more of their patience."""


def wait_within(seconds: float, wait: Callable[[float], object], holds: Callable[[], object]) -> bool:
    """Wait until it holds, at most for so many seconds; whether it does.

    ``wait`` waits once, for the seconds it is given or less. A process that was suspended between two looks finds that
    time gone, and nothing done in it: only what it would have waited is counted.
    """
    while not (held := bool(holds())) and seconds > 0:
        look, began = min(seconds, LOOK), time.monotonic()
        wait(look)
        seconds -= min(look, time.monotonic() - began)
    return held
