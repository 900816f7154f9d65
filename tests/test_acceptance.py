"""The acceptance cases of replay, 1 to 13: recorded, exported, converted, played by the same code, each kind of agent.

What an agent's own code does beside the model, it does in `Scene.before`, inside of the run.
"""

from __future__ import annotations

import asyncio
import importlib
import threading
import urllib.request
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import agents
import pytest

import kinds
import spanreel
from acceptance import CASES, SHOWN, case
from conftest import KINDS
from golden.foreign import clerks
from kinds import Kind, Scene, record, script
from loopback import offline
from spanreel.errors import ReplayFailed, ReplayRefused
from spanreel.replay.judging.verdict import Report, Verdict
from spanreel.session import Session, ToolCall
from test_foreign_replays import recorded as recorded_by
from wire_server import calls, completion

pytestmark = pytest.mark.slow

ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


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


def tagged(order: str, tags: list[str] | None = None) -> str:
    """Look up by tags."""
    ran.append("tagged")
    return "found"


def play(session: Session, kind: Kind, scene: Scene, **more: Any) -> Report:
    """Replay an agent; its report, with nothing run, reached or asked."""
    ran.clear()
    report = kinds.play(session, kind, scene, **more)
    assert ran == []
    return report


def tool_calls(session: Session) -> list[ToolCall]:
    return [call for run in session.runs for call in run.tool_calls()]


def swapped(session: Session) -> Session:
    """As if the first two tool calls had been executed the other way round."""
    changed = session.model_copy(deep=True)
    one, other = tool_calls(changed)[:2]
    one.started_at, one.ended_at, other.started_at, other.ended_at = (
        other.started_at,
        other.ended_at,
        one.started_at,
        one.ended_at,
    )
    return changed


SIX = script(
    *(calls((f"call_{n}", ("weather", "refund")[n % 2], ({"city": "Rome"}, {"order": "A"})[n % 2])) for n in range(5)),
    calls(("call_5", "weather", {"city": "Oslo"})),
    completion("Done."),
)


@case(1)
def test_01_an_unchanged_agent_passes_offline(kind: Kind, tmp_path: Path) -> None:
    scene = Scene(SIX, [weather, refund])
    session = record(lambda: kind(scene), tmp_path)
    assert ran.count("refund") == 2
    assert len(scene.asked) == 7
    report = play(session, kind, scene)
    assert report.verdict is Verdict.PASS
    assert (report.model_calls.matched, report.tool_calls.matched) == (7, 6)
    assert (report.model_calls.live, report.tool_calls.live) == (0, 0)


RECORDERS = ("openinference", "genai", "openllmetry")
OF_PYDANTIC_AI = ("openinference", "pydantic_ai", "logfire")
"""Who records its tools; the others see its client only (docs/foreign-recordings.md)."""


@case(2)
def test_02_one_agent_recorded_by_others_replays_alike(kind: Kind) -> None:
    clerk = {"hand_written": "openai_loop"}.get(kind.__name__, kind.__name__)
    asked = set()
    clerks.RAN.clear()
    for recorder in OF_PYDANTIC_AI if kind is kinds.pydantic_ai else RECORDERS:
        session = recorded_by(clerk, recorder)
        with offline(), spanreel.replay(session) as playing:
            assert clerks.CLERKS[clerk]("http://127.0.0.1:9/v1") == clerks.ANSWER
        assert playing.verdict is Verdict.PASS
        assert len(tool_calls(session)) == 3
        asked.add(tuple((call.name, str(call.arguments)) for call in tool_calls(session)))
    assert len(asked) == 1
    assert clerks.RAN == []


@case(3)
def test_03_polling_gets_its_answers_in_their_order(kind: Kind, tmp_path: Path) -> None:
    poll = [calls((f"call_{number}", "status", {"order": "A"})) for number in range(3)]
    scene = Scene(script(*poll, completion("It has shipped.")), [status])
    session = record(lambda: kind(scene), tmp_path)
    assert [call.result for call in tool_calls(session)] == ["pending", "pending", "shipped"]
    assert play(session, kind, scene).verdict is Verdict.PASS


