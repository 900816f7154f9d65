"""`with spanreel.replay(...)`: what it makes ready, what it answers, how it ends."""

from __future__ import annotations

import _thread
import asyncio
import json
import os
import queue
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import pytest

import spanreel
from replaying import Book, asks, text, told
from spanreel.errors import NotIntercepted, ReplayFailed, ReplayRefused, ReplayStop
from spanreel.instrumenting import is_instrumented
from spanreel.playing import current_player
from spanreel.replay.judging.report import to_json, to_text, write_json
from spanreel.replay.judging.verdict import Verdict
from spanreel.replay.running.runner import replay
from spanreel.session import Session
from spanreel.session_files import write_session

TOOLS: Any = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]
RAN: list[Any] = []


@spanreel.tool()
def add(a: int, b: int = 1) -> int:
    RAN.append((a, b))
    return a + b


@spanreel.run(agent="adder")
def agent(question: str, *, client: openai.OpenAI | None = None) -> str | None:
    """A loop by hand: as long as the model asks for tools, call them."""
    client = client or openai.OpenAI(base_url="http://127.0.0.1:9/v1")
    messages: list[Any] = [{"role": "user", "content": question}]
    while True:
        message = client.chat.completions.create(model="gpt-5", messages=messages, tools=TOOLS).choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls or []:
            assert call.type == "function"
            result = add(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": str(result)})
        if not message.tool_calls:
            return message.content


@spanreel.run(agent="adder")
async def async_agent(question: str) -> str | None:
    async with openai.AsyncOpenAI(base_url="http://127.0.0.1:9/v1") as client:
        asked: Any = [{"role": "user", "content": question}]
        first = (await client.chat.completions.create(model="gpt-5", messages=asked, tools=TOOLS)).choices[0].message
        asked.append(first.model_dump(exclude_none=True))
        for call in first.tool_calls or []:
            assert call.type == "function"
            result = await asyncio.to_thread(add, **json.loads(call.function.arguments))
            asked.append({"role": "tool", "tool_call_id": call.id, "content": str(result)})
        last = await client.chat.completions.create(model="gpt-5", messages=asked, tools=TOOLS)
        return last.choices[0].message.content


def adding(number: int = 2, *, id: str = "session-1", **more: Any) -> Session:
    book = Book(id=id)
    question, answer = f"{number}+1?", f"it is {number + 1}"
    run = book.run(agent="adder", entrypoint={"arguments": {"question": question}}, result=answer, **more)
    tool = {"type": "function", "name": "add", "parameters": {"type": "object"}}
    run["input"] = [0]
    user, asked = text("user", question), asks(("c1", "add", {"a": number}))
    first = book.model(run, [user], asked, offered=[tool], finish_reasons=["tool_calls"])
    requested_by = {"model_call": first["id"], "position": 0}
    book.tool(run, "add", {"a": number, "b": 1}, number + 1, call_id="c1", requested_by=requested_by)
    said = [user, asked, told("c1", str(number + 1))]
    book.model(run, said, text("assistant", answer), offered=[tool], finish_reasons=["stop"])
    return book.session()


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


# -- the block -------------------------------------------------------------------------------------------------------


def test_an_agent_replays_inside_the_block_and_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with spanreel.replay(adding()) as playing:
        assert playing.run_input == "2+1?"
        assert playing.arguments == {"question": "2+1?"}
        assert os.environ["OPENAI_API_KEY"]
        assert os.environ["SPANREEL_REPLAY_GUARD"] == f"deny:{os.getpid()}"
        assert playing.verdict is None
        assert agent("whatever else") == "it is 3"
    assert playing.verdict is Verdict.PASS
    assert RAN == []
    assert "OPENAI_API_KEY" not in os.environ
    assert "SPANREEL_REPLAY_GUARD" not in os.environ
    assert not is_instrumented()
    assert current_player() is None


def test_a_session_may_be_a_file(tmp_path: Path) -> None:
    file = tmp_path / "session.json"
    file.write_text(write_session(adding()))
    with spanreel.replay(file, run="0"):
        agent("2+1?")


def test_one_run_of_a_file_is_named_as_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "session.json"
    file.write_text(write_session(adding()))
    playing = spanreel.replay(f"{file}#0")
    assert playing.run is not None
    assert playing.run.id == "run-0"
    with pytest.raises(ReplayRefused, match="has no run '7'"):
        spanreel.replay(f"{file}#7")


async def test_an_agent_replays_in_asynchronous_code() -> None:
    with spanreel.replay(adding()):
        assert await async_agent("2+1?") == "it is 3"
    async with spanreel.replay(adding()):
        assert await async_agent("2+1?") == "it is 3"
    assert RAN == []


def test_a_difference_ends_the_block_and_raises_the_report() -> None:
    reached = False
    with pytest.raises(ReplayFailed) as failed, spanreel.replay(adding()) as playing:
        openai.OpenAI().chat.completions.create(model="gpt-6", messages=[{"role": "user", "content": "hi"}])
        reached = True
    assert not reached
    assert isinstance(failed.value, AssertionError)
    assert playing.report is not None
    assert str(failed.value) == to_text(playing.report)
    assert str(failed.value).startswith("FAIL: model call 1 of outside every run is not in the recording")


def test_without_check_the_report_says_it() -> None:
    with spanreel.replay(adding(), check=False) as playing:
        add(1)
    assert playing.report is not None
    assert (playing.report.verdict, playing.report.misses) == (Verdict.FAIL, 1)
    assert RAN == []


def test_another_exception_passes_with_the_report_as_its_note() -> None:
    with pytest.raises(ZeroDivisionError) as raised, spanreel.replay(adding()) as playing:
        agent("2+1?")
        _ = 1 // 0
    assert playing.verdict is Verdict.PASS
    assert not getattr(raised.value, "__notes__", [])
    with pytest.raises(ZeroDivisionError) as raised, spanreel.replay(adding()):
        _ = 1 // 0
    assert raised.value.__notes__[0].startswith("NOT INTERCEPTED: no call reached the replay")


async def test_a_stop_inside_a_task_group_is_a_stop() -> None:
    async def work() -> None:
        add(5)

    with spanreel.replay(adding(), check=False) as playing:
        async with asyncio.TaskGroup() as group:
            group.create_task(work())
            group.create_task(asyncio.sleep(5))
    assert playing.verdict is Verdict.FAIL


def test_a_recording_that_nobody_asks_is_not_intercepted() -> None:
    with spanreel.replay(adding(), check=False) as playing:
        pass
    assert playing.report is not None
    assert playing.report.exit_code == 4
    assert playing.report.reasons[0].startswith(
        "no call reached the replay, while 2 model calls were recorded: nothing called the agent, "
        "or its client is one that spanreel does not wrap"
    )


def test_a_client_that_is_not_ours_refuses_the_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    import httpx2

    def somebody_elses(self: Any, request: Any, **more: Any) -> Any:
        raise AssertionError("went live")

    spanreel.instrument()
    try:
        monkeypatch.setattr(httpx2.Client, "send", somebody_elses)
        with pytest.raises(NotIntercepted, match=r"httpx2.*not wrapped by spanreel"), spanreel.replay(adding()):
            raise AssertionError("started")
        assert current_player() is None
    finally:
        monkeypatch.undo()
        spanreel.uninstrument()


# -- many at once ----------------------------------------------------------------------------------------------------


async def _batch(sessions: list[Session]) -> list[str]:
    gate = asyncio.Semaphore(8)

    async def one(session: Session) -> str:
        async with gate:
            with replay(session, check=False) as playing:
                await async_agent("whatever")
            assert playing.report is not None
            return json.dumps(to_json(playing.report))

    return await asyncio.gather(*(one(session) for session in sessions))


@pytest.mark.slow
async def test_many_sessions_at_once_do_not_mix_and_report_the_same_again() -> None:
    sessions = [adding(number, id=f"session-{number}") for number in range(20)]
    sessions[7].runs[0].result = "it was something else"
    reports = await _batch(sessions)
    verdicts = [json.loads(report)["verdict"] for report in reports]
    assert verdicts == ["FAIL" if number == 7 else "PASS" for number in range(20)]
    assert [json.loads(report)["session"] for report in reports] == [f"session-{number}" for number in range(20)]
    assert RAN == []
    assert await _batch(sessions) == reports


def test_a_bare_thread_among_several_replays_is_stopped() -> None:
    ended: queue.Queue[object] = queue.Queue()

    def lost() -> None:
        try:
            ended.put(add(2))
        except ReplayStop as stop:
            ended.put(stop)

    with replay(adding(), check=False), replay(adding(3), check=False):
        _thread.start_new_thread(lost, ())  # which nothing gives a context
        stop = ended.get(timeout=60)
    assert "this thread belongs to none of them" in str(stop)
    assert RAN == []


def test_threads_of_a_pool_are_answered() -> None:
    book = Book()
    book.tool(book.run(agent=None, implicit=True), "add", {"a": 2, "b": 1}, 3)
    with replay(book.session()), ThreadPoolExecutor(1) as pool:
        assert pool.submit(add, 2).result() == 3
    assert RAN == []


# -- refusals --------------------------------------------------------------------------------------------------------


def refused(session: Session | Path, **more: Any) -> str:
    with pytest.raises(ReplayRefused) as refusal, spanreel.replay(session, **more):
        raise AssertionError("started")
    return str(refusal.value)


def test_what_cannot_be_replayed_is_refused_before_it_starts(tmp_path: Path) -> None:
    session = adding()
    session.canon = "spanreel.canon/0"
    assert "this release compares by 'spanreel.canon/1'; convert it again" in refused(session)
    empty = Book()
    empty.run()
    assert refused(empty.session()).startswith("session 'session-1' holds no call")
    assert refused(empty.session(), run="0").startswith("run 'run-0' of session 'session-1' holds no call")
    assert "has no run '7'" in refused(adding(), run="7")
    session = adding()
    session.redaction.policy = "house/3"
    assert "redacted by policy 'house/3'" in refused(session)
    assert "cannot read" in refused(tmp_path / "missing.json")
    several = tmp_path / "sessions.jsonl"
    several.write_text("\n".join(write_session(adding(id=name)) for name in "ab"))
    assert "holds 2 sessions ('a', 'b'); a replay takes one: spanreel convert FILE --out FOLDER/" in refused(several)


def test_tools_that_nothing_would_answer_refuse_the_replay() -> None:
    book = Book()
    run = book.run()
    call = book.model(run, [text("user", "hi")], asks(("c1", "refund", {})))
    asked = {"model_call": call["id"], "position": 0}
    book.tool(run, "refund", {}, "done", executed=False, requested_by=asked)
    book.tool(run, "earlier", {}, "done", executed=False)
    book.tool(run, "output", {}, executed=False, requested_by=asked, status="unfinished")
    assert refused(book.session()) == (
        "nothing would answer the tool 'refund': the recording knows their results only from what the model was told, "
        "so they would run for real. Decorate each with @spanreel.tool() and the agent around them with "
        "@spanreel.run(), and record again; if spanreel sees each of them now, as it does those of the frameworks it "
        "knows, --recovered answers them with what the model was told"
    )


def test_a_redacted_recording_matches_live_values() -> None:
    book = Book(extra={"redaction": {"policy": "spanreel.default/2"}})
    run = book.run(agent=None, implicit=True)
    book.tool(run, "login", {"password": "***"}, "ok")
    from spanreel.redaction import DEFAULT, redact_json

    masked = redact_json({"password": "hunter2hunter2"}, DEFAULT)[0]
    run["turns"][0]["tool_calls"][0]["arguments"] = masked

    @spanreel.tool()
    def login(password: str) -> str:
        raise AssertionError(password)

    with spanreel.replay(book.session()):
        assert login("hunter2hunter2") == "ok"


# -- the report ------------------------------------------------------------------------------------------------------


def test_the_report_reads_well(tmp_path: Path) -> None:
    with replay(adding(), check=False) as playing:
        agent("2+1?")
    assert playing.report is not None
    assert to_text(playing.report) == (
        "PASS: 3 calls answered from the recording\n"
        "  session   session-1\n"
        "  models    2 of 2 matched\n"
        "  tools     1 of 1 matched\n"
        "  outcome   root (adder) same\n"
        "  tokens    recorded 20 in, 4 out; served 20 in, 4 out"
    )
    file = tmp_path / "report.json"
    write_json(playing.report, file)
    written = json.loads(file.read_text())
    assert (written["schema"], written["verdict"], written["exit_code"], written["misses"]) == (
        "spanreel.replay/1",
        "PASS",
        0,
        0,
    )
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_a_long_report_is_cut_for_people_and_whole_as_json() -> None:
    book = Book()
    run = book.run(agent=None, implicit=True)
    for number in range(30):
        book.tool(run, "a", {"n": number}, number, fidelity={"result": "redacted"} if number == 0 else {})

    @spanreel.tool()
    def a(n: int) -> int:
        raise AssertionError(n)

    with replay(book.session(), run="run-0", check=False, serve_redacted=True) as playing:
        a(0)
        playing.player.note("something to know")
        playing.player.note("something to know")
    assert playing.report is not None
    lines = to_text(playing.report).splitlines()
    assert lines[0] == "FAIL: tool call 2 of root ('a') was recorded and was not made"
    assert "  also      and 16 more" in lines
    assert "  session   session-1#run-0" in lines
    assert "  tools     1 of 30 matched, 29 unused" in lines
    assert "  redacted  tool call 1 of root ('a') was served with a redacted result" in lines
    assert lines[-1] == "  note      something to know"
    assert len(to_json(playing.report)["reasons"]) == 29


def test_long_texts_are_cut_to_where_they_part() -> None:
    long, longer = "x" * 500 + "old" + "y" * 500, "x" * 500 + "new" + "y" * 500
    book = Book()
    book.model(book.run(agent=None, implicit=True), [text("user", long)], text("assistant", "ok"))
    with replay(book.session(), check=False) as playing:
        openai.OpenAI().chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": longer}])
    assert playing.report is not None
    said = playing.report.reasons[0]
    assert "xxxold" in said
    assert "xxxnew" in said
    assert len(said) < 500
    assert playing.report.first_divergence is not None
    assert playing.report.first_divergence["recorded"] == long
