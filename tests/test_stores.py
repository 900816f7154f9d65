"""What every store promises: one suite, run over each. Data is made up; a store knows neither OTLP nor sessions."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from postgres import Cluster
from spanreel_collector.stores.arriving import FEW
from spanreel_collector.stores.database import DatabaseStore
from spanreel_collector.stores.opening import open_store, shown
from spanreel_collector.stores.records import (
    NO_TRACE,
    Derived,
    Filter,
    Made,
    Order,
    Pending,
    Receipt,
    Refusal,
    Report,
    Segment,
    Summary,
)
from spanreel_collector.stores.removing import KEPT_REPORTS, KEPT_REPORTS_SIZE
from spanreel_collector.stores.store import Conflict, Store, StoreError

HOUR = 3_600_000_000_000
FAR = 2**62


@dataclass(frozen=True, slots=True)
class Home:
    """Where a store lives: how to open it (again), and all of its bytes."""

    url: str
    cluster: Cluster | None
    folder: Path

    def open(self) -> Store:
        return open_store(self.url)

    def run(self, statements: Sequence[str]) -> None:
        """Run statements on the database itself."""
        if self.cluster is None:
            with closing(sqlite3.connect(self.folder / "store.db")) as file, file:
                for statement in statements:
                    file.execute(statement)
            return
        with psycopg.connect(self.url) as connection:
            connection.execute("SET search_path TO spanreel")
            for statement in statements:
                connection.execute(statement.encode())

    def holds(self, marker: str) -> bool:
        """Whether this text stands anywhere: in the files, or in the rows."""
        if self.cluster is None:
            return any(marker.encode() in path.read_bytes() for path in self.folder.glob("store.db*"))
        with psycopg.connect(self.url) as connection:
            tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'spanreel'").fetchall()
            queries = [
                f"SELECT encode(convert_to(t::text, 'UTF8'), 'hex') FROM spanreel.{name} t" for (name,) in tables
            ]
            rows = [row[0] for query in queries for row in connection.execute(query.encode()).fetchall()]
        # bytea shows as hex in a row's text, so that it is hex of hex.
        inside = (marker.encode().hex(), marker.encode().hex().encode().hex())
        return any(form in row for row in rows for form in inside)


KINDS = ("sqlite", pytest.param("postgresql", marks=pytest.mark.slow))


@pytest.fixture(params=KINDS)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    made = new_home(request, tmp_path)
    yield made
    if made.cluster is not None:
        made.cluster.give_back(made.url)


def new_home(request: pytest.FixtureRequest, folder: Path) -> Home:
    if request.param == "sqlite":
        return Home(f"sqlite:///{folder}/store.db", None, folder)
    running: Cluster = request.getfixturevalue("cluster")
    return Home(running.new_database(), running, folder)


@pytest.fixture
def store(home: Home) -> Iterator[Store]:
    opened = home.open()
    yield opened
    opened.close()


# -- made up ---------------------------------------------------------------------------------------------------------


def trace(number: int) -> bytes:
    return number.to_bytes(16, "big")


def item(number: int) -> bytes:
    return number.to_bytes(12, "big")


def segment(number: int, items: range, tenant: str = "acme", body: bytes = b"body") -> Segment:
    return Segment(tenant, trace(number), "traces", tuple(map(item, items)), body, len(body) * 3)


def summary(session: str, revision: int = 1, **more: Any) -> Summary:
    plain = Summary(session, revision, at=1000 + revision, kind="trace", key=session, origin="recorded", status="ok")
    return replace(plain, **more)


def made(one: Summary, *traces: int, document: bytes = b"{}", text: str = "") -> Made:
    return Made(one, document, text, frozenset(map(trace, traces)))


def derived(*sessions: Made, marks: dict[int, int] | None = None, tenant: str = "acme", **more: Any) -> Derived:
    read = {trace(number): mark for number, mark in (marks or {}).items()}
    read = read or {one: 0 for session in sessions for one in session.traces}
    return replace(Derived(tenant, read, {}, sessions, frozenset(), "1.0"), **more)


def claim_all(store: Store, until: int = 0) -> tuple[Pending, ...]:
    return store.claim(FAR, until, 1000)


def ids(store: Store, order: Order = "started", **wanted: Any) -> list[str]:
    return [one.id for one in store.find("acme", Filter(**wanted), order, 100).sessions]


def kept(store: Store, number: int, tenant: str = "acme") -> list[bytes]:
    """All items of a trace, in the order in which they came."""
    return [one for _, found in store.segments(tenant, frozenset({trace(number)})) for one in found.items]


# -- taking in -------------------------------------------------------------------------------------------------------


def test_what_is_appended_is_there_as_it_came_in_the_order_of_arrival(store: Store) -> None:
    first = segment(1, range(3), body=bytes(range(256)) * 100)
    logs = Segment("acme", trace(1), "logs", (b"d" * 16,), b"", 0)
    answers = [store.append([first, segment(2, range(5))]), store.append([logs])]
    assert [(one.new, one.known) for one in answers] == [(8, 0), (1, 0)]
    found = list(store.segments("acme", frozenset({trace(1), trace(3)})))
    assert [one for _, one in found] == [first, logs]
    assert found[0][0] < found[1][0]


def test_a_delivery_that_comes_twice_changes_nothing_and_is_not_pending_again(store: Store) -> None:
    parts = [segment(1, range(3)), segment(2, range(2))]
    store.append(parts)
    store.save(derived(marks={int.from_bytes(one.trace): one.mark for one in claim_all(store)}))
    answer = store.append(parts)
    assert (answer.new, answer.known) == (0, 5)
    assert claim_all(store) == ()
    assert store.size().items == 5


def test_of_a_delivery_that_is_known_in_part_only_the_rest_is_new(store: Store) -> None:
    store.append([segment(1, range(3))])
    answer = store.append([segment(1, range(1, 5), body=b"later"), segment(1, range(4, 6), body=b"last")])
    assert (answer.new, answer.known) == (3, 3)
    found = [(one.items, one.body) for _, one in store.segments("acme", frozenset({trace(1)}))][1:]
    assert found == [((item(3), item(4)), b"later"), ((item(5),), b"last")]


def test_an_item_that_stands_twice_in_one_delivery_is_one(store: Store) -> None:
    twice = Segment("acme", trace(1), "traces", (item(1), item(1)), b"b", 1)
    answer = store.append([twice])
    assert (answer.new, answer.known) == (1, 1)


def test_of_a_trace_that_becomes_very_large_each_item_is_kept_once_however_it_comes_again(store: Store) -> None:
    pieces = [segment(1, range(first, first + 60)) for first in range(0, 5 * FEW, 50)]  # each has ten of the next
    answers = [store.append([one]) for one in pieces]
    assert (sum(one.new for one in answers), sum(one.known for one in answers)) == (5 * FEW + 10, 10 * len(pieces) - 10)
    assert [store.append([one]).new for one in pieces] == [0] * len(pieces)
    assert store.append(pieces).known == 60 * len(pieces)
    assert store.append([segment(1, range(5 * FEW, 5 * FEW + 11))]).new == 1
    assert kept(store, 1) == [item(number) for number in range(5 * FEW + 11)]
    assert store.erase("acme", frozenset(), frozenset({trace(1)})).items == 5 * FEW + 11


def test_a_trace_that_an_older_release_kept_grows_as_any_other(home: Home) -> None:
    store = home.open()
    store.append([segment(1, range(3)), segment(2, range(FEW + 1))])
    store.close()
    binary = "X'{}'" if home.cluster is None else "'\\x{}'"
    rows = [f"('acme', {binary.format(trace(1).hex())}, {binary.format(item(number).hex())})" for number in range(3)]
    older = (
        f"INSERT INTO item (tenant, trace, item) VALUES {', '.join(rows)}",  # of small traces too
        "DELETE FROM migration WHERE version = 3",
    )
    home.run(older)
    again = home.open()
    answer = again.append([segment(1, range(FEW + 5)), segment(2, range(FEW + 2))])
    assert (answer.new, answer.known) == (FEW + 3, FEW + 4)
    assert again.append([segment(1, range(FEW + 5))]).new == 0
    again.close()


def test_what_a_backup_was_restored_to_knows_what_comes_again(home: Home, store: Store, tmp_path: Path) -> None:
    parts = [segment(1, range(5)), segment(2, range(FEW + 5))]
    store.append(parts)
    with closing(open_store(f"sqlite:///{tmp_path}/restored.db")) as restored:
        restored.load(store.dump())
        assert restored.append(parts).known == FEW + 10


def test_tenants_do_not_see_each_other_with_the_same_ids_everywhere(store: Store) -> None:
    mine, theirs = segment(1, range(2), body=b"mine"), segment(1, range(2), "other", b"theirs")
    answer = store.append([mine, theirs])
    assert (answer.new, answer.known) == (4, 0)
    store.save(derived(made(summary("s", user="u", name="mine"), 1, text="secret words"), names={trace(1): {"n"}}))
    nothing = [
        store.find("other", Filter()).sessions,
        store.find("other", Filter(text="secret")).sessions,
        store.session("other", "s"),
        store.revisions("other", "s"),
        store.traces_of("other", "s"),
        store.sessions_of("other", frozenset({trace(1)})),
        store.related("other", frozenset({"n"})),
        store.heads("other", frozenset({"s"})),
        any(store.facets("other").values()),
    ]
    assert not any(nothing)
    assert store.erase("other", frozenset({"s"})) == Receipt()
    assert [one.body for _, one in store.segments("other", frozenset({trace(1)}))] == [b"theirs"]
    assert store.tenants() == ("acme", "other")


def test_refusals_are_read_newest_first_and_the_oldest_are_forgotten(store: Store) -> None:
    store.append([], [Refusal("acme", number, "span 7", f"reason {number}") for number in range(1500)])
    store.append([], [Refusal("other", 1, "\0", "a text with \ud800 and \0 in it")])
    found = store.refusals("acme", 5000)
    assert [one.at for one in found] == list(range(1499, 499, -1))
    assert store.refusals("acme", 2) == found[:2]
    assert len(store.refusals("other")) == 1


def test_a_body_that_is_large_and_a_trace_of_many_segments_are_read_whole(store: Store) -> None:
    bodies = [os.urandom(1_500_000) for _ in range(4)]
    for number, body in enumerate(bodies):
        store.append([segment(1, range(number, number + 1), body=body)])
    store.append([segment(1, range(number, number + 1)) for number in range(10, 900)])
    found = [one.body for _, one in store.segments("acme", frozenset({trace(1)}))]
    assert found[:4] == bodies
    assert len(found) == 894


# -- making sessions -------------------------------------------------------------------------------------------------


def test_pending_traces_are_claimed_by_one_until_a_moment_and_oldest_first(store: Store) -> None:
    before = time.time_ns()
    for number in (3, 1, 2):
        store.append([segment(number, range(2))])
    assert store.claim(before - 1, FAR, 10) == ()
    first = store.claim(FAR, time.time_ns() + HOUR, 2)
    assert [one.trace for one in first] == [trace(3), trace(1)]
    assert all(before <= one.first == one.last <= time.time_ns() for one in first)
    assert [one.trace for one in store.claim(FAR, 0, 10)] == [trace(2)]
    # The last claim ended in the past: it is anybody's.
    assert [one.trace for one in store.claim(FAR, 0, 10)] == [trace(2)]


def test_what_is_given_back_is_anybodys_at_once(store: Store) -> None:
    store.append([segment(1, range(2)), segment(2, range(2))])
    claimed = store.claim(FAR, time.time_ns() + HOUR, 10)
    assert store.claim(FAR, 0, 10) == ()
    store.release(claimed[:1])
    assert store.claim(FAR, 0, 10) == claimed[:1]


def test_what_comes_while_a_trace_is_read_keeps_it_pending(store: Store) -> None:
    store.append([segment(1, range(2))])
    (claimed,) = claim_all(store)
    store.append([segment(1, range(2, 3))])
    store.save(derived(made(summary("s"), 1), marks={1: claimed.mark}))
    (again,) = claim_all(store)
    assert (again.trace, again.mark > claimed.mark) == (trace(1), True)
    store.save(derived(made(summary("s", 2), 1), marks={1: again.mark}))
    assert (claim_all(store), store.size().pending) == ((), 0)


def test_marks_are_those_of_the_segments(store: Store) -> None:
    store.append([segment(1, range(2)), segment(1, range(2, 4))])
    (claimed,) = claim_all(store)
    assert claimed.mark == max(mark for mark, _ in store.segments("acme", frozenset({trace(1)})))


def test_what_came_before_the_clock_was_set_back_does_not_wait_for_it(store: Store) -> None:
    assert isinstance(store, DatabaseStore)
    DatabaseStore(store.engine, lambda: time.time_ns() + 24 * HOUR).append([segment(1, range(1))])
    store.append([segment(2, range(1))])
    (early,) = store.claim(time.time_ns() - HOUR, time.time_ns() + HOUR, 10)
    assert early.trace == trace(1)
    assert store.claim(time.time_ns() - HOUR, time.time_ns() + HOUR, 10) == ()


def test_two_who_claim_at_once_get_different_traces(home: Home, store: Store) -> None:
    store.append([segment(number, range(1)) for number in range(200)])
    other = home.open()
    found: list[bytes] = []

    def claim(which: Store) -> None:
        while some := which.claim(FAR, time.time_ns() + HOUR, 7):
            found.extend(one.trace for one in some)

    run_threads([lambda: claim(store), lambda: claim(other), lambda: claim(store)])
    other.close()
    assert sorted(found) == [trace(number) for number in range(200)]


def test_a_session_is_read_as_it_was_saved(store: Store) -> None:
    whole = summary(
        "s",
        name="a \0 name \ud800",
        user="who",
        started=5 * HOUR,
        ended=6 * HOUR,
        agents=("root", "root/helper"),
        versions=("1.2",),
        models=("gpt",),
        tools=("search", "get_weather"),
        tags=("a",),
        runs=3,
        model_calls=4,
        tool_calls=5,
        input_tokens=10,
        output_tokens=2,
        cost=0.25,
        eligible=True,
        baseline="b",
        opening="What is the weather?",
    )
    document = b'{"long": "' + b"x" * 100_000 + b'"}'
    store.save(derived(made(whole, 1, 2, document=document)))
    assert store.session("acme", "s") == (whole, document)
    assert store.heads("acme", frozenset({"s", "t"})) == {"s": (1, document)}
    assert store.traces_of("acme", "s") == {trace(1), trace(2)}
    assert store.sessions_of("acme", frozenset({trace(2), trace(9)})) == {"s"}
    assert store.find("acme", Filter()).sessions == (whole,)
    assert store.session("acme", "t") is None


def test_revisions_are_readable_and_the_last_twenty_are_kept(store: Store) -> None:
    for number in range(1, 26):
        store.save(derived(made(summary("s", number), 1, document=b"%d" % number), reader=f"1.{number}"))
    found = store.revisions("acme", "s")
    assert [(one.revision, one.at, one.reader) for one in found] == [
        (number, 1000 + number, f"1.{number}") for number in range(25, 5, -1)
    ]
    assert store.session("acme", "s", 6) == (summary("s", 25), b"6")
    assert store.session("acme", "s", 5) is None
    assert store.session("acme", "s", 26) is None


@pytest.mark.parametrize("revision", [1, 3])
def test_a_head_that_another_made_is_a_conflict_and_nothing_is_kept(store: Store, revision: int) -> None:
    store.save(derived(made(summary("s"), 1, document=b"first")))
    with pytest.raises(Conflict):
        store.save(derived(made(summary("a"), 2), made(summary("s", revision), 1, document=b"wrong")))
    assert ids(store) == ["s"]
    assert store.session("acme", "s") == (summary("s"), b"first")


def test_of_many_who_save_the_same_revision_one_does(home: Home, store: Store) -> None:
    others = [home.open() for _ in range(2)]
    outcomes: list[str] = []

    def save(which: Store) -> None:
        for number in range(1, 11):
            try:
                which.save(derived(made(summary("s", number), 1, text="words")))
                outcomes.append("saved")
            except Conflict:
                outcomes.append("conflict")

    run_threads([lambda one=one: save(one) for one in (store, *others)])  # type: ignore[misc]  # a default for a loop
    for one in others:
        one.close()
    assert outcomes.count("saved") == 10
    assert [one.revision for one in store.revisions("acme", "s")] == list(range(10, 0, -1))


def test_sessions_that_traces_no_longer_make_are_gone_with_all_of_them(store: Store) -> None:
    store.save(derived(made(summary("a"), 1, text="alpha"), made(summary("b"), 2)))
    store.add_report("acme", Report("r", "a", 1, "PASS", b"{}"))
    store.save(derived(made(summary("c"), 1, 2), marks={1: 0, 2: 0}))
    assert ids(store) == ["c"]
    assert (store.revisions("acme", "a"), store.reports("acme", "a")) == ((), ())
    assert ids(store, text="alpha") == []
    assert store.facets("acme")["origin"] == (("recorded", 1),)


def test_a_session_that_says_the_same_stays(store: Store) -> None:
    store.save(derived(made(summary("a"), 1), made(summary("b"), 1)))
    store.save(derived(marks={1: 0}, same=frozenset({"a"})))
    assert ids(store) == ["a"]


def test_names_join_traces_as_they_were_last_read(store: Store) -> None:
    long = "n" * 5000
    store.append([segment(1, range(1)), segment(2, range(1))])
    store.save(derived(marks={1: 0, 2: 0}, names={trace(1): frozenset({"x", "y", long}), trace(2): frozenset({"y"})}))
    assert store.related("acme", frozenset({"y", "z"})) == {trace(1), trace(2)}
    assert store.related("acme", frozenset({long})) == {trace(1)}
    assert {"x", "y"} < store.names("acme", frozenset({trace(1)}))
    store.save(derived(marks={1: 0}, names={trace(1): frozenset({"z"})}))
    assert store.related("acme", frozenset({"y", "z"})) == {trace(1), trace(2)}
    assert store.names("acme", frozenset({trace(1)})) == {"z"}


def test_traces_that_were_read_are_told_in_order_and_those_that_another_read(store: Store) -> None:
    store.append([segment(number, range(1), tenant) for tenant in ("acme", "zeta") for number in range(5)])
    store.save(derived(marks={1: 0, 2: 0}, reader="1.0"))
    store.save(derived(marks={3: 0}, reader="1.2"))
    store.save(derived(marks={0: 0}, reader="1.1", tenant="zeta"))
    first = ("", b"")
    mine = [("acme", trace(number)) for number in (1, 2, 3)]
    assert store.read_traces(first, 10) == (*mine, ("zeta", trace(0)))
    assert store.read_traces(mine[1], 1) == (mine[2],)
    assert store.read_traces(first, 10, "1.1") == tuple(mine)
    assert store.read_traces(first, 2, "1.1") == tuple(mine[:2])
    assert store.read_traces(mine[0], 10, "1.0") == (mine[2], ("zeta", trace(0)))


def test_nothing_is_kept_of_what_expired_while_it_was_read(store: Store) -> None:
    store.append([segment(1, range(2)), segment(2, range(2))])
    read = {int.from_bytes(one.trace): one.mark for one in claim_all(store)}
    assert store.expire(FAR, 10).traces == 2
    with pytest.raises(Conflict):
        store.save(derived(made(summary("s"), 1, 2), marks=read))
    # What comes of it meanwhile is none of what was read.
    store.append([segment(1, range(2, 4))])
    with pytest.raises(Conflict):
        store.save(derived(made(summary("s"), 1), marks=read))
    store.save(derived(marks={2: read[2]}, names={trace(2): frozenset({"n"})}))
    assert (ids(store), store.size().traces, store.names("acme", frozenset({trace(2)}))) == ([], 1, frozenset())
    (claimed,) = claim_all(store)
    store.save(derived(made(summary("s"), 1), marks={1: claimed.mark}))
    assert ids(store) == ["s"]


# -- finding ---------------------------------------------------------------------------------------------------------


@pytest.fixture(params=KINDS, scope="module")
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Filled once for all that only read."""
    opened = new_home(request, tmp_path_factory.mktemp("filled")).open()
    fill(opened)
    yield opened
    opened.close()


