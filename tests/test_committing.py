"""The thread that commits: together, within bounds, each told what became of theirs."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from otlp_doors import doors, request, span
from spanreel_collector.receiver.committing import Committer, QueueFull, QueueLimits
from spanreel_collector.stores.records import Appended, Refusal, Segment
from spanreel_collector.stores.store import StoreError


def segment(number: int, size: int = 10) -> Segment:
    return Segment("default", number.to_bytes(16, "big"), "traces", (number.to_bytes(12, "big"),), bytes(size), size)


class Gate:
    """A store that waits until it is let on, and knows what was appended together."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.calls: list[int] = []

    def append(self, segments: Sequence[Segment], refusals: Sequence[Refusal]) -> Appended:
        self.calls.append(len(segments))
        assert self.open.wait(60)
        if any(each.size == 13 for each in segments):
            raise ValueError("a segment that no store can take")
        return Appended(len(segments), 0)


def waits(gate: Gate, calls: int) -> None:
    until = time.monotonic() + 60
    while len(gate.calls) < calls:
        assert time.monotonic() < until
        time.sleep(0.005)


def test_what_waits_is_committed_together() -> None:
    gate = Gate()
    committer = Committer(gate.append).start()
    first = committer.submit([segment(0)])
    waits(gate, 1)
    others = [committer.submit([segment(number)]) for number in range(1, 6)]
    assert not first.done()
    gate.open.set()
    assert first.result(60) == Appended(1, 0)
    assert sum(other.result(60).new for other in others) == 5
    assert gate.calls == [1, 5]
    assert committer.close(60)
    assert committer.waiting == 0


def test_that_the_last_commit_failed_is_known_until_one_does_not() -> None:
    full = [StoreError("the store '/somewhere': the disk is full", "the disk is full")]

    def append(segments: Sequence[Segment], refusals: Sequence[Refusal]) -> Appended:
        if full:
            raise full.pop()
        return Appended(len(segments), 0)

    committer = Committer(append).start()
    assert committer.trouble is None
    with pytest.raises(StoreError):
        committer.submit([segment(0)]).result(60)
    assert committer.trouble is not None
    assert committer.trouble.reason == "the disk is full"
    committer.submit([segment(1)]).result(60)
    assert committer.close(60)
    assert committer.trouble is None


def test_no_more_than_a_bound_is_committed_together() -> None:
    gate = Gate()
    committer = Committer(gate.append, QueueLimits(together=10_000)).start()
    done = [committer.submit([segment(0)])]
    waits(gate, 1)
    done += [committer.submit([segment(number, 4_000)]) for number in range(1, 6)]
    gate.open.set()
    for each in done:
        each.result(60)
    assert gate.calls == [1, 1, 1, 1, 1, 1]
    committer.close(60)


def test_a_full_queue_takes_no_more_until_there_is_room() -> None:
    gate = Gate()
    committer = Committer(gate.append, QueueLimits(waiting=50_000)).start()
    large = committer.submit([segment(1, 200_000)])  # larger than all that may wait, but alone
    with pytest.raises(QueueFull, match="bytes wait"):
        committer.submit([segment(2)])
    gate.open.set()
    large.result(60)
    until = time.monotonic() + 60
    while committer.waiting:
        assert time.monotonic() < until
    assert committer.submit([segment(2)]).result(60) == Appended(1, 0)
    committer.close(60)


def test_closing_commits_what_waits_and_takes_no_more() -> None:
    gate = Gate()
    committer = Committer(gate.append).start()
    done = [committer.submit([segment(number)]) for number in range(5)]
    closing = threading.Thread(target=committer.close)
    closing.start()
    with pytest.raises(QueueFull, match="stopping"):
        while True:  # until the thread has begun to close
            done.append(committer.submit([segment(9)]))
            time.sleep(0.001)
    gate.open.set()
    closing.join(60)
    assert all(each.done() for each in done)
    assert sum(gate.calls) == len(done)


def test_closing_says_when_it_was_not_done_in_time() -> None:
    gate = Gate()
    committer = Committer(gate.append).start()
    committer.submit([segment(1)])
    assert not committer.close(0.05)
    gate.open.set()
    assert committer.close(60)


def test_what_no_store_can_take_costs_only_itself() -> None:
    gate = Gate()
    committer = Committer(gate.append).start()
    first = committer.submit([segment(0)])
    waits(gate, 1)
    good, bad, other = (committer.submit([segment(number, size)]) for number, size in ((1, 10), (2, 13), (3, 10)))
    gate.open.set()
    assert first.result(60) == good.result(60) == other.result(60) == Appended(1, 0)
    with pytest.raises(StoreError):
        bad.result(60)
    assert gate.calls == [1, 3, 1, 1, 1]
    committer.close(60)


def test_a_sender_is_told_to_wait_when_the_queue_is_full(tmp_path: Path) -> None:
    gate = Gate()
    with doors(tmp_path, append=gate.append, queue=QueueLimits(waiting=3_000)) as door, ThreadPoolExecutor(4) as pool:
        first = pool.submit(door.post, request(span(1)))
        waits(gate, 1)
        second = pool.submit(door.post, request(span(2)))
        until = time.monotonic() + 60
        while door.receiver.committer.waiting < 2_000:
            assert time.monotonic() < until
        refused = door.post(request(span(3)))
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        gate.open.set()
        assert {first.result(60).status_code, second.result(60).status_code} == {200}


def test_bodies_that_arrive_at_the_same_time_are_bounded_together(tmp_path: Path) -> None:
    with doors(tmp_path, reading=10_000) as door:
        refused = door.post(request(span(1, attributes={"x": "y" * 20_000})))
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert door.post(request(span(1))).status_code == 200
