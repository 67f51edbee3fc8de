"""A disk that is full, a folder that may not be written any more, a database that is locked or damaged in mid-run."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from model_plans import Scripted, plan_of, reply

from skillc.models import cache, concurrency
from skillc.models.cache import ReplyCache
from skillc.models.calls import Call, Message
from skillc.models.client import Client


@pytest.fixture(autouse=True)
def own_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls run on the loop of the test, also where an earlier test has started the shared one."""
    monkeypatch.setattr(concurrency, "SHARED_LOOP", concurrency.BackgroundLoop())


def ask(i: int) -> Call:
    return Call("target", "rollout", (Message("user", f"q{i}"),))


# As `ulimit -f` does, a limit on the size of files lets writing fail from some point on.
FULL = """
import asyncio, resource, signal, sys, warnings
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from model_plans import Scripted, plan_of, reply
from skillc.models.calls import Call, Message
from skillc.models.client import Client

def ask(i): return Call("target", "rollout", (Message("user", f"q{i}"),))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
transport = Scripted(lambda sent: reply("x" * 4000))
with warnings.catch_warnings(record=True) as told, Client(
    plan_of(), cache_folder=Path(sys.argv[1]), transport=transport
) as client:
    warnings.simplefilter("always")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    async def many(numbers): return await asyncio.gather(*[client.complete(ask(i)) for i in numbers])
    asyncio.run(many(range(3)))
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    asyncio.run(many(range(3, 60)))
    assert len(transport.sent) == 60, len(transport.sent)
    asyncio.run(many(range(3)))
    assert len(transport.sent) == 60, "what was kept is still read"
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    asyncio.run(many([100]))
    asyncio.run(many([100]))
    assert len(transport.sent) == 61, "once there is room, replies are kept again"
said = [str(w.message) for w in told if w.category is UserWarning]
assert len(said) == 1, said
print(said[0])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit")
def test_a_full_disk_is_told_once_and_costs_money_never_the_run(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FULL, str(tmp_path / "cache"), str(Path(__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "cannot be written" in done.stdout
    with sqlite3.connect(tmp_path / "cache" / "cache.db") as base:
        assert base.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_write_that_fails_leaves_no_open_transaction(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path)
    asyncio.run(cache.put("a", "1"))
    cache._disk._sql("PRAGMA max_page_count = 1")
    with pytest.warns(UserWarning, match="full"):
        asyncio.run(cache.put("b", "x" * 500_000))
    with sqlite3.connect(tmp_path / "cache.db", timeout=0) as other:
        other.execute("UPDATE Settings SET value = value WHERE key = 'count'")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(cache.put("c", "3"))
    assert asyncio.run(cache.get("c")) == "3"
    assert asyncio.run(cache.get("b")) is None


class ReadOnly:
    """A database whose file system was mounted anew without the right to write."""

    def __init__(self, cache: ReplyCache) -> None:
        cache._disk._sql("PRAGMA query_only = 1")


def test_a_database_that_may_only_be_read_is_told_at_once(tmp_path: Path) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    cache = ReplyCache(tmp_path, sleep)
    asyncio.run(cache.put("a", "1"))
    ReadOnly(cache)
    with pytest.warns(UserWarning, match="readonly"):
        asyncio.run(cache.put("b", "2"))
    assert not slept
    assert asyncio.run(cache.get("a")) == "1"


def test_a_locked_database_holds_nobody_up_and_is_given_up_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_ALL_TRIES", 2.0)

    async def scenario() -> None:
        with Client(plan_of(), cache_folder=tmp_path, transport=Scripted()) as client:
            other = sqlite3.connect(tmp_path / "cache.db", isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            turns: list[float] = []

            async def sleep(seconds: float) -> None:
                turns.append(seconds)
                if len(turns) == 5:
                    other.execute("COMMIT")
                await asyncio.sleep(0)

            client._cache._sleep = sleep
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert (await client.complete(ask(1))).text == "hi"
            assert len(turns) == 5
            assert (await client.complete(ask(1))).cached
            other.execute("BEGIN IMMEDIATE")
            with pytest.warns(UserWarning, match="locked"):
                assert (await client.complete(ask(2))).text == "hi"
            assert sum(turns[5:]) == pytest.approx(2, abs=0.1)
            other.close()

    asyncio.run(scenario())


def test_a_database_that_is_damaged_in_mid_run_is_told_once(tmp_path: Path) -> None:
    transport = Scripted(lambda sent: reply("x" * 3000))

    async def many(client: Client) -> list[Any]:
        return [await client.complete(ask(i)) for i in range(40)]

    with Client(plan_of(), cache_folder=tmp_path, transport=transport) as client:
        asyncio.run(many(client))
    with (tmp_path / "cache.db").open("r+b") as file:
        file.seek(8 * 4096)
        file.write(b"\xff" * 60 * 4096)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with Client(plan_of(), cache_folder=tmp_path, transport=transport) as client:
            assert len(asyncio.run(many(client))) == 40
    assert len([w for w in told if w.category is UserWarning]) == 1
