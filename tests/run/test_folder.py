import errno

import pytest

from skillc.errors import SkillcError
from skillc.run import folder as folder_module
from skillc.run.folder import RunFolder


def test_one_process_per_run(tmp_path):
    folder = RunFolder(tmp_path / ".skillc", "a" * 64)
    with folder.open_store(), pytest.raises(SkillcError, match="another process"), folder.open_store():
        pass
    with folder.open_store():
        assert (tmp_path / ".skillc" / ".gitignore").read_text() == "*\n"


def test_a_folder_that_cannot_be_made_is_a_message(tmp_path):
    (tmp_path / "file").write_text("")
    folder = RunFolder(tmp_path / "file" / ".skillc", "a" * 64)
    with pytest.raises(SkillcError, match="cannot be written"), folder.open_store():
        pass


def test_what_an_earlier_version_kept_in_files_is_removed_and_said(tmp_path):
    folder = RunFolder(tmp_path / ".skillc", "a" * 64)
    with folder.open_store() as store:
        assert not folder.remove_earlier_format(store)
        (folder.path / "outcomes.jsonl").write_text("{}")
        assert folder.remove_earlier_format(store)
        assert not folder.remove_earlier_format(store)


def full(path, text):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_a_message_at_the_beginning_and_at_the_end(tmp_path, monkeypatch):
    folder = RunFolder(tmp_path, "a" * 64)
    with folder.open_store() as store:
        begun = folder_module.begin_run(folder, store, "x.skill", {"data": "d"}, fresh=False)
        monkeypatch.setattr(folder_module, "write_atomically", full)
        with pytest.raises(SkillcError, match=r"the run folder `.+` cannot be written: No space left on device"):
            folder_module.finish_run(folder, begun)
        with pytest.raises(SkillcError, match=r"the run folder `.+` cannot be written"):
            folder_module.begin_run(folder, store, "x.skill", {"data": "d"}, fresh=True)
