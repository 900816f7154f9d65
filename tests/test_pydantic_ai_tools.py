"""Tools of pydantic-ai: of every toolset, deferred, failing, odd in what they give back. Reports 008 and 014."""

from __future__ import annotations

import asyncio
import datetime as dt
import sys
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.trace import StatusCode
from pydantic import BaseModel
from pydantic_ai import Agent, CallDeferred, DeferredToolRequests, DeferredToolResults, ModelRetry, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ApprovalRequired, ToolFailed
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import BinaryContent, ToolReturn
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import CombinedToolset, FunctionToolset

import spanreel
from kinds import record
from pydantic_models import scripted
from recording import attribute, content, recording
from spanreel import testing
from spanreel.frameworks.pydantic_ai.tools import read_tool
from spanreel.model import Status, ToolKind
from spanreel.replay.judging.verdict import Report, Verdict
from spanreel.session import Session

ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


def agent(*script: testing.Scripted, **options: Any) -> Agent[Any, Any]:
    return Agent(scripted(script), **{"name": "care", **options})


def ask(made: Agent[Any, Any], *asked: Any, **options: Any) -> Any:
    return asyncio.run(made.run(*asked, **options))


def replayed(work: Callable[[], Any], session: Session) -> Report:
    """The report of a replay in which no tool ran."""
    ran.clear()
    # Binary content is a stand-in in the recording, which takes consent to be given to an agent.
    with spanreel.replay(session, check=False, serve_redacted=True) as playing:
        work()
    assert ran == []
    assert playing.report is not None
    return playing.report


def call(name: str, **arguments: Any) -> testing.Scripted:
    return testing.tool_call(name, arguments)


DONE = testing.text("Done.")


# -- every toolset, once ----------------------------------------------------------------------------------------------


def look(city: str) -> str:
    """Look out of the window."""
    ran.append(city)
    return f"sunny in {city}"


def toolsets() -> list[Any]:
    """Toolsets in toolsets, under other names."""
    inner: FunctionToolset[Any] = FunctionToolset([look], id="windows")
    return [
        inner.prefixed("plain"),
        CombinedToolset([CombinedToolset([inner]).prefixed("in")]).prefixed("out"),
        inner.renamed({"other": "look"}),
        inner.prefixed("filtered").filtered(lambda _context, _tool: True),
    ]


def test_a_tool_of_any_toolset_is_recorded_once_under_the_name_the_model_knows(tmp_path: Path) -> None:
    names = ["plain_look", "out_in_look", "other", "filtered_look", "dynamic_look"]

    def work() -> None:
        made = agent(*(call(name, city="Rome") for name in names), DONE, toolsets=toolsets())

        @made.toolset
        def dynamic(_context: RunContext[Any]) -> Any:
            return FunctionToolset([look]).prefixed("dynamic")

        assert ask(made, "Look.").output == "Done."

    session = record(work, tmp_path)
    assert ran == ["Rome"] * len(names)
    calls = [one for run in session.runs for one in run.tool_calls()]
    assert [one.name for one in calls] == names
    assert {one.result for one in calls} == {"sunny in Rome"}
    assert all(one.executed for one in calls)
    assert replayed(work, session).verdict is Verdict.PASS


def test_hooks_of_the_user_run_in_their_order_recorded_and_replayed(tmp_path: Path) -> None:
    told: list[str] = []

    class Hooks(AbstractCapability[Any]):
        async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
            told.append(f"before {args}")
            return {"city": "Bern"}

        async def after_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, result: Any) -> Any:
            told.append(f"after {result}")
            return f"{result}, said {call.tool_name}"

        async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> Any:
            told.append("model")
            return await handler(request_context)

    def work() -> list[str]:
        told.clear()
        result = ask(agent(call("look", city="Rome"), DONE, tools=[look], capabilities=[Hooks()]), "Look.")
        assert result.usage.tool_calls == 1
        return list(told)

    alone = work()
    assert alone == ["model", "before {'city': 'Rome'}", "after sunny in Bern", "model"]
    seen: list[list[str]] = []
    session = record(lambda: seen.append(work()), tmp_path)
    (one,) = session.runs[0].tool_calls()
    assert (one.arguments, one.result) == ({"city": "Bern"}, "sunny in Bern")
    assert replayed(lambda: seen.append(work()), session).verdict is Verdict.PASS
    assert seen == [alone, alone]


SERVER = str(Path(__file__).with_name("mcp_server.py"))


@pytest.mark.slow
async def test_a_tool_of_an_mcp_server_is_one() -> None:
    from fastmcp.client.transports import StdioTransport

    toolset: Any = MCPToolset(StdioTransport(sys.executable, [SERVER]), init_timeout=600).prefixed("far")
    with recording() as rec:
        made = agent(call("far_trace_of"), DONE, toolsets=[toolset])
        async with made:
            await made.run("Ask.")
        tool = rec.named("execute_tool far_trace_of")
        assert attribute(tool, "spanreel.tool.kind") == "mcp"
        assert content(tool, "gen_ai.tool.call.result")


