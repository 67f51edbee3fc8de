import errno

import pytest

from skillc.errors import SkillcError
from skillc.run import about
from skillc.run.folder import RunFolder


def full(path, text):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_a_message_at_the_beginning_and_at_the_end(tmp_path, monkeypatch):
    folder = RunFolder(tmp_path, "a" * 64)
    with folder.opened() as store:
        begun = about.begin(folder, store, "x.skill", {"data": "d"}, fresh=False)
        monkeypatch.setattr(about, "write_whole", full)
        with pytest.raises(SkillcError, match=r"the run folder `.+` cannot be written: No space left on device"):
            about.finish(folder, begun)
        with pytest.raises(SkillcError, match=r"the run folder `.+` cannot be written"):
            about.begin(folder, store, "x.skill", {"data": "d"}, fresh=True)
