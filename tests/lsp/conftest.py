import pytest
from editor import Editor


@pytest.fixture(scope="module")
def editor(tmp_path_factory):
    """One session for all tests of a file; each test writes files of its own."""
    editor = Editor(tmp_path_factory.mktemp("workspace")).start()
    yield editor
    assert editor.stop() == 0
    assert not editor.messages
    assert "this is a bug" not in editor.errors, editor.errors
    assert "Traceback" not in editor.errors, editor.errors
