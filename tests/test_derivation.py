"""Sessions out of stored segments: the same as `spanreel convert` makes, in whatever order and pieces spans come."""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import spanreel
from conftest import ROOT, cases
from deriving import TENANT, comparable, deriving, documents, open_at, requests_of, send, settle
from otel_collector import wait_until
from otlp_lines import GENAI, Span, request, said, span
from postgres import Cluster
from spanreel.conventions import BASELINE, ORIGIN
from spanreel.session_files import write_session
from spanreel_collector.conversion.convert import convert_files
from spanreel_collector.house import erase_session, erase_user
from spanreel_collector.service.derivation import Derivation
from spanreel_collector.service.reading_code import reading_code
from spanreel_collector.service.retelling import Job, Told, retell
from spanreel_collector.service.workshop import Closed, Unmade, Workshop, Workshops
from spanreel_collector.stores.opening import open_store
from spanreel_collector.stores.records import NO_TRACE, Filter, Receipt, Segment
from spanreel_collector.stores.store import Store, StoreError

pytestmark = pytest.mark.slow

GOLDEN = sorted(path for path in (ROOT / "tests" / "golden").glob("*.otlp.jsonl"))


def converted(paths: list[Path]) -> dict[str, dict[str, Any]]:
    sessions = convert_files(map(str, paths)).sessions
    return {session.id: comparable(json.loads(write_session(session))) for session in sessions}


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name.removesuffix(".otlp.jsonl"))
def test_sessions_are_those_that_convert_makes(path: Path, tmp_path: Path) -> None:
    store = open_at(tmp_path)
    for exported in requests_of([path]):
        send(store, exported)
    settle(deriving(store))
    assert documents(store) == converted([path])


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name.removesuffix(".otlp.jsonl"))
def test_sessions_that_grow_span_by_span_end_as_those_made_at_once(path: Path, tmp_path: Path) -> None:
    store = open_at(tmp_path)
    derivation = deriving(store)
    for exported in requests_of([path]):
        send(store, exported)
        settle(derivation)
    assert documents(store) == converted([path])


def test_sessions_of_the_shared_dumps_are_those_that_convert_makes(tmp_path: Path) -> None:
    different = []
    for case in sorted(cases("dialects").iterdir()):
        if case.name == "genai-openai-upload-refs":  # refers to files beside it, which a service does not have
            continue
        paths = [case / name for name in ("traces.jsonl", "logs.jsonl") if (case / name).exists()]
        folder = tmp_path / case.name
        folder.mkdir()
        store = open_at(folder)
        for exported in requests_of(paths):
            send(store, exported)
        settle(deriving(store))
        if documents(store) != converted(paths):
            different.append(case.name)
        store.close()
    assert different == []


# -- what changes, and what does not ---------------------------------------------------------------------------------


def chat(number: int, question: str, trace: str, **attributes: Any) -> Span:
    told = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-5",
        "gen_ai.input.messages": json.dumps([said("user", question)]),
        "gen_ai.output.messages": json.dumps([said("assistant", f"answer to {question}")]),
    }
    return span(number, "chat gpt-5", {**told, **attributes}, trace=trace)


def trace_of(number: int) -> str:
    return f"{number:032x}"


def only_of(store: Store, key: str) -> Any:
    (summary,) = store.find(TENANT, Filter(key=key)).sessions
    return summary


def only(store: Store) -> Any:
    (summary,) = store.find(TENANT, Filter()).sessions
    return summary


def test_the_traces_of_a_conversation_are_one_session_whenever_they_come(tmp_path: Path) -> None:
    store = open_at(tmp_path)
    published: list[tuple[str, str, int]] = []
    derivation = deriving(store, published)
    for number in range(1, 5):
        talk = {"gen_ai.conversation.id": "talk"}
        send(store, request(chat(number, f"{number}?", trace_of(number), **talk), scope=GENAI))
        settle(derivation)
    summary = only(store)
    assert (summary.revision, summary.runs) == (4, 4)
    assert published == [(TENANT, summary.id, number) for number in (1, 2, 3, 4)]
    assert len(store.traces_of(TENANT, summary.id)) == 4


