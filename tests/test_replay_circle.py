"""The circle in one process: agents of both kinds recorded, exported, converted, and replayed with nothing running."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import agents
import openai
import pytest
from agents import Agent, Runner, function_tool

import spanreel
from replaying import noted_naps
from spanreel import testing
from spanreel.model import Request
from spanreel.replay.judging.verdict import Report, Verdict
from spanreel.replay.running.runner import replay
from spanreel.session import Session
from spanreel_collector.conversion.convert import convert_files

RAN: list[str] = []


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    RAN.clear()
    monkeypatch.setenv("SPANREEL_LOG", "off")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    agents.set_tracing_disabled(True)
    agents.set_default_openai_api("chat_completions")
    yield
    agents.set_default_openai_api("responses")


class Reel:
    """Records an agent against a script and replays it against nothing."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.file = folder / "traces.jsonl"
        self._monkeypatch = monkeypatch

    def record(self, script: Any, work: Callable[[openai.AsyncOpenAI], Awaitable[Any]]) -> tuple[Session, Any]:
        self._monkeypatch.setenv("SPANREEL_FILE", str(self.file))
        with testing.ScriptedProvider(script) as provider:
            spanreel.instrument()
            try:
                result = asyncio.run(self._work(provider.base_url, work))
                assert spanreel.flush()
            finally:
                spanreel.uninstrument()
        assert provider.exhausted == 0
        (session,) = convert_files([str(self.file)]).sessions
        RAN.append("|")
        return session, result

    def replay(self, session: Session, work: Callable[[openai.AsyncOpenAI], Awaitable[Any]]) -> tuple[Report, Any]:
        before, result = list(RAN), None
        with replay(session, check=False) as playing:
            result = asyncio.run(self._work("http://127.0.0.1:9/v1", work))
        assert before == RAN, "a tool ran in the replay"
        assert playing.report is not None
        return playing.report, result

    async def _work(self, base_url: str, work: Callable[[openai.AsyncOpenAI], Awaitable[Any]]) -> Any:
        async with openai.AsyncOpenAI(base_url=base_url, api_key="none") as client:
            agents.set_default_openai_client(client, use_for_tracing=False)
            return await work(client)

    def passes(self, script: Any, work: Callable[[openai.AsyncOpenAI], Awaitable[Any]]) -> tuple[Session, Report, Any]:
        session, result = self.record(script, work)
        report, again = self.replay(session, work)
        assert report.verdict is Verdict.PASS, (report.reasons, report.notes)
        assert again == result
        return session, report, result


@pytest.fixture
def reel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reel:
    return Reel(tmp_path, monkeypatch)


@function_tool
async def weather(city: str, unit: str = "C") -> str:
    """The weather somewhere."""
    RAN.append(city)
    await asyncio.sleep(0.05 if city == "Paris" else 0)
    return f"{city}: 20 {unit}"


@function_tool
def flaky(attempt: int) -> str:
    """Fails at the first attempt."""
    RAN.append(f"flaky {attempt}")
    if attempt == 1:
        raise TimeoutError("too slow")
    return "done"


def said(request: Request) -> str:
    """All the text of a request's messages, to script by."""
    return json.dumps([list(request.messages), list(request.instructions)])


def forecast() -> Any:
    calls = [testing.tool_call("weather", {"city": city}, id=f"c-{city}") for city in ("Paris", "Rome")]
    return [testing.answer(tool_calls=calls), testing.text("Both are fine.")]


@pytest.mark.parametrize("api", ["chat_completions", "responses"])
@pytest.mark.parametrize("streamed", [False, True])
def test_an_agent_with_parallel_tools_replays(reel: Reel, api: Any, streamed: bool) -> None:
    agents.set_default_openai_api(api)

    async def work(client: openai.AsyncOpenAI) -> Any:
        agent = Agent(name="clerk", instructions="Be brief.", tools=[weather], model="gpt-5")
        if not streamed:
            return (await Runner.run(agent, "Weather?")).final_output
        result = Runner.run_streamed(agent, "Weather?")
        deltas = [
            event.data.delta
            async for event in result.stream_events()
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
        ]
        return result.final_output, "".join(deltas)

    _, report, _ = reel.passes(forecast(), work)
    assert report.tiers == {"call_id": 2, "exact": 2}
    assert report.order == ()