def test_an_agent_in_a_tool_is_a_run_inside_that_call_and_is_not_run_again(tmp_path: Path) -> None:
    async def delegate(context: RunContext[Any], question: str) -> str:
        """Ask the other one."""
        ran.append(question)
        helper = Agent(scripted([call("look", city="Rome"), testing.text("Sunny.")]), name="helper", tools=[look])
        return str((await helper.run(question, usage=context.usage)).output)

    def work() -> None:
        ask(agent(call("delegate", question="How is Rome?"), DONE, tools=[delegate]), "Ask.")

    with recording() as rec:
        work()
        assert rec.tree() == [
            "invoke_agent care",
            "  agent_step 0",
            "    chat gpt-test",
            "    execute_tool delegate",
            "      invoke_agent helper",
            "        agent_step 0",
            "          chat gpt-test",
            "          execute_tool look",
            "        agent_step 1",
            "          chat gpt-test",
            "  agent_step 1",
            "    chat gpt-test",
        ]
    session = record(work, tmp_path)
    assert [run.path for run in session.runs] == ["root", "root/helper#0"]
    assert replayed(work, session).verdict is Verdict.PASS


# -- control flow and failures: report 008 ----------------------------------------------------------------------------


def deferred(city: str) -> str:
    """Somebody else will do it."""
    raise CallDeferred(metadata={"queue": city})


def guarded(context: RunContext[Any], city: str) -> str:
    """Somebody has to allow it."""
    if not context.tool_call_approved:
        raise ApprovalRequired(metadata={"why": city})
    ran.append(city)
    return f"went to {city}"


def retried(city: str) -> str:
    """The model should think again."""
    raise ModelRetry(f"{city} is no city")


def broken(city: str) -> str:
    """Breaks."""
    raise ValueError(f"no map of {city}")


@pytest.mark.parametrize(
    ("tool", "status", "said"),
    [
        (deferred, StatusCode.UNSET, "interrupted"),
        (guarded, StatusCode.UNSET, "interrupted"),
        (retried, StatusCode.ERROR, "error"),
        (broken, StatusCode.ERROR, "error"),
    ],
)
def test_control_flow_is_no_error_and_failures_are_whatever_the_model(tool: Any, status: StatusCode, said: str) -> None:
    def work() -> str:
        made: Agent[Any, Any] = Agent(TestModel(), output_type=[str, DeferredToolRequests], tools=[tool])
        try:
            return repr(ask(made, "Go.").output).partition("pyd_ai_")[0]
        except Exception as error:  # noqa: BLE001 - what an agent raises is compared
            return repr(error)

    alone = work()
    with recording() as rec:
        assert work() == alone
        tools = rec.of("execute_tool")
        assert {span.status.status_code for span in tools} == {status}
        assert {attribute(span, "spanreel.run.status") for span in tools} == {said}
        run = rec.one("invoke_agent")
        if said == "interrupted":
            assert attribute(run, "spanreel.run.status") == "interrupted"
            assert run.status.status_code is StatusCode.UNSET


def test_what_a_tool_waits_for_is_kept_and_it_waits_again(tmp_path: Path) -> None:
    def work() -> None:
        both = testing.answer(tool_calls=[call("deferred", city="Rome"), call("guarded", city="Bern")])
        made = agent(both, tools=[deferred, guarded], output_type=[str, DeferredToolRequests])
        output = ask(made, "Go.").output
        assert [one.tool_name for one in output.calls] == ["deferred"]
        assert [one.tool_name for one in output.approvals] == ["guarded"]
        assert sorted(map(str, output.metadata.values())) == ["{'queue': 'Rome'}", "{'why': 'Bern'}"]

    session = record(work, tmp_path)
    (run,) = session.runs
    assert run.status is Status.INTERRUPTED
    waits = {one.name: (one.status, one.result) for one in run.tool_calls()}
    assert waits == {
        "deferred": (Status.INTERRUPTED, {"deferred": "external", "metadata": {"queue": "Rome"}}),
        "guarded": (Status.INTERRUPTED, {"deferred": "approval", "metadata": {"why": "Bern"}}),
    }
    assert replayed(work, session).verdict is Verdict.PASS


def declared(city: str) -> str:
    """Somebody has to allow it, says its definition."""
    ran.append(city)
    return f"went to {city}"


@pytest.mark.parametrize("allowed", [True, False])
def test_a_run_that_waits_goes_on_with_what_it_waited_for(allowed: bool, tmp_path: Path) -> None:
    def work() -> None:
        asks = testing.answer(
            tool_calls=[call("declared", city="Rome"), call("guarded", city="Bern"), call("deferred", city="Ulm")]
        )
        made = agent(asks, DONE, output_type=[str, DeferredToolRequests], tools=[guarded, deferred])
        made.tool_plain(requires_approval=True)(declared)
        first = ask(made, "Go.")
        results = DeferredToolResults(
            approvals={one.tool_call_id: allowed for one in first.output.approvals},
            calls={one.tool_call_id: "done by hand" for one in first.output.calls},
        )
        second = ask(made, message_history=first.all_messages(), deferred_tool_results=results)
        assert second.output == "Done."

    session = record(work, tmp_path)
    assert sorted(ran) == (["Bern", "Rome"] if allowed else [])
    assert [run.status for run in session.runs] == [Status.INTERRUPTED, Status.OK]
    assert session.key.kind == "conversation"
    assert replayed(work, session).verdict is Verdict.PASS


