from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_plans import Scripted, model, plan_of, reply
from thorough import example_count

from skillc.errors import SkillcError
from skillc.models import cache_folder, concurrency
from skillc.models.cache import ReplyCache, ReplyLabel, read_label, whole_reply
from skillc.models.cache_folder import disk_used, entries, find_folder, groups, prune
from skillc.models.calls import Call, Message
from skillc.models.client import Client
from skillc.text import in_bytes

KEY = "sk-planted-0123456789abcdef"
HERE, THERE = "http://localhost:1", "http://localhost:2"
REPLY = {"text": "é\u2028 x", "finish": "stop", "usage": [1, 0, 2, 0], "model": "m"}


@pytest.fixture(autouse=True)
def own_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls run on the loop of the test, also where an earlier test has started the shared one."""
    monkeypatch.setattr(concurrency, "SHARED_LOOP", concurrency.BackgroundLoop())


def ask(i: int, role: str = "target") -> Call:
    return Call(role, "rollout", (Message("user", f"q{i}"),))


def client_of(folder: Path, transport: Any = None) -> Client:
    plan = plan_of(
        model("target", base_url=HERE, key_env="TEAM_KEY"),
        model("optimizer", base_url=THERE),
        model("judge", name="openai/gpt-4.1", base_url=THERE),
    )
    return Client(plan, cache_folder=folder, transport=transport or Scripted(lambda sent: reply("x" * 2000)))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with 30 replies of one endpoint, 20 and 10 of two models at another."""
    monkeypatch.setenv("TEAM_KEY", KEY)
    cache = tmp_path / ".skillc" / "cache"
    with client_of(cache) as client:

        async def many() -> None:
            for role, count in (("target", 30), ("optimizer", 20), ("judge", 10)):
                await asyncio.gather(*[client.complete(ask(i, role)) for i in range(count)])

        asyncio.run(many())
    with closing(sqlite3.connect(cache / "cache.db")) as base, base:
        base.execute("UPDATE Cache SET tag = json_set(tag, '$.stored', 1000.5 + rowid)")
    return cache


def test_entries_say_what_they_are_and_hold_no_key(folder: Path) -> None:
    found = groups(entries(folder))
    assert [(g.endpoint, g.model, g.entries) for g in found] == [
        (HERE, "openai/gpt-4o-mini", 30),
        (THERE, "openai/gpt-4o-mini", 20),
        (THERE, "openai/gpt-4.1", 10),
    ]
    assert min(g.oldest for g in found) == 1001.5
    assert max(g.newest for g in found) == 1060.5
    assert found[0].size > 30 * 2000
    assert all(KEY.encode() not in file.read_bytes() for file in folder.rglob("*") if file.is_file())


@pytest.mark.parametrize(
    ("wanted", "left"),
    [
        ({}, 0),
        ({"older": 1011}, 50),
        ({"model": "openai/gpt-4o-mini"}, 10),
        ({"endpoint": THERE}, 30),
        ({"endpoint": THERE, "model": "openai/gpt-4.1"}, 50),
        ({"endpoint": HERE, "model": "openai/gpt-4.1"}, 60),
        ({"older": 1041, "endpoint": THERE}, 50),
    ],
)
def test_pruning_removes_what_is_wanted_and_frees_the_disk(folder: Path, wanted: dict[str, Any], left: int) -> None:
    before = disk_used(folder)
    dry = prune(folder, **wanted, dry=True)
    assert (dry.entries, dry.freed) == (60 - left, 0)
    assert len(list(entries(folder))) == 60
    done = prune(folder, **wanted)
    assert (done.entries, done.size) == (dry.entries, dry.size)
    assert len(list(entries(folder))) == left
    assert prune(folder, **wanted, dry=True).entries == 0
    assert before - disk_used(folder) == done.freed
    assert done.freed >= 0.7 * done.size
    with closing(sqlite3.connect(folder / "cache.db")) as base, base:
        assert base.execute("SELECT value FROM Settings WHERE key = 'count'").fetchone() == (left,)
        assert base.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_pruning_beside_a_client_that_is_at_work(folder: Path) -> None:
    transport = Scripted(lambda sent: reply("x" * 2000))

    async def scenario() -> None:
        with client_of(folder, transport) as client:
            assert (await client.complete(ask(0))).cached
            asking = asyncio.gather(*[client.complete(ask(i)) for i in range(100, 160)])
            done = await asyncio.to_thread(prune, folder, older=2000)
            assert done.entries == 60
            await asking
            assert len(transport.sent) == 60
            assert not (await client.complete(ask(0))).cached
            assert (await client.complete(ask(100))).cached

    asyncio.run(scenario())
    assert len(list(entries(folder))) == 61


