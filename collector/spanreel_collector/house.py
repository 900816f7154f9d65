"""Keeping house: what a store is rid of by age, by size and by a person's wish. Removing is the store's own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from spanreel_collector.stores.store import Filter, Receipt, Store

CHUNK: Final = 100
"""Sessions that are removed in one transaction: what comes in meanwhile waits for no more than these."""
_PAGE: Final = 500
_LOOK: Final = 0.2
"""Seconds between two looks whether what came has become sessions."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How long sessions are kept after the last of them came (seconds), and how many bytes may be in use."""

    age: float | None = None
    size: int | None = None


Stopped = Callable[[], bool]


def keep_house(
    store: Store, retention: Retention, stopped: Stopped = lambda: False, clock: Callable[[], int] = time.time_ns
) -> Receipt:
    """Remove what is too old, then the oldest until the rest fits, in small steps; and give the space back.

    ``stopped`` is asked between the steps.
    """
    receipt = Receipt()
    for step in _steps(store, retention, clock):
        receipt += step
        if stopped():
            return receipt
    store.upkeep()
    return receipt


def _steps(store: Store, retention: Retention, clock: Callable[[], int]) -> Iterator[Receipt]:
    if retention.age is not None:
        before = clock() - int(retention.age * 1_000_000_000)
        while (step := store.expire(before, CHUNK)) != Receipt():
            yield step
    if retention.size is not None:
        chunk = 1
        while store.size().live > retention.size:
            # Nothing that is old enough is left: what just came is not removed to make room for itself.
            if (step := store.expire(clock(), chunk)) == Receipt():
                return
            yield step
            chunk = min(chunk * 2, CHUNK)


def erase_user(store: Store, tenant: str, user: str, patience: float = 0.0) -> Receipt:
    """Remove all sessions of a user, and what they were made of.

    Whose a trace is shows when a session is made of it: for those that came before, this waits so many seconds.
    """
    asked, until = time.time_ns(), time.monotonic() + patience
    receipt = _erase_sessions(store, tenant, user)
    while store.pending(tenant, asked) and time.monotonic() < until:
        time.sleep(_LOOK)
    return receipt + _erase_sessions(store, tenant, user)


def _erase_sessions(store: Store, tenant: str, user: str) -> Receipt:
    receipt = Receipt()
    while sessions := frozenset(one.id for one in store.find(tenant, Filter(user=user), limit=_PAGE).sessions):
        step = store.erase(tenant, sessions)
        receipt += step
        if step == Receipt():
            break
    return receipt
