import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "gates")]

from shops import Repo, write_shop  # noqa: E402


@pytest.fixture(autouse=True)
def plain_git(monkeypatch, tmp_path_factory):
    """Git as nobody has set it up, and looking for no repository above the tests."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path_factory.getbasetemp()))


@pytest.fixture
def repo(tmp_path, monkeypatch):
    """A repository with one commit of the shop, on the branch `main`."""
    folder = tmp_path / "repo"
    folder.mkdir()
    found = Repo(folder)
    found.git("init", "-q", "-b", "main")
    found.git("config", "user.email", "a@example.org")
    found.git("config", "user.name", "a")
    write_shop(folder)
    found.commit("one")
    monkeypatch.chdir(folder)
    return found