def test_a_changed_instruction_of_an_agent_fails_at_its_place(reel: Reel) -> None:
    def work(instructions: str) -> Callable[[openai.AsyncOpenAI], Awaitable[Any]]:
        async def run(client: openai.AsyncOpenAI) -> Any:
            agent = Agent(name="clerk", instructions=instructions, tools=[weather], model="gpt-5")
            return (await Runner.run(agent, "Weather?")).final_output

        return run

    session, _ = reel.record(forecast(), work("Be brief."))
    report, _ = reel.replay(session, work("Be long."))
    assert report.verdict is Verdict.FAIL
    assert report.reasons[0].startswith(
        "model call 1 of root diverged at /messages/0/parts/0/content: recorded 'Be brief.', now 'Be long.'"
    )


def test_a_tool_that_failed_fails_again_with_the_same_words(reel: Reel) -> None:
    script = [
        testing.tool_call("flaky", {"attempt": 1}),
        testing.tool_call("flaky", {"attempt": 2}),
        testing.text("Ok."),
    ]

    async def work(client: openai.AsyncOpenAI) -> Any:
        agent = Agent(name="clerk", tools=[flaky], model="gpt-5")
        result = await Runner.run(agent, "Do it.")
        return [item for item in result.to_input_list() if item.get("type") == "function_call_output"]

    session, _, _ = reel.passes(script, work)
    first = next(session.runs[0].tool_calls())
    assert first.error is not None
    assert first.error.type is not None
    assert first.error.type.endswith("TimeoutError")


def test_attempts_of_the_sdk_are_replayed_without_sleeping(reel: Reel) -> None:
    script = [
        testing.error(429, "slow down", retry_after_ms="1"),
        testing.error(500, "broken", retry_after_ms="1"),
        testing.text("hi"),
    ]

    async def work(client: openai.AsyncOpenAI) -> Any:
        agent = Agent(name="clerk", model="gpt-5")
        return (await Runner.run(agent, "Hello?")).final_output

    session, _ = reel.record(script, work)
    (call,) = session.runs[0].model_calls()
    assert [attempt.status for attempt in call.attempts] == [429, 500, 200]
    with noted_naps() as naps:
        report, result = reel.replay(session, work)
    assert (report.verdict, result) == (Verdict.PASS, "hi")
    assert len(naps) >= 2
    assert max(naps) < 0.1  # the SDK would sleep for longer than that by itself


def test_a_provider_error_is_the_recorded_outcome(reel: Reel) -> None:
    async def work(client: openai.AsyncOpenAI) -> Any:
        agent = Agent(name="clerk", model="gpt-5")
        try:
            await Runner.run(agent, "Hello?")
        except openai.BadRequestError as error:
            return str(error.body)

    reel.passes([testing.error(400, "no such thing")], work)


def team_script(request: Request) -> Any:
    text = said(request)
    for topic in ("trains", "planes"):
        if f"Study {topic}" in text and "You compare" not in text:
            if f"book on {topic}" in text or "page" in text:
                return testing.text(f"All about {topic}.")
            return testing.tool_call("read", {"page": 1})
    if "All about" in text:
        return testing.text("Trains.")
    calls = [
        testing.tool_call("research", {"input": f"Study {topic}"}, id=f"r-{topic}") for topic in ("trains", "planes")
    ]
    return testing.answer(tool_calls=calls)


def test_parallel_sub_agents_with_the_same_calls_replay_apart(reel: Reel) -> None:
    pages = iter(["page of rails", "page of wings"])

    @function_tool
    async def read(page: int) -> str:
        """A page."""
        RAN.append("read")
        return next(pages)

    async def work(client: openai.AsyncOpenAI) -> Any:
        researcher = Agent(name="researcher", tools=[read], model="gpt-5")
        tool = researcher.as_tool("research", "Studies something.")
        boss = Agent(name="boss", instructions="You compare.", tools=[tool], model="gpt-5")
        return (await Runner.run(boss, "Trains or planes?")).final_output

    _, report, result = reel.passes(team_script, work)
    assert result == "Trains."
    assert [run.path for run in report.runs] == ["root", "root/researcher#0", "root/researcher#1"]


