"""Generators that are called in one place and stepped through in another, as a web server does."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import context as otel
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route
from starlette.testclient import TestClient

import spanreel
from recording import Recording, attribute, content, recording
from spanreel_collector import convert_files


@spanreel.run(agent="clerk")
def clerk() -> Iterator[str]:
    yield "one"
    yield "two"


@spanreel.run(agent="clerk")
async def slow_clerk() -> AsyncIterator[str]:
    yield "one"
    await asyncio.sleep(0)
    yield "two"


def where(rec: Recording) -> tuple[str | None, object]:
    """The name of the span around the run, and the conversation that it belongs to."""
    run = rec.one("invoke_agent")
    around = {span.context.span_id: span.name for span in rec.spans if span.context}
    return around.get(run.parent.span_id) if run.parent else None, attribute(run, "gen_ai.conversation.id")


def test_what_a_handler_has_returned_belongs_to_its_request_and_its_session() -> None:
    with recording() as rec:

        async def answer(_: Request) -> StreamingResponse:
            with rec.tracer.start_as_current_span("request"), spanreel.session("visit"):
                return StreamingResponse(slow_clerk())

        assert TestClient(Starlette(routes=[Route("/", answer)])).get("/").text == "onetwo"
    assert where(rec) == ("request", "visit")


def test_what_is_stepped_through_inside_a_span_of_its_own_belongs_there_and_to_the_session_of_its_call() -> None:
    with recording() as rec:
        with spanreel.session("visit"):
            words = clerk()
        with rec.tracer.start_as_current_span("sending"):
            assert list(words) == ["one", "two"]
    assert where(rec) == ("sending", "visit")


def test_what_is_stepped_through_in_another_session_belongs_to_that() -> None:
    with recording() as rec:
        with spanreel.session("first"):
            words = clerk()
        with spanreel.session("second"), rec.tracer.start_as_current_span("sending"):
            assert list(words) == ["one", "two"]
    assert where(rec) == ("sending", "second")


def test_what_is_stepped_through_inside_another_run_is_a_run_inside_it() -> None:
    @spanreel.run(agent="office")
    def office(words: Iterator[str]) -> list[str]:
        return list(words)

    with recording() as rec, rec.tracer.start_as_current_span("outside"):
        words = clerk()
        assert office(words) == ["one", "two"]
    assert rec.tree() == ["outside", "  invoke_agent office", "    invoke_agent clerk"]


def test_what_was_left_for_the_loop_to_close_is_finished_though_its_closing_is_cancelled() -> None:
    @spanreel.run(agent="inner")
    async def inner() -> AsyncIterator[str]:
        try:
            yield "one"
        finally:
            await asyncio.sleep(0)

    @spanreel.run(agent="outer")
    async def outer() -> AsyncIterator[str]:
        async for word in inner():
            yield word

    async def leave() -> None:
        async for _ in outer():
            break

    with recording() as rec:
        asyncio.run(leave())
    assert {span.name: attribute(span, "error.type") for span in rec.of("invoke_agent")} == {
        "invoke_agent inner": None,
        "invoke_agent outer": None,
    }


# langfuse/langfuse#8216, #3961 and #7892: a handler returns before what it streams has begun.
@pytest.mark.parametrize("handed", ["by itself", "as a response"])
@pytest.mark.parametrize("asked", ["plainly", "asynchronously"])
def test_what_a_handler_streams_is_of_its_run_and_of_its_session(asked: str, handed: str) -> None:
    @spanreel.tool
    def look(word: str) -> str:
        return word

    def words() -> Iterator[str]:
        yield look("one")
        yield look("two")

    async def slow_words() -> AsyncIterator[str]:
        yield look("one")
        yield look("two")

    @spanreel.session("visit")
    @spanreel.run(agent="office")
    def answer() -> Any:
        return words() if handed == "by itself" else StreamingResponse(words())

    @spanreel.session("visit")
    @spanreel.run(agent="office")
    async def slow_answer() -> Any:
        return slow_words() if handed == "by itself" else StreamingResponse(slow_words())

    async def respond(_: Request) -> StreamingResponse:
        returned = answer() if asked == "plainly" else await slow_answer()
        return returned if handed == "as a response" else StreamingResponse(returned)

    with recording() as rec:
        assert TestClient(Starlette(routes=[Route("/", respond)])).get("/").text == "onetwo"
    assert rec.tree() == ["invoke_agent office", "  execute_tool look", "  execute_tool look"]
    assert {attribute(span, "gen_ai.conversation.id") for span in rec.spans} == {"visit"}
    assert content(rec.one("invoke_agent"), "gen_ai.output.messages") == [
        {"role": "assistant", "parts": [{"type": "text", "content": "onetwo"}]}
    ]


def test_what_a_result_does_when_it_is_asked_for_an_attribute_is_none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPANREEL_STRICT")

    class Proxy:
        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError("outside of a request")

    returned = Proxy()

    @spanreel.session("visit")
    @spanreel.tool
    def look() -> Any:
        return returned

    with recording() as rec:
        assert look() is returned
        assert attribute(rec.one("execute_tool"), "error.type") is None


@pytest.mark.parametrize("decorate", [spanreel.tool, spanreel.run])
def test_a_returned_generator_that_nobody_steps_through_ends_its_call(decorate: Callable[[Any], Any]) -> None:
    @decorate
    def office() -> Iterator[str]:
        return iter_words()

    def iter_words() -> Iterator[str]:
        yield "one"

    with recording() as rec:
        returned = office()
        assert not rec.of("execute_tool") + rec.of("invoke_agent")
        del returned
        gc.collect()
        (span,) = rec.of("execute_tool") + rec.of("invoke_agent")
        assert attribute(span, "error.type") is None


BLOCKS: dict[str, Callable[[], Any]] = {
    "run": lambda: spanreel.run(agent="clerk"),
    "tool": lambda: spanreel.tool("clerk", arguments={}),
    "session": lambda: spanreel.session("visit"),
}


# langfuse/langfuse#8780, traceloop/openllmetry#3061, Arize-ai/openinference#1769: whoever reads stops, and the rest of
# the generator runs in another context.
@pytest.mark.parametrize("left", ["in another context", "by the loop at its end", "by a plain generator"])
@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_in_a_generator_is_left_anywhere_in_silence(
    block: str, left: str, caplog: pytest.LogCaptureFixture
) -> None:
    def words() -> Iterator[str]:
        with BLOCKS[block]():
            yield "one"
            yield "two"

    async def slow_words() -> AsyncIterator[str]:
        async with BLOCKS[block]():
            yield "one"
            yield "two"

    async def read() -> None:
        reading = slow_words()
        async for _ in reading:
            break
        if left == "in another context":
            await asyncio.create_task(reading.aclose(), context=contextvars.Context())  # type: ignore[attr-defined]

    with recording() as rec:
        if left == "by a plain generator":
            reading = words()
            contextvars.Context().run(next, reading)
            reading.close()  # type: ignore[attr-defined]
        else:
            asyncio.run(read())
    assert not caplog.records
    assert [(span.status.status_code.name, attribute(span, "error.type")) for span in rec.spans] == (
        [] if block == "session" else [("UNSET", None)] * len(rec.spans)
    )
    assert len(rec.of("invoke_agent") + rec.of("execute_tool")) == (block != "session")


async def test_tasks_share_one_block_and_leave_it_in_any_order(caplog: pytest.LogCaptureFixture) -> None:
    visit, clerk = spanreel.session("visit"), spanreel.run(agent="clerk")
    turns = [asyncio.Event() for _ in range(2)]

    async def work(number: int) -> None:
        with visit, clerk:
            turns[number].set()
            await turns[1 - number].wait()
        assert not otel.get_current()

    with recording() as rec:
        await asyncio.gather(work(0), work(1))
        assert len({span.context.trace_id for span in rec.of("invoke_agent") if span.context}) == 2
    assert not caplog.records


LEFT = """
import spanreel

