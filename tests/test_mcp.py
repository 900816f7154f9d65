"""MCP tools of the OpenAI Agents SDK, with a real server over stdio. Report 001: tracing changes no result."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import agents
import pytest
from agents import Agent, Runner
from agents.mcp import MCPServerStdio
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import StatusCode

import spanreel
from recording import attribute, content, recording
from spanreel import opening
from wire_server import Model, completion

pytestmark = pytest.mark.slow

SERVER = str(Path(__file__).with_name("mcp_server.py"))


@pytest.fixture(autouse=True)
def quiet() -> None:
    agents.set_tracing_disabled(True)
    agents.set_default_openai_api("chat_completions")


async def ask(tool: str) -> list[dict[str, Any]]:
    """Run an agent whose model asks for one tool; what the model was asked in the end."""

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        if any(message["role"] == "tool" for message in body["messages"]):
            return completion("Done.")
        call = {"id": "call_1", "type": "function", "function": {"name": tool, "arguments": "{}"}}
        return completion("", tool_calls=[call])

    model = Model(answer)
    agents.set_default_openai_client(model.async_client(max_retries=0), use_for_tracing=False)
    async with MCPServerStdio(
        {"command": sys.executable, "args": [SERVER]}, client_session_timeout_seconds=600
    ) as server:
        await Runner.run(Agent(name="a", model="m", mcp_servers=[server]), "go")
    messages: list[dict[str, Any]] = json.loads(model.asked[-1])["messages"]
    return messages


async def test_an_mcp_tool_is_one_tool_call_of_its_kind_and_its_server_hears_of_the_trace() -> None:
    with recording() as rec:
        messages = await ask("trace_of")
        tool = rec.named("execute_tool trace_of")
        assert attribute(tool, "spanreel.tool.kind") == "mcp"
        assert attribute(tool, "gen_ai.tool.call.id") == "call_1"
        assert tool.context is not None
        assert format(tool.context.trace_id, "032x") in json.dumps(messages)
        assert content(tool, "gen_ai.tool.call.result") is not None


@pytest.mark.parametrize("way", ["no provider", "sampler drops all", "our fault"])
async def test_a_failing_tool_s_picture_comes_back_whatever_tracing_does(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = await ask("picture")
    if way == "no provider":
        monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
        spanreel.instrument()
    elif way == "sampler drops all":
        spanreel.instrument(tracer_provider=TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False))
    else:

        def broken(*_: Any) -> Any:
            raise ZeroDivisionError("our fault")

        monkeypatch.delenv("SPANREEL_STRICT", raising=False)
        monkeypatch.setattr(opening, "snapshot", broken)
        spanreel.instrument(tracer_provider=TracerProvider(shutdown_on_exit=False))
    try:
        assert await ask("picture") == expected
    finally:
        spanreel.uninstrument()


async def test_a_picture_of_an_mcp_tool_is_recorded() -> None:
    with recording() as rec:
        await ask("picture")
        tool = rec.named("execute_tool picture")
        assert "image" in json.dumps(content(tool, "gen_ai.tool.call.result"))
        assert tool.status.status_code in (StatusCode.UNSET, StatusCode.ERROR)
