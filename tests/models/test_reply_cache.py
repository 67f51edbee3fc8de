from __future__ import annotations

import asyncio
import pickle
import sqlite3
from pathlib import Path

import pytest
from model_plans import Scripted, plan_of

from skillc.errors import SkillcError
from skillc.models.cache import ReplyCache
from skillc.models.calls import Call, Message
from skillc.models.client import Client


def test_replies_outlive_the_process_and_are_texts(tmp_path: Path) -> None:
    transport = Scripted()
    for _ in range(2):
        with Client(plan_of(), cache_folder=tmp_path, transport=transport) as client:
            asyncio.run(client.complete(Call("target", "rollout", (Message("user", "hello"),))))
    assert len(transport.sent) == 1
    with sqlite3.connect(tmp_path / "cache.db") as base:
        rows = base.execute("SELECT mode, value FROM Cache").fetchall()
        settings = dict(base.execute("SELECT key, value FROM Settings").fetchall())
    assert all(mode == 1 and isinstance(value, str) for mode, value in rows)
    assert settings["eviction_policy"] == "none"


@pytest.mark.parametrize("text", ["", "x", "é\r\n\u2028", "y" * 200_000])
def test_texts_of_any_kind_and_size_come_back(tmp_path: Path, text: str) -> None:
    cache = ReplyCache(tmp_path)
    asyncio.run(cache.put("k", text))
    cache.close()
    assert asyncio.run(ReplyCache(tmp_path).get("k")) == text
    assert not list(tmp_path.rglob("*.val"))


class Bomb:
    def __reduce__(self) -> tuple[object, tuple[str, ...]]:
        return (print, ("the pickle was opened",))


def test_a_planted_pickle_is_not_opened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache = ReplyCache(tmp_path)
    asyncio.run(cache.put("k", "text"))
    cache.close()
    with sqlite3.connect(tmp_path / "cache.db") as base:
        base.execute("UPDATE Cache SET mode = 4, value = ? WHERE key = 'k'", (pickle.dumps(Bomb()),))
    with pytest.warns(UserWarning, match="cannot be read"):
        assert asyncio.run(ReplyCache(tmp_path).get("k")) is None
    assert "opened" not in capsys.readouterr().out


def test_a_damaged_or_forbidden_folder_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "cache.db").write_bytes(b"this is no database" * 100)
    with pytest.raises(SkillcError, match="damaged") as damaged:
        ReplyCache(tmp_path)
    assert damaged.value.hint
    (tmp_path / "file").write_text("x")
    with pytest.raises(SkillcError, match="cannot be written"):
        ReplyCache(tmp_path / "file" / "cache")


def test_an_entry_that_is_no_reply_is_fetched_again(tmp_path: Path) -> None:
    transport = Scripted()
    question = Call("target", "rollout", (Message("user", "hello"),))
    with Client(plan_of(), cache_folder=tmp_path, transport=transport) as client:
        asyncio.run(client.complete(question))
    with sqlite3.connect(tmp_path / "cache.db") as base:
        base.execute("UPDATE Cache SET value = '{\"text\": 1}' WHERE length(key) = 64")
    with Client(plan_of(), cache_folder=tmp_path, transport=transport) as client:
        assert asyncio.run(client.complete(question)).text == "hi"
    assert len(transport.sent) == 2


def test_replies_of_one_moment_are_written_together_and_one_that_cannot_be_costs_no_other(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path)

    async def put_all(texts: dict[str, str]) -> None:
        await asyncio.gather(*(cache.put(key, text) for key, text in texts.items()))

    commits: list[str] = []
    cache._disk._con.set_trace_callback(lambda statement: commits.append(statement) if statement == "COMMIT" else None)
    asyncio.run(put_all({str(number): f"text {number}" for number in range(20)}))
    assert len(commits) == 1
    with pytest.warns(UserWarning, match="cannot be written"):
        asyncio.run(put_all({"a": "before", "b": "lone \ud800", "c": "after"}))
    cache.close()
    other = ReplyCache(tmp_path)
    keys = ["0", "19", "a", "b", "c"]
    assert [asyncio.run(other.get(key)) for key in keys] == ["text 0", "text 19", "before", None, "after"]
    other.close()


def test_a_caller_that_is_cancelled_takes_no_other_reply_with_it(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path)

    async def scenario() -> None:
        first = asyncio.ensure_future(cache.put("a", "first"))
        second = asyncio.ensure_future(cache.put("b", "second"))
        await asyncio.sleep(0)
        first.cancel()
        await second
        assert await asyncio.gather(first, return_exceptions=True) != [None]

    asyncio.run(scenario())
    assert asyncio.run(cache.get("a")) == "first"
    assert asyncio.run(cache.get("b")) == "second"
    # Each `asyncio.run` is another loop.
    asyncio.run(cache.put("c", "third"))
    assert asyncio.run(cache.get("c")) == "third"
    cache.close()


def test_a_reply_that_came_is_kept_when_everything_is_cancelled(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path)

    async def scenario() -> None:
        puts = [asyncio.ensure_future(cache.put(str(number), "text")) for number in range(3)]
        await asyncio.sleep(0)
        # As at the end of `asyncio.run`, which cancels every task.
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.gather(*puts, return_exceptions=True)

    asyncio.run(scenario())
    cache.close()
    assert [asyncio.run(ReplyCache(tmp_path).get(str(number))) for number in range(3)] == ["text"] * 3