def test_a_conversation_that_goes_on_is_made_once_with_what_it_had(tmp_path: Path) -> None:
    store = open_at(tmp_path)
    jobs: list[tuple[bool, int]] = []

    def counted(job: Job) -> Told:
        told = retell(job)
        jobs.append((job.survey, sum(len(group.traces) for group in told.groups)))
        return told

    derivation = Derivation(store, counted, lambda *_: None, 0)
    for number in (1, 2, 3):
        talk = {"gen_ai.conversation.id": "talk"}
        send(store, request(chat(number, f"{number}?", trace_of(number), **talk), scope=GENAI))
        settle(derivation)
    late = chat(4, "late", trace_of(1), **{"gen_ai.conversation.id": "talk"})
    send(store, request(late, scope=GENAI))
    settle(derivation)
    # Of a new trace it is asked what it belongs to; of one that is known, that is known.
    assert jobs == [(True, 1), (False, 1), (True, 1), (False, 2), (True, 1), (False, 3), (False, 3)]
    assert (only(store).revision, only(store).model_calls) == (4, 4)


def test_what_is_kept_to_join_traces_grows_with_them_and_not_with_their_square(tmp_path: Path) -> None:
    store = open_at(tmp_path)
    derivation = deriving(store)
    for number in range(1, 31):
        told = {"gen_ai.conversation.id": "talk", "gen_ai.response.id": f"response-{number}"}
        send(store, request(chat(number, f"{number}?", trace_of(number), **told), scope=GENAI))
    settle(derivation)
    kept = [len(store.names(TENANT, frozenset({bytes.fromhex(trace_of(number))}))) for number in range(1, 31)]
    assert only(store).runs == 30
    assert max(kept) < 10


def test_a_span_that_joins_two_sessions_leaves_one(tmp_path: Path) -> None:
    store = open_at(tmp_path)
    derivation = deriving(store)
    for number in (1, 2):
        send(store, request(chat(number, f"{number}?", trace_of(number)), scope=GENAI))
    settle(derivation)
    assert len(store.find(TENANT, Filter()).sessions) == 2
    for number in (1, 2):
        talk = {"gen_ai.conversation.id": "talk"}
        send(store, request(chat(number + 10, "more?", trace_of(number), **talk), scope=GENAI))
    settle(derivation)
    summary = only(store)
    assert (summary.kind, summary.key, summary.model_calls) == ("conversation", "talk", 4)


def test_what_came_before_makes_no_new_revision(tmp_path: Path) -> None:
    store = open_at(tmp_path)
    published: list[tuple[str, str, int]] = []
    derivation = deriving(store, published)
    send(store, request(chat(1, "one?", trace_of(1)), scope=GENAI))
    settle(derivation)
    again = request(chat(1, "one?", trace_of(1)), scope=GENAI)
    again["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["kind"] = 3  # the same call, otherwise delivered
    send(store, again)
    settle(derivation)
    assert only(store).revision == 1
    assert len(published) == 1


def test_logs_of_no_known_dialect_and_no_trace_are_kept_and_cost_nothing(tmp_path: Path) -> None:
    store = open_at(tmp_path)
    record = {"timeUnixNano": "1", "body": {"stringValue": "hello"}}
    jobs: list[Job] = []

    def watched(job: Job) -> Told:
        jobs.append(job)
        return retell(job)

    derivation = Derivation(store, watched, lambda *_: None, 0)
    for number in range(3):
        logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": [{**record, "timeUnixNano": str(number)}]}]}]}
        send(store, logs)
        settle(derivation)
    assert jobs == []
    assert sum(len(one.items) for _, one in store.segments(TENANT, frozenset({NO_TRACE}))) == 3


def test_a_user_is_erased_from_logs_of_no_trace_and_those_of_others_stay(tmp_path: Path) -> None:
    store = open_at(tmp_path)

    def log(number: int, user: str | None) -> dict[str, Any]:
        named = [{"key": "user.id", "value": {"stringValue": user}}] if user else []
        return {"timeUnixNano": str(number), "body": {"stringValue": f"of {user}"}, "attributes": named}

    users = ("ann", None, "bob", "ann", "Ann")
    records = [log(number, user) for number, user in enumerate(users)]
    send(store, {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]})
    settle(deriving(store))
    assert erase_user(store, "other", "ann") == Receipt()
    assert erase_user(store, TENANT, "ann").items == 2
    assert b"of ann" not in (tmp_path / "store.db").read_bytes() + (tmp_path / "store.db-wal").read_bytes()
    assert store.size().items == 3
    send(store, {"resourceLogs": [{"scopeLogs": [{"logRecords": [log(9, "ann")]}]}]})  # who comes again is welcome
    settle(deriving(store))
    assert store.size().items == 4
    assert erase_user(store, TENANT, "ann").items == 1


