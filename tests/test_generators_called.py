"""Generators that are called in one place and stepped through in another, as a web server does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route
from starlette.testclient import TestClient

import spanreel
from recording import Recording, attribute, recording


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
