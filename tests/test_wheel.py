"""The built wheel, from an empty folder: grammar, standard library and prompts travel inside it."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "cli"))

from conftest_cli import PROGRAM, rows  # noqa: E402


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """The wheel's content, as an installation lays it out."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_the_wheel_holds_what_is_no_python(unpacked):
    for name in (
        "grammar/skill.lark",
        "syntax/table.json",
        "stdlib/gates.skill",
        "optimize/propose/prompts/reflect.j2",
        "py.typed",
    ):
        assert (unpacked / "skillc" / name).is_file(), name


def test_the_wheel_holds_the_whole_standard_library(unpacked):
    carried = {path.name: path.read_bytes() for path in (unpacked / "skillc" / "stdlib").iterdir()}
    assert carried == {path.name: path.read_bytes() for path in (ROOT / "stdlib").glob("*.skill")}
    assert len(carried) >= 9


def test_the_wheel_compiles_from_an_empty_folder(unpacked, tmp_path):
    (tmp_path / "things.skill").write_text(
        PROGRAM.replace("task {", "use std.gates\ntask {", 1).replace(
            "candidate.correct > incumbent.correct", "gates.strict(correct)"
        )
    )
    (tmp_path / "things.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows()))
    code = (
        "import sys, skillc\n"
        f"assert skillc.__file__.startswith({str(unpacked)!r}), skillc.__file__\n"
        "from skillc.cli import main\n"
        "main()\n"
    )
    # The wheel stands before the checkout, which the editable install adds at the end.
    environment = {**os.environ, "PYTHONPATH": str(unpacked)}
    done = subprocess.run(
        [sys.executable, "-c", code, "compile", "things.skill", "--set", "budget.steps=2", "--json"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / json.loads(done.stdout)["artifact"]).is_file()