def test_a_user_whom_a_whole_process_names_is_erased_from_its_logs_of_no_trace(tmp_path: Path) -> None:
    store = open_at(tmp_path)
    whole = {"attributes": [{"key": "user.id", "value": {"stringValue": "ann"}}]}
    record = {"timeUnixNano": "1", "body": {"stringValue": "of ann"}}
    send(store, {"resourceLogs": [{"resource": whole, "scopeLogs": [{"logRecords": [record]}]}]})
    settle(deriving(store))
    assert erase_user(store, TENANT, "ann").items == 1
    assert store.size().items == 0


@pytest.mark.parametrize(("claim_seconds", "theirs", "revision"), [(0.0, 2, 2), (3600.0, 1, 3)], ids=["over", "stands"])
def test_another_who_saved_first_is_not_overwritten(
    claim_seconds: float, theirs: int, revision: int, tmp_path: Path
) -> None:
    store = open_at(tmp_path)
    send(store, request(chat(1, "one?", trace_of(1), **{"gen_ai.conversation.id": "talk"}), scope=GENAI))
    settle(deriving(store))
    other = open_at(tmp_path)

    def slow(job: Job) -> Told:
        told = retell(job)
        if other.find(TENANT, Filter()).sessions[0].revision == 1:
            send(other, request(chat(3, "three?", trace_of(3), **{"gen_ai.conversation.id": "talk"}), scope=GENAI))
            assert deriving(other).step() == theirs  # of what this one's claim leaves them
        return told

    send(store, request(chat(2, "two?", trace_of(2), **{"gen_ai.conversation.id": "talk"}), scope=GENAI))
    # This one is slower.
    settle(Derivation(store, slow, lambda *_: None, 0, claim_seconds=claim_seconds))
    summary = only(store)
    assert (summary.runs, summary.revision) == (3, revision)


def test_rebuilding_reads_again_what_another_release_read_and_old_revisions_stay(tmp_path: Path) -> None:
    store = open_at(tmp_path)

    def older(job: Job) -> Told:
        """Another release, which did not read what was asked."""
        spans = retell(job)
        groups = []
        for group in spans.groups:
            made = []
            for one in group.made:
                document = json.loads(one.document)
                document["runs"][0]["turns"][0]["model_call"]["input"] = []
                made.append(replace(one, document=json.dumps(document).encode()))
            groups.append(replace(group, made=tuple(made)))
        return replace(spans, groups=tuple(groups))

    for number in range(1, 4):
        send(store, request(chat(number, f"{number}?", trace_of(number)), scope=GENAI))
    settle(Derivation(store, older, lambda *_: None, 0, reader="0.0.1"))
    done: list[int] = []
    assert deriving(store).rebuild(done.append) == 3
    assert done == [3]
    for summary in store.find(TENANT, Filter()).sessions:
        assert summary.revision == 2
        assert [one.reader for one in store.revisions(TENANT, summary.id)] == [reading_code(), "0.0.1"]
        read = [store.session(TENANT, summary.id, revision) for revision in (1, 2)]
        assert [json.loads(one[1])["runs"][0]["turns"][0]["model_call"].get("input") for one in read if one] == [
            [],
            [0],
        ]
    assert deriving(store).rebuild(done.append) == 0


def test_rebuilding_everything_reads_each_conversation_once(tmp_path: Path) -> None:
    store = open_at(tmp_path)
    for number in range(1, 500):
        talk = {"gen_ai.conversation.id": "talk" if number % 10 == 0 else f"talk-{number}"}
        send(store, request(chat(number, f"{number}?", trace_of(number), **talk), scope=GENAI))
    settle(deriving(store))
    before = store.find(TENANT, Filter(), limit=500)
    read: list[int] = []

    def counted(job: Job) -> Told:
        told = retell(job)
        read.append(sum(len(group.traces) for group in told.groups))
        return told

    assert Derivation(store, counted, lambda *_: None, 0).rebuild(lambda _: None, everything=True) == 499
    assert sum(read) == 499
    assert store.find(TENANT, Filter(), limit=500) == before


