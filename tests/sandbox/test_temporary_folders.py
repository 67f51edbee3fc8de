"""Folders of one rollout, and files of skills that are written for it only."""

import asyncio
import threading

import pytest

from skillc.processes.command import temporary_folder
from skillc.skill_files import write_folder


def test_a_folder_is_removed_by_a_thread_that_the_end_of_the_loop_waits_for():
    released = threading.Event()
    folders = []

    async def scenario():
        # All threads are busy, as with the removal of large workspaces.
        loop = asyncio.get_running_loop()
        for _ in range(64):
            loop.run_in_executor(None, released.wait)
        async with temporary_folder() as folder:
            (folder / "below").mkdir()
            (folder / "below" / "file").touch()
            (folder / "below").chmod(0o500)
        folders.append(folder)
        assert folder.exists()
        released.set()

    asyncio.run(scenario())
    assert not folders[0].exists()


def test_a_folder_is_removed_after_a_failure_too():
    async def scenario():
        async with temporary_folder() as folder:
            folders.append(folder)
            raise ValueError

    folders = []
    with pytest.raises(ValueError):
        asyncio.run(scenario())
    assert not folders[0].exists()


@pytest.mark.parametrize("lasting", [True, False])
def test_files_of_a_skill_are_the_same_whether_they_last_or_not(tmp_path, lasting):
    files = {"SKILL.md": b"---\r\n", "scripts/run": b"#!/bin/sh\n", "a/b/c": b"\xff"}
    write_folder(tmp_path / "new", files, lasting=lasting)
    written = {path.relative_to(tmp_path / "new").as_posix(): path for path in (tmp_path / "new").rglob("*")}
    assert {name: path.read_bytes() for name, path in written.items() if path.is_file()} == files
    assert [name for name, path in written.items() if path.is_file() and path.stat().st_mode & 0o100] == ["scripts/run"]
