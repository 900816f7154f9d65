"""MCP in a replay: servers are neither started nor contacted; lists and calls come from the recording."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import agents
import pytest
import uvicorn
from agents.mcp import MCPServerStdio
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.sse import sse_client
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

import mcp_shop
import spanreel
from acceptance import case
from kinds import Scene, record, script
from loopback import offline
from spanreel.replay.judging.verdict import Verdict
from spanreel.session import Session
from wire_server import calls, completion

pytestmark = pytest.mark.slow

SERVER = str(Path(__file__).with_name("mcp_shop.py"))
SHOPPING = script(
    calls(("call_1", "price", {"item": "tea"})),
    calls(("call_2", "order", {"item": "tea"})),
    completion("There is no tea."),
)
Shop = Callable[[Scene, Path], str]


def started(ledger: Path) -> dict[str, Any]:
    return {"command": sys.executable, "args": [SERVER], "env": {"LEDGER": str(ledger)}}


def openai_agents(scene: Scene, ledger: Path) -> str:
    async def shop() -> str:
        given: Any = started(ledger)
        patient = MCPServerStdio(given, client_session_timeout_seconds=600)  # the shop's start may take its time
        async with scene.async_client() as client, patient as server:
            model = agents.OpenAIChatCompletionsModel("gpt-5", client)
            agent = agents.Agent(name="shopper", instructions="Shop.", model=model, mcp_servers=[server])
            return str((await agents.Runner.run(agent, "Tea?")).final_output)

    agents.set_tracing_disabled(True)
    return asyncio.run(shop())


def pydantic_ai(scene: Scene, ledger: Path) -> str:
    from fastmcp.client.transports import StdioTransport

    async def shop() -> str:
        toolset: Any = MCPToolset(
            StdioTransport(sys.executable, [SERVER], env={"LEDGER": str(ledger)}), init_timeout=600
        )
        async with scene.async_client() as client:
            model = OpenAIChatModel("gpt-5", provider=OpenAIProvider(openai_client=client))
            return (await Agent(model, name="shopper", toolsets=[toolset]).run("Tea?")).output

    return asyncio.run(shop())


@asynccontextmanager
async def connected(ledger: Path) -> AsyncIterator[ClientSession]:
    given = started(ledger)
    async with (
        stdio_client(StdioServerParameters(**given)) as (read, write),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        yield session


def hand_written(scene: Scene, ledger: Path) -> str:
    """A loop of one's own on the MCP client, which is connected before the run and lists inside of it."""

    @spanreel.run(agent="shopper")
    async def loop(question: str, session: ClientSession) -> str:
        listed = (await session.list_tools()).tools
        offered: Any = [
            {"type": "function", "function": {"name": one.name, "parameters": one.input_schema}} for one in listed
        ]
        messages: list[Any] = [{"role": "user", "content": question}]
        async with scene.async_client() as client:
            while True:
                answer = await client.chat.completions.create(model="gpt-5", messages=messages, tools=offered)
                message = answer.choices[0].message.to_dict()
                messages.append(message)
                asked: Any = message.get("tool_calls")
                if not asked:
                    return str(message["content"])
                for call in asked:
                    arguments = json.loads(call["function"]["arguments"])
                    result = await session.call_tool(call["function"]["name"], arguments)
                    said = "".join(part.text for part in result.content if part.type == "text")
                    messages.append({"role": "tool", "tool_call_id": call["id"], "content": said})

    async def shop() -> str:
        async with connected(ledger) as session:
            return await loop("Tea?", session)

    return asyncio.run(shop())


@pytest.fixture(params=[hand_written, openai_agents, pydantic_ai], ids=lambda shop: shop.__name__)
def shop(request: pytest.FixtureRequest) -> Any:
    return request.param


def recorded(shop: Shop, tmp_path: Path) -> tuple[Session, Scene, Path]:
    ledger, scene = tmp_path / "ledger", Scene(SHOPPING)
    session = record(lambda: shop(scene, ledger), tmp_path)
    assert ledger.read_text().split() == ["started", "price", "tea", "order", "tea"]
    ledger.unlink()
    return session, scene, ledger


def named(session: Session, name: str) -> list[Any]:
    return [call for run in session.runs for call in run.tool_calls() if call.name == name]


