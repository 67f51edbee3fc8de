"""What `programs/README.md` says of every benchmark: layout, the two protocols, the sample and the compiled skill."""

import json

import pytest
from benchmark import PROGRAMS, copied, rows, run

from programs.frame.layout import PROTOCOLS, benchmarks, missing, reader
from skillc.frontend import plan_file

NAMES = benchmarks()
SECTIONS = (
    "## Run it here",
    "## Run the benchmark",
    "## Scores",
    "## The paper's figures",
    "## What can be repeated",
    "## The sample",
)
SPLITS = ("train", "validation", "test")


def test_the_benchmarks_are_those_of_the_page():
    page = (PROGRAMS / "README.md").read_text()
    assert "searchqa" in NAMES
    # `ai_feedback` is no benchmark, and `frame` what they share.
    folders = {path.name for path in PROGRAMS.iterdir() if path.is_dir() and any(path.glob("*.skill"))}
    assert folders == {*NAMES, "ai_feedback"}
    assert "| SearchQA |" in page


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_has_every_file_of_the_layout(name):
    folder = PROGRAMS / name
    for file in ("README.md", "ours.skill", "paper.skill", "rows.py", "players.py"):
        assert (folder / file).is_file(), file
    page = (folder / "README.md").read_text()
    assert [each for each in SECTIONS if each not in page] == []
    assert "skillc compile" in page
    assert "--into" in page
    read = reader(name)
    assert len(read.SIZES) == 3
    assert all(size > 0 for size in read.SIZES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_program_has_neither_errors_nor_warnings_on_its_sample(name, protocol):
    status, out = run("check", PROGRAMS / name / f"{protocol}.skill", "--data", "--format", "json")
    found = json.loads(out)
    # The paper's batches of 40 are larger than a sample.
    severe = [each for each in found["diagnostics"] if each["severity"] != "note" and each["code"] != "SK553"]
    assert severe == []
    assert status in (0, 1)


@pytest.mark.parametrize("name", NAMES)
def test_the_paper_s_protocol_is_that_of_skillopt(name):
    plan = plan_file(PROGRAMS / name / "paper.skill").plan
    loop = plan.optimize
    assert (plan.budget.epochs, plan.budget.patience, loop.batch, loop.minibatch) == (4, 0, 40, 8)
    assert (loop.edits.kind, loop.edits.start, loop.edits.end) == ("cosine", 4, 2)
    assert (loop.update, loop.drafts, loop.screen, loop.replay) == ("edits", 0, 0, 0)
    assert loop.successes
    assert loop.slow_update
    assert loop.meta_skill
    goal = next(each.name for each in plan.metrics if each.goal)
    assert [gate.text for gate in plan.gates] == [f"gates.strict({goal})"]


@pytest.mark.parametrize("name", NAMES)
def test_the_sample_has_three_splits_that_share_nothing(name):
    every = {split: rows(name, split) for split in SPLITS}
    assert sum(map(len, every.values())) >= 20
    assert all(len(found) >= 4 for found in every.values())
    ids = [row["id"] for found in every.values() for row in found]
    assert len(set(ids)) == len(ids)
    bare = [
        json.dumps({key: value for key, value in row.items() if key != "id"}) for each in every.values() for row in each
    ]
    assert len(set(bare)) == len(bare)


@pytest.mark.parametrize("name", NAMES)
def test_the_compiled_skill_belongs_to_the_program_and_improves_on_the_sample(name):
    folder = PROGRAMS / name
    status, out = run("check", folder / "ours.skill", "--locked", "--format", "concise")
    assert status == 0, out
    (lock,) = (folder / "skills").glob("*.lock")
    found = json.loads(lock.read_text())
    assert found["verdict"] == "improved"
    assert found["test"]["interval"][0] > 0


@pytest.mark.thorough
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", NAMES)
def test_a_program_compiles_from_end_to_end_to_what_is_in_the_repository(name, protocol, tmp_path):
    if reason := missing(name):
        pytest.skip(reason)
    folder = copied(name, tmp_path)
    status, out = run("compile", folder / f"{protocol}.skill", "--quiet", "--json", "--output", tmp_path / "out")
    assert status == 0, out
    assert json.loads(out)["test"]["gain"] > 0
    if protocol == "ours":
        for path in (PROGRAMS / name / "skills").rglob("SKILL.md"):
            made = tmp_path / "out" / path.relative_to(PROGRAMS / name / "skills")
            assert made.read_bytes() == path.read_bytes()


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_the_compiled_skill_is_scored_at_once(name, tmp_path):
    if reason := missing(name):
        pytest.skip(reason)
    folder = copied(name, tmp_path)
    status, out = run("eval", folder / "ours.skill", "--quiet", "--json")
    assert status == 0, out
    (scored,) = json.loads(out)["models"]
    means = {each["skill"]: each["mean"] for each in scored["skills"]}
    assert means["compiled"] > means["initial"]