@spanreel.run(agent="office")
def office():
    yield "one"
    yield "two"

@spanreel.tool
def look():
    yield "one"
    yield "two"

@spanreel.run(agent="clerk")
def clerk():
    return iter_words()

def iter_words():
    yield "one"
    yield "two"

left = [office(), look(), clerk()]
for words in left:
    next(words)
"""


# pydantic/logfire#108: what nobody steps through to its end is alive when the exporter shuts down.
@pytest.mark.slow
def test_a_generator_that_nobody_stepped_to_its_end_is_finished_at_the_programs_end(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    # Who has registered a finalizer before us is called after us.
    program = f"import tempfile\nkept = tempfile.TemporaryDirectory()\nimport spanreel.auto\n{LEFT}"
    variables = {**os.environ, "SPANREEL_FILE": str(file), "SPANREEL_LOG": "off"}
    subprocess.run([sys.executable, "-c", program], env=variables, check=True, timeout=600)
    (session, *others) = convert_files([str(file)]).sessions
    runs = [run for one in (session, *others) for run in one.runs]
    assert sorted((run.agent.name or "", run.status, run.result) for run in runs if run.agent.name) == [
        ("clerk", "ok", ["one"]),
        ("office", "ok", ["one"]),
    ]
    assert [call.status for run in runs for turn in run.turns for call in turn.tool_calls] == ["ok"]