@case(3)
def test_03_a_fourth_poll_is_a_miss_and_not_the_last_answer_again(kind: Kind, tmp_path: Path) -> None:
    got: list[str] = []
    poll = spanreel.tool()(status)
    scene = Scene(script(completion("Done.")), before=lambda: got.extend(poll("A") for _ in range(3)))
    session = record(lambda: kind(scene), tmp_path)
    got.clear()
    more = replace(scene, before=lambda: got.extend(poll("A") for _ in range(4)))
    report = play(session, kind, more)
    assert got == ["pending", "pending", "shipped"]
    assert report.verdict is Verdict.FAIL
    assert report.tool_calls.matched == 3
    assert "is made once more than it was recorded" in report.reasons[0]


@case(4)
def test_04_parallel_tools_that_ran_the_other_way_round_get_their_own_results(kind: Kind, tmp_path: Path) -> None:
    both = calls(("call_1", "weather", {"city": "Paris"}), ("call_2", "weather", {"city": "Rome"}))
    scene = Scene(script(both, completion("Fine.")), [weather])
    session = record(lambda: kind(scene), tmp_path)
    for one in (session, swapped(session)):
        report = play(one, kind, scene)
        assert report.verdict is Verdict.PASS
        assert report.order == ()


@case(5)
def test_05_equal_parallel_calls_are_told_apart_by_their_ids(kind: Kind, tmp_path: Path) -> None:
    both = calls(("call_1", "status", {"order": "A"}), ("call_2", "status", {"order": "A"}))
    scene = Scene(script(both, calls(("call_3", "status", {"order": "A"})), completion("Fine.")), [status])
    session = swapped(record(lambda: kind(scene), tmp_path))
    for result, call in zip(("first", "second"), tool_calls(session), strict=False):
        call.result = result
        part = next(
            part
            for message in session.messages
            for part in message.parts
            if part.get("type") == "tool_call_response" and part["id"] == call.call_id
        )
        part["response"] = result
    report = play(session, kind, scene)
    # Had they been exchanged, the model's next request would differ.
    assert (report.model_calls.matched, report.tool_calls.matched) == (3, 3)
    # A decorated function is not told the model's id of the call: served in their order, and flagged.
    by_hand = kind is kinds.hand_written
    assert (report.verdict, bool(report.ambiguous)) == ((Verdict.PASS, Verdict.INCONCLUSIVE)[by_hand], by_hand)


@case(5)
def test_05_without_ids_equal_calls_at_one_time_are_flagged(kind: Kind, tmp_path: Path) -> None:
    check = spanreel.tool()(status)

    def both() -> None:
        ran.extend(["status", "status"])  # the next is pending no more
        check("A")
        check("A")

    scene = Scene(script(completion("Fine.")), before=both)
    session = record(lambda: kind(scene), tmp_path)
    one, other = tool_calls(session)
    one.result = "pending"
    other.started_at, other.ended_at = one.started_at, one.ended_at
    again = replace(scene, before=lambda: (check("A"), check("A")))
    report = play(session, kind, again)
    assert report.verdict is Verdict.INCONCLUSIVE
    assert report.tool_calls.matched == 2
    assert len(report.ambiguous) >= 1


def one() -> str:
    ran.append("one")
    return "one"


def two() -> str:
    ran.append("two")
    return "two"


def new() -> str:
    ran.append("new")
    return "new"


def each(*tools: Callable[[], str]) -> Callable[[], None]:
    """Code of an agent that calls these tools by itself."""
    made = [spanreel.tool()(tool) for tool in tools]

    def call() -> None:
        for tool in made:
            tool()

    return call


@case(6)
def test_06_an_inserted_call_is_a_miss_that_is_named(kind: Kind, tmp_path: Path) -> None:
    scene = Scene(script(completion("Done.")), before=each(one, two))
    session = record(lambda: kind(scene), tmp_path)
    report = play(session, kind, replace(scene, before=each(new, one, two)))
    assert report.verdict is Verdict.FAIL
    assert report.misses == 1
    assert "'new'" in report.reasons[0]


@case(6)
def test_06_where_a_miss_is_told_to_the_agent_the_others_are_exact(kind: Kind, tmp_path: Path) -> None:
    def inserted() -> None:
        got.append(spanreel.tool()(new)())
        each(one, two)()

    got: list[str] = []
    scene = Scene(script(completion("Done.")), before=each(one, two))
    session = record(lambda: kind(scene), tmp_path)
    told = {"tool_policy": {"default": {"type": "history", "on_miss": "error_result"}}}
    report = play(session, kind, replace(scene, before=inserted), changes=told)
    assert "not in the recording" in str(got)
    assert report.verdict is Verdict.INCONCLUSIVE
    assert (report.tool_calls.matched, report.tiers["exact"], len(report.unused)) == (2, 3, 0)
    assert sum("'new'" in reason for reason in report.reasons) == 1