def test_what_reads_is_named_by_its_release_and_by_what_it_is_made_of() -> None:
    release, _, fingerprint = reading_code().partition("+")
    assert release == spanreel.__version__
    assert re.fullmatch("[0-9a-f]{12}", fingerprint)


# -- whose ----------------------------------------------------------------------------------------------------------


def test_each_who_asked_in_a_session_is_a_user_of_it_and_erased_with_it(tmp_path: Path) -> None:
    store = open_at(tmp_path)
    talk = {"gen_ai.conversation.id": "talk"}
    send(store, request(chat(1, "one?", trace_of(1), **talk, **{"user.id": "ann"}), scope=GENAI))
    send(store, request(chat(2, "two?", trace_of(2), **talk, **{"user.id": "bob"}), scope=GENAI))
    send(store, request(chat(3, "other?", trace_of(3), **{"user.id": "ann"}), scope=GENAI))
    settle(deriving(store))
    (session,) = store.find(TENANT, Filter(user="bob")).sessions
    assert (session.user, session.users, session.key) == ("ann", ("ann", "bob"), "talk")
    read = store.session(TENANT, session.id)
    assert read is not None
    assert [run.get("user_id") for run in json.loads(read[1])["runs"]] == [None, "bob"]
    assert len(store.find(TENANT, Filter(user="ann")).sessions) == 2
    assert erase_user(store, TENANT, "bob") == Receipt(sessions=1, revisions=1, traces=2, items=2)
    assert [one.key for one in store.find(TENANT, Filter()).sessions] == [trace_of(3)]


def test_a_user_is_erased_from_traces_of_no_session_and_wherever_else_they_are_named(tmp_path: Path) -> None:
    store = open_at(tmp_path)
    plain = span(1, "GET /cart", {"user.id": "bob"}, trace=trace_of(1))
    send(store, request(plain, scope="http"))
    inner = span(3, "lookup", {"langfuse.trace.metadata.user_id": "bob"}, trace=trace_of(2), parent=2)
    send(store, request(chat(2, "two?", trace_of(2), **{"user.id": "ann"}), inner, scope=GENAI))
    send(store, request(chat(4, "four?", trace_of(4), **{"user.id": "bobby"}), scope=GENAI))
    settle(deriving(store))
    assert erase_user(store, TENANT, "bob") == Receipt(sessions=1, revisions=1, traces=2, items=3)
    assert [one.key for one in store.find(TENANT, Filter()).sessions] == [trace_of(4)]
    assert store.size().items == 1


def test_two_conversations_of_one_user_are_not_read_together(tmp_path: Path) -> None:
    store = open_at(tmp_path)
    derivation = deriving(store)
    for number in (1, 2):
        send(store, request(chat(number, f"{number}?", trace_of(number), **{"user.id": "ann"}), scope=GENAI))
        settle(derivation)
    read: list[int] = []

    def counted(job: Job) -> Told:
        told = retell(job)
        read.append(sum(len(group.traces) for group in told.groups))
        return told

    send(store, request(chat(3, "3?", trace_of(3), **{"user.id": "ann"}), scope=GENAI))
    settle(Derivation(store, counted, lambda *_: None, 0))
    assert read == [1, 1]  # what may join it to others, and then itself


def test_a_session_goes_with_its_replays(tmp_path: Path) -> None:
    store = open_at(tmp_path)
    send(store, request(chat(1, "one?", trace_of(1)), scope=GENAI))
    settle(deriving(store))
    original = only(store).id
    for number in (2, 3):
        baseline = original if number == 2 else only_of(store, trace_of(2)).id
        replayed = chat(number, "one?", trace_of(number), **{ORIGIN: "replay", BASELINE: baseline})
        send(store, request(replayed, scope="spanreel"))
        settle(deriving(store))
    send(store, request(chat(4, "four?", trace_of(4)), scope=GENAI))
    settle(deriving(store))
    assert erase_session(store, TENANT, original).sessions == 3
    assert only(store).key == trace_of(4)


