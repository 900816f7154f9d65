"""An MCP server over stdio, for the tests of replay: whatever happens to it stands in the file of ``LEDGER``."""

from __future__ import annotations

import os
from pathlib import Path

from mcp.server.mcpserver import MCPServer

server = MCPServer("shop", instructions="Ask for prices first.")


def note(what: str) -> None:
    with Path(os.environ["LEDGER"]).open("a") as ledger:
        ledger.write(what + "\n")


@server.tool()
def price(item: str, currency: str = "EUR") -> str:
    """What an item costs."""
    note(f"price {item}")
    return f"{item}: 7 {currency}"


@server.tool()
def order(item: str) -> str:
    """Order an item."""
    note(f"order {item}")
    raise ValueError(f"no {item} left")


if __name__ == "__main__":
    note("started")
    server.run("stdio")