def fill(store: Store) -> None:
    """Keep ten sessions, of which each filter fits some; the last says nothing of itself."""
    sessions = [
        summary(
            f"s{number}",
            at=5000 - number,
            started=number * HOUR,
            ended=number * HOUR + (number % 3) * 1000,
            agents=("planner",) if number % 2 else ("planner", "writer"),
            versions=("1.0",) if number < 5 else ("2.0",),
            models=(f"model-{number % 3}",),
            tools=("search",) if number == 4 else (),
            tags=("red", "blue") if number in (2, 7) else ("green",),
            user=f"user-{number % 4}",
            users=(f"user-{number % 4}", "guest") if number in (2, 5) else (),
            origin="replay" if number == 8 else "recorded",
            status="error" if number in (1, 2) else "ok",
            key=f"key-{number}",
            baseline="s1" if number == 8 else None,
            eligible=number > 5,
            input_tokens=number * 10,
            output_tokens=None if number == 3 else 5,
            cost=None if number == 0 else number / 10,
        )
        for number in range(9)
    ]
    text = "The quick brown fox, number {}: it said get_weather and Größe"
    store.save(derived(*(made(one, number, text=text.format(number)) for number, one in enumerate(sessions))))
    store.save(derived(made(summary("bare", at=1), 99, text="\0 \ud800 nothing")))


