"""One flight per key, whoever asks: threads with clients and loops of their own, and processes that may be killed."""

from __future__ import annotations

import asyncio
import gc
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from model_plans import Scripted, plan_of, reply

from skillc.models import cache, concurrency
from skillc.models.cache import Claims
from skillc.models.calls import Call, Completion, Message
from skillc.models.client import Client

WORKER = Path(__file__).with_name("flight_worker.py")
KEY, OTHER = "a" * 64, "b" * 64

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no record locks")


@pytest.fixture(autouse=True)
def own_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls run on the loop of the test, also where an earlier test has started the shared one."""
    monkeypatch.setattr(concurrency, "SHARED_LOOP", concurrency.BackgroundLoop())


def ask(name: str) -> Call:
    return Call("target", "rollout", (Message("user", name),))


@contextmanager
def worker(folder: Path, how: str, *names: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(WORKER), str(folder), how, *names]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


class Waits:
    """A client's waits: they pass quickly, and the first one is reported."""

    def __init__(self, client: Client) -> None:
        self.first = asyncio.Event()
        client._claims._sleep = self

    async def __call__(self, seconds: float) -> None:
        self.first.set()
        await asyncio.sleep(0.002)


def waited_for(folder: Path, process: subprocess.Popen[str], end: Any) -> tuple[Completion, int]:
    """What a client gets that asked while a process had the key in flight, and what it sent itself."""
    transport = Scripted(lambda sent: reply("my own"))

    async def scenario() -> Completion:
        with Client(plan_of(), cache_folder=folder / "cache", transport=transport) as client:
            waits = Waits(client)
            asking = asyncio.create_task(client.complete(ask("x")))
            await waits.first.wait()
            assert not transport.sent
            end()
            return await asking

    assert line_of(process) == "sent"
    return asyncio.run(scenario()), len(transport.sent)


def test_processes_that_ask_for_the_same_keys_send_each_one_once(tmp_path: Path) -> None:
    names = [f"q{i}" for i in range(12)]
    with (
        worker(tmp_path, "quick", *names) as one,
        worker(tmp_path, "quick", *reversed(names)) as two,
        worker(tmp_path, "quick", *names[6:], *names[:6]) as three,
    ):
        processes = (one, two, three)
        for process in processes:
            assert line_of(process) == "ready"
        for process in processes:
            tell(process, "go")
        told = [process.communicate(timeout=600)[0].splitlines() for process in processes]
    sent = (tmp_path / "sent.txt").read_text().splitlines()
    assert sorted(sent) == sorted(names)
    lines = [line for lines in told for line in lines]
    assert len(lines) == 36
    assert {line.split(",")[0] for line in lines} == {f"answer to {name}" for name in names}
    assert sum(line.endswith("fetched") for line in lines) == 12


def test_a_second_process_takes_the_reply_of_the_first(tmp_path: Path) -> None:
    with worker(tmp_path, "wait", "x") as process:
        completion, sent = waited_for(tmp_path, process, lambda: tell(process, "reply"))
    assert (completion.text, completion.cached, sent) == ("answer to x", True, 0)


def test_a_holder_that_is_killed_holds_nothing(tmp_path: Path) -> None:
    with worker(tmp_path, "wait", "x") as process:
        completion, sent = waited_for(tmp_path, process, lambda: process.send_signal(signal.SIGKILL))
    assert (completion.text, completion.cached, sent) == ("my own", False, 1)


def test_an_error_is_not_shared_the_waiter_sends_for_itself(tmp_path: Path) -> None:
    with worker(tmp_path, "wait", "x") as process:
        completion, sent = waited_for(tmp_path, process, lambda: tell(process, "fail"))
    assert (completion.text, completion.cached, sent) == ("my own", False, 1)


def test_a_stopped_holder_is_waited_for_no_longer_than_one_attempt_may_take(tmp_path: Path) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def scenario() -> None:
        holder, waiter = Claims(tmp_path), Claims(tmp_path, sleep)
        claim = await holder.take(KEY, 0)
        assert claim is not None
        assert await waiter.take(KEY, 300) is None
        assert sum(slept) == pytest.approx(300, abs=0.3)
        assert slept == sorted(slept)
        claim.free()
        assert await waiter.take(KEY, 0) is not None
        holder.close()
        waiter.close()

    asyncio.run(scenario())
    assert not cache._FILES


def test_whoever_is_cancelled_while_waiting_leaves_nothing_behind(tmp_path: Path) -> None:
    with worker(tmp_path, "wait", "x") as process:
        assert line_of(process) == "sent"

        async def scenario() -> None:
            with Client(plan_of(), cache_folder=tmp_path / "cache", transport=Scripted()) as client:
                waits = Waits(client)
                asking = asyncio.create_task(client.complete(ask("x")))
                await waits.first.wait()
                asking.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await asking
                assert client.ledger.charged.reserved.calls == 0
                assert not client._flights._tasks
                tell(process, "reply")
                assert (await client.complete(ask("x"))).text == "answer to x"

        asyncio.run(scenario())


