"""Where a model does not report its usage, every figure says that it holds reserved bounds."""

import json
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from conftest_cli import PROGRAM
from nursery import Nursery
from test_resume import shop

OWN = PROGRAM.replace('target    = "rulebook/v1"', 'target = "mine/x" { backend = python("own:answer") }').replace(
    "epochs = 2", "steps = 2"
)
ANSWER = """
import skillc
from skillc.models.rulebook import answer as read

def answer(messages, model, parameters):
    text = read(messages, {})
    usage = {"prompt_tokens": 9, "completion_tokens": 3}
    return skillc.Reply(text, usage=usage) if REPORTS else text
"""


@pytest.fixture(scope="module")
def nursery():
    return Nursery()


def own(folder, reports):
    folder = shop(folder, OWN)
    (folder / "own.py").write_text(ANSWER.replace("REPORTS", str(reports)))
    return folder


def printed(folder):
    return (folder / "stdout.txt").read_text()


def test_figures_without_reported_usage_are_bounds_everywhere(nursery, tmp_path):
    folder = own(tmp_path / "things", reports=False)
    assert nursery.run(folder, "plan", "things.skill") == 0
    assert "a call without reported usage is charged as reserved" in " ".join(printed(folder).split())
    assert nursery.run(folder, "compile", "things.skill") == 0
    table = printed(folder)
    spent = re.search(r"spent +([\d,]+) calls, at most ([\d,]+) tokens", table)
    bounds = re.search(r"of ([\d,]+) of ([\d,]+) calls the usage was not reported: ([\d,]+) tokens are reserved", table)
    assert spent and bounds, table
    assert bounds[2] == spent[1]
    charged = json.loads((folder / "skills" / "sort-things.lock").read_text())["charged"]
    assert charged["bound_tokens"] == int(bounds[3].replace(",", ""))
    assert charged["bound_tokens"] < charged["prompt_tokens"] + charged["reply_tokens"]
    # From the record of the finished run, and from the cache, it is the same.
    assert nursery.run(folder, "compile", "things.skill", "--json") == 0
    summary = json.loads(printed(folder))["spent"]["charged"]
    assert summary["total"]["bounds"]["tokens"] == charged["bound_tokens"]
    by_role = {line["role"]: line["bounds"]["calls"] == line["calls"] for line in summary["lines"]}
    assert by_role == {"target": True, "optimizer": False}
    assert nursery.run(folder, "eval", "things.skill") == 0
    assert re.search(r"spent +[\d,]+ calls, at most [\d,]+ tokens", printed(folder))


@pytest.mark.thorough
def test_figures_of_a_model_that_reports_are_no_bounds(nursery, tmp_path):
    folder = own(tmp_path / "things", reports=True)
    assert nursery.run(folder, "compile", "things.skill") == 0
    assert "at most" not in printed(folder).split("spent")[1].split("stopped")[0]
    charged = json.loads((folder / "skills" / "sort-things.lock").read_text())["charged"]
    assert charged["bound_tokens"] == 0