def test_a_handoff_replays(reel: Reel) -> None:
    def script(request: Request) -> Any:
        if "You sell" in said(request):
            return testing.text("Buy it.")
        return testing.tool_call("transfer_to_sales", {})

    async def work(client: openai.AsyncOpenAI) -> Any:
        sales = Agent(name="sales", instructions="You sell.", model="gpt-5")
        triage = Agent(name="triage", instructions="You sort.", handoffs=[sales], model="gpt-5")
        return (await Runner.run(triage, "I want one.")).final_output

    _, report, _ = reel.passes(script, work)
    assert len(report.runs) == 2


# -- an agent written by hand ----------------------------------------------------------------------------------------


@spanreel.tool(side_effect=True)
def refund(order: str, amount: float = 10.0) -> dict[str, Any]:
    RAN.append(f"refund {order}")
    return {"order": order, "paid": amount}


class OutOfStock(Exception):
    """A failure of our own."""


@spanreel.tool()
async def reserve(order: str) -> None:
    RAN.append(f"reserve {order}")
    raise OutOfStock(f"{order} is gone")


def test_a_loop_by_hand_replays_with_tools_in_threads_and_errors_of_its_own(reel: Reel) -> None:
    @spanreel.run(agent="care")
    async def care(client: openai.AsyncOpenAI, question: str) -> Any:
        async with client.chat.completions.stream(
            model="gpt-5", messages=[{"role": "user", "content": question}]
        ) as stream:
            first = (await stream.get_final_completion()).choices[0].message.content
        paid = await asyncio.to_thread(refund, "A")
        try:
            await reserve("B")
        except OutOfStock as gone:
            missing = str(gone)
        again: Any = [{"role": "user", "content": f"{first} {paid['paid']} {missing}"}]
        last: Any = await client.responses.create(model="gpt-5", input=again)
        return last.output_text

    async def work(client: openai.AsyncOpenAI) -> Any:
        return await care(client, "My money?")

    session, report, result = reel.passes([testing.text("Let me see."), testing.text("Here it is.")], work)
    assert result == "Here it is."
    assert RAN == ["refund A", "reserve B", "|"]
    assert (report.model_calls.matched, report.tool_calls.matched) == (2, 2)
    assert session.runs[0].agent.name == "care"


def test_equivalent_arguments_by_hand_match(reel: Reel) -> None:
    def work(*positional: Any, **named: Any) -> Callable[[openai.AsyncOpenAI], Awaitable[Any]]:
        @spanreel.run(agent="care")
        async def care() -> Any:
            return refund(*positional, **named)

        async def run(client: openai.AsyncOpenAI) -> Any:
            return await care()

        return run

    session, _ = reel.record([], work("A", 10.0))
    for again in (work(order="A"), work("A", amount=10), work(amount=10.0, order="A")):
        report, result = reel.replay(session, again)
        assert (report.verdict, result) == (Verdict.PASS, {"order": "A", "paid": 10.0})
    report, _ = reel.replay(session, work("A", 11))
    assert report.reasons[0].startswith("tool call 'refund' of root diverged at /amount: recorded 10, now 11")


def test_a_loop_without_any_agent_replays(reel: Reel) -> None:
    async def work(client: openai.AsyncOpenAI) -> Any:
        answer = await client.chat.completions.create(
            model="gpt-5", messages=[{"role": "user", "content": "What value?"}]
        )
        return answer.choices[0].message.content

    session, _, _ = reel.passes([testing.text("Frozen answer")], work)
    assert session.runs[0].implicit

    async def changed(client: openai.AsyncOpenAI) -> Any:
        await client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "What value NOW?"}])

    report, _ = reel.replay(session, changed)
    assert (report.verdict, report.misses) == (Verdict.FAIL, 1)
    assert "recorded 'What value?', now 'What value NOW?'" in report.reasons[0]