# -- what fails ------------------------------------------------------------------------------------------------------


def test_a_trace_that_nothing_can_be_made_of_costs_only_itself_and_is_noted(tmp_path: Path) -> None:
    store = open_at(tmp_path)
    for number in range(1, 8):
        send(store, request(chat(number, "poison" if number == 5 else f"{number}?", trace_of(number)), scope=GENAI))

    def fragile(job: Job) -> Told:
        told = retell(job)
        if any("poison" in one.text for group in told.groups for one in group.made):
            raise Unmade("it broke")
        return told

    derivation = Derivation(store, fragile, lambda *_: None, 0)
    settle(derivation)
    assert len(store.find(TENANT, Filter()).sessions) == 6
    (refusal,) = store.refusals(TENANT)
    assert refusal.place == f"trace {trace_of(5)}"
    assert "it broke" in refusal.reason
    assert derivation.progress.failed == 1
    send(store, request(chat(15, "poison more", trace_of(5)), scope=GENAI))
    settle(deriving(store))
    assert len(store.find(TENANT, Filter()).sessions) == 7


def test_a_segment_that_cannot_be_read_costs_only_itself(tmp_path: Path) -> None:
    store = open_at(tmp_path)
    send(store, request(chat(1, "one?", trace_of(1)), scope=GENAI))
    store.append([Segment(TENANT, bytes.fromhex(trace_of(1)), "traces", (b"12345678",), b"no zstd", 10)])
    settle(deriving(store))
    assert only(store).model_calls == 1
    (refusal,) = store.refusals(TENANT)
    assert "cannot be read" in refusal.reason


def test_a_span_that_cannot_be_read_is_noted_once_however_often_its_session_is_made_again(tmp_path: Path) -> None:
    store = open_at(tmp_path)
    derivation = deriving(store)
    deep: dict[str, Any] = {"stringValue": "x"}
    for _ in range(60):
        deep = {"arrayValue": {"values": [deep]}}
    bad = chat(9, "deep", trace_of(1))
    bad["attributes"].append({"key": "deep", "value": deep})
    send(store, request(chat(1, "one?", trace_of(1)), bad, scope=GENAI))
    for number in range(2, 5):
        settle(derivation)
        send(store, request(chat(number, "more?", trace_of(1)), scope=GENAI))
    settle(derivation)
    assert len([one for one in store.refusals(TENANT) if "deep" in one.reason or "nested" in one.reason]) <= 1


def kill_who_reads(fifo: Path, workshop: Workshop) -> None:
    with fifo.open("wb"):  # waits for somebody who reads
        assert workshop.process is not None
        workshop.process.kill()


def test_a_workshop_that_hangs_or_dies_is_another_at_the_next_job(tmp_path: Path) -> None:
    job = Job(str(tmp_path / "none"), {}, 0)
    workshop = Workshop(60)
    with pytest.raises(Unmade, match="FileNotFoundError"):
        workshop.make(job)
    empty = tmp_path / "empty"
    empty.touch()
    assert workshop.make(replace(job, path=str(empty))) == Told(())
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)  # opening it waits for somebody who writes
    impatient = Workshop(0.5)
    with pytest.raises(Unmade, match="not done after"):
        impatient.make(replace(job, path=str(fifo)))
    assert workshop.process is not None
    threading.Thread(target=kill_who_reads, args=(fifo, workshop)).start()
    with pytest.raises(Unmade, match="ended with -9"):
        workshop.make(replace(job, path=str(fifo)))
    assert workshop.make(replace(job, path=str(empty))) == Told(())
    workshop.close()
    with pytest.raises(Closed):
        workshop.make(job)
    impatient.close()


