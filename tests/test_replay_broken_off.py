"""Calls that their caller broke off (a timeout, a race that another has won) are broken off again in a replay."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import agents
import openai
import pytest

import spanreel
from kinds import record
from loopback import offline, serve
from spanreel.replay.judging.verdict import Report, Verdict
from spanreel.replay.matching import answers
from wire_server import completion

Body = Callable[[list[Any]], Awaitable[None]]


def again(body: Body, tmp_path: Path, changed: Body | None = None) -> tuple[list[Any], list[Any], Report]:
    """What an agent came to when it was recorded, and in its replay (perhaps as it has become), with the report."""
    seen: list[list[Any]] = [[], []]

    def agent(body: Body, got: list[Any]) -> None:
        @spanreel.run(agent="desk")
        async def run() -> str:
            await body(got)
            return "done"

        asyncio.run(run())

    session = record(lambda: agent(body, seen[0]), tmp_path)
    with offline(), spanreel.replay(session, check=False) as playing:
        agent(changed or body, seen[1])
    assert playing.report is not None
    return seen[0], seen[1], playing.report


@spanreel.tool()
async def slow(question: str) -> str:
    await asyncio.sleep(60)
    return "too late"


@spanreel.tool()
async def failing() -> str:
    await asyncio.sleep(0.05)
    raise ValueError("no")


async def timed_out(got: list[Any]) -> None:
    try:
        await asyncio.wait_for(slow("where?"), 0.05)
    except TimeoutError:
        got.append("timeout")


async def lost_to_a_sibling(got: list[Any]) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(slow("where?"))
            group.create_task(failing())
    except* ValueError as errors:
        got.append([str(error) for error in errors.exceptions])


class Asking(openai.AsyncOpenAI):
    """Says when a request is about to be sent: nothing is awaited between that and the client's `send`."""

    asked: Callable[[], None] = staticmethod(lambda: None)

    async def _prepare_request(self, request: Any) -> None:
        self.asked()


def model(seconds: dict[str, float]) -> Asking:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        time.sleep(seconds[body["model"]])
        return completion(f"said by {body['model']}")

    return Asking(api_key="k", base_url=serve(answer, []), max_retries=0)


async def ask(client: openai.AsyncOpenAI, name: str) -> str:
    said = await client.chat.completions.create(model=name, messages=[{"role": "user", "content": "Go."}])
    return said.choices[0].message.content or ""


async def model_timed_out(got: list[Any]) -> None:
    async with model({"slow": 60.0}) as client:
        try:
            async with asyncio.timeout(None) as limit:
                # However long a slow machine takes until then.
                client.asked = lambda: limit.reschedule(asyncio.get_running_loop().time() + 0.05)
                await ask(client, "slow")
        except TimeoutError:
            got.append("timeout")


async def hedged(got: list[Any]) -> None:
    async with model({"slow": 60.0, "quick": 0.05}) as client:
        tasks = [asyncio.create_task(ask(client, name)) for name in ("slow", "quick")]
        done, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        got += [task.result() for task in done]


async def run_timed_out(got: list[Any]) -> None:
    @spanreel.run(agent="slow")
    async def inner(question: str) -> str:
        return await slow(question)

    try:
        await asyncio.wait_for(inner("where?"), 0.05)
    except TimeoutError:
        got.append("timeout")


@pytest.mark.parametrize("body", [timed_out, lost_to_a_sibling, model_timed_out, hedged, run_timed_out])
def test_a_call_that_was_broken_off_is_broken_off_again(body: Body, tmp_path: Path) -> None:
    before, after, report = again(body, tmp_path)
    assert len(before) == 1
    assert after == before
    assert (report.verdict, report.reasons) == (Verdict.PASS, ())


async def stream_timed_out(got: list[Any]) -> None:
    said = completion("on and on " * 100)
    async with openai.AsyncOpenAI(api_key="k", base_url=serve(lambda _: said, [], 60), max_retries=0) as client:
        messages: Any = [{"role": "user", "content": "Go."}]
        try:
            async with asyncio.timeout(None) as limit:
                async for chunk in await client.chat.completions.create(model="m", messages=messages, stream=True):
                    got.extend(choice.delta.content for choice in chunk.choices if choice.delta.content)
                    if len(got) >= 3 and limit.when() is None:
                        limit.reschedule(asyncio.get_running_loop().time() + 0.15)
        except TimeoutError:
            got.append("timeout")


def test_a_stream_that_was_broken_off_stops_where_it_stopped_and_does_not_end(tmp_path: Path) -> None:
    before, after, report = again(stream_timed_out, tmp_path)
    assert 3 < len(before) < 100
    assert before[-1] == "timeout"
    assert after == before
    assert (report.verdict, report.reasons) == (Verdict.PASS, ())


@pytest.mark.parametrize("body", [timed_out, model_timed_out])
def test_one_that_nobody_breaks_off_any_more_is_waited_with_for_a_bounded_time(
    body: Body, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def patient(got: list[Any]) -> None:
        if body is timed_out:
            got.append(await slow("where?"))
            return
        async with model({}) as client:
            got.append(await ask(client, "slow"))

    monkeypatch.setattr(answers, "PATIENCE", 0.1)
    _, after, report = again(body, tmp_path, patient)
    assert after == []
    assert report.verdict is Verdict.INCONCLUSIVE
    assert "was broken off by who asked for it, and is waited for now" in report.reasons[0]


async def cancelled_stream(got: list[Any]) -> None:
    async with model({"gpt-5": 0.0}) as client:
        agent = agents.Agent(name="care", model=agents.OpenAIChatCompletionsModel("gpt-5", client))
        running = agents.Runner.run_streamed(agent, "Go.")
        async for event in running.stream_events():
            if event.type == "raw_response_event":
                got.append(event.data.type)
                running.cancel()


def test_a_streamed_run_that_its_caller_cancels_comes_out_as_it_came_out(tmp_path: Path) -> None:
    agents.set_tracing_disabled(True)
    before, after, report = again(cancelled_stream, tmp_path)
    assert after == before
    assert (report.verdict, report.reasons) == (Verdict.PASS, ())
