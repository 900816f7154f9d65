"""The acceptance cases of replay that hold so far, end to end: recorded, exported, converted, played by the same code.

The numbers are those of section E of the specification of replay.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import agents
import httpx2
import pytest

import spanreel
from kinds import KINDS, Scene, calls, hand_written, record, script
from spanreel.errors import ReplayFailed, ReplayRefused
from spanreel.replay.verdict import Verdict
from wire_server import completion

Kind = Callable[[Scene], str]

ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


def status(order: str) -> str:
    """Pending twice, then shipped."""
    ran.append("status")
    return "shipped" if ran.count("status") > 2 else "pending"


def weather(city: str, days: int = 1) -> dict[str, Any]:
    """The weather."""
    ran.append(f"weather {city}")
    return {"city": city, "days": days}


def refund(order: str, amount: float = 10.0) -> str:
    """Pay back."""
    ran.append("refund")
    return f"refunded {amount}"


def play(session: Any, kind: Kind, scene: Scene) -> Any:
    """Replay an agent; its verdict, with nothing run and nothing asked."""
    ran.clear()
    scene.asked.clear()
    with spanreel.replay(session, check=False) as playing:
        kind(scene)
    assert scene.asked == []
    assert ran == []
    return playing.report


SIX = script(
    *(calls((f"call_{n}", ("weather", "refund")[n % 2], ({"city": "Rome"}, {"order": "A"})[n % 2])) for n in range(5)),
    completion("Done."),
)


def test_01_an_unchanged_agent_passes_offline(kind: Kind, tmp_path: Path) -> None:
    scene = Scene(SIX, [weather, refund])
    session = record(lambda: kind(scene), tmp_path)
    assert ran.count("refund") == 2
    report = play(session, kind, scene)
    assert report.verdict is Verdict.PASS
    assert (report.model_calls.matched, report.tool_calls.matched) == (6, 5)


def test_03_polling_gets_its_answers_in_their_order(kind: Kind, tmp_path: Path) -> None:
    poll = [calls((f"call_{number}", "status", {"order": "A"})) for number in range(3)]
    scene = Scene(script(*poll, completion("It has shipped.")), [status])
    session = record(lambda: kind(scene), tmp_path)
    results = [call.result for run in session.runs for call in run.tool_calls()]
    assert results == ["pending", "pending", "shipped"]
    assert play(session, kind, scene).verdict is Verdict.PASS


def test_04_parallel_tools_in_any_order_get_their_own_results(kind: Kind, tmp_path: Path) -> None:
    both = calls(("call_1", "weather", {"city": "Paris"}), ("call_2", "weather", {"city": "Rome"}))
    scene = Scene(script(both, completion("Fine.")), [weather])
    session = record(lambda: kind(scene), tmp_path)
    report = play(session, kind, scene)
    assert report.verdict is Verdict.PASS
    assert report.order == ()


def test_05_identical_parallel_calls_are_told_apart_by_their_ids(kind: Kind, tmp_path: Path) -> None:
    both = calls(("call_1", "status", {"order": "A"}), ("call_2", "status", {"order": "A"}))
    scene = Scene(script(both, calls(("call_3", "status", {"order": "A"})), completion("Fine.")), [status])
    session = record(lambda: kind(scene), tmp_path)
    assert play(session, kind, scene).verdict is Verdict.PASS


def test_06_an_inserted_call_is_a_miss_that_is_named(tmp_path: Path) -> None:
    def one() -> str:
        ran.append("one")
        return "one"

    def new() -> str:
        ran.append("new")
        return "new"

    scene = Scene(script(completion("Done.")), first=[one])
    session = record(lambda: hand_written(scene), tmp_path)
    report = play(session, hand_written, replace(scene, first=[new, one]))
    assert report.verdict is Verdict.FAIL
    assert report.misses == 1
    assert "'new'" in report.reasons[0]


def test_07_a_removed_call_is_reported_unused(tmp_path: Path) -> None:
    def one() -> str:
        ran.append("one")
        return "one"

    def two() -> str:
        ran.append("two")
        return "two"

    scene = Scene(script(completion("Done.")), first=[one, two])
    session = record(lambda: hand_written(scene), tmp_path)
    report = play(session, hand_written, replace(scene, first=[two]))
    assert report.verdict is Verdict.FAIL
    assert len(report.unused) == 1
    assert "'one'" in report.unused[0]


@pytest.mark.parametrize(
    ("recorded", "live", "same"),
    [
        ({"order": "A"}, {"order": "A", "amount": 10.0}, True),
        ({"order": "A", "amount": 2}, {"order": "A", "amount": 2.0}, True),
        ({"amount": 2, "order": "A"}, {"order": "A", "amount": 2}, True),
        ({"order": "A", "amount": True}, {"order": "A", "amount": 1}, False),
        ({"order": "A"}, {"order": "A "}, False),
    ],
)
def test_08_equivalent_arguments_match_and_others_do_not(
    recorded: dict[str, Any], live: dict[str, Any], same: bool, tmp_path: Path
) -> None:
    tool = spanreel.tool()(refund)

    @spanreel.run(agent="direct")
    def work(arguments: dict[str, Any]) -> None:
        Scene(script(completion("x"))).model().client().chat.completions.create(model="m", messages=[])
        tool(**asked)

    asked = recorded
    session = record(lambda: work({}), tmp_path)
    asked = live
    with spanreel.replay(session, check=False) as playing:
        work({})
    assert playing.report is not None
    assert (playing.report.verdict is Verdict.PASS) is same


def test_09_a_forgotten_tool_is_never_run(kind: Kind, tmp_path: Path) -> None:
    scene = Scene(script(completion("Nothing to do.")), [refund])
    session = record(lambda: kind(scene), tmp_path)
    assert play(session, kind, scene).verdict is Verdict.PASS


def test_10_tools_called_from_threads_and_processes_are_served_or_denied(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"

    @spanreel.tool(side_effect=True)
    def pay(way: str) -> str:
        with ledger.open("a") as file:
            file.write(way + "\n")
        return way

    process = False

    @spanreel.run(agent="threads")
    def work() -> list[str]:
        Scene(script(completion("x"))).model().client().chat.completions.create(model="m", messages=[])
        done: list[str] = []
        thread = threading.Thread(target=lambda: done.append(pay("thread")))
        thread.start()
        thread.join()
        with ThreadPoolExecutor(1) as pool:
            done.append(pool.submit(pay, "pool").result())
        done.append(asyncio.run(asyncio.to_thread(pay, "to_thread")))
        if process:
            with ProcessPoolExecutor(1) as processes:
                done.append(processes.submit(pay_in_child, str(ledger)).result())
        return done

    session = record(work, tmp_path)
    assert ledger.read_text().split() == ["thread", "pool", "to_thread"]
    with spanreel.replay(session) as playing:
        assert work() == ["thread", "pool", "to_thread"]
    assert playing.verdict is Verdict.PASS
    process = True
    with pytest.raises(RuntimeError, match="process"), spanreel.replay(session, check=False) as playing:
        work()
    assert ledger.read_text().split() == ["thread", "pool", "to_thread"]
    assert playing.verdict is Verdict.FAIL


def pay_in_child(ledger: str) -> str:
    """In a process of a pool: a tool that must not run there while a replay is active."""

    @spanreel.tool(side_effect=True)
    def pay() -> str:
        with Path(ledger).open("a") as file:
            file.write("process\n")
        return "process"

    try:
        return pay()
    except BaseException as error:  # noqa: BLE001 - a ReplayStop does not travel between processes
        raise RuntimeError(str(error)) from None


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # urllib drops its socket
def test_11_a_client_that_is_not_known_is_stopped_before_a_byte_leaves(tmp_path: Path) -> None:
    scene = Scene(script(completion("x")))
    session = record(lambda: hand_written(scene), tmp_path)

    @spanreel.run(agent="hand")
    def work(question: str) -> str:
        with urllib.request.urlopen("http://127.0.0.1:9/v1/chat/completions", data=b"{}") as answer:
            return str(answer.read())

    with spanreel.replay(session, check=False) as playing:
        work("Go.")
    assert playing.report is not None
    assert playing.verdict is Verdict.NOT_INTERCEPTED
    assert "127.0.0.1:9" in "\n".join(playing.report.reasons)
    gc.collect()
    with pytest.raises(ReplayFailed, match="NOT INTERCEPTED"), spanreel.replay(session):
        pass


def test_11_a_recording_without_calls_is_refused(tmp_path: Path) -> None:
    @spanreel.run(agent="empty")
    def work() -> None: ...

    session = record(work, tmp_path)
    with pytest.raises(ReplayRefused), spanreel.replay(session):
        work()


@pytest.mark.parametrize("streams_now", [True, False])
def test_17_a_stream_is_played_as_it_was_and_a_plain_caller_gets_the_same_message(
    streams_now: bool, tmp_path: Path
) -> None:
    def work(streamed: bool) -> Any:
        client = Scene(lambda _body: None).model().client()
        asked: Any = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
        if not streamed:
            return client.chat.completions.create(**asked).choices[0].message.content
        return [chunk.to_dict() for chunk in client.chat.completions.create(**asked, stream=True)]

    made: list[Any] = []
    session = record(lambda: made.append(work(True)), tmp_path)
    with spanreel.replay(session) as playing:
        played = work(streams_now)
    assert playing.verdict is Verdict.PASS
    assert played == (made[0] if streams_now else "Hello.")


def failing(order: str) -> str:
    """Times out once."""
    ran.append("failing")
    if ran.count("failing") == 1:
        raise TimeoutError("no answer")
    return "found"


def test_18_a_tool_s_error_comes_again_and_its_retry_is_served(kind: Kind, tmp_path: Path) -> None:
    twice = [calls((f"call_{number}", "failing", {"order": "A"})) for number in range(2)]
    scene = Scene(script(*twice, completion("Found.")), [failing])
    session = record(lambda: kind(scene), tmp_path)
    first, second = (call for run in session.runs for call in run.tool_calls())
    assert first.error is not None
    # pydantic-ai tells the model of a failure only where the tool asks for another try.
    assert first.error.type in ("TimeoutError", "pydantic_ai.exceptions.ModelRetry")
    assert second.result == "found"
    assert play(session, kind, scene).verdict is Verdict.PASS


class OutOfStockError(Exception):
    """An error of the application, with a constructor of its own."""

    def __init__(self, item: str, left: int) -> None:
        super().__init__(f"{item}: {left} left")


def test_18_an_error_of_the_application_is_caught_as_its_own_class(tmp_path: Path) -> None:
    @spanreel.tool()
    def buy(item: str) -> None:
        ran.append("buy")
        raise OutOfStockError(item, 0)

    @spanreel.run(agent="shop")
    def work() -> str:
        Scene(script(completion("x"))).model().client().chat.completions.create(model="m", messages=[])
        try:
            buy("book")
        except OutOfStockError as error:
            return str(error)
        return "bought"

    session = record(work, tmp_path)
    ran.clear()
    with spanreel.replay(session):
        assert work() == "book: 0 left"
    assert ran == []


def test_18_a_provider_s_errors_come_again_without_a_sleep(kind: Kind, tmp_path: Path) -> None:
    statuses = [429, 500, 200]

    def busy(_body: dict[str, Any]) -> Any:
        status = statuses.pop(0)
        if status == 200:
            return completion("At last.")
        headers = {"retry-after-ms": "1"}
        return httpx2.Response(status, json={"error": {"message": "busy", "type": "server"}}, headers=headers)

    scene = Scene(busy)
    session = record(lambda: kind(scene), tmp_path)
    (call,) = (call for run in session.runs for call in run.model_calls())
    assert [attempt.status for attempt in call.attempts] == [429, 500, 200]
    assert len([turn for run in session.runs for turn in run.turns]) == 1
    started = time.monotonic()
    assert play(session, kind, scene).verdict is Verdict.PASS
    assert time.monotonic() - started < 3


def test_19_sub_agents_that_call_the_same_tool_get_what_is_theirs(tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        done = [message for message in body["messages"] if message["role"] == "tool"]
        if body["model"] == "gpt-helper":
            return completion("Helped.") if done else calls(("call_9", "status", {"order": "A"}))
        if done:
            return completion("Done.")
        return calls(("call_1", "ask_ann", {"input": "go"}), ("call_2", "ask_bob", {"input": "go"}))

    def work() -> None:
        scene = Scene(answer)
        agents.set_tracing_disabled(True)
        agents.set_default_openai_api("chat_completions")
        agents.set_default_openai_client(scene.model().async_client(), use_for_tracing=False)
        tool = agents.function_tool(status)
        helpers = [agents.Agent(name=name, model="gpt-helper", tools=[tool]) for name in ("ann", "bob")]
        boss = agents.Agent(
            name="boss", model="gpt-boss", tools=[one.as_tool(f"ask_{one.name}", "Ask.") for one in helpers]
        )
        asyncio.run(agents.Runner.run(boss, "Go."))

    session = record(work, tmp_path)
    assert sorted(run.path for run in session.runs) == ["root", "root/ann#0", "root/bob#0"]
    ran.clear()
    with spanreel.replay(session) as playing:
        work()
    assert playing.verdict is Verdict.PASS
    assert ran == []


def test_a_changed_prompt_fails_with_the_place_and_both_texts(kind: Kind, tmp_path: Path) -> None:
    scene = Scene(script(completion("Hi.")))
    session = record(lambda: kind(scene), tmp_path)
    report = play(session, kind, replace(scene, instructions="Be long."))
    assert report.verdict is Verdict.FAIL
    assert "/messages/0/parts/0/content" in report.reasons[0]
    assert "'Be brief.'" in report.reasons[0]
    assert "'Be long.'" in report.reasons[0]


def test_a_handoff_replays(tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        return completion("Written.") if body["model"] == "gpt-writer" else calls(("c", "transfer_to_writer", {}))

    def work() -> None:
        agents.set_tracing_disabled(True)
        agents.set_default_openai_api("chat_completions")
        agents.set_default_openai_client(Scene(answer).model().async_client(), use_for_tracing=False)
        writer = agents.Agent(name="writer", model="gpt-writer")
        asyncio.run(agents.Runner.run(agents.Agent(name="boss", model="gpt-boss", handoffs=[writer]), "Go."))

    session = record(work, tmp_path)
    with spanreel.replay(session) as playing:
        work()
    assert playing.verdict is Verdict.PASS
