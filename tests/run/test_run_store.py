"""The file of a run: who may open it, what a kill leaves, and what is said of a file that cannot be used."""

import asyncio
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from skillc.errors import SkillcError
from skillc.store import RunInUseError, RunStore


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.db"


def filled(path, count=3):
    with closing(RunStore(path)) as store:
        for number in range(count):
            store.add_outcome(b"key", {"number": number, "text": "é\u2028\x00"}, [])
    return path


def outcomes(path):
    with closing(RunStore(path)) as store:
        found = []
        while (known := store.recall(b"key")) is not None:
            found.append(known.value["number"])
        return found


def test_values_come_back_in_order_each_once(path):
    filled(filled(path))
    assert outcomes(path) == [0, 1, 2, 0, 1, 2]


def test_two_processes_never_have_it_open(path):
    code = f"from pathlib import Path; from skillc.store import RunStore; RunStore(Path({str(path)!r}))"
    with closing(RunStore(path)):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert "another process is compiling this run" in done.stderr
        with pytest.raises(RunInUseError):
            RunStore(path)
    RunStore(path).close()


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from skillc.store import RunStore

async def main():
    store = RunStore(Path(sys.argv[1]))
    for number in range(5):
        await store.add_attempt(number, "target", "rollout", (1, 2, 3))
    store.end_attempt(4, {})
    store.add_decision({"decision": 1})
    store.add_outcome(b"key", {"number": 1}, [])
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def test_a_kill_loses_nothing_that_was_waited_for(path):
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    with closing(RunStore(path)) as store:
        assert [attempt.state for attempt in store.attempts()] == ["sent"] * 4 + ["ended"]
        assert store.decisions() == [{"decision": 1}]


@pytest.mark.parametrize("keep", [0.3, 0.6, 0.9])
def test_a_log_that_a_power_cut_tore_is_read_up_to_there(path, keep, tmp_path):
    torn = tmp_path / "torn.db"
    with closing(RunStore(path)) as store:
        for number in range(40):
            store.add_decision({"decision": number})
        torn.write_bytes(path.read_bytes())
        log = path.with_name("run.db-wal").read_bytes()
        torn.with_name("torn.db-wal").write_bytes(log[: int(len(log) * keep)])
    with closing(RunStore(torn)) as store:
        found = store.decisions()
    assert 0 < len(found) < 40
    assert found == [{"decision": number} for number in range(len(found))]


@pytest.mark.parametrize("damage", [b"no database" * 1000, None])
def test_a_damaged_file_is_named_with_the_fix(path, damage):
    content = bytearray(filled(path, 2000).read_bytes())
    content[4096 * 4 : 4096 * 20] = b"\xff" * 4096 * 16
    path.write_bytes(damage or content)
    with pytest.raises(SkillcError, match=r"run\.db` is damaged") as told:
        RunStore(path)
    assert "remove its folder to start anew" in told.value.hint


def test_a_value_that_somebody_changed_is_named_with_the_fix(path):
    filled(path)
    with closing(sqlite3.connect(path)) as base, base:
        base.execute("UPDATE outcomes SET value = 'no json'")
    with closing(RunStore(path)) as store, pytest.raises(SkillcError, match="is damaged"):
        store.recall(b"key")


def test_a_file_of_another_format_is_begun_anew(path):
    filled(path)
    with closing(sqlite3.connect(path)) as base:
        base.execute("PRAGMA user_version = 99")
    with closing(RunStore(path)) as store:
        assert store.outdated
        assert store.recall(b"key") is None
    with closing(RunStore(path)) as store:
        assert not store.outdated


def test_a_full_disk_is_a_message_and_loses_nothing_that_was_written(path):
    code = f"""
import resource
from pathlib import Path
from skillc.errors import SkillcError
from skillc.store import RunStore
store = RunStore(Path({str(path)!r}))
for number in range(3):
    store.add_decision({{"decision": number}})
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    for number in range(3, 100):
        store.add_decision({{"decision": number}})
except SkillcError as problem:
    print(number, problem.message)
try:
    store.close()
except SkillcError as problem:
    print("again", problem.message)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, again = done.stdout.splitlines()
    assert "cannot be written" in first
    assert "cannot be written" in again
    with closing(RunStore(path)) as store:
        assert store.decisions() == [{"decision": number} for number in range(int(first.split()[0]))]


def test_a_folder_that_is_not_there_is_a_message(tmp_path):
    with pytest.raises(SkillcError, match="cannot be written"):
        RunStore(tmp_path / "missing" / "run.db")


def test_fresh_forgets_everything(path):
    filled(path)
    with closing(RunStore(path)) as store:
        store.add_decision({"decision": 1})
        asyncio.run(store.add_attempt(0, "target", "rollout", (1, 2, 3)))
        store.add_model("target", "m")
        store.clear()
        assert store.recall(b"key") is None
    with closing(RunStore(path)) as store:
        assert (store.decisions(), store.attempts(), store.models()) == ([], [], {})


def test_a_row_that_cannot_be_written_is_raised_and_holds_nobody_up(path):
    store = RunStore(path)
    store.end_attempt(2**70, {})
    with pytest.raises(OverflowError):
        store.sync()
    with pytest.raises(OverflowError):
        store.close()
