"""Python in the sandbox for a tool of an agent."""

import asyncio

import pytest

from skillc.errors import SkillcError
from skillc.tasks import scratch
from skillc.tasks.scratch import Scratch


def run(folder, code, *files):
    return asyncio.run(Scratch(folder).run(code, files))


def test_a_program_sees_copies_of_its_files_and_nothing_else(tmp_path):
    data = tmp_path / "rows.csv"
    data.write_text("3\n4\n")
    code = "import os\nprint(sum(map(int, open('rows.csv'))))\nopen('rows.csv', 'w')\nprint(os.listdir('.'))"
    assert run(tmp_path, code, data) == "7\n['rows.csv']"
    assert data.read_text() == "3\n4\n"
    outside = run(tmp_path, f"print(open({str(data)!r}).read())")
    assert "FileNotFoundError" in outside or "PermissionError" in outside


@pytest.mark.parametrize(
    ("code", "said"),
    [("", "it printed nothing"), ("1 / 0", "ZeroDivisionError"), ("raise SystemExit(3)", "it ended with status 3")],
)
def test_what_a_program_did_is_an_observation(tmp_path, code, said):
    assert said in run(tmp_path, code)


def test_without_a_sandbox_the_rollout_is_unmeasured(tmp_path, monkeypatch):
    def none(*arguments, **options):
        raise SkillcError("no sandbox works on this machine")

    monkeypatch.setattr(scratch, "Programs", none)
    with pytest.raises(ConnectionError, match="no sandbox works"):
        run(tmp_path, "print(1)")
