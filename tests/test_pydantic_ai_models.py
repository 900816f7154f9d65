"""pydantic-ai's models for tests, which are not reached over HTTP: recorded at points of their own, played again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import BinaryContent, FilePart, ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel

import spanreel
from kinds import record
from recording import attribute, content, recording
from spanreel.model import Answer, Operation, Request, Status, Usage
from spanreel.protocols import in_process
from spanreel.replay.judging.verdict import Verdict

asked: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_asked() -> None:
    asked.clear()


def weather(city: str) -> str:
    """The weather."""
    asked.append(city)
    if city == "Atlantis":
        raise ModelRetry("no such city")
    return f"sunny in {city}"


def think(messages: list[Any], _info: Any) -> ModelResponse:
    asked.append("model")
    if len(messages) == 1:
        return ModelResponse(parts=[ThinkingPart("hm", signature="s"), ToolCallPart("weather", '{"city": "Atlantis"}')])
    if len(messages) == 3:
        return ModelResponse(parts=[TextPart("Again."), ToolCallPart("weather", {"city": "Rome"})])
    return ModelResponse(parts=[TextPart("Sunny.")])


async def say(messages: list[Any], _info: Any) -> AsyncIterator[Any]:
    asked.append("model")
    if len(messages) == 1:
        yield {0: DeltaToolCall(name="weather", json_args='{"city":')}
        yield {0: DeltaToolCall(json_args=' "Rome"}')}
    else:
        yield "Sun"
        yield "ny."


def whole(made: Agent[Any, Any]) -> str:
    return str(asyncio.run(made.run("Weather?")).output)


def streamed(made: Agent[Any, Any]) -> str:
    async def go() -> str:
        async with made.run_stream("Weather?") as stream:
            return "".join([word async for word in stream.stream_text(delta=True, debounce_by=None)])

    return asyncio.run(go())


@pytest.mark.parametrize(
    ("model", "run", "turns"),
    [
        (lambda: TestModel(), whole, 2),  # noqa: PLW0108 - a class is no function of the test's
        (lambda: TestModel(), streamed, 2),  # noqa: PLW0108 - as above
        (lambda: FunctionModel(think), whole, 3),
        (lambda: FunctionModel(stream_function=say), streamed, 2),
    ],
    ids=["test", "test, streamed", "function", "function, streamed"],
)
def test_a_model_in_process_is_recorded_and_not_asked_again(
    model: Callable[[], Any], run: Callable[[Any], str], turns: int, tmp_path: Path
) -> None:
    said: list[str] = []

    def work() -> None:
        said.append(run(Agent(model(), name="care", instructions="Be brief.", tools=[weather])))

    work()
    session = record(work, tmp_path)
    (one,) = session.runs
    assert len(one.turns) == turns
    assert [call.protocol for call in one.model_calls()] == ["in_process"] * turns
    assert [call.status for call in one.model_calls()] == [Status.OK] * turns
    assert [session.tools[number]["name"] for call in one.model_calls() for number in call.tools] == ["weather"] * turns
    assert all(call.requested_by is not None for call in one.tool_calls())
    asked.clear()
    with spanreel.replay(session) as playing:
        work()
    assert playing.verdict is Verdict.PASS
    assert asked == []
    assert said[1:] == said[:1] * 2


def test_what_the_model_was_asked_and_answered_is_in_the_span() -> None:
    with recording() as rec:
        whole(Agent(FunctionModel(think), name="care", instructions="Be brief.", tools=[weather]))
        first, second, third = rec.of("chat")
        assert content(first, "gen_ai.system_instructions") == [{"type": "text", "content": "Be brief."}]
        assert content(first, "gen_ai.input.messages") == [
            {"role": "user", "parts": [{"type": "text", "content": "Weather?"}]}
        ]
        reasoning, call = content(first, "gen_ai.output.messages")[0]["parts"]
        assert (reasoning["content"], reasoning["provider_fields"]) == ("hm", {"signature": "s"})
        assert (call["name"], call["arguments"]) == ("weather", {"city": "Atlantis"})
        told = content(second, "gen_ai.input.messages")[-1]["parts"][0]
        assert told["id"] == call["id"]
        assert "no such city" in told["response"]
        assert attribute(third, "gen_ai.usage.input_tokens") > 0
        assert attribute(third, "server.address") is None
        assert rec.of("execute_tool")[0].name == "execute_tool weather"


def test_a_model_that_raises_raises_again(tmp_path: Path) -> None:
    def broken(_messages: list[Any], _info: Any) -> ModelResponse:
        asked.append("model")
        raise LookupError("no model")

    def work() -> None:
        with pytest.raises(LookupError, match="no model"):
            whole(Agent(FunctionModel(broken), name="care"))

    session = record(work, tmp_path)
    (call,) = session.runs[0].model_calls()
    assert call.status is Status.ERROR
    asked.clear()
    with spanreel.replay(session) as playing:
        work()
    assert playing.verdict is Verdict.PASS
    assert asked == []


def test_parts_that_have_no_name_stay_as_the_library_writes_them(tmp_path: Path) -> None:
    def paint(_messages: list[Any], _info: Any) -> ModelResponse:
        return ModelResponse(parts=[FilePart(BinaryContent(b"png", media_type="image/png")), TextPart("Look.")])

    made: list[Any] = []

    def work() -> None:
        agent = Agent(FunctionModel(paint), name="care")
        made.append(asyncio.run(agent.run("Paint.")).response.parts)

    session = record(work, tmp_path)
    with spanreel.replay(session, serve_redacted=True):
        work()
    assert [type(part).__name__ for part in made[1]] == ["FilePart", "TextPart"]
    assert made[1][0].content.data.startswith(b"[binary ")


async def test_what_is_done_while_a_stream_is_open_is_not_inside_the_model_call() -> None:
    with recording() as rec:
        agent = Agent(FunctionModel(stream_function=say), name="care", tools=[weather])
        async with agent.run_stream("Weather?") as stream:
            async for _word in stream.stream_text(delta=True, debounce_by=None):
                with rec.tracer.start_as_current_span("mine"):
                    pass
                break
        mine, run = rec.named("mine"), rec.one("invoke_agent")
        assert mine.parent is not None
        assert run.context is not None
        assert mine.parent.span_id == run.context.span_id
        assert not trace.get_current_span().get_span_context().is_valid


def test_the_protocol_reads_what_it_writes() -> None:
    request = Request(Operation.CHAT, "m", ({"role": "user", "parts": []},), settings={"seed": 1}, stream=True)
    answer = Answer(model="m", messages=({"role": "assistant", "parts": []},), usage=Usage(1, 2))
    assert in_process.read_request(in_process.write_request(request), Operation.CHAT) == request
    assert in_process.read_response(in_process.write_response(answer), 200) == answer
    assert in_process.join(in_process.split(answer)) == answer
    with pytest.raises(ValueError, match="Request"):
        in_process.read_request(b"[]", Operation.CHAT)
