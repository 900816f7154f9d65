"""MCP (release 2): what a client asks of a server, and connections, which lead nowhere in a replay.

A tool's call is a tool call, as a framework around it has it; the lists and prompts that were asked for are calls of
MCP's own, named by their methods.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from types import SimpleNamespace
from typing import Any

from spanreel.model import MCP_REQUESTS, Json, ToolKind
from spanreel.point import Framework, Kind, Point, RecordedError, ToolRequest, ToolResult

CALL = "tools/call"
_TRANSPORT = ("_meta", "task")


def read_request(_dispatcher: Any, arguments: Mapping[str, Any]) -> ToolRequest | None:
    """A client's request; a server asks its client other things by the same way."""
    method, given = arguments["method"], arguments.get("params") or {}
    asked = {name: value for name, value in given.items() if name not in _TRANSPORT}
    if method == CALL:
        return ToolRequest(str(asked.get("name")), asked.get("arguments") or {}, kind=ToolKind.MCP)
    return ToolRequest(method, asked, kind=ToolKind.MCP) if method in MCP_REQUESTS else None


def read_answer(result: Any) -> ToolResult:
    """The result as it was on the wire."""
    return ToolResult(result)


def rebuild_answer(recorded: ToolResult, arguments: Mapping[str, Any]) -> Any:
    """The recorded result; of a framework that has kept what it made of it, the content."""
    value = recorded.value
    if arguments["method"] != CALL or (isinstance(value, Mapping) and isinstance(value.get("content"), list)):
        return value
    text = value if isinstance(value, str) else _text(value)
    return {"content": [{"type": "text", "text": text}], "isError": False, "resultType": "complete"}


def _text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def refuse_again(recorded: RecordedError, arguments: Mapping[str, Any]) -> None:
    """A server's error, by its number where the recording has it."""
    from mcp.shared.exceptions import MCPError

    code, _, message = (recorded.message or "").strip("()").partition(", ")
    raise MCPError(int(code), message.rpartition(", ")[0].strip("'\""))


def lead_nowhere(_recorded: ToolResult, _arguments: Mapping[str, Any]) -> Any:
    """What stands for a server's process: it hears what it is told, and says nothing."""
    return _Silent()


def stream_nothing(_recorded: ToolResult, _arguments: Mapping[str, Any]) -> Any:
    """What stands for a server's events over SSE: it says where to post, and then nothing."""
    return _SilentEvents()


def say_nothing(_recorded: ToolResult, _arguments: Mapping[str, Any]) -> None:
    """A notification goes to nobody."""


class _Silent:
    """A process that ends when its input is closed, and the pipes to and from it."""

    def __init__(self) -> None:
        self.pid = 0
        self.returncode: int | None = None
        self.stdin = self.stdout = self
        self._over = asyncio.Event()

    async def send(self, _data: bytes) -> None:
        """Heard by nobody."""

    async def receive(self, _size: int = 0) -> bytes:
        """Nothing, until the end."""
        from anyio import EndOfStream

        await self._over.wait()
        raise EndOfStream

    async def aclose(self) -> None:
        """The end."""
        self.returncode = 0
        self._over.set()


class _SilentEvents:
    """A stream of events that was opened, and the response that it came with."""

    async def __aenter__(self) -> _SilentEvents:
        self.response = self
        return self

    async def __aexit__(self, *_: object) -> None:
        """The end."""

    def raise_for_status(self) -> None:
        """It went well."""

    async def __aiter__(self) -> AsyncIterator[SimpleNamespace]:
        yield SimpleNamespace(event="endpoint", data="")  # where it was asked for
        await asyncio.Event().wait()


def _requests(target: str) -> Point:
    return Point(target, Kind.TOOL, read_request, read_answer, rebuild_answer, raise_again=refuse_again, outermost=True)


def _connection(target: str, stand_in: Any) -> Point:
    return Point(target, Kind.CONNECTION, lambda _self, _arguments: None, read_answer, stand_in)


MCP = Framework(
    library="mcp",
    releases=">=2",
    points=(
        _requests("mcp.shared.jsonrpc_dispatcher:JSONRPCDispatcher.send_raw_request"),
        _requests("mcp.shared.direct_dispatcher:DirectDispatcher.send_raw_request"),
        _connection("mcp.shared.jsonrpc_dispatcher:JSONRPCDispatcher.notify", say_nothing),
        _connection("mcp.shared.direct_dispatcher:DirectDispatcher.notify", say_nothing),
        _connection("mcp.client.stdio:_create_platform_compatible_process", lead_nowhere),
        _connection("mcp.client.sse:sse_within_origin", stream_nothing),
    ),
)
