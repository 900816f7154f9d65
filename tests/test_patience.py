"""Waiting for another thread, on machines that stop."""

from __future__ import annotations

import threading
import time

from spanreel.patience import LOOK, wait_within


def test_what_holds_is_not_waited_for() -> None:
    waits: list[float] = []
    assert wait_within(60, waits.append, lambda: True)
    assert wait_within(0, waits.append, lambda: True)
    assert not wait_within(0, waits.append, lambda: False)
    assert waits == []


def test_it_ends_as_soon_as_it_holds_and_gives_up_when_it_does_not() -> None:
    event = threading.Event()
    threading.Timer(0.05, event.set).start()
    assert wait_within(600, event.wait, event.is_set)
    never = threading.Event()
    assert not wait_within(0.05, never.wait, never.is_set)


def test_a_machine_that_stops_takes_no_patience() -> None:
    waits: list[float] = []

    def stopped(seconds: float) -> None:
        waits.append(seconds)
        time.sleep(4 * LOOK)

    assert wait_within(2 * LOOK + 0.01, stopped, lambda: len(waits) == 3)
    assert waits[:2] == [LOOK, LOOK]
    assert not wait_within(2 * LOOK, stopped, lambda: False)