FILTERS: list[tuple[dict[str, Any], set[int]]] = [
    ({"agent": "writer"}, {0, 2, 4, 6, 8}),
    ({"agent": "writer", "version": "2.0"}, {6, 8}),
    ({"model": "model-1"}, {1, 4, 7}),
    ({"tool": "search"}, {4}),
    ({"tag": "blue"}, {2, 7}),
    ({"user": "user-3"}, {3, 7}),
    ({"user": "guest"}, {2, 5}),
    ({"user": "guest", "tag": "red"}, {2}),
    ({"origin": "replay"}, {8}),
    ({"status": "error"}, {1, 2}),
    ({"key": "key-6"}, {6}),
    ({"baseline": "s1"}, {8}),
    ({"eligible": True}, {6, 7, 8}),
    ({"eligible": False, "status": "ok", "user": "user-0"}, {0, 4}),
    ({"since": 3 * HOUR, "until": 5 * HOUR}, {3, 4}),
    ({"until": 2 * HOUR}, {0, 1}),
    ({"since": 10**30}, set()),
    ({"since": -(10**30)}, set(range(9))),
    ({"least_tokens": 65}, {6, 7, 8}),
    ({"most_tokens": 15}, {0, 1}),
    ({"least_cost": 0.55}, {6, 7, 8}),
    ({"most_cost": 0.25}, {1, 2}),
    ({"least_cost": 0.0}, set(range(1, 9))),
    ({"agent": "none"}, set()),
    ({"agent": "writer' OR 1=1 --"}, set()),
    ({"user": "user-\0"}, set()),
    ({"text": "fox"}, set(range(9))),
    ({"text": "FOX 7"}, {7}),
    ({"text": "weather qui"}, set(range(9))),
    ({"text": "qui weather"}, set()),
    ({"text": "grosse number 3"}, {3}),
    ({"text": "fox", "tag": "red", "status": "ok"}, {7}),
    ({"text": "   "}, {*range(9), 99}),
]


