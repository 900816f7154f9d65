"""An MCP server over stdio, for the tests of MCP tools: one tool that says what trace it is in, one that fails."""

from __future__ import annotations

import base64

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import CallToolResult, ImageContent

server = MCPServer("test")


@server.tool()
def trace_of(context: Context) -> str:
    """The traceparent that came with the request."""
    meta = context.request_context.meta
    return str(meta.get("traceparent")) if isinstance(meta, dict) else str(getattr(meta, "traceparent", None))


@server.tool()
def picture() -> CallToolResult:
    """Fails with a picture."""
    image = ImageContent(type="image", data=base64.b64encode(b"png").decode(), mime_type="image/png")
    return CallToolResult(content=[image], is_error=True)


if __name__ == "__main__":
    server.run("stdio")