@case(7)
def test_07_a_removed_call_is_reported_unused(kind: Kind, tmp_path: Path) -> None:
    scene = Scene(script(completion("Done.")), before=each(one, two))
    session = record(lambda: kind(scene), tmp_path)
    report = play(session, kind, replace(scene, before=each(two)))
    assert report.verdict is Verdict.FAIL
    assert len(report.unused) == 1
    assert "'one'" in report.unused[0]
    assert report.tool_calls.matched == 1


Called = Callable[[Callable[..., Any]], Any]


@case(8)
@pytest.mark.parametrize(
    ("recorded", "live", "same"),
    [
        (lambda f: f("A", ["x"]), lambda f: f(order="A", tags=["x"]), True),
        (lambda f: f("A"), lambda f: f("A", tags=None), True),
        (lambda f: f(tags=["x"], order="A"), lambda f: f(order="A", tags=["x"]), True),
        (lambda f: f("A", [2]), lambda f: f("A", [2.0]), True),
        (lambda f: f("A", ["x", "y"]), lambda f: f("A", ("x", "y")), True),
        (lambda f: f("A", [True]), lambda f: f("A", [1]), False),
        (lambda f: f("A"), lambda f: f("A "), False),
        (lambda f: f("A", ["x", "y"]), lambda f: f("A", ["y", "x"]), False),
    ],
    ids=["by_name", "default", "key_order", "whole_float", "tuple", "bool_is_no_number", "blank", "list_order"],
)
def test_08_equivalent_arguments_match_and_others_do_not(
    kind: Kind, recorded: Called, live: Called, same: bool, tmp_path: Path
) -> None:
    tool = spanreel.tool()(tagged)
    scene = Scene(script(completion("Done.")), before=lambda: recorded(tool))
    session = record(lambda: kind(scene), tmp_path)
    report = play(session, kind, replace(scene, before=lambda: live(tool)))
    assert (report.verdict is Verdict.PASS) is same, report.reasons
    assert report.misses == (not same)


@case(9)
def test_09_a_forgotten_tool_is_served_or_denied_and_never_run(kind: Kind, tmp_path: Path) -> None:
    asked = calls(("call_1", "refund", {"order": "A"}))
    scene = Scene(script(asked, completion("Paid.")), [weather, refund])
    session = record(lambda: kind(scene), tmp_path)
    policy = {"tool_policy": {"tools": {"weather": {"type": "passthrough"}}}}
    assert play(session, kind, scene, changes=policy).verdict is Verdict.PASS
    pay = spanreel.tool()(refund)
    report = play(session, kind, replace(scene, before=lambda: pay("B")), changes=policy)
    assert report.verdict is Verdict.FAIL


@case(10)
def test_10_tools_called_from_threads_and_pools_are_served(kind: Kind, tmp_path: Path) -> None:
    @spanreel.tool(side_effect=True)
    def pay(way: str) -> str:
        ran.append(way)
        return way

    done: list[str] = []

    def work() -> None:
        done.clear()
        thread = threading.Thread(target=lambda: done.append(pay("thread")))
        thread.start()
        thread.join()
        with ThreadPoolExecutor(1) as pool:
            done.append(pool.submit(pay, "pool").result())
            done.append(pool.submit(lambda: asyncio.run(asyncio.to_thread(pay, "to_thread"))).result())

    scene = Scene(script(completion("Done.")), before=work)
    session = record(lambda: kind(scene), tmp_path)
    assert ran == ["thread", "pool", "to_thread"]
    assert play(session, kind, scene).verdict is Verdict.PASS
    assert done == ["thread", "pool", "to_thread"]