def test_whoever_is_cancelled_in_flight_lets_the_next_one_send(tmp_path: Path) -> None:
    async def scenario() -> None:
        started = asyncio.Event()

        async def never(sent: Any) -> Any:
            started.set()
            await asyncio.Event().wait()

        with (
            Client(plan_of(), cache_folder=tmp_path, transport=never) as first,
            Client(plan_of(), cache_folder=tmp_path, transport=Scripted()) as second,
        ):
            lost = asyncio.create_task(first.complete(ask("x")))
            await started.wait()
            waits = Waits(second)
            asking = asyncio.create_task(second.complete(ask("x")))
            await waits.first.wait()
            lost.cancel()
            assert (await asking).text == "hi"

    asyncio.run(scenario())


def test_clients_on_loops_of_their_own_in_two_threads_share_one_flight(tmp_path: Path) -> None:
    lock, sent = threading.Lock(), []

    async def transport(arguments: Any) -> Any:
        with lock:
            sent.append(arguments["messages"][0]["content"])
        await asyncio.sleep(0.05)
        return reply()

    found: list[bool] = []

    def run(names: list[str]) -> None:
        async def scenario() -> None:
            with Client(plan_of(), cache_folder=tmp_path, transport=transport, concurrency=1) as client:
                for completion in await asyncio.gather(*[client.complete(ask(name)) for name in names]):
                    found.append(completion.cached)

        asyncio.run(scenario())

    # In opposite orders, one at a time: nobody waits for a place that a waiter has.
    threads = [threading.Thread(target=run, args=(names,)) for names in (["a", "b", "c"], ["c", "b", "a"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(sent) == ["a", "b", "c"]
    assert sorted(found) == [False] * 3 + [True] * 3


FORKED = """
import asyncio, os, sys
from pathlib import Path
from skillc.models.cache import Claims
folder = Path(sys.argv[1])
async def taken(key): return await Claims(folder).take(key, 0) is not None
held = Claims(folder)
assert asyncio.run(held.take("a" * 64, 0)) is not None
child = os.fork()
mine = "parent" if child else "child"
if not child:
    os._exit(0 if not asyncio.run(taken("a" * 64)) and asyncio.run(taken("b" * 64)) else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert not asyncio.run(taken("a" * 64))
"""


def test_a_forked_child_holds_nothing_of_its_parent(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FORKED, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_closing_one_client_leaves_the_claims_of_another(tmp_path: Path) -> None:
    link = tmp_path / "link"
    (tmp_path / "cache").mkdir()
    link.symlink_to(tmp_path / "cache")

    async def scenario() -> None:
        first, second = Claims(tmp_path / "cache"), Claims(link)
        claim = await first.take(KEY, 0)
        assert await second.take(OTHER, 0) is not None
        second.close()
        script = f"import fcntl, sys\nf = open({str(link / 'flights.lock')!r}, 'r+')\n" + (
            "try:\n    fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, int(sys.argv[1][:15], 16))\n"
            "except OSError:\n    sys.exit(9)\n"
        )
        done = subprocess.run([sys.executable, "-c", script, KEY], check=False)
        assert done.returncode == 9
        assert claim is not None
        claim.free()
        assert subprocess.run([sys.executable, "-c", script, KEY], check=False).returncode == 0
        first.close()

    asyncio.run(scenario())


def test_without_record_locks_claims_hold_within_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(95, "not supported")

    monkeypatch.setattr(cache.fcntl, "lockf", refuse)

    async def scenario() -> None:
        first, second = Claims(tmp_path), Claims(tmp_path)
        claim = await first.take(KEY, 0)
        assert claim is not None
        assert await second.take(KEY, 0) is None
        claim.free()
        assert await second.take(KEY, 0) is not None
        first.close()
        second.close()

    asyncio.run(scenario())


def test_a_cache_in_memory_claims_nothing(tmp_path: Path) -> None:
    claims = Claims(None)
    assert not claims.shared
    assert asyncio.run(claims.take(KEY, 0)) is None
    claims.close()


def test_the_error_of_a_flight_that_its_only_caller_left_is_not_printed() -> None:
    printed: list[dict[str, Any]] = []

    async def fails_at_its_end() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("the disk is full")

    async def scenario() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: printed.append(context))
        caller = asyncio.create_task(concurrency.SingleFlight[str, None]().join(KEY, fails_at_its_end))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        del caller
        gc.collect()

    asyncio.run(scenario())
    assert printed == []
