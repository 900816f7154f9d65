from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spanreel_collector.house import Retention, erase_user, keep_house
from spanreel_collector.stores.opening import open_store
from spanreel_collector.stores.records import Derived, Filter, Made, Receipt, Segment, Summary
from spanreel_collector.stores.store import Store

SECOND = 1_000_000_000


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    cluster = None if request.param == "sqlite" else request.getfixturevalue("cluster")
    url = cluster.new_database() if cluster else f"sqlite:///{tmp_path}/store.db"
    opened = open_store(url)
    yield opened
    opened.close()
    if cluster:
        cluster.give_back(url)


def keep(store: Store, number: int, user: str | None = None, size: int = 100_000) -> None:
    """Keep a session of one trace, of 100 KB where nothing else is said."""
    trace = number.to_bytes(16, "big")
    store.append([Segment("acme", trace, "traces", (bytes(12),), os.urandom(size), 1)])
    one = Summary(f"s{number}", 1, number, "trace", str(number), "recorded", "ok", user=user, started=number)
    store.save(Derived("acme", {trace: 2**62}, {}, (Made(one, b"{}", "", frozenset({trace})),), frozenset(), "1"))


def left(store: Store) -> list[str]:
    return [one.id for one in store.find("acme", Filter()).sessions]


def test_what_is_older_than_the_age_goes(store: Store) -> None:
    for number in range(3):
        keep(store, number)
    receipt = keep_house(store, Retention(age=3600.0))
    assert receipt == Receipt()
    later = time.time_ns() + 3600 * SECOND
    receipt = keep_house(store, Retention(age=3600.0), clock=lambda: later)
    assert receipt == Receipt(sessions=3, revisions=3, traces=3, items=3)
    assert left(store) == []


def test_the_oldest_go_until_the_rest_fits(store: Store) -> None:
    keep(store, 0)
    overhead = store.size().live - 100_000
    for number in range(1, 20):
        keep(store, number)
    receipt = keep_house(store, Retention(size=1_000_000 + overhead))
    # Removed in steps of one, two, four and so on, so that a few more may have gone than had to.
    assert 9 < receipt.sessions < 18
    assert store.size().live <= 1_000_000 + overhead
    assert left(store) == [f"s{number}" for number in range(19, receipt.sessions - 1, -1)]
    assert keep_house(store, Retention(size=1_000_000 + overhead)) == Receipt()


def test_a_size_that_nothing_fits_into_ends_with_nothing(store: Store) -> None:
    keep(store, 1)
    assert keep_house(store, Retention(size=1)).sessions == 1
    assert keep_house(store, Retention(size=1)) == Receipt()


def test_without_retention_all_stays(store: Store) -> None:
    keep(store, 1)
    assert keep_house(store, Retention()) == Receipt()
    assert left(store) == ["s1"]


def test_it_stops_between_two_steps_when_told(store: Store) -> None:
    for number in range(110):
        keep(store, number, size=10)
    receipt = keep_house(store, Retention(age=0.0), lambda: True, lambda: 2**62)
    assert receipt.sessions == 100


def test_all_of_a_user_is_erased_and_nothing_of_another(store: Store) -> None:
    for number in range(7):
        keep(store, number, "ann" if number % 2 else "bob")
    assert erase_user(store, "acme", "ann") == Receipt(sessions=3, revisions=3, traces=3, items=3)
    assert left(store) == ["s6", "s4", "s2", "s0"]
    assert erase_user(store, "other", "bob") == erase_user(store, "acme", "ann") == Receipt()