def test_an_entry_of_an_older_version_says_how_its_model_names_itself(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "cache.db")) as base, base:
        base.execute("UPDATE Cache SET tag = NULL")
    assert [(g.endpoint, g.model, g.entries, g.newest) for g in groups(entries(folder))] == [(None, "m", 60, 0)]
    assert prune(folder, model="m").entries == 60


def test_long_texts_of_an_older_version_lie_in_files_which_go_too(folder: Path, tmp_path: Path) -> None:
    text = json.dumps({**REPLY, "text": "y" * 50_000})
    (folder / "ab").mkdir()
    (folder / "ab" / "long.val").write_text(text)
    outside = tmp_path / "outside.val"
    outside.write_text(text)
    with closing(sqlite3.connect(folder / "cache.db")) as base, base:
        rows = [row for (row,) in base.execute("SELECT rowid FROM Cache ORDER BY key LIMIT 2")]
        put = "UPDATE Cache SET mode = 3, value = NULL, size = 50000, filename = ? WHERE rowid = ?"
        base.executemany(put, [("ab/long.val", rows[0]), ("../../outside.val", rows[1])])
    moved = cache_folder.export_replies(folder, tmp_path / "all.jsonl")
    assert (moved.entries, moved.left_out) == (59, 1)
    assert json.loads((tmp_path / "all.jsonl").read_text().splitlines()[0])["reply"]["text"] == "y" * 50_000
    assert prune(folder).entries == 60
    assert not (folder / "ab" / "long.val").exists()
    assert outside.exists()


def test_what_was_exported_is_found_by_a_compile_elsewhere(folder: Path, tmp_path: Path) -> None:
    file, other = tmp_path / "all.jsonl", tmp_path / "other" / ".skillc" / "cache"
    assert cache_folder.export_replies(folder, file).entries == 60
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert all(set(line) == {"key", "endpoint", "model", "stored", "reply"} for line in lines)
    assert KEY not in file.read_text()
    assert cache_folder.import_replies(other, file) == cache_folder.Transfer(60, 0)
    assert cache_folder.import_replies(other, file) == cache_folder.Transfer(0, 60)
    transport = Scripted()
    with client_of(other, transport) as client:
        assert asyncio.run(client.complete(ask(3))).cached
    assert not transport.sent
    again = tmp_path / "again.jsonl"
    cache_folder.export_replies(other, again)
    assert again.read_bytes() == file.read_bytes()
    assert groups(entries(other)) == groups(entries(folder))


def test_an_import_is_whole_or_nothing(folder: Path, tmp_path: Path) -> None:
    file, other = tmp_path / "all.jsonl", tmp_path / "other"
    cache_folder.export_replies(folder, file)
    for bad in ("{}", "no json", '{"key": 1}', json.dumps({"key": "a" * 64, "stored": "today", "reply": REPLY})):
        file.write_text(file.read_text().rsplit("\n", 2)[0] + f"\n{bad}\n", encoding="utf-8")
        with pytest.raises(SkillcError, match="line 60"):
            cache_folder.import_replies(other, file)
        assert not other.exists()
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SkillcError, match="UTF-8"):
        cache_folder.import_replies(other, file)
    with pytest.raises(SkillcError, match="cannot be read"):
        cache_folder.import_replies(other, tmp_path / "missing.jsonl")


@settings(max_examples=example_count(50))
@given(st.text() | st.recursive(st.integers() | st.text(), lambda x: st.dictionaries(st.text(), x)).map(json.dumps))
def test_no_text_breaks_the_readers(text: str) -> None:
    assert whole_reply(text) is None
    assert isinstance(read_label(text), ReplyLabel)
    assert cache_folder._entry(text) is None


def test_a_file_that_cannot_be_written_is_a_message(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(SkillcError, match="cannot be written"):
        cache_folder.export_replies(folder, tmp_path / "missing" / "all.jsonl")


def test_the_folder_is_found_from_where_a_user_stands(folder: Path, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "x.skill", tmp_path / ".skillc", folder):
        assert find_folder(path) == folder
    nowhere = tmp_path / "nowhere"
    with pytest.raises(SkillcError, match="no cache in"):
        find_folder(nowhere)
    assert find_folder(nowhere, new=True) == nowhere / ".skillc" / "cache"


def test_a_database_that_is_damaged_is_a_message(tmp_path: Path) -> None:
    (tmp_path / "cache.db").write_bytes(b"this is no database" * 1000)
    with pytest.raises(SkillcError, match="damaged"):
        list(entries(tmp_path))


def test_the_empty_cache(tmp_path: Path) -> None:
    ReplyCache(tmp_path).close()
    assert groups(entries(tmp_path)) == []
    assert prune(tmp_path).entries == 0


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1.0 KB"),
        (999_960, "1.0 MB"),
        (2**62, "4,611,686.0 TB"),
    ],
)
def test_bytes_as_people_read_them(count: int, said: str) -> None:
    assert in_bytes(count) == said
