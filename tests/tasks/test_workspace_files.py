"""Files that an example names, in the workspace of an agent."""

import asyncio

import pytest
from drawn import png
from fake_agents import SANDBOXES, SKILL, plan, program
from model_plans import Scripted

from skillc.errors import SkillcError
from skillc.models.client import Client
from skillc.outcomes import Example
from skillc.plan.schema import FieldPlan, TypePlan
from skillc.tasks.runner import RolloutRunner

READING = """
import pathlib, sys
prompt = sys.argv[1]
assert "total.csv" in prompt and "scans/1.png" in prompt and "books" not in prompt, prompt
assert pathlib.Path("scans/1.png").read_bytes().startswith(b"\\x89PNG")
team = pathlib.Path("total.csv").read_text()
pathlib.Path("total.csv").write_text("changed")
print(team)
"""


def rollout(folder, made, example):
    with Client(made, transport=Scripted(), root=folder) as client:
        runner = RolloutRunner(made, client, root=folder)
        done = asyncio.run(runner(SKILL, example, 0, "rollout"))
        return done, client.ledger.charged.spent.calls


@pytest.fixture
def shop(tmp_path):
    (tmp_path / "books/7/scans").mkdir(parents=True)
    (tmp_path / "books/7/total.csv").write_text("shipping")
    (tmp_path / "books/7/scans/1.png").write_bytes(png())
    program(tmp_path, READING)
    return tmp_path


def reading(**settings):
    made = plan(arguments=("{here}/agent {prompt}",), **settings)
    inputs = (
        FieldPlan(name="sheet", type=TypePlan(kind="file"), column="sheet"),
        FieldPlan(name="scans", type=TypePlan(kind="list", item=TypePlan(kind="image")), column="scans"),
    )
    return made.model_copy(update={"task": made.task.model_copy(update={"inputs": inputs})})


EXAMPLE = Example("1", {"sheet": "books/7/total.csv", "scans": ["books/7/scans/1.png"]}, {}, {}, "1")


@pytest.mark.parametrize("sandbox", SANDBOXES)
@pytest.mark.parametrize("files", [None, "books/7"])
def test_an_agent_finds_copies_of_the_files_and_reads_their_names_in_the_prompt(shop, sandbox, files) -> None:
    done, _ = rollout(shop, reading(sandbox=sandbox, **({"files": files} if files else {})), EXAMPLE)
    assert done.failure is None, done.detail
    assert done.prediction == {"team": "shipping"}
    assert (shop / "books/7/total.csv").read_text() == "shipping"


def test_a_file_that_is_gone_stops_the_run_before_the_agent_starts(shop) -> None:
    (shop / "books/7/total.csv").unlink()
    with pytest.raises(SkillcError, match=r"the file `total\.csv` of example `1` does not exist"):
        rollout(shop, reading(), EXAMPLE)
