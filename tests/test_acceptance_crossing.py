"""The acceptance cases of replay, 17 to 20: streams, errors, sub-agents, a batch; each kind of agent."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

import kinds
import spanreel
from acceptance import case
from kinds import Kind, Scene, record, record_all, script
from loopback import offline
from replaying import noted_naps
from spanreel import cli
from spanreel.replay.judging.verdict import Report, Verdict
from spanreel.session import Session
from spanreel.session_files import write_session
from wire_server import calls, completion

pytestmark = pytest.mark.slow

ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


def play(session: Session, kind: Kind, scene: Scene, **more: Any) -> Report:
    """Replay an agent; its report, with nothing run, reached or asked."""
    ran.clear()
    scene.heard.clear()
    report = kinds.play(session, kind, scene, **more)
    assert ran == []
    return report


def weather(city: str) -> str:
    """The weather."""
    ran.append(city)
    return f"sunny in {city}"


STREAMED = script(
    calls(("call_1", "weather", {"city": "Llanfairpwllgwyngyll"})), completion("It is sunny in Llanfairpwllgwyngyll.")
)


@case(17)
def test_17_a_stream_comes_in_the_same_pieces_with_the_same_tokens(kind: Kind, tmp_path: Path) -> None:
    scene = Scene(STREAMED, [weather], streams=True)
    session = record(lambda: kind(scene), tmp_path)
    heard = list(scene.heard)
    assert len(heard) > 8  # the arguments of the tool's call came in pieces too
    assert "".join(heard) == '{"city": "Llanfairpwllgwyngyll"}It is sunny in Llanfairpwllgwyngyll.'
    report = play(session, kind, scene)
    assert report.verdict is Verdict.PASS
    assert scene.heard == heard
    assert report.tokens["served"] == report.tokens["recorded"] == {"input_tokens": 18, "output_tokens": 4}


@case(17)
def test_17_who_asks_for_no_stream_gets_the_same_message(kind: Kind, tmp_path: Path) -> None:
    scene = Scene(STREAMED, [weather], streams=True)
    session = record(lambda: kind(scene), tmp_path)
    plain = replace(scene, streams=False)
    assert play(session, kind, plain).verdict is Verdict.PASS
    session = record(lambda: kind(plain), tmp_path)
    assert play(session, kind, scene).verdict is Verdict.PASS
    assert "".join(scene.heard).endswith("It is sunny in Llanfairpwllgwyngyll.")


@case(17)
def test_17_a_paced_stream_takes_the_time_it_took(kind: Kind, tmp_path: Path) -> None:
    scene = Scene(script(completion("word " * 20)), streams=True, gap=50)
    session = record(lambda: kind(scene), tmp_path)
    (call,) = (call for run in session.runs for call in run.model_calls())
    took = float(str(call.chunks[-1][0])) / 1000
    assert took > 0.5  # some twenty gaps of 50 ms
    started = time.monotonic()
    assert play(session, kind, scene, changes={"pace": True}).verdict is Verdict.PASS
    assert time.monotonic() - started > 0.9 * took  # a lower bound: the rest takes time too, more on a slow machine


def failing(order: str) -> str:
    """Times out once."""
    ran.append("failing")
    if ran.count("failing") == 1:
        raise TimeoutError("no answer")
    return "found"


@case(18)
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


@case(18)
def test_18_an_error_of_the_application_is_caught_as_its_own_class(kind: Kind, tmp_path: Path) -> None:
    @spanreel.tool()
    def buy(item: str) -> None:
        ran.append("buy")
        raise OutOfStockError(item, 0)

    def shop() -> None:
        try:
            buy("book")
        except OutOfStockError as error:
            caught.append(str(error))

    caught: list[str] = []
    scene = Scene(script(completion("Sold out.")), before=shop)
    session = record(lambda: kind(scene), tmp_path)
    assert play(session, kind, scene).verdict is Verdict.PASS
    assert caught == ["book: 0 left"] * 2


@case(18)
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
    with noted_naps() as naps:
        assert play(session, kind, scene).verdict is Verdict.PASS
    assert len(naps) >= 2
    assert max(naps) < 0.1  # the SDK would sleep for longer than that by itself


def status(order: str) -> str:
    """Another answer each time."""
    ran.append("status")
    return f"seen {len(ran)} times"


@case(19)
def test_19_sub_agents_that_call_the_same_tool_get_what_is_theirs(kind: Kind, tmp_path: Path) -> None:
    said: list[str] = []

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        done = [message["content"] for message in body["messages"] if message["role"] == "tool"]
        return completion(str(done[0])) if done else calls(("call_9", "status", {"order": "A"}))

    def ask() -> None:
        # An agent with a loop of its own has its own thread.
        with ThreadPoolExecutor(1) as pool:
            said.extend(pool.submit(kind, Scene(answer, [status], name=name)).result() for name in ("ann", "bob"))

    scene = Scene(script(completion("Done.")), name="boss", before=ask)
    session = record(lambda: kind(scene), tmp_path)
    assert sorted(run.path for run in session.runs) == ["root", "root/ann#0", "root/bob#0"]
    assert said == ["seen 1 times", "seen 2 times"]
    ran.clear()
    assert play(session, kind, scene).verdict is Verdict.PASS
    assert said[2:] == said[:2]


# -- a batch -----------------------------------------------------------------------------------------------------------

SESSIONS = 20
OTHERS: set[str] = set()
"""Questions at which the agent's code has changed since it was recorded."""
PLAYED: list[str] = []


