"""Tools of MCP servers: a small server made with the SDK, over stdio and HTTP, and its faults."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from skillc.errors import SkillcError
from skillc.processes.guard import alive
from skillc.tools import servers
from skillc.tools.tool import ToolLimits, ToolServerDown, call_tool
from skillc.tools.toolbox import Toolbox

pytest.importorskip("mcp")
SHOP = Path(__file__).with_name("mcp_shop.py")
COMMAND = f"{sys.executable} {SHOP}"
QUICK = ToolLimits(0.4, 1000)
LONG = ToolLimits(30.0, 50)


def mcp(text, **options):
    return {"function": "mcp", "arguments": [text], **options}


@contextlib.contextmanager
def served():
    """A server over HTTP, by its address, and its process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, str(SHOP), str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port)).close()
                break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


def test_a_command_serves_tools_and_its_faults_are_told_from_failed_tools(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(servers, "PROBE", 0.3)
    monkeypatch.setenv("SHOP_STATE", "on its way")
    box = Toolbox([mcp(COMMAND, environment=[{"function": "env", "arguments": ["SHOP_STATE"]}])], tmp_path)
    tools = box.tools
    assert tools["find_order"].about == "Find an order by its number."
    assert tools["find_order"].arguments["number"]["description"] == "the order's number"
    assert tools["find_order"].required == ("number",)

    async def scenario():
        found = await call_tool(tools["find_order"], {"number": "7"}, LONG)
        assert (found.text, found.failed) == ("order 7: a lamp, on its way", False)
        failed = await call_tool(tools["fail"], {"reason": "no"}, LONG)
        assert failed.failed
        assert failed.text.startswith("error: ")
        much = await call_tool(tools["much"], {}, LONG)
        assert much.text.startswith("begin xx")
        assert len(much.text) < 300
        late = await call_tool(tools["hang"], {}, QUICK)
        assert (late.text, late.failed) == ("error: no result within 0.4 seconds", True)
        with pytest.raises(ToolServerDown, match="died in a call of `die`"):
            await call_tool(tools["die"], {}, LONG)
        again = await call_tool(tools["find_order"], {"number": "8"}, LONG)
        assert again.text == "order 8: a lamp, on its way"
        for _ in range(2):
            with pytest.raises(ToolServerDown, match="died in a call of `die`"):
                await call_tool(tools["die"], {}, LONG)
        with pytest.raises(ToolServerDown, match="died again after a restart"):
            await call_tool(tools["find_order"], {"number": "9"}, LONG)
        await box.close()

    asyncio.run(scenario())
    assert not _running(COMMAND)


@pytest.mark.thorough
def test_a_server_that_stops_answering_is_down_and_is_replaced(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(servers, "PROBE", 0.3)
    box = Toolbox([mcp(COMMAND)], tmp_path)

    async def scenario():
        with pytest.raises(ToolServerDown, match="hangs since a call of `freeze`"):
            await call_tool(box.tools["freeze"], {}, QUICK)
        found = await call_tool(box.tools["find_order"], {"number": "7"}, LONG)
        assert found.text.startswith("order 7")
        await box.close()

    asyncio.run(scenario())
    assert not _running(COMMAND)


@pytest.mark.thorough
def test_an_address_serves_tools_and_is_down_when_its_server_is(tmp_path, monkeypatch) -> None:
    async def scenario(address):
        box = Toolbox([mcp(address)], tmp_path)
        found = await call_tool(box.tools["find_order"], {"number": "7"}, LONG)
        assert found.text == "order 7: a lamp, late"
        for _ in range(2):
            with pytest.raises(ToolServerDown):
                await call_tool(box.tools["die"], {}, LONG)
        await box.close()

    with served() as address:
        asyncio.run(scenario(address))


def test_a_command_that_does_not_start_shows_what_it_printed(tmp_path) -> None:
    (tmp_path / "broken.py").write_text("raise SystemExit('the shop has no key')\n")
    with pytest.raises(SkillcError, match="the shop has no key") as raised:
        Toolbox([mcp(f"{sys.executable} broken.py")], tmp_path)
    assert "in a terminal" in str(raised.value.hint)
    with pytest.raises(SkillcError, match="`no-such-server` is not installed"):
        Toolbox([mcp("no-such-server --stdio")], tmp_path)


def test_an_address_without_a_server_and_a_missing_variable_are_refused_before_the_first_call(tmp_path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/mcp"
    with pytest.raises(SkillcError, match="cannot be used"):
        Toolbox([mcp(address)], tmp_path)
    with pytest.raises(SkillcError, match="`NO_SUCH_TOKEN`"):
        Toolbox([mcp(address, key={"function": "env", "arguments": ["NO_SUCH_TOKEN"]})], tmp_path)


def _running(command):
    """The processes with a command line, dead ones aside."""
    found = []
    for name in os.listdir("/proc") if Path("/proc").is_dir() else ():
        with contextlib.suppress(OSError):
            line = Path("/proc", name, "cmdline").read_bytes().replace(b"\0", b" ").decode()
            if name.isdigit() and line.strip() == command and alive({int(name)}, ""):
                found.append(name)
    return found