@case(19, "hand_written", "openai_agents", "pydantic_ai")
def test_19_a_server_is_neither_started_nor_asked(shop: Shop, tmp_path: Path) -> None:
    session, scene, ledger = recorded(shop, tmp_path)
    listed, *again = named(session, "tools/list")  # the OpenAI Agents SDK asks in each turn
    assert len(again) == (2 if shop is openai_agents else 0)
    assert [tool["name"] for tool in listed.result["tools"]] == ["price", "order"]
    assert listed.kind == "mcp"
    with offline(), spanreel.replay(session) as playing:
        assert shop(scene, ledger) == "There is no tea."
    assert playing.verdict is Verdict.PASS
    assert not ledger.exists()
    assert playing.report is not None
    assert playing.report.tool_calls.matched >= 3
    assert not any("program" in note for note in playing.report.notes)


def test_19_a_changed_list_is_one_finding(shop: Shop, tmp_path: Path) -> None:
    session, scene, ledger = recorded(shop, tmp_path)
    for listed in named(session, "tools/list"):
        listed.result["tools"][1]["description"] = "Order something else."
        listed.result["tools"][1]["inputSchema"]["properties"]["many"] = {"type": "integer"}
    with spanreel.replay(session, check=False) as playing:
        shop(scene, ledger)
    assert playing.report is not None
    assert playing.verdict is Verdict.FAIL
    assert playing.report.misses == 1
    assert "/tools/1" in playing.report.reasons[0]


def test_a_list_that_was_not_recorded_is_made_of_the_tools_that_models_were_offered(shop: Shop, tmp_path: Path) -> None:
    session, scene, ledger = recorded(shop, tmp_path)
    for run in session.runs:
        run.loose_tool_calls = [call for call in run.loose_tool_calls if call.name != "tools/list"]
        for turn in run.turns:
            turn.tool_calls = [call for call in turn.tool_calls if "/" not in call.name and call.name != "initialize"]
    assert named(session, "tools/list") == []
    with spanreel.replay(session) as playing:
        assert shop(scene, ledger) == "There is no tea."
    assert playing.report is not None
    assert any("made of the tools that models were offered" in note for note in playing.report.notes)
    assert not ledger.exists()


def test_a_tool_that_may_run_is_called_at_its_server(shop: Shop, tmp_path: Path) -> None:
    session, scene, ledger = recorded(shop, tmp_path)
    policy = {"tool_policy": {"tools": {"price": {"type": "passthrough"}}}}
    with spanreel.replay(session, changes=policy, check=False) as playing:
        assert shop(scene, ledger) == "There is no tea."
    assert playing.verdict is Verdict.PASS
    assert ledger.read_text().split() == ["started", "price", "tea"]


def test_a_list_before_any_run_leaves_no_session_behind(tmp_path: Path) -> None:
    async def list_twice() -> list[str]:
        async with connected(tmp_path / "ledger") as session:
            return [tool.name for tool in (await session.list_tools()).tools]

    def work() -> str:
        assert asyncio.run(list_twice()) == ["price", "order"]
        return hand_written(Scene(SHOPPING), tmp_path / "ledger")

    session = record(work, tmp_path)
    assert len(session.runs) == 1
    with spanreel.replay(session) as playing:
        assert work() == "There is no tea."
    assert playing.verdict is Verdict.PASS


@pytest.fixture
def shop_over_sse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of the shop, in a thread of its own."""
    monkeypatch.setenv("LEDGER", str(tmp_path / "ledger"))
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(mcp_shop.server.sse_app(), log_level="error", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/sse"
    server.should_exit = True
    thread.join()


@case(19, "hand_written")
def test_19_a_server_over_sse_is_not_contacted(shop_over_sse: str, tmp_path: Path) -> None:
    @spanreel.run(agent="shopper")
    async def visit(session: ClientSession) -> str:
        names = [tool.name for tool in (await session.list_tools()).tools]
        said = await session.call_tool("price", {"item": "tea"})
        return f"{names} {said.content[0].text}"  # type: ignore[union-attr]  # it is text

    async def shop() -> str:
        async with sse_client(shop_over_sse) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            return await visit(session)

    came: list[str] = []
    session = record(lambda: came.append(asyncio.run(shop())), tmp_path)
    assert came == ["['price', 'order'] tea: 7 EUR"]
    assert (tmp_path / "ledger").read_text() == "price tea\n"
    with offline(), spanreel.replay(session) as playing:
        came.append(asyncio.run(shop()))
    assert came[1] == came[0]
    assert playing.verdict is Verdict.PASS
    assert (tmp_path / "ledger").read_text() == "price tea\n"
