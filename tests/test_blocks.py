"""Calls that are blocks, and adapters put in place of arguments: on a framework made for it."""

from __future__ import annotations

import asyncio
import sys
import types
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from recording import attribute, recording
from spanreel import wrapping
from spanreel.model import Agent
from spanreel.point import (
    Begun,
    Cross,
    Framework,
    Injection,
    Kind,
    Point,
    RunRequest,
    RunResult,
    ToolRequest,
    ToolResult,
)


class Agents:
    """Its runs are blocks."""

    def __init__(self, tools: Any = None, *, name: str = "a") -> None:
        self.tools = tools
        self.name = name

    @contextmanager
    def run(self, question: str) -> Iterator[str]:
        yield question.upper()

    @asynccontextmanager
    async def iter(self, question: str) -> AsyncIterator[str]:
        if question == "fail":
            raise LookupError(question)
        yield question.upper()


class Tools:
    """What an agent calls."""

    def call(self, name: str, value: int) -> int:
        return value + 1


class Watched:
    """The adapter."""

    def __init__(self, tools: Any, cross: Cross) -> None:
        self.tools, self.cross = tools, cross

    def call(self, name: str, value: int) -> Any:
        return self.cross(TOOL, self.tools.call, self, name, value)


TOOL = Point(
    "blocks_framework:Tools.call",
    Kind.TOOL,
    lambda _self, arguments: ToolRequest(arguments["name"], {"value": arguments["value"]}),
    ToolResult,
)


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    made = types.ModuleType("blocks_framework")
    made.Agents = Agents  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "blocks_framework", made)
    points = tuple(
        Point(
            f"blocks_framework:Agents.{name}",
            Kind.RUN,
            lambda agent, arguments: RunRequest(
                Agent(agent.name), arguments=lambda: {"question": arguments["question"]}
            ),
            lambda entered: RunResult(value=entered),
            block=True,
            read_begun=lambda entered: Begun(f"made up for {entered}", sees_tools=True),
        )
        for name in ("run", "iter")
    )
    injection = Injection(
        "blocks_framework:Agents.__init__", "tools", lambda given, cross: Watched(given or Tools(), cross)
    )
    framework = Framework("blocks", ">=1", points, (injection,))
    monkeypatch.setattr(wrapping, "FRAMEWORKS", (framework,))


@pytest.mark.parametrize("given", [((), {}), ((Tools(),), {}), ((), {"tools": Tools()}), ((), {"name": "a"})])
def test_an_adapter_takes_the_place_of_an_argument_however_it_was_given(given: Any) -> None:
    with recording() as rec:
        args, named = given
        assert Agents(*args, **named).tools.call("add", 1) == 2
        tool = rec.one("execute_tool")
        assert (tool.name, attribute(tool, "gen_ai.tool.call.arguments")) == ("execute_tool add", '{"value":1}')
        assert attribute(tool, "gen_ai.tool.call.result") == "2"
    assert Agents().tools is None


def test_an_argument_that_is_gone_is_one_warning_and_changes_no_call(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gone = Injection("blocks_framework:Agents.__init__", "toolbox", Watched)
    monkeypatch.setattr(wrapping, "FRAMEWORKS", (Framework("blocks", ">=1", (), (gone,)),))
    with recording():
        assert Agents().tools is None
    assert [one.getMessage().partition(";")[0] for one in caplog.records] == [
        "spanreel: blocks_framework:Agents.__init__ takes no 'toolbox' in this release"
    ]


def test_an_adapter_left_behind_passes_calls_through() -> None:
    with recording():
        left = Agents().tools
    assert left.call("add", 1) == 2


def test_a_block_is_a_run_with_what_was_entered_as_its_result() -> None:
    with recording() as rec:
        with Agents().run("go") as entered:
            assert trace.get_current_span().get_span_context().is_valid
        assert entered == "GO"
        assert not trace.get_current_span().get_span_context().is_valid
        run = rec.one("invoke_agent")
        assert attribute(run, "spanreel.run.result") == '"GO"'
        assert attribute(run, "spanreel.run.arguments") == '{"question":"go"}'
        assert attribute(run, "gen_ai.conversation.id") == "made up for GO"
        assert attribute(run, "spanreel.run.sees_tools") is True


async def test_a_block_that_cannot_be_entered_or_raises_is_an_error() -> None:
    with recording() as rec:
        with pytest.raises(LookupError):
            async with Agents().iter("fail"):
                pass
        with pytest.raises(ValueError, match="inside"), Agents().run("go"):
            raise ValueError("inside")
        assert [span.status.status_code for span in rec.of("invoke_agent")] == [StatusCode.ERROR] * 2
        assert not trace.get_current_span().get_span_context().is_valid


async def test_a_block_left_in_another_task_ends_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    async def words() -> AsyncIterator[str]:
        async with Agents().iter("go") as entered:
            yield entered

    with recording() as rec:
        stream: Any = words()
        assert await asyncio.create_task(anext(stream)) == "GO"
        await asyncio.create_task(stream.aclose())
        assert [span.status.status_code for span in rec.of("invoke_agent")] == [StatusCode.UNSET]
        assert not trace.get_current_span().get_span_context().is_valid
    assert caplog.records == []


async def test_a_block_decorates_functions_a_run_each_call() -> None:
    with recording() as rec:

        @Agents().run("plain")
        def plain(value: int) -> int:
            return value

        @Agents().iter("asynchronous")
        async def asynchronous(value: int) -> int:
            return value

        assert (plain(1), plain(2), await asynchronous(3)) == (1, 2, 3)
        assert plain.__name__ == "plain"
        assert len(rec.of("invoke_agent")) == 3
