"""Code of the user's own that fails ends the run with its place, the row, and the values; never with its own status."""

import csv
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from conftest_cli import PROGRAM, rows
from nursery import Nursery
from test_resume import shop

METRIC = PROGRAM.replace("exact_match(kind)", 'python("own:good")')


@pytest.fixture(scope="module")
def nursery():
    return Nursery()


def compiled_with(nursery, folder, body, program=METRIC, helper=""):
    """The exit status of a compile whose metric has this body, and what it printed."""
    folder = shop(folder, program)
    (folder / "own.py").write_text(f"import sys, helper\n\ndef good(example, prediction):\n    {body}\n")
    (folder / "helper.py").write_text(helper or "\n")
    status = nursery.run(folder, "compile", "things.skill")
    return status, (folder / "stderr.txt").read_text()


LOST = "x37"


def only_on(statement):
    return (
        f'if example["id"] == "{LOST}": {statement}\n    return 1.0 * (example["gold"]["kind"] == prediction["kind"])'
    )


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("sys.exit(3)", "SystemExit: 3, at `own.py:4`"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt, at `own.py:4`"),
        ("raise __import__('asyncio').CancelledError", "CancelledError, at `own.py:4`"),
        ("example['zzz']", "KeyError: 'zzz', at `own.py:4`"),
        ("json = __import__('json').loads('{')", "at `own.py:4`"),
        ("helper.fails()", "RuntimeError: no no, at `helper.py:2`"),
        ("return float('nan')", "`nan` is not a finite number, from the function at `own.py:3`"),
        ("return 'good'", "a score must be a number, not str, from the function at `own.py:3`"),
    ],
)
@pytest.mark.quick_cases(1)
def test_a_metric_that_fails_is_named_with_its_place_and_the_row(nursery, tmp_path, statement, said):
    helper = 'def fails():\n    raise RuntimeError("no\\n no")\n'
    status, stderr = compiled_with(nursery, tmp_path / "things", only_on(statement), helper=helper)
    assert status == 2, stderr
    assert f"error: the metric `correct` on example `{LOST}` (`things.jsonl` line 38): " in stderr
    assert said in stderr
    row = list(rows())[37]
    assert f'\n  text = "{row["text"]}"\n  gold.kind = "{row["kind"]}"\n  answer.kind = "' in stderr
    assert "Traceback" not in stderr
    assert "budget" not in stderr


def test_a_row_of_one_of_several_files_is_named_with_its_file(nursery, tmp_path):
    folder = shop(tmp_path / "things", METRIC.replace('source = "things.jsonl"; split = 2 : 1 : 2', FILES))
    for name, part in {"a.csv": slice(0, 60), "b.csv": slice(60, 90), "c.csv": slice(90, 120)}.items():
        with (folder / name).open("w", newline="") as file:
            writer = csv.DictWriter(file, ["id", "text", "kind", "shop"])
            writer.writeheader()
            writer.writerows(list(rows())[part])
    (folder / "own.py").write_text('def good(example, prediction):\n    return 1 / (example["id"] != "x64")\n')
    assert nursery.run(folder, "compile", "things.skill") == 2
    assert (
        "on example `x64` (`b.csv` line 6): ZeroDivisionError: division by zero, at `own.py:2`"
        in (folder / "stderr.txt").read_text()
    )


FILES = 'train = "a.csv"; validation = "b.csv"; test = "c.csv"'


def test_values_are_short_and_stay_on_their_line(nursery, tmp_path):
    folder = shop(tmp_path / "things", METRIC)
    hostile = "a\x1b[2J\nerror: all is lost \u202e " + "long " * 100
    (folder / "things.jsonl").write_text(
        "".join(json.dumps({**row, "text": hostile + row["text"]}) + "\n" for row in rows())
    )
    (folder / "own.py").write_text("def good(example, prediction):\n    raise ValueError(example['text'])\n")
    assert nursery.run(folder, "compile", "things.skill") == 2
    stderr = (folder / "stderr.txt").read_text()
    assert "\x1b[2J" not in stderr
    assert "\u202e" not in stderr
    assert not any(line.startswith("error: all is lost") for line in stderr.splitlines())
    assert max(map(len, stderr.split("error: the metric")[1].splitlines())) < 500


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("sys.exit(3)", "raised SystemExit: 3, at `own.py:4`"),
        ("raise KeyboardInterrupt", "raised KeyboardInterrupt, at `own.py:4`"),
        ("raise __import__('asyncio').CancelledError", "raised CancelledError, at `own.py:4`"),
        ("helper.fails()", "raised RuntimeError: no no, at `helper.py:2`"),
        ("return 17", "returned int `17` instead of a text or a `skillc.Reply`, from the function at `own.py:3`"),
    ],
)
def test_a_backend_that_fails_is_named_with_the_row_that_it_was_asked(nursery, tmp_path, statement, said):
    program = PROGRAM.replace('target    = "rulebook/v1"', 'target = "mine/x" { backend = python("own:answer") }')
    folder = shop(tmp_path / "things", program)
    (folder / "own.py").write_text(f"import sys, helper\n\ndef answer(messages, model, parameters):\n    {statement}\n")
    (folder / "helper.py").write_text('def fails():\n    raise RuntimeError("no\\n no")\n')
    assert nursery.run(folder, "compile", "things.skill") == 2
    stderr = (folder / "stderr.txt").read_text()
    assert f"error: model `target` (`mine/x`): the backend `own:answer` {said}" in stderr
    assert "\n  asked for example `x" in stderr
    assert "` (`things.jsonl` line " in stderr
    assert "Traceback" not in stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import sys\nsys.exit(3)\n", "SystemExit: 3, at `own.py:2`"),
        ("def good(:\n", "at `own.py:1`"),
        ("import helper\n", "ZeroDivisionError: division by zero, at `helper.py:2`"),
    ],
)
def test_a_module_that_fails_at_import_is_named_with_its_place(nursery, tmp_path, text, said):
    folder = shop(tmp_path / "things", METRIC)
    (folder / "own.py").write_text(text)
    (folder / "helper.py").write_text("x = 1\n1 / 0\n")
    assert nursery.run(folder, "compile", "things.skill") == 2
    stderr = (folder / "stderr.txt").read_text()
    assert "the module `own` of the metric `own:good` cannot be imported: " in stderr
    assert said in stderr