def look(number: int) -> str:
    """Every session asks with the same id."""
    ran.append(str(number))
    return f"seen {number}"


def of_question(question: str) -> Scene:
    number = int(question.rpartition(" ")[2])
    answers = calls(("call_1", "look", {"number": number % 3})), completion(f"It is {number}.")
    return Scene(
        script(*answers), [look], question=question, instructions="Be long." if question in OTHERS else "Be brief."
    )


def entry(kind: str) -> Callable[[Any], str]:
    def play(question: Any) -> str:
        asked = question if isinstance(question, str) else question["messages"][0][1]
        PLAYED.append(asked)
        return str(getattr(kinds, kind)(of_question(asked)))

    return play


hand_written, openai_agents, langgraph, pydantic_ai = map(entry, [kind.__name__ for kind in kinds.KINDS])


@case(20)
@pytest.mark.filterwarnings("ignore:Support for class-based")  # LangGraph silences it itself, in one thread at a time
def test_20_a_batch_keeps_its_sessions_apart(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    PLAYED.clear()
    OTHERS.clear()
    folder = tmp_path / "sessions"
    folder.mkdir()
    questions = [f"question {number:02}" for number in range(SESSIONS)]
    for session in record_all(lambda: [kind(of_question(question)) for question in questions], tmp_path):
        (folder / f"{session.id}.json").write_text(write_session(session))
    ran.clear()
    OTHERS.add("question 13")
    words = ["replay", str(folder), "--entry", f"{__name__}:{kind.__name__}", "--jobs", "8", "--report"]
    with offline():
        assert cli.main([*words, str(tmp_path / "one")]) == 1
        assert cli.main([*words, str(tmp_path / "two")]) == 1
    assert ran == []
    assert sorted(PLAYED) == sorted(questions * 2)
    first, second = ({file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in ("one", "two"))
    assert first == second
    summary = json.loads(first["summary.json"])
    assert summary["verdicts"] == {"FAIL": 1, "PASS": SESSIONS - 1}
    assert summary["calls"]["model_calls_live"] == summary["calls"]["tool_calls_live"] == 0
    left = sorted(file for file in (tmp_path / "two").iterdir() if file.name != "summary.json")[7:]
    for file in left:
        file.unlink()
    PLAYED.clear()
    assert cli.main([*words, str(tmp_path / "two"), "--resume"]) == 1
    assert len(PLAYED) == len(left)
    assert {file.name: file.read_bytes() for file in (tmp_path / "two").iterdir()} == first
