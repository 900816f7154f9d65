"""How work grows with what it is given, told by the processor's time: for tests that nothing takes the square of it."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

ROUNDS = 3


def growth(work: Callable[[str], object], small: str, large: str) -> float:
    """How many times the processor's time for the small one the large one takes.

    Both take turns, and the least of some rounds counts, so that neither how fast the machine is nor what else it does
    is measured. Each round works on another text, with more blanks at its end: what was worked out may be remembered.
    """
    times: list[tuple[float, float]] = []
    collects = gc.isenabled()
    gc.disable()  # it would look through all that other tests have left
    try:
        for number in range(ROUNDS):
            one, other = (_thread_time(work, text + " " * number) for text in (small, large))
            times.append((one, other))
    finally:
        if collects:
            gc.enable()
    return min(other for _, other in times) / min(one for one, _ in times)


def _thread_time(work: Callable[[str], object], text: str) -> float:
    began = time.thread_time()
    work(text)
    return time.thread_time() - began
