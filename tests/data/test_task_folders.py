"""Task folders in the format of Harbor, read as they are."""

import sys
from pathlib import Path

import pytest

from skillc.data.problems import Problems
from skillc.data.read import read_rows
from skillc.data.task_folders import read_task
from skillc.errors import SkillcError

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tasks"))
from harbor_tasks import INSTRUCTION, SETTINGS, made


def test_a_task_has_its_limits_and_its_instruction(tmp_path):
    path = made(tmp_path)
    (path / "instruction.md").write_text(f"<!-- harbor-canary GUID 1 -->\n# canary: do not train\n\n{INSTRUCTION}")
    task = read_task(path)
    assert task.instruction == INSTRUCTION.strip()
    assert (task.agent_seconds, task.tests_seconds, task.build_seconds) == (20, 10, 600)
    assert (task.memory, task.disk) == (256 * 2**20, 50 * 2**20)
    assert task.solution == path / "solution"


@pytest.mark.parametrize(("written", "size"), [("2G", 2 * 2**30), ("512MB", 512 * 2**20), ("1.5g", 3 * 2**29)])
def test_sizes_of_earlier_versions_are_read(tmp_path, written, size):
    assert read_task(made(tmp_path, settings=f'version = "1.0"\n[environment]\nmemory = "{written}"\n')).memory == size


def test_a_folder_of_tasks_is_a_data_file(tmp_path):
    made(tmp_path / "tasks", "b")
    made(tmp_path / "tasks", "a")
    (tmp_path / "tasks/notes").mkdir()
    problems = Problems()
    rows = [row.values for row in read_rows(tmp_path / "tasks", "tasks", problems)]
    problems.check()
    assert [(row["id"], row["task"]) for row in rows] == [("a", "tasks/a"), ("b", "tasks/b")]
    assert rows[0]["instruction"] == INSTRUCTION.strip()
    assert (rows[0]["difficulty"], rows[0]["tags"]) == ("easy", ["files"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"test": None}, "the task `word` has no `tests/test.sh`"),
        ({"settings": "a = "}, "the task `word` cannot be read"),
        ({"settings": "agent = 3"}, "`agent` is no section"),
        ({"settings": "[agent]\ntimeout_sec = 0"}, "not a number of seconds above 0"),
        ({"settings": '[agent]\ntimeout_sec = "soon"'}, "`task.toml` of the task `word` is wrong"),
        ({"settings": '[environment]\nmemory = "much"'}, "not a size such as `2G`"),
        ({"settings": '[[steps]]\nname = "one"'}, "needs several steps"),
        ({"settings": '[environment]\nos = "windows"'}, "needs Windows"),
        ({"settings": '[verifier]\nenvironment_mode = "separate"'}, "needs a container of its own for the tests"),
        ({"docker-compose.yaml": "services:"}, "needs services, in `docker-compose.yaml`"),
        ({"settings": '[[environment.mcp_servers]]\nname = "x"\nurl = "http://x"'}, "needs MCP servers"),
    ],
)
def test_what_cannot_be_run_is_refused_with_its_reason(tmp_path, change, message):
    with pytest.raises(SkillcError, match=message.replace("(", r"\(")):
        read_task(made(tmp_path, **change))


def test_a_damaged_task_is_named_with_its_folder(tmp_path):
    made(tmp_path / "tasks", "a")
    made(tmp_path / "tasks", "b", settings=SETTINGS + "[")
    with pytest.raises(SkillcError, match="the task `b` cannot be read"):
        list(read_rows(tmp_path / "tasks", "tasks", Problems()))
