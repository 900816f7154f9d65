"""What tools change beside their arguments, in a replay: their own `self`, and what frameworks let them share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import agents
import pydantic
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import dynamic_prompt
from langchain.tools import ToolRuntime
from langchain_core.tools import StructuredTool, tool
from langchain_openai import ChatOpenAI
from pydantic_ai import Agent, RunContext
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

import spanreel
from kinds import Scene, hand_written, play, record, script
from spanreel.replay.judging.verdict import Verdict
from spanreel.session import Session
from spanreel.session_files import read_session, write_session
from wire_server import calls, completion


@dataclass
class Order:
    id: str
    paid: Decimal = Decimal(0)


class Tally(pydantic.BaseModel):
    seen: int = 0


class Unprintable:
    """As a row of a database is, which is asked for when it is printed."""

    def __repr__(self) -> str:
        raise AssertionError("nobody may look")


@dataclass
class Desk:
    """What an agent's tools share."""

    stock: int = 5
    orders: dict[str, Order] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    connection: Unprintable = field(default_factory=Unprintable)
    newest: Order | None = None

    def sell(self, order: str) -> str:
        self.stock -= 1
        self.newest = self.orders[order] = Order(order, Decimal("12.50"))
        self.log.append(order)
        self.tally = Tally(seen=self.tally.seen + 1)
        return "sold"

    def state(self) -> tuple[Any, ...]:
        return self.stock, self.orders, self.log, self.tally, self.newest


class Shop(Desk):
    @spanreel.tool()
    def sell(self, order: str) -> str:
        return super().sell(order)


def test_what_a_method_changes_of_its_own_object_is_changed_again(tmp_path: Path) -> None:
    states: list[Any] = []

    def before() -> None:
        shop, log = Shop(), [""]
        shop.log = log
        for order in ("A", "B"):
            shop.sell(order)
        states.append((shop.state(), log))

    scene = Scene(script(completion("Done.")), before=before)
    session = record(lambda: hand_written(scene), tmp_path)
    assert play(reread(session), hand_written, scene).verdict is Verdict.PASS
    first, second = states
    assert second == first
    assert second[0][0] == 3
    assert second[1] == ["", "A", "B"], "who holds the very list sees it change"


def test_what_is_no_value_is_neither_printed_nor_changed(tmp_path: Path) -> None:
    class Client:
        def __init__(self) -> None:
            self.connection: Any = None

        @spanreel.tool()
        def connect(self) -> str:
            self.connection = Unprintable()
            return "connected"

    clients: list[Client] = []

    def before() -> None:
        clients.append(Client())
        clients[-1].connect()

    scene = Scene(script(completion("Done.")), before=before)
    session = record(lambda: hand_written(scene), tmp_path)
    assert play(reread(session), hand_written, scene).verdict is Verdict.PASS
    assert clients[1].connection is None


def test_what_is_large_is_left_alone(tmp_path: Path) -> None:
    class Index:
        def __init__(self) -> None:
            self.words = list(range(10_000))

        @spanreel.tool()
        def add(self, word: int) -> int:
            self.words.append(word)
            return len(self.words)

    scene = Scene(script(completion("Done.")), before=lambda: Index().add(1))
    session = record(lambda: hand_written(scene), tmp_path)
    (call,) = (call for run in session.runs for call in run.tool_calls())
    assert call.arguments_after is None


def counts() -> dict[str, int]:
    return {"Z": 1}


async def by_agents_sdk(scene: Scene, shared: Any) -> str:
    @agents.function_tool
    def sell(context: agents.RunContextWrapper[Any], order: str) -> str:
        return sell_in(context.context, order)

    async with scene.async_client() as client:
        agent = agents.Agent(
            name="clerk",
            instructions=lambda context, _: told_of(context.context),
            model=agents.OpenAIChatCompletionsModel("gpt-5", client),
            tools=[sell],
        )
        return str((await agents.Runner.run(agent, scene.question, context=shared)).final_output)


async def by_pydantic_ai(scene: Scene, shared: Any) -> str:
    async with scene.async_client() as client:
        model = OpenAIChatModel("gpt-5", provider=OpenAIProvider(openai_client=client))
        agent = Agent(model, deps_type=object)

        @agent.instructions
        def instructions(context: RunContext[Any]) -> str:
            return told_of(context.deps)

        @agent.tool
        def sell(context: RunContext[Any], order: str) -> str:
            return sell_in(context.deps, order)

        return (await agent.run(scene.question, deps=shared)).output


async def by_langchain(scene: Scene, shared: Any) -> str:
    @tool
    def sell(order: str, runtime: ToolRuntime[Any]) -> str:
        """Sell a book."""
        return sell_in(runtime.context, order)

    @dynamic_prompt
    def prompt(request: Any) -> str:
        return told_of(request.runtime.context)

    async with scene.async_client() as client:
        model = ChatOpenAI(model="gpt-5", api_key="k", async_client=client.chat.completions, base_url=scene.url)
        graph: Any = create_agent(model, [sell], middleware=[prompt], context_schema=type(shared))
        given = await graph.ainvoke({"messages": [("user", scene.question)]}, context=shared)
        return str(given["messages"][-1].content)


def sell_in(shared: Any, order: str) -> str:
    if isinstance(shared, Desk):
        return shared.sell(order)
    shared[order] = shared.get(order, 0) + 1
    return "sold"


def told_of(shared: Any) -> str:
    return f"So far: {shared.state() if isinstance(shared, Desk) else shared}"


@pytest.mark.parametrize("make", [Desk, counts])
@pytest.mark.parametrize("run", [by_agents_sdk, by_pydantic_ai, by_langchain])
def test_what_a_framework_lets_tools_share_is_changed_again(
    run: Callable[[Scene, Any], Any], make: Callable[[], Any], tmp_path: Path
) -> None:
    agents.set_tracing_disabled(True)
    shared: list[Any] = []

    def kind(scene: Scene) -> str:
        shared.append(make())
        return str(asyncio.run(run(scene, shared[-1])))

    asked = [calls((f"c{number}", "sell", {"order": order})) for number, order in enumerate("AB")]
    scene = Scene(script(*asked, completion("Done.")))
    session = record(lambda: kind(scene), tmp_path)
    report = play(reread(session), kind, scene)
    assert report.verdict is Verdict.PASS, report.reasons
    first, second = shared
    assert told_of(second) == told_of(first)


def test_a_langchain_tool_that_is_a_method_shares_its_object(tmp_path: Path) -> None:
    desks: list[Desk] = []

    def before() -> None:
        desks.append(Desk())
        StructuredTool.from_function(desks[-1].sell, name="sell", description="Sell a book.").invoke({"order": "A"})

    scene = Scene(script(completion("Done.")), before=before)
    session = record(lambda: hand_written(scene), tmp_path)
    assert play(reread(session), hand_written, scene).verdict is Verdict.PASS
    first, second = desks
    assert second.state() == first.state()
    assert second.stock == 4


def test_without_content_nothing_of_what_is_shared_is_kept(tmp_path: Path) -> None:
    scene = Scene(script(completion("Done.")), before=lambda: Shop().sell("A"))
    settings = spanreel.read_settings({"SPANREEL_CAPTURE": "metadata"})
    session = record(lambda: hand_written(scene), tmp_path, settings=settings)
    assert "12.50" not in write_session(session)


def reread(session: Session) -> Session:
    return read_session(write_session(session))