@pytest.mark.parametrize("order", ["started", "updated", "cost"])
@pytest.mark.parametrize(("wanted", "fits"), FILTERS, ids=str)
def test_each_filter_finds_what_fits(filled: Store, wanted: dict[str, Any], fits: set[int], order: Order) -> None:
    expected = {"bare" if number == 99 else f"s{number}" for number in fits}
    assert set(ids(filled, order, **wanted)) == expected


def test_each_order_is_greatest_first_and_what_is_not_known_last(filled: Store) -> None:
    assert ids(filled, "started") == [*(f"s{number}" for number in range(8, -1, -1)), "bare"]
    assert ids(filled, "updated") == [*(f"s{number}" for number in range(9)), "bare"]
    assert ids(filled, "tokens") == [*(f"s{number}" for number in (8, 7, 6, 5, 4, 3, 2, 1, 0)), "bare"]
    assert ids(filled, "cost") == [*(f"s{number}" for number in range(8, 0, -1)), "s0", "bare"]
    assert ids(filled, "duration") == ["s8", "s5", "s2", "s7", "s4", "s1", "s6", "s3", "s0", "bare"]


@pytest.mark.parametrize("order", ["started", "updated", "duration", "tokens", "cost"])
@pytest.mark.parametrize("wanted", [Filter(), Filter(agent="planner"), Filter(text="fox")])
def test_pages_follow_each_other_without_gap_or_repetition(filled: Store, order: Order, wanted: Filter) -> None:
    whole = [one.id for one in filled.find("acme", wanted, order).sessions]
    found: list[str] = []
    cursor = None
    for _ in range(20):
        page = filled.find("acme", wanted, order, 2, cursor)
        found += [one.id for one in page.sessions]
        if (cursor := page.cursor) is None:
            break
    assert found == whole
    assert len(whole) >= 9