def test_failures_that_the_model_hears_of_come_again(tmp_path: Path) -> None:
    def failed(city: str) -> str:
        """Gives up."""
        ran.append(city)
        raise ToolFailed(f"nobody knows {city}")

    def work() -> None:
        retry = testing.answer(tool_calls=[call("retried", city="Rome"), call("failed", city="Bern")])
        made = agent(retry, call("look", city=7), call("nowhere"), DONE, tools=[retried, failed, look], retries=3)
        assert ask(made, "Go.").output == "Done."

    session = record(work, tmp_path)
    found = [(one.name, one.status, one.error.type if one.error else None) for one in session.runs[0].tool_calls()]
    errors = "pydantic_ai.exceptions"
    assert found == [
        ("retried", Status.ERROR, f"{errors}.ModelRetry"),
        ("failed", Status.ERROR, f"{errors}.ToolFailed"),
        ("look", Status.ERROR, f"{errors}.ToolRetryError"),
        ("nowhere", Status.ERROR, f"{errors}.ToolRetryError"),
    ]
    assert replayed(work, session).verdict is Verdict.PASS


def test_a_failure_that_ends_the_run_ends_it_again(tmp_path: Path) -> None:
    def work() -> None:
        with pytest.raises(ValueError, match="no map of Rome"):
            ask(agent(call("broken", city="Rome"), DONE, tools=[broken]), "Go.")

    session = record(work, tmp_path)
    assert session.runs[0].status is Status.ERROR
    assert replayed(work, session).verdict is Verdict.PASS


# -- results: report 014 ----------------------------------------------------------------------------------------------


class Place(BaseModel):
    name: str
    at: dt.datetime


@dataclass
class Point:
    x: int
    y: tuple[int, ...]


class Silent:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


NOON = dt.datetime(2026, 3, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (NOON, "2026-03-01T12:00:00+02:00"),
        (Decimal("1.50"), "1.50"),
        (b"bytes", "Ynl0ZXM="),
        ({"b", "a"}, None),
        (Place(name="Rome", at=NOON), {"name": "Rome", "at": "2026-03-01T12:00:00+02:00"}),
        (Point(1, (2, 3)), {"x": 1, "y": [2, 3]}),
        ([float("nan"), 1.5], None),
        (None, None),
        ("text", "text"),
        (
            {"kind": "image-url", "url": "http://model.test/a.png"},
            {"kind": "image-url", "url": "http://model.test/a.png"},
        ),
        (ToolReturn("told", content="seen", metadata={"a": 1}), None),
        (BinaryContent(b"png", media_type="image/png"), None),
        ([BinaryContent(b"png", media_type="image/png"), "a picture"], None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_a_tool_gives_back_is_kept_as_the_model_reads_it_and_read_the_same_again(
    given: Any, kept: Any, tmp_path: Path
) -> None:
    def give() -> Any:
        """Give."""
        ran.append("give")
        return given

    def work() -> None:
        assert ask(agent(call("give"), DONE, tools=[give]), "Go.").output == "Done."

    session = record(work, tmp_path)
    (one,) = session.runs[0].tool_calls()
    if kept is not None:
        assert one.result == kept
    assert replayed(work, session).verdict is Verdict.PASS


@pytest.mark.parametrize("make", [Silent, lambda: [Silent()], object], ids=["object", "inside", "plain"])
def test_what_the_library_cannot_write_costs_only_itself(make: Any) -> None:
    def give() -> Any:
        """Give."""
        return make()

    def work() -> str:
        try:
            return str(ask(agent(call("give"), DONE, tools=[give]), "Go.").output)
        except Exception as error:  # noqa: BLE001 - what an agent raises is compared
            return type(error).__name__

    alone = work()
    with recording() as rec:
        assert work() == alone
        tool = rec.one("execute_tool")
        assert attribute(tool, "gen_ai.tool.name") == "give"
        assert content(tool, "gen_ai.tool.call.result") is not None
        assert rec.of("invoke_agent")


def test_side_effects_are_what_a_server_hints() -> None:
    @dataclass
    class Tool:
        tool_def: ToolDefinition

    @dataclass
    class Context:
        tool_call_id: str = "call_1"

    def read(metadata: dict[str, Any] | None) -> tuple[ToolKind, bool | None]:
        definition = ToolDefinition(name="t", metadata=metadata)
        request = read_tool(None, {"name": "t", "tool_args": {}, "ctx": Context(), "tool": Tool(definition)})
        return request.kind, request.side_effect

    assert read(None) == (ToolKind.FUNCTION, None)
    assert read({"meta": None, "annotations": None}) == (ToolKind.MCP, None)
    assert read({"meta": None, "annotations": {"readOnlyHint": True}}) == (ToolKind.MCP, False)
    assert read({"meta": None, "annotations": {"destructiveHint": True}}) == (ToolKind.MCP, True)
