"""`skillc compare`: two skills on the same examples, measured or recorded."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest_cli import PROGRAM, skillc
from evaluations import copied
from rich.console import Console

from skillc.errors import SkillcError
from skillc.evaluate.compare.job import CompareJob, CompareOptions, prepare_compare
from skillc.evaluate.compare.report import compare_json, compare_preview_lines, compare_table
from skillc.evaluate.compare.sides import program_for, side_of
from skillc.evaluate.run import Evaluation, evaluate
from skillc.frontend import plan_file
from skillc.models.client import Client
from skillc.optimize.host import SilentObserver
from skillc.plan.lock import read_lock

LOCK = "skills/sort-things.lock"
SKILL = "skills/sort-things/SKILL.md"
Compiled = tuple[Path, Any, Any]


@pytest.fixture(scope="module")
def two(compiled: Compiled, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled program, and beside it another compile of the same task with fewer edits."""
    folder = tmp_path_factory.mktemp("two")
    copied(compiled, folder / "one")
    (folder / "other").mkdir()
    shutil.copy(folder / "one/things.jsonl", folder / "other")
    text = PROGRAM.replace("edits = cosine(4, 2)", "edits = 1").replace(
        "epochs = 2; patience = 6", "steps = 2; patience = 2"
    )
    (folder / "other/less.skill").write_text(text.replace("sort_things", "sort_less"))
    done = skillc("compile", "less.skill", "--require", "none", "--quiet", folder=folder / "other")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def pair(two: Path, tmp_path: Path) -> Path:
    shutil.copytree(two, tmp_path / "two")
    return tmp_path / "two"


def job_of(one: Path, other: Path, program: Path | None = None, **wanted: Any) -> CompareJob:
    sides = side_of(one), side_of(other)
    planned = plan_file(program_for(sides, program), runnable=True, complete=False)
    return prepare_compare(planned, sides, CompareOptions(**wanted))


def compared(job: CompareJob) -> Evaluation:
    with Client(job.plan, cache_folder=job.root / ".skillc" / "cache", root=job.root) as door:
        return evaluate(job, SilentObserver(), door)


def shown(job: CompareJob, found: Evaluation) -> str:
    page = io.StringIO()
    Console(file=page, width=80, highlight=False).print(compare_table(job, found))
    return " ".join(page.getvalue().split())


def test_recorded_outcomes_of_two_compiles_are_compared_without_a_call(pair: Path) -> None:
    job = job_of(pair / "other/less.skill", pair / "one/things.skill")
    assert job.stored
    assert job.bound.most.calls == 0
    assert "no model is called" in compare_preview_lines(job)[0]
    found = compared(job)
    spent: Any = found.spent
    assert spent["charged"]["total"]["calls"] == spent["paid"]["total"]["calls"] == 0
    (model,) = found.models
    locks = [read_lock(pair / name) for name in ("other/skills/sort-less.lock", f"one/{LOCK}")]
    for score, lock in zip(model.scores, locks, strict=True):
        assert round(float(score.goal.mean or 0), 6) == float(lock.test.best.mean or 0)
    (gain,) = model.gains
    assert gain.verdict.gain == (model.scores[1].goal.mean or 0) - (model.scores[0].goal.mean or 0)
    assert gain.verdict.verdict in ("improved", "no significant gain", "worse")
    # Each lock has the look of its compile, and now this one.
    assert [len(lock.looks) for lock in locks] == [2, 2]
    assert gain.look == 2
    page = shown(job, found)
    assert f"verdict {gain.verdict.verdict}" in page
    assert "were measured on these" in page
    told: Any = compare_json(job, found)
    assert told["stored"] is True
    assert [each["run"] for each in told["compared"]] == [lock.run for lock in locks]


def test_the_same_without_records_gives_the_same_figures(pair: Path) -> None:
    stored = compared(job_of(pair / "other/less.skill", pair / "one/things.skill"))
    for folder in ("one", "other"):
        shutil.rmtree(pair / folder / ".skillc/runs")
    job = job_of(pair / "other/less.skill", pair / "one/things.skill")
    assert not job.stored
    found = compared(job)
    assert found.models[0].gains == stored.models[0].gains
    assert "were measured on these" not in shown(job, found)


def test_records_are_not_used_where_the_program_changed_or_the_model_is_another(pair: Path) -> None:
    paths = pair / "other/less.skill", pair / "one/things.skill"
    assert not job_of(*paths, samples=2).stored
    program = pair / "one/things.skill"
    program.write_text(program.read_text().replace("batch = 12", "batch = 13"))
    assert not job_of(*paths).stored


def test_on_validation_there_is_no_verdict_and_no_look(pair: Path) -> None:
    before = (pair / "one" / LOCK).read_bytes()
    job = job_of(pair / "other/less.skill", pair / "one" / LOCK, split="validation")
    page = shown(job, compared(job))
    assert "no verdict on validation" in page
    assert (pair / "one" / LOCK).read_bytes() == before


def test_a_skill_is_named_by_program_folder_file_or_lock(pair: Path) -> None:
    one = pair / "one"
    for place in (one / "things.skill", one, one / LOCK, one / SKILL, one / "skills/sort-things"):
        side = side_of(place)
        assert side.file == one / SKILL
        assert side.program is not None
        assert side.program.resolve() == (one / "things.skill").resolve()
        assert side.lock is not None
    mine = pair / "mine.md"
    mine.write_text("Answer tool.\n")
    job = job_of(mine, one / SKILL)
    assert job.root.resolve() == one.resolve()
    assert not job.stored
    with pytest.raises(SkillcError, match="neither skill names a program"):
        job_of(mine, mine)
    with pytest.raises(SkillcError, match="is compared with itself"):
        job_of(mine, mine, program=one / "things.skill")
    with pytest.raises(SkillcError, match="does not exist"):
        side_of(pair / "nothing.md")


def test_a_program_without_a_compiled_skill_says_what_to_do(shop: Path) -> None:
    with pytest.raises(SkillcError, match="has no compiled skill") as error:
        side_of(shop / "things.skill")
    assert "skillc compile" in str(error.value.hint)


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        ('output kind: "fruit" | "tool" | "animal"', "output kind: text", "other outputs"),
        ("= exact_match(kind)", "= 1 - exact_match(kind)", "other goals"),
        ("seed = 3", "seed = 4", "other examples"),
        ("task {", "task {\n  rollout = chain_of_thought", "other rollouts"),
    ],
)
def test_different_tasks_are_never_pooled(pair: Path, before: str, after: str, what: str) -> None:
    program = pair / "other/less.skill"
    program.write_text(program.read_text().replace(before, after))
    with pytest.raises(SkillcError, match=f"different tasks: .* have {what}") as error:
        job_of(pair / "one/things.skill", program)
    assert "--on" in str(error.value.hint)


def test_the_command_line_prints_and_exits(pair: Path) -> None:
    done = skillc("compare", "other/less.skill", "one", "--json", "--csv", "o.csv", "--by", "kind", folder=pair)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["stored"] is True
    assert told["models"][0]["pairs"][0]["look"] == 2
    assert len((pair / "o.csv").read_text().splitlines()) == 1 + 2 * told["examples"]
    done = skillc("compare", "one", "nothing", folder=pair)
    assert (done.returncode, done.stdout) == (2, "")
    assert "`nothing` does not exist" in done.stderr
