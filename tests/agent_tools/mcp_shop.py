"""A small MCP server for tests: `python mcp_shop.py` over stdio, `python mcp_shop.py PORT` over HTTP."""

import os
import sys
import time
from typing import Annotated

from mcp.server.mcpserver import MCPServer
from pydantic import Field

server = MCPServer("shop")


@server.tool()
def find_order(number: Annotated[str, Field(description="the order's number")]) -> str:
    """Find an order by its number."""
    return f"order {number}: a lamp, {os.environ.get('SHOP_STATE', 'late')}"


@server.tool()
def fail(reason: str) -> str:
    """Fail with a reason."""
    raise ValueError(reason)


@server.tool()
def die() -> str:
    """End the server."""
    os._exit(3)


@server.tool()
def hang() -> str:
    """Never answer."""
    time.sleep(3600)
    return ""


@server.tool()
def freeze() -> str:
    """Stop the whole server."""
    import signal

    os.kill(os.getpid(), signal.SIGSTOP)
    return ""


@server.tool()
def much() -> str:
    """Return a long text."""
    return "begin " + "x" * 200_000 + " end"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        print("shop is ready", file=sys.stderr)
        server.run()