def test_of_very_many_traces_several_hands_make_the_sessions_that_one_would(tmp_path: Path) -> None:
    def make(job: Job) -> Told:
        with suppress(IndexError):  # the first for each hand, which wait for each other
            meeting.pop().wait(60)
        return retell(job)

    told = []
    for hands in (1, 3):
        (tmp_path / str(hands)).mkdir()
        store = open_at(tmp_path / str(hands))
        for first in range(1, 900, 100):
            talks = range(first, first + 100)
            spans = (
                chat(number, f"{number}?", trace_of(number), **{"gen_ai.conversation.id": f"talk {number % 350}"})
                for number in talks
            )
            send(store, request(*spans, scope=GENAI))
        meeting = [threading.Barrier(hands)] * hands
        derivation = Derivation(store, make, lambda *_: None, 0, hands=hands)
        settle(derivation)
        assert (derivation.progress.failed, meeting) == (0, [])
        told.append(documents(store))
    # What joins traces is found out before they are dealt: no conversation is made by two of them.
    assert {one.revision for one in store.find(TENANT, Filter(), limit=500).sessions} == {1}
    assert len(told[0]) == 350
    assert told[0] == told[1]


def test_workshops_beside_the_first_end_when_nobody_needs_them(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)  # opening it waits for somebody who writes
    workshops = Workshops(2, 60, idle_seconds=0.2)
    workshops.open()
    told: list[Told] = []
    threads = [threading.Thread(target=lambda: told.append(workshops.make(Job(str(fifo), {}, 0)))) for _ in range(2)]
    for thread in threads:
        thread.start()
    wait_until(lambda: workshops.processes == 2)
    while len(told) < 2:
        with suppress(OSError):  # nobody reads at the moment
            os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
        time.sleep(0.05)
    wait_until(lambda: workshops.processes == 1)
    empty = tmp_path / "empty"
    empty.touch()
    assert workshops.make(Job(str(empty), {}, 0)) == Told(())
    workshops.close()
    assert workshops.processes == 0
    with pytest.raises(Closed):
        workshops.make(Job(str(empty), {}, 0))


def test_a_workshop_that_is_killed_costs_no_trace_its_session(tmp_path: Path) -> None:
    store = open_at(tmp_path)
    workshop = Workshop(60)
    deaths = 0

    def make(job: Job) -> Told:
        nonlocal deaths
        if not deaths:  # while it works
            deaths += 1
            fifo = tmp_path / "fifo"
            os.mkfifo(fifo)
            threading.Thread(target=kill_who_reads, args=(fifo, workshop)).start()
            return workshop.make(replace(job, path=str(fifo)))
        return workshop.make(job)

    derivation = Derivation(store, make, lambda *event: None, quiet_seconds=0)
    workshop.open()
    assert workshop.process is not None
    workshop.process.kill()  # while it does not
    workshop.process.wait()
    workshop.open()
    send(store, request(chat(1, "one?", trace_of(1)), scope=GENAI))
    settle(derivation)
    workshop.close()
    assert [one.key for one in store.find(TENANT, Filter()).sessions] == [trace_of(1)]
    assert store.refusals(TENANT) == ()


def test_text_that_no_encoding_can_hold_costs_nobody_else(tmp_path: Path) -> None:
    store = open_at(tmp_path)
    for number, words in enumerate(("half a pair: \ud83d", "nul: \x00", "fine"), 1):
        send(store, request(chat(number, words, trace_of(number)), scope=GENAI))
    settle(deriving(store))
    assert len(store.find(TENANT, Filter()).sessions) == 3
    assert len(store.find(TENANT, Filter(text="half pair")).sessions) == 1


def test_a_conversation_of_too_much_stays_as_it_was_and_others_go_on(tmp_path: Path) -> None:
    store = open_at(tmp_path)
    derivation = deriving(store)
    derivation.most_bytes = 20_000
    talk = {"gen_ai.conversation.id": "talk"}
    send(store, request(chat(1, "1?", trace_of(1), **talk), scope=GENAI))
    settle(derivation)
    for number in range(2, 20):
        send(store, request(chat(number, f"{number}? {'long ' * 200}", trace_of(number), **talk), scope=GENAI))
    send(store, request(chat(30, "other", trace_of(30)), scope=GENAI))
    for _ in range(5):
        derivation.step()
    known = {one.key: one.runs for one in store.find(TENANT, Filter()).sessions}
    assert known[trace_of(30)] == 1
    assert 1 <= known["talk"] < 19
    assert {one.place for one in store.refusals(TENANT)} == {
        f"trace {trace_of(number)}" for number in range(known["talk"] + 1, 20)
    }
    assert "more than 20000 bytes" in store.refusals(TENANT)[0].reason
    assert (store.size().items, store.size().pending) == (20, 0)
    # What was left out of it is erased with it.
    assert erase_session(store, TENANT, only_of(store, "talk").id).traces == 19
    assert store.size().items == 1


