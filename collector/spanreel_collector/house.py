"""Keeping house: what a store is rid of by age, by size and by a person's wish. Removing is the store's own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from spanreel_collector.stores.names import conversation_name, user_name
from spanreel_collector.stores.records import Filter, Receipt, loose_trace
from spanreel_collector.stores.store import Store

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


def erase_session(store: Store, tenant: str, session: str) -> Receipt:
    """Remove a session and its replays, which say what it says, with what they were made of."""
    return _erase(store, tenant, frozenset({session}), frozenset())


def erase_user(store: Store, tenant: str, user: str, patience: float = 0.0) -> Receipt:
    """Remove all that a user is named in: sessions, whoever else spoke in them, their replays, and traces of none.

    Whose a trace is shows when a session is made of it: for those that came before, this waits so many seconds.
    """
    asked, until = time.time_ns(), time.monotonic() + patience
    receipt = _erase_all_of(store, tenant, user)
    while store.pending(tenant, asked) and time.monotonic() < until:
        time.sleep(_LOOK)
    return receipt + _erase_all_of(store, tenant, user)


def _erase_all_of(store: Store, tenant: str, user: str) -> Receipt:
    receipt = Receipt()
    while True:
        traces = store.related(tenant, frozenset({user_name(user)})) | _loose(store, tenant, user)
        named = {one.id for one in store.find(tenant, Filter(user=user), limit=_PAGE).sessions}
        step = _erase(store, tenant, named | store.sessions_of(tenant, traces), traces)
        receipt += step
        if step == Receipt():
            return receipt


def _loose(store: Store, tenant: str, user: str) -> frozenset[bytes]:
    """Where the user's log records of no trace are, if there are any."""
    traces = frozenset({loose_trace(user)})
    return traces if any(True for _ in store.segments(tenant, traces)) else frozenset()


def _erase(store: Store, tenant: str, sessions: AbstractSet[str], traces: frozenset[bytes]) -> Receipt:
    found, fresh = set(sessions), set(sessions)
    while fresh:  # a replay may have been replayed
        fresh = {replay for one in fresh for replay in _replays(store, tenant, one)} - found
        found |= fresh
    traces |= frozenset(trace for one in found for trace in _left_out(store, tenant, one))
    return store.erase(tenant, frozenset(found), traces) if found or traces else Receipt()


def _left_out(store: Store, tenant: str, session: str) -> frozenset[bytes]:
    """Traces of a session's conversation that it was not made of, since it was too large."""
    read = store.session(tenant, session)
    if read is None or read[0].kind != "conversation":
        return frozenset()
    names = store.names(tenant, store.traces_of(tenant, session))
    return store.related(tenant, names & {conversation_name(read[0].key)})


def _replays(store: Store, tenant: str, session: str) -> Iterator[str]:
    cursor: str | None = None
    while True:
        page = store.find(tenant, Filter(baseline=session), limit=_PAGE, cursor=cursor)
        yield from (one.id for one in page.sessions)
        if (cursor := page.cursor) is None:
            return
