"""Makes `anthropic_mcp.otlp.jsonl`: a librarian on the Anthropic SDK 2.14, whose tools an MCP server has (SDK 2.3).

Both SDKs write their spans by themselves, without content by default; around them stands the application's own span.
``PYTHONPATH=src:tests python tests/golden/anthropic_mcp_dump.py > tests/golden/anthropic_mcp.otlp.jsonl``; with
``ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE=content`` the first has it: `anthropic_mcp_content.otlp.jsonl`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import anthropic
import httpx2
from mcp import Client
from mcp.server.mcpserver import MCPServer
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from golden import librarian

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(librarian.Lines()))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("library")
server = MCPServer("library")


@server.tool()
def find_book(title: str) -> dict[str, Any]:
    """Look a book up in the catalogue."""
    return librarian.find_book(title)


@server.tool()
def reserve(title: str) -> str:
    """Reserve a book."""
    return librarian.reserve(title)


def _use(identity: str, name: str, title: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": identity, "name": name, "input": {"title": title}}


ANSWERS = iter(
    (
        [{"type": "text", "text": "I look it up."}, _use("toolu_a", "find_book", "Momo")],
        [_use("toolu_b", "reserve", "Momo")],
        [{"type": "text", "text": "Momo is on shelf 4, and lent out."}],
        None,
    )
)


def provide(request: httpx2.Request) -> httpx2.Response:
    content = next(ANSWERS)
    if content is None:
        return httpx2.Response(529, json={"type": "error", "error": {"type": "overloaded_error", "message": "Later."}})
    asks = any(block["type"] == "tool_use" for block in content)
    usage = {"input_tokens": 40, "output_tokens": 12, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 5}
    body: dict[str, Any] = {
        "id": f"msg_{len(json.loads(request.content)['messages'])}",
        "type": "message",
        "role": "assistant",
    }
    body |= {"model": "claude-sonnet-5-20260101", "content": content, "usage": usage, "stop_sequence": None}
    return httpx2.Response(200, json={**body, "stop_reason": "tool_use" if asks else "end_turn"})


async def answer(client: anthropic.AsyncAnthropic, library: Client, messages: list[Any]) -> None:
    tools: Any = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
        for tool in (await library.list_tools()).tools
    ]
    while True:
        said = await client.messages.create(
            model="claude-sonnet-5", max_tokens=500, system="You are a librarian.", messages=messages, tools=tools
        )
        messages.append({"role": "assistant", "content": [block.model_dump() for block in said.content]})
        asked = [block for block in said.content if block.type == "tool_use"]
        if not asked:
            return
        results = []
        for block in asked:
            found = await library.call_tool(block.name, dict(block.input))
            text = [part.model_dump(include={"type", "text"}) for part in found.content]
            results.append(
                {"type": "tool_result", "tool_use_id": block.id, "content": text, "is_error": found.is_error}
            )
        messages.append({"role": "user", "content": results})


async def converse() -> None:
    transport = httpx2.AsyncClient(transport=httpx2.MockTransport(provide))
    client = anthropic.AsyncAnthropic(
        api_key="none", base_url="http://provider.test", http_client=transport, max_retries=0
    )
    messages: list[Any] = []
    async with Client(server) as library:
        for question in ("Where is Momo? Reserve it.", "And Krabat?"):
            messages.append({"role": "user", "content": question})
            with tracer.start_as_current_span("visit", attributes={"question": question}):
                try:
                    await answer(client, library, messages)
                except anthropic.APIStatusError as error:
                    sys.stderr.write(f"{type(error).__name__}: {error}\n")


asyncio.run(converse())