def test_what_was_claimed_while_the_store_goes_away_is_worked_on_when_it_is_back(cluster: Cluster) -> None:
    url = cluster.new_database()
    store = open_store(url)
    send(store, request(chat(1, "one?", trace_of(1)), scope=GENAI))
    gone = False

    def make(job: Job) -> Told:
        nonlocal gone
        if not gone:
            gone = True
            cluster.stop()
        return retell(job)

    derivation = Derivation(store, make, lambda *_: None, 0, claim_seconds=3600)
    try:
        with pytest.raises(StoreError):
            derivation.step()
    finally:
        cluster.start()
    deadline = time.monotonic() + 120
    while not store.find(TENANT, Filter()).sessions:
        assert time.monotonic() < deadline
        with suppress(StoreError):
            derivation.step()
    assert only(store).key == trace_of(1)
    store.close()
    cluster.give_back(url)


def test_what_expires_while_sessions_are_made_of_it_leaves_nothing(tmp_path: Path) -> None:
    store = open_at(tmp_path)

    def slow(job: Job) -> Told:
        told = retell(job)
        other = open_at(tmp_path)
        other.expire(2**62, 10)
        other.close()
        return told

    send(store, request(chat(1, "one?", trace_of(1)), scope=GENAI))
    Derivation(store, slow, lambda *_: None, 0).step()
    size = store.size()
    assert (size.items, size.traces, size.sessions, size.pending) == (0, 0, 0, 0)
    assert store.refusals(TENANT) == ()


def test_a_conversation_that_is_dear_rests_and_others_go_on(tmp_path: Path) -> None:
    store = open_at(tmp_path)
    derivation = Derivation(store, retell, lambda *_: None, 0, dear_seconds=0.0)
    talk = {"gen_ai.conversation.id": "talk"}
    send(store, request(chat(1, "1?", trace_of(1), **talk), scope=GENAI))
    settle(derivation)
    send(store, request(chat(2, "2?", trace_of(2), **talk), chat(11, "late", trace_of(1), **talk), scope=GENAI))
    send(store, request(chat(3, "other", trace_of(3)), scope=GENAI))
    for _ in range(3):
        derivation.step()
    known = {one.key: one.revision for one in store.find(TENANT, Filter()).sessions}
    assert known == {"talk": 1, trace_of(3): 1}
    assert store.size().pending == 2


def test_a_conversation_for_which_others_left_no_processor_is_not_dear(tmp_path: Path) -> None:
    def waiting(job: Job) -> Told:
        time.sleep(1.5)
        return retell(job)

    store = open_at(tmp_path)
    derivation = Derivation(store, waiting, lambda *_: None, 0, dear_seconds=1.0)
    for number in (1, 2):
        talk = {"gen_ai.conversation.id": "talk"}
        send(store, request(chat(number, f"{number}?", trace_of(number), **talk), scope=GENAI))
        derivation.step()
    assert (only_of(store, "talk").revision, store.size().pending) == (2, 0)


class Attempts(threading.Event):
    """Ends the work after five waits, the third of which brings a file back."""

    def __init__(self, moved: Path, back: Path) -> None:
        super().__init__()
        self.moved, self.back, self.waits = moved, back, 0

    def wait(self, timeout: float | None = None) -> bool:
        self.waits += 1
        if self.waits == 3:
            self.moved.rename(self.back)
        if self.waits == 5:
            self.set()
        return self.is_set()


def test_that_a_store_cannot_be_used_is_logged_once_and_once_when_it_can_be_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_at(tmp_path)
    (tmp_path / "store.db").rename(tmp_path / "moved.db")
    with caplog.at_level(logging.WARNING):
        deriving(store).run(Attempts(tmp_path / "moved.db", tmp_path / "store.db"))
    store.close()
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert said[0].startswith("sessions are not made while the store cannot be used: ")
    assert said[1] == "sessions are made again"
