import pytest

from tests.publish.shops import shop


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with a compiled skill, the present folder, and a home of its own."""
    for name in ("CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "HERMES_HOME", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    place = shop(tmp_path / "home" / "project")
    monkeypatch.chdir(place)
    return place