def test_a_page_is_not_shifted_by_what_comes_meanwhile(store: Store) -> None:
    store.save(derived(*(made(summary(f"s{number}", started=number // 4), number) for number in range(12))))
    page = store.find("acme", Filter(), limit=5)
    store.save(derived(made(summary("new", started=99), 50), made(summary("s0a", started=0), 51)))
    rest = store.find("acme", Filter(), limit=50, cursor=page.cursor)
    together = [one.id for one in (*page.sessions, *rest.sessions)]
    assert "new" not in together
    assert "s0a" in together
    assert len(set(together)) == len(together) == 13


@pytest.mark.parametrize(
    "cursor",
    ["", "x", "!!!", "é", "W10", "WyJzdGFydGVkIiwgMV0", "WyJzdGFydGVkIiwgImEiLCAiYiJd", "bnVsbA", "W" * 5000, "\0"],
)
def test_a_cursor_that_is_none_of_ours_is_told(filled: Store, cursor: str) -> None:
    with pytest.raises(ValueError, match="cursor"):
        filled.find("acme", Filter(), cursor=cursor)


def test_a_cursor_of_another_order_is_told(filled: Store) -> None:
    cursor = filled.find("acme", Filter(), "cost", 2).cursor
    with pytest.raises(ValueError, match="'cost'"):
        filled.find("acme", Filter(), "tokens", 2, cursor)


@pytest.mark.parametrize(
    "text",
    [
        '"',
        "'",
        "fox OR",
        "NEAR(fox",
        "fox*",
        "-fox",
        "a:b",
        "^fox",
        "(fox",
        "fox & | !",
        "\\",
        "fox\0",
        "<->",
        "\ud800",
    ],
)
def test_a_search_is_words_whatever_else_stands_in_it(filled: Store, text: str) -> None:
    found = ids(filled, text=text)
    assert found in ([], [f"s{number}" for number in range(8, -1, -1)])
    assert (found != []) == (text in {"fox*", "-fox", "^fox", "(fox", "fox & | !", "fox\0"})


def test_text_is_found_in_scripts_without_spaces_and_with_accents(store: Store) -> None:
    store.save(derived(made(summary("j"), 1, text="天気予報を見る"), made(summary("c"), 2, text="Čeština café")))
    assert ids(store, text="予報") == ["j"]
    assert ids(store, text="cestina CAF") == ["c"]


def test_the_text_of_the_last_revision_alone_is_searched(store: Store) -> None:
    store.save(derived(made(summary("s"), 1, text="alpha beta")))
    store.save(derived(made(summary("s", 2), 1, text="beta gamma")))
    assert (ids(store, text="alpha"), ids(store, text="gamma"), ids(store, text="beta")) == ([], ["s"], ["s"])


@pytest.mark.slow
def test_a_very_long_text_is_searched_as_far_as_there_is_room(store: Store) -> None:
    text = " ".join(f"word{number:07}" for number in range(200_000)) + " " + "z" * 100_000
    store.save(derived(made(summary("s"), 1, text=text)))
    assert ids(store, text="word0000123") == ["s"]


@pytest.mark.slow
def test_of_many_sessions_each_way_to_ask_finds_the_same(store: Store) -> None:
    """More than are looked up one by one, so that lists are walked in their order."""
    many = [
        summary(
            f"s{number:04}",
            started=number * 7 % 1000,
            cost=number * 3 % 11 / 10,
            agents=("planner", "writer") if number % 3 else ("planner",),
            status="error" if number % 100 == 7 else "ok",
            input_tokens=number % 5,
        )
        for number in range(2500)
    ]
    store.save(derived(*(made(one, number, text=f"common n{number % 9}") for number, one in enumerate(many))))
    asked: list[tuple[dict[str, Any], Callable[[int, Summary], bool]]] = [
        ({"status": "ok"}, lambda number, one: one.status == "ok"),
        ({"agent": "planner", "status": "ok"}, lambda number, one: one.status == "ok"),
        ({"agent": "writer", "text": "common"}, lambda number, one: "writer" in one.agents),
        ({"text": "common n3"}, lambda number, one: number % 9 == 3),
        ({"text": "comm", "status": "error"}, lambda number, one: one.status == "error"),
        ({"least_tokens": 1, "origin": "recorded"}, lambda number, one: bool(one.input_tokens)),
        ({"since": 5, "until": 900, "least_cost": 1.0}, lambda number, one: number * 3 % 11 == 10),
    ]
    for wanted, fits in asked:
        fitting = [one for number, one in enumerate(many) if fits(number, one)]
        if "since" in wanted:
            fitting = [one for one in fitting if 5 <= (one.started or 0) < 900]
        by_started = sorted(fitting, key=lambda one: (one.started or 0, one.id), reverse=True)
        by_cost = sorted(fitting, key=lambda one: (one.cost or 0.0, one.id), reverse=True)
        assert ids(store, "started", **wanted) == [one.id for one in by_started[:100]]
        assert ids(store, "cost", **wanted) == [one.id for one in by_cost[:100]]
        page = store.find("acme", Filter(**wanted), "cost", 40)
        rest = store.find("acme", Filter(**wanted), "cost", 30, page.cursor).sessions if page.cursor else ()
        assert [*page.sessions, *rest] == by_cost[:70]


def test_facets_count_sessions_greatest_first(store: Store) -> None:
    fill(store)
    facets = store.facets("acme")
    assert facets["agent"] == (("planner", 9), ("writer", 5))
    assert facets["version"] == (("1.0", 5), ("2.0", 4))
    assert facets["tag"] == (("green", 7), ("blue", 2), ("red", 2))
    assert facets["tool"] == (("search", 1),)
    assert facets["origin"] == (("recorded", 9), ("replay", 1))
    assert facets["status"] == (("ok", 8), ("error", 2))
    assert "user" not in facets
    store.save(derived(made(summary("s4", 2, agents=("writer",), status="error"), 4)))
    store.erase("acme", frozenset({"s2"}))
    facets = store.facets("acme")
    assert (facets["agent"], facets["tool"]) == ((("planner", 7), ("writer", 4)), ())
    assert facets["status"] == (("ok", 7), ("error", 2))


def test_values_of_any_length_and_kind_are_kept_and_found(store: Store) -> None:
    long, odd = "x" * 100_000, "a\0b\ud800c 🎉"
    one = summary("s", user=long, key=odd, agents=(long, odd), started=2**70, ended=-(2**70), cost=float("inf"))
    store.save(derived(made(one, 1)))
    for field, value in (("user", long), ("agent", long), ("agent", odd), ("key", odd)):
        wanted: dict[str, Any] = {field: value}
        assert ids(store, **wanted) == ["s"]
    assert ids(store, agent="x" * 99_999) == []
    assert store.session("acme", "s") == (one, b"{}")


@pytest.mark.slow
def test_of_a_session_the_newest_reports_are_kept_by_number_and_size(store: Store) -> None:
    for number in range(KEPT_REPORTS + 3):
        store.add_report("acme", Report(f"r{number:04}", "s", number, "PASS", b"{}"))
    store.add_report("acme", Report("another", "t", 0, "PASS", b"{}"))
    newest = [f"r{number:04}" for number in range(KEPT_REPORTS + 2, 2, -1)]
    assert [one.id for one in store.reports("acme", "s")] == newest
    for number in range(5):
        document = os.urandom(KEPT_REPORTS_SIZE // 4)
        store.add_report("acme", Report(f"large{number}", "s", 9000 + number, "PASS", document))
    assert [one.id for one in store.reports("acme", "s")] == ["large4", "large3", "large2"]
    assert len(store.reports("acme", "t")) == 1


def test_reports_are_read_newest_first_and_the_same_id_replaces(store: Store) -> None:
    first, second = Report("r1", "s", 1, "FAIL", b"{1}"), Report("r2", "s", 2, "PASS", b"{2}")
    for one in (first, second, Report("r3", "t", 3, "PASS", b"{3}"), replace(first, verdict="PASS")):
        store.add_report("acme", one)
    assert store.reports("acme", "s") == (second, replace(first, verdict="PASS"))
    assert store.reports("acme", "u") == store.reports("other", "s") == ()


# -- keeping house ---------------------------------------------------------------------------------------------------

MARKER = "uniquemarkerofaperson"


def test_nothing_is_left_of_what_was_erased_and_it_does_not_come_back(home: Home, store: Store) -> None:
    told = f"{MARKER} said something"
    mine = [segment(number, range(3), body=f"{MARKER} {number}".encode() * 300) for number in (1, 2)]
    store.append([*mine, segment(3, range(3), body=b"another")])
    for number in range(50):
        store.save(derived(made(summary(f"o{number}"), 100 + number, text=f"other text {number}")))
    for revision in (1, 2):
        one = summary("s", revision, user=MARKER, name=told, opening=told, agents=(MARKER,), key=MARKER)
        document = os.urandom(5000) + told.encode() * revision
        named = {trace(1): frozenset({MARKER})}
        store.save(derived(made(one, 1, 2, document=document, text=told), names=named))
    store.add_report("acme", Report("r", "s", 1, "PASS", told.encode()))
    assert home.holds(MARKER)
    receipt = store.erase("acme", frozenset({"s", "unknown"}))
    assert receipt == Receipt(sessions=1, revisions=2, traces=2, items=6, reports=1)
    assert not home.holds(MARKER)
    assert (ids(store, text=MARKER), ids(store, user=MARKER), store.session("acme", "s")) == ([], [], None)
    assert MARKER not in dict(store.facets("acme")["agent"])
    # A late delivery, and one that was being read.
    answer = store.append([*mine, segment(1, range(7, 9)), segment(3, range(3, 4))])
    assert answer.new == 1
    assert kept(store, 1) == kept(store, 2) == []
    assert kept(store, 3) == [item(number) for number in range(4)]
    with pytest.raises(Conflict):
        store.save(derived(made(summary("s"), 1, 3)))
    assert len(ids(store)) == 50
    assert store.erase("acme", frozenset({"s"})) == Receipt()


def test_what_was_erased_while_somebody_reads_is_gone_after_upkeep(tmp_path: Path) -> None:
    home = Home(f"sqlite:///{tmp_path}/store.db", None, tmp_path)
    store = home.open()
    store.append([segment(1, range(2), body=MARKER.encode()), segment(2, range(2))])
    store.save(derived(made(summary("s"), 1, text=MARKER)))
    backup = store.dump()
    next(backup)
    assert store.erase("acme", frozenset({"s"})).items == 2
    assert store.append([segment(2, range(3))]).new == 1
    rest = [value for entry in backup for value in entry.values]
    assert MARKER.encode() in rest
    store.upkeep()
    assert not home.holds(MARKER)
    store.close()


def test_records_without_a_trace_are_taken_after_an_erasure_too(store: Store) -> None:
    nobody = Segment("acme", NO_TRACE, "logs", (b"a" * 16,), b"b", 1)
    store.append([nobody])
    store.save(derived(Made(summary("s"), b"{}", "", frozenset({NO_TRACE}))))
    assert store.erase("acme", frozenset({"s"})).items == 1
    assert store.append([nobody]).new == 1


def test_sessions_expire_by_the_last_that_came_oldest_first_and_in_steps(store: Store) -> None:
    moments = []
    for number in range(6):
        store.append([segment(number, range(2))])
        moments.append(time.time_ns())
        if number != 4:  # of which no session is made
            store.save(derived(made(summary(f"s{number}"), number, text=f"word{number}"), marks={number: FAR}))
    store.append([segment(0, range(5, 6))])  # so that the first is not read, and young
    oldest = store.oldest()
    assert oldest is not None
    assert oldest <= moments[0]
    assert store.expire(moments[4], 2) == Receipt(sessions=2, revisions=2, traces=2, items=4)
    assert ids(store) == ["s5", "s3", "s0"]
    assert store.expire(moments[4], 10) == Receipt(sessions=1, revisions=1, traces=2, items=4)
    assert store.expire(moments[4], 10) == Receipt()
    assert kept(store, 4) == []
    assert len(kept(store, 0)) == 3
    # What expired may come again: nobody asked for it to be forgotten.
    assert store.append([segment(1, range(2))]).new == 2


def test_a_trace_expires_with_the_last_of_its_sessions(store: Store) -> None:
    store.append([segment(1, range(2))])
    store.save(derived(made(summary("a"), 1), made(summary("b"), 1, 2), marks={1: FAR}))
    store.append([segment(2, range(2))])
    store.save(derived(marks={2: FAR}, same=frozenset({"b"})))
    arrived = store.oldest()
    assert arrived is not None
    assert store.expire(arrived + 1, 10) == Receipt(sessions=1, revisions=1)
    assert len(kept(store, 1)) == 2
    assert store.expire(FAR, 10) == Receipt(sessions=1, revisions=1, traces=2, items=4)


def test_upkeep_gives_freed_space_back(store: Store) -> None:
    for number in range(20):
        store.append([segment(number, range(2), body=os.urandom(200_000))])
    full = store.size()
    assert full.items == 40
    assert full.live > 4_000_000
    assert store.expire(FAR, 100).items == 40
    assert store.size().live < 1_000_000
    store.upkeep()
    assert store.size().disk < full.disk / 4


def test_size_counts_what_is_there(store: Store) -> None:
    assert (store.size().items, store.size().sessions, store.oldest(), store.tenants()) == (0, 0, None, ())
    store.append([segment(1, range(3)), segment(2, range(4))], [Refusal("zeta", 1, "p", "r")])
    store.save(derived(made(summary("s"), 1), marks={1: FAR}))
    size = store.size()
    assert (size.items, size.traces, size.sessions, size.pending) == (7, 2, 1, 1)
    assert 0 < size.live <= size.disk
    assert store.tenants() == ("acme", "zeta")


def test_a_store_is_there_again_when_it_is_opened_again(home: Home, store: Store) -> None:
    store.append([segment(1, range(3))])
    store.save(derived(made(summary("s"), 1, text="words")))
    store.close()
    again = home.open()
    assert (kept(again, 1), ids(again, text="words")) == ([item(0), item(1), item(2)], ["s"])
    again.ready()
    again.close()


def test_users_of_sessions_that_an_older_release_kept_are_found(home: Home) -> None:
    store = home.open()
    store.save(derived(*(made(summary(f"s{number}", user="ann"), number) for number in range(3))))
    store.close()
    as_before = (
        "ALTER TABLE session ADD COLUMN user_id TEXT",
        "UPDATE session SET user_id = 'ann' WHERE id <> 's1'",
        "CREATE INDEX session_of_user ON session (tenant, user_id, by_started, id) WHERE user_id IS NOT NULL",
        "DELETE FROM facet WHERE kind = 'user'",
        "DELETE FROM facet_count WHERE kind = 'user'",
        "DELETE FROM migration WHERE version >= 2",
    )
    home.run(as_before)
    again = home.open()
    assert ids(again, user="ann") == ["s2", "s0"]
    again.erase("acme", frozenset({"s0"}))
    assert ids(again, user="ann") == ["s2"]
    again.close()


def test_what_reads_and_writes_cost_does_not_grow_with_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    connect = sqlite3.connect

    def counted(*given: Any, **more: Any) -> sqlite3.Connection:
        made_connection: sqlite3.Connection = connect(*given, **more)
        made_connection.set_progress_handler(count, 20)
        return made_connection

    monkeypatch.setattr(sqlite3, "connect", counted)
    store = open_store(f"sqlite:///{tmp_path}/store.db")

    def keep(numbers: range) -> frozenset[bytes]:
        store.append([segment(number, range(3)) for number in numbers])
        claimed = {int.from_bytes(one.trace): one.mark for one in claim_all(store)}
        claimed = {number: mark for number, mark in claimed.items() if number in numbers}
        sessions = [made(summary(f"s{number}", agents=("a",), started=number), number) for number in numbers]
        names = {trace(number): frozenset({f"c{number // 2}"}) for number in numbers}
        store.save(derived(*sessions, marks=claimed, names=names))
        return frozenset(map(trace, numbers))

    def use(numbers: range) -> int:
        before = steps
        traces = keep(numbers)
        found = store.sessions_of("acme", traces)
        assert len(found) == len(numbers)
        assert len(store.related("acme", store.names("acme", traces))) == len(numbers)
        assert len(list(store.segments("acme", traces))) == len(numbers)
        assert len(store.heads("acme", found)) == len(numbers)
        assert len(store.find("acme", Filter(agent="a"), limit=5).sessions) == 5
        for one in found:
            assert (store.session("acme", one) is None, len(store.traces_of("acme", one))) == (False, 1)
        store.append([segment(number, range(5)) for number in numbers])
        store.pending("acme", FAR)
        return steps - before

    first = use(range(10))
    for start in range(100, 3000, 500):
        keep(range(start, start + 500))
    assert use(range(5000, 5010)) < 2 * first
    store.close()


# -- what goes wrong -------------------------------------------------------------------------------------------------


def run_threads(work: list[Callable[[], None]]) -> None:
    """Run all at once; what one raises is raised here."""
    failures: list[BaseException] = []

    def guarded(one: Callable[[], None]) -> None:
        try:
            one()
        except BaseException as error:  # noqa: BLE001 - raised below
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(one,)) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@pytest.mark.slow
def test_threads_and_processes_use_a_store_at_once(home: Home, store: Store) -> None:
    other = home.open()  # as another process would
    done = threading.Event()

    def append(which: Store, first: int) -> None:
        for number in range(30):
            # Each adds to traces of its own and to shared ones, and delivers something that another delivers too.
            shared = [segment(one, range(first + number, first + number + 1)) for one in (4, 3, 2, 1)]
            # All make the last one at the same time.
            late = [segment(9, range(number, number + 3)), segment(100 + number, range(2))]
            which.append([segment(first + number, range(2)), *shared, *late])

    def read(which: Store) -> None:
        while not done.is_set():
            kept(which, 1)
            which.find("acme", Filter(agent="a", text="word"))
            which.size()

    def save(which: Store, name: str) -> None:
        for number in range(1, 20):
            which.save(derived(made(summary(name, number, agents=("a",)), 1, 2, 3, text=f"word {number}")))
            which.claim(FAR, 0, 5)

    def write() -> None:
        try:
            run_threads(
                [
                    lambda: append(store, 1000),
                    lambda: append(store, 2000),
                    lambda: append(other, 3000),
                    lambda: save(other, "s"),
                ]
            )
        finally:
            done.set()

    run_threads([write, lambda: read(store), lambda: read(other)])
    other.close()
    assert len(kept(store, 1)) == 90
    assert sorted(kept(store, 9)) == [item(number) for number in range(32)]
    assert store.size().items == 3 * 30 * 2 + 4 * 90 + 32 + 30 * 2
    assert ids(store, text="word 19", agent="a") == ["s"]


def test_an_erasure_beside_appends_leaves_nothing(home: Home, store: Store) -> None:
    other = home.open()
    for round_number in range(5):
        name, number = f"s{round_number}", 10 + round_number
        store.append([segment(number, range(1))])
        store.save(derived(made(summary(name), number)))
        started = threading.Event()

        def append(number: int = number, started: threading.Event = started) -> None:
            for first in range(1, 40):
                other.append([segment(number, range(first, first + 1))])
                started.set()

        def erase(name: str = name, started: threading.Event = started) -> None:
            started.wait()
            assert store.erase("acme", frozenset({name})).sessions == 1

        run_threads([append, erase])
        assert kept(store, number) == []
    other.close()
    assert store.size().items == 0


APPENDING = """
import sys
from spanreel_collector.stores.opening import open_store, shown
from spanreel_collector.stores.records import Segment
store = open_store(sys.argv[1])
for number in range(100_000):
    body = number.to_bytes(4, "big") * 2000
    items = tuple((number * 10 + one).to_bytes(12, "big") for one in range(10))
    store.append([Segment("acme", (number % 7).to_bytes(16, "big"), "traces", items, body, 1)])
    print(number, flush=True)
"""


@pytest.mark.slow
def test_what_was_acknowledged_survives_a_kill(home: Home) -> None:
    for attempt in range(3):
        words = [sys.executable, "-c", APPENDING, home.url]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(20 + attempt * 31):
                process.stdout.readline()
            process.send_signal(signal.SIGKILL)
            acknowledged = 20 + attempt * 31 + len(process.stdout.read().splitlines()) - 1
    store = home.open()
    found = {one for number in range(7) for one in kept(store, number)}
    assert found >= {item(number) for number in range(acknowledged * 10)}
    assert len(found) % 10 == 0
    assert store.append([segment(3, range(30, 40))]).known == 10
    store.close()


FILLING = """
import resource, sys
from spanreel_collector.stores.opening import open_store, shown
from spanreel_collector.stores.records import Segment
from spanreel_collector.stores.store import StoreError
store = open_store(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, resource.RLIM_INFINITY))
acknowledged = 0
try:
    for number in range(1000):
        store.append([Segment("acme", bytes(16), "traces", (number.to_bytes(12, "big"),), bytes(50_000), 1)])
        acknowledged += 1
except StoreError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store.ready()
number = 1_000_000
store.append([Segment("acme", bytes(16), "traces", (number.to_bytes(12, "big"),), bytes(50_000), 1)])
kept = [one for _, found in store.segments("acme", frozenset({bytes(16)})) for one in found.items]
print(acknowledged, len(kept))
"""


def test_a_full_disk_is_told_and_what_was_acknowledged_stays(tmp_path: Path) -> None:
    words = [sys.executable, "-c", FILLING, f"sqlite:///{tmp_path}/store.db"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    told, counts = done.stdout.splitlines() or [done.stderr] * 2
    assert str(tmp_path / "store.db") in told
    acknowledged, found = map(int, counts.split())
    assert 10 < acknowledged == found - 1 < 100


def test_a_store_without_one_of_its_tables_is_not_ready(home: Home, store: Store) -> None:
    store.ready()
    home.run(["DROP TABLE report"])
    for ask in (store.ready, lambda: store.reports("acme", "s")):
        with pytest.raises(StoreError) as told:
            ask()
        assert "table" in told.value.reason


def test_a_store_that_a_newer_release_brought_up_to_date_meanwhile_is_not_ready(home: Home, store: Store) -> None:
    home.run(["INSERT INTO migration (version, at) VALUES (999, 0)"])
    with pytest.raises(StoreError, match="another release: its schema is 999"):
        store.ready()


def test_a_file_of_which_a_page_is_damaged_is_not_ready_once_it_was_met(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/store.db")
    for number in range(300):
        store.append([segment(number, range(1), body=b"marker-%03d " % number * 20)])
    store.close()
    file = tmp_path / "store.db"
    content = bytearray(file.read_bytes())
    size = int.from_bytes(content[16:18], "big")
    page = content.index(b"marker-150") // size * size
    content[page : page + size] = b"\xff" * size
    file.write_bytes(content)
    store = open_store(f"sqlite:///{tmp_path}/store.db")
    store.ready()
    with pytest.raises(StoreError, match="malformed; keep the file, and restore a backup into another"):
        list(store.segments("acme", frozenset(map(trace, range(300)))))
    with pytest.raises(StoreError) as told:
        store.ready()
    assert told.value.reason == "database disk image is malformed; keep the file, and restore a backup into another"
    store.close()


@pytest.mark.parametrize("replaced", [False, True])
def test_nothing_is_acknowledged_that_would_go_to_a_file_without_a_name(replaced: bool, tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/store.db")
    store.append([segment(1, range(3))])
    (tmp_path / "store.db").rename(tmp_path / "moved.db")
    if replaced:
        open_store(f"sqlite:///{tmp_path}/store.db").close()
    for ask in (store.ready, lambda: store.append([segment(1, range(5))])):
        with pytest.raises(StoreError, match="its file was removed, or replaced"):
            ask()
    store.close()


@pytest.mark.slow
def test_a_database_that_takes_no_writes_is_not_ready_and_strangers_are_told_no_names(cluster: Cluster) -> None:
    url = cluster.new_database()
    store = open_store(url)
    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    with psycopg.connect(cluster.url("postgres"), autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on".encode())
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
    with pytest.raises(StoreError) as told:
        store.ready()
    assert "the store in PostgreSQL (" in str(told.value)
    assert told.value.reason == "the database says ReadOnlySqlTransaction"
    store.close()


@pytest.mark.slow
def test_a_database_that_is_dropped_is_told_without_its_name(cluster: Cluster) -> None:
    url = cluster.new_database()
    store = open_store(url)
    with psycopg.connect(cluster.url("postgres"), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {psycopg.conninfo.conninfo_to_dict(url)['dbname']} WITH (FORCE)".encode())
    with pytest.raises(StoreError) as told:
        store.ready()
    assert told.value.reason == "the database cannot be reached"
    store.close()


@pytest.mark.slow
def test_a_database_that_is_stopped_is_told_and_used_again_when_it_is_back(cluster: Cluster) -> None:
    store = open_store(cluster.new_database())
    store.append([segment(1, range(3))])
    cluster.stop()
    try:
        for ask in (lambda: store.append([segment(1, range(5))]), lambda: ids(store)):
            with pytest.raises(StoreError, match="the store in PostgreSQL"):
                ask()
    finally:
        cluster.start()
    store.ready()
    assert store.append([segment(1, range(5))]).new == 2
    assert len(kept(store, 1)) == 5
    store.close()


def test_a_store_of_a_newer_release_is_refused(home: Home, store: Store) -> None:
    store.close()
    sql = "INSERT INTO migration (version, at) VALUES (999, 0)"
    if home.cluster is None:
        import sqlite3

        with sqlite3.connect(home.folder / "store.db") as file:
            file.execute(sql)
        file.close()
    else:
        with psycopg.connect(home.url, options="-c search_path=spanreel") as connection:
            connection.execute(sql)
    from spanreel.errors import SettingsError

    with pytest.raises(SettingsError, match="of a newer release"):
        home.open()


def test_two_may_make_a_store_at_once(home: Home) -> None:
    opened: list[Store] = []
    run_threads([lambda: opened.append(home.open()) for _ in range(4)])
    for one in opened:
        one.ready()
        one.close()
    assert len(opened) == 4


def test_a_user_of_the_database_who_may_not_make_the_schema_is_told_what_to_do(cluster: Cluster) -> None:
    from spanreel.errors import SettingsError

    url = cluster.new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE ROLE guest LOGIN")
    with pytest.raises(SettingsError, match="CREATE SCHEMA spanreel AUTHORIZATION"):
        open_store(url.replace("postgres@", "guest@"))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA spanreel AUTHORIZATION guest")
    store = open_store(url.replace("postgres@", "guest@"))
    store.ready()
    store.close()


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("sqlite:////var/lib/store.db", "sqlite:////var/lib/store.db"),
        ("postgresql://me:" + "hidden" + "@host:5433/db?sslmode=require", "postgresql://host:5433/db"),
        ("postgresql://me:" + "hidden" + "@[host/db", "postgresql://..."),
        ("postgresql:///db", "postgresql:///db"),
    ],
)
def test_a_url_is_shown_without_what_is_secret_in_it(url: str, seen: str) -> None:
    assert shown(url) == seen