@case(10)
def test_10_a_tool_in_a_pool_of_processes_is_denied(kind: Kind, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    said: list[str] = []

    def work() -> None:
        with ProcessPoolExecutor(1) as processes:
            try:
                processes.submit(pay_in_child, str(ledger)).result()
            except RuntimeError as error:
                said.append(str(error))

    scene = Scene(script(completion("Done.")))
    session = record(lambda: kind(scene), tmp_path)
    report = play(session, kind, replace(scene, before=work))
    assert not ledger.exists()
    assert "process" in said[0]
    assert report.verdict is Verdict.NOT_INTERCEPTED  # although the agent itself has swallowed it
    assert "in another process, would have gone past the replay" in report.reasons[0]


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


@case(11)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # urllib drops its socket
def test_11_a_client_that_is_not_known_is_stopped_before_a_byte_leaves(kind: Kind, tmp_path: Path) -> None:
    def ask() -> None:
        with urllib.request.urlopen(f"{scene.url}/chat/completions", data=b"{}") as answer:
            answer.read()

    scene = Scene(script(completion("x")))
    session = record(lambda: kind(scene), tmp_path)
    scene.asked.clear()
    scene.before = ask
    with pytest.raises(ReplayFailed, match="NOT INTERCEPTED") as failed, spanreel.replay(session):
        kind(scene)
    assert scene.url.split("/")[2] in str(failed.value)
    assert scene.asked == []


@case(11)
def test_11_a_recording_without_calls_is_refused_and_so_is_a_replay_without_any(kind: Kind, tmp_path: Path) -> None:
    scene = Scene(script(completion("x")))
    session = record(lambda: kind(scene), tmp_path)
    with pytest.raises(ReplayFailed, match="no call reached the replay"), spanreel.replay(session):
        pass
    empty = session.model_copy(deep=True)
    for run in empty.runs:
        run.turns.clear()
    with pytest.raises(ReplayRefused, match="holds no call"), spanreel.replay(empty):
        kind(scene)


@case(12)
def test_12_a_side_effect_does_not_run_on_a_miss(kind: Kind, tmp_path: Path) -> None:
    pay = spanreel.tool(side_effect=True)(refund)
    scene = Scene(script(completion("Paid.")), before=lambda: pay("A", 10))
    session = record(lambda: kind(scene), tmp_path)
    changes = {"tool_policy": {"default": {"type": "history", "on_miss": "passthrough"}}}
    report = play(session, kind, replace(scene, before=lambda: pay("A", 20)), changes=changes)
    assert report.verdict is Verdict.FAIL
    assert "may not run: it changes something in the world" in report.reasons[0]


@case(13)
def test_13_another_model_is_asked_for_every_call_and_its_shorter_way_is_told(kind: Kind, tmp_path: Path) -> None:
    polls = [calls((f"call_{number}", "status", {"order": "A"})) for number in range(3)]
    scene = Scene(script(*polls, completion("It has shipped.")), [status])
    session = record(lambda: kind(scene), tmp_path)
    ran.clear()
    shorter = Scene(script(polls[0], completion("No idea.")), [status])
    with spanreel.replay(session, changes={"overrides": [{"model": "v2"}]}, check=False) as playing:
        kind(shorter)
    report = playing.report
    assert report is not None
    assert ran == []
    assert [b'"v2"' in body for body in shorter.asked] == [True, True]
    assert (report.model_calls.live, report.model_calls.matched, report.tool_calls.matched) == (2, 0, 1)
    assert len(report.unused) == 2
    assert report.tokens["live"]["input_tokens"] < report.tokens["recorded"]["input_tokens"]


def test_every_case_is_shown_for_every_kind_of_agent() -> None:
    for module in ("test_acceptance_frozen", "test_acceptance_redaction", "test_acceptance_crossing"):
        importlib.import_module(module)
    assert {number: SHOWN[number] for number in CASES} == {number: {*KINDS} for number in CASES}


@case(1)
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

    async def hand_over() -> None:
        async with scene.async_client() as client:
            boss, writer = (agents.OpenAIChatCompletionsModel(f"gpt-{name}", client) for name in ("boss", "writer"))
            agent = agents.Agent(name="boss", model=boss, handoffs=[agents.Agent(name="writer", model=writer)])
            await agents.Runner.run(agent, "Go.")

    agents.set_tracing_disabled(True)
    scene = Scene(answer)
    session = record(lambda: asyncio.run(hand_over()), tmp_path)
    with offline(), spanreel.replay(session) as playing:
        asyncio.run(hand_over())
    assert playing.verdict is Verdict.PASS
