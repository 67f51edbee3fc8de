import pytest

from skillc.errors import SkillcError
from skillc.run.folder import RunFolder


def test_one_process_per_run(tmp_path):
    folder = RunFolder(tmp_path / ".skillc", "a" * 64)
    with folder.held(), pytest.raises(SkillcError, match="another process"), folder.held():
        pass
    with folder.held():
        assert (tmp_path / ".skillc" / ".gitignore").read_text() == "*\n"


def test_a_folder_that_cannot_be_made_is_a_message(tmp_path):
    (tmp_path / "file").write_text("")
    folder = RunFolder(tmp_path / "file" / ".skillc", "a" * 64)
    with pytest.raises(SkillcError, match="cannot be written"), folder.held():
        pass
