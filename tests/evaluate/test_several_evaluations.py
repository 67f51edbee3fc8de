"""Every split apart, a one-shot arm, and the share of a gain that survives with another model, rollout or program."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest_cli import PROGRAM
from evaluations import FAMILY, Failing, copied
from rich.console import Console

from skillc.errors import SkillcError
from skillc.evaluate.files import csv_text
from skillc.evaluate.job import EvalOptions
from skillc.evaluate.several import EvalRun, Evaluations, evaluate_run, prepare_run
from skillc.evaluate.several_report import run_json, run_preview_lines, run_table
from skillc.frontend import ProgramError, plan_file
from skillc.models.client import Client
from skillc.optimize.host import SilentObserver
from skillc.plan.lock import read_lock

LOCK = "skills/sort-things.lock"
Compiled = tuple[Path, Any, Any]


def run_of(folder: Path, *settings: str, **wanted: Any) -> EvalRun:
    planned = plan_file(folder / "things.skill", settings=settings, runnable=True, complete=False)
    return prepare_run(planned, EvalOptions(settings=settings, **wanted))


def measured(folder: Path, *settings: str, client: Callable[..., Client] = Client, **wanted: Any) -> Evaluations:
    run = run_of(folder, *settings, **wanted)
    with client(run.plan, cache_folder=folder / ".skillc" / "cache", root=folder) as door:
        return evaluate_run(run, SilentObserver(), door)


def shown(found: Evaluations) -> str:
    page = io.StringIO()
    Console(file=page, width=80, highlight=False).print(run_table(found))
    return page.getvalue()


def related(compiled: Compiled, folder: Path) -> Path:
    """Another compiled program with texts of its own."""
    shutil.copytree(compiled[0], folder)
    rows = (folder / "things.jsonl").read_text().replace('", "kind"', ' today", "kind"')
    (folder / "things.jsonl").write_text(rows)
    return folder / "things.skill"


@pytest.fixture(scope="module")
def folder(compiled: Compiled, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = copied(compiled, tmp_path_factory.mktemp("several") / "things", FAMILY)
    related(compiled, place / "related")
    return place


@pytest.fixture(scope="module")
def matrix(folder: Path) -> Evaluations:
    return measured(
        folder,
        models=("noisy", "target"),
        rollouts=("chain_of_thought", "predict"),
        programs=(folder / "related/things.skill",),
        without=("none",),
    )


# ---- transfer -------------------------------------------------------------------------------------


def test_one_command_measures_models_rollouts_and_related_data(matrix: Evaluations, folder: Path) -> None:
    # `predict` is the program's own rollout.
    assert [job.place for job in matrix.job.jobs] == ["own", "rollout", "data"]
    (transfer,) = matrix.transfers
    assert len(transfer.cells) == 6
    first = transfer.cells[0]
    assert first is transfer.original
    assert (first.evaluation.job.place, first.model.model.role, first.share) == ("own", "target", None)
    shares = [cell.share for cell in transfer.cells[1:]]
    assert all(share is not None and share.value is not None and share.interval is not None for share in shares)
    for cell in transfer.cells[1:]:
        assert cell.gain is not None
        assert first.gain is not None
        assert cell.share is not None
        assert cell.share.value == (cell.gain.verdict.gain or 0) / (first.gain.verdict.gain or 1)
    page = " ".join(shown(matrix).split())
    assert "(original)" in page
    assert "the original gain is too high there" in page
    told: Any = run_json(matrix)
    assert [each["original"] for each in told["transfer"][0]["cells"]] == [True] + [False] * 5
    assert told["transfer"][0]["cells"][-1]["program"] == str(folder / "related/things.skill")
    assert len(told["evaluations"]) == 3


def test_all_places_share_one_ledger_and_no_tally_is_counted_twice(matrix: Evaluations) -> None:
    tallies = [score.tally.calls for each in matrix.each for model in each.models for score in model.scores]
    total: Any = matrix.spent["charged"]
    assert sum(tallies) == total["total"]["calls"] <= matrix.job.bound.most.calls
    assert len({row.where for row in matrix.each[1].rows}) == 1
    assert "rollout = chain_of_thought" in csv_text(matrix.each)


def test_no_share_where_the_original_gain_is_zero_or_not_scored(folder: Path) -> None:
    own = folder / "skills/sort-things/SKILL.md"
    same = measured(folder, models=("target", "noisy"), without=("none", "initial"), against=str(own))
    (transfer,) = same.transfers
    assert transfer.cells[1].share is not None
    assert transfer.cells[1].share.value is None
    assert "not defined: the original gain is not distinguishable from 0" in " ".join(shown(same).split())
    away = measured(folder, models=("noisy",), rollouts=("chain_of_thought",), without=("none",))
    assert away.transfers[0].original is None
    assert "which is not scored here" in " ".join(shown(away).split())


def test_a_look_elsewhere_is_counted_in_the_other_lock(compiled: Compiled, tmp_path: Path) -> None:
    folder = copied(compiled, tmp_path / "things")
    other = related(compiled, tmp_path / "related")
    before = [len(read_lock(place / LOCK).looks) for place in (folder, other.parent)]
    found = measured(folder, programs=(other,), split="test", without=("none",))
    after = [len(read_lock(place / LOCK).looks) for place in (folder, other.parent)]
    assert before == [1, 1]
    assert after == [1, 2]
    # The first look at a test split with other inputs.
    assert [each.models[0].gains[0].look for each in found.each] == [1, 1]
    assert any("1 look at the test split of" in line for line in run_preview_lines(found.job))


def test_data_that_the_skill_was_made_with_is_no_test(compiled: Compiled, tmp_path: Path) -> None:
    folder = copied(compiled, tmp_path / "things")
    other = tmp_path / "again"
    shutil.copytree(compiled[0], other)
    (other / "things.skill").write_text(PROGRAM.replace("seed = 3", "seed = 4"))
    with pytest.raises(SkillcError, match="have inputs that the skill was made with"):
        run_of(folder, programs=(other / "things.skill",), split="test")
    assert any("have inputs that" in note for note in run_of(folder, programs=(other / "things.skill",)).notes)


def test_a_rollout_that_does_not_fit_is_a_diagnostic(folder: Path) -> None:
    with pytest.raises(ProgramError, match="`--rollout bogus` does not fit the program") as error:
        run_of(folder, rollouts=("bogus",))
    assert error.value.diagnostics[0].code == "SK313"


def test_an_error_in_one_place_loses_nothing_of_the_others(folder: Path) -> None:
    broken = folder / "broken"
    shutil.copytree(folder / "related", broken)
    (broken / "bad.py").write_text("def boom(kind, expected):\n    raise KeyError('context')\n")
    (broken / "things.skill").write_text(
        PROGRAM.replace("goal correct", 'metric bad = python("bad:boom")\ngoal correct')
    )
    found = measured(folder, programs=(broken / "things.skill", folder / "related/things.skill"), without=("none",))
    assert [each.job.place for each in found.each] == ["own", "data"]
    ((job, problem),) = found.failed
    assert job.where == str(broken / "things.skill")
    assert "KeyError" in problem.message
    assert "not measured, because of an error" in " ".join(shown(found).split())
    told: Any = run_json(found)
    assert told["failed"][0]["message"] == problem.message
    assert len(found.transfers[0].cells) == 2


# ---- every split apart ----------------------------------------------------------------------------


def test_splits_are_reported_apart_with_what_each_was_used_for(compiled: Compiled, tmp_path: Path) -> None:
    folder = copied(compiled, tmp_path / "things")
    found = measured(folder, split="all", without=("none",))
    assert [each.job.split for each in found.each] == ["train", "validation", "test"]
    data = found.each[0].job.dataset
    assert [each.models[0].scores[0].goal.n for each in found.each] == [
        *(len(side) for side in (data.train, data.validation, data.test)),
    ]
    page = shown(found)
    for words in ("train (learned from):", "validation (selected on):", "test (held out):"):
        assert words in page
    assert page.count("verdict ") == 1
    assert len(read_lock(folder / LOCK).looks) == 1
    looks = [[gain.look for gain in each.models[0].gains] for each in found.each]
    assert looks == [[0], [0], [1]]
    assert found.transfers == ()


def test_all_leaves_out_what_a_program_lacks(shop: Path) -> None:
    run = run_of(shop, split="all")
    assert [job.split for job in run.jobs] == ["train", "validation"]
    assert any("the split `test` is not scored: without a lock" in note for note in run.notes)
    (shop / "things.skill").write_text(PROGRAM.replace("split = 2 : 1 : 2", "split = 2 : 1"))
    assert any("the split `test` has no examples" in note for note in run_of(shop, split="all").notes)
    (shop / "things.skill").write_text(
        PROGRAM.replace('source = "things.jsonl"; split = 2 : 1 : 2', 'train = "t.jsonl"')
    )
    (shop / "things.jsonl").rename(shop / "t.jsonl")
    with pytest.raises(ProgramError, match="1 error"):
        run_of(shop, split="all")


def test_a_cap_leaves_the_rest_named(shop: Path) -> None:
    count = len(run_of(shop, split="all").jobs[0].examples)
    found = measured(shop, f"budget.tokens={_tokens(shop, count)}", split="all")
    assert found.stopped == "tokens"
    assert [job.split for job in found.left] == ["validation"]
    assert "validation: not reached" in shown(found)
    told: Any = run_json(found)
    assert told["not_reached"] == [{"where": None, "split": "validation"}]


def _tokens(shop: Path, count: int) -> int:
    """Enough for the bounds at their least, and not for all examples."""
    least = run_of(shop, split="all").bound.least.tokens
    return int(least * 1.05) + count


# ---- one shot -------------------------------------------------------------------------------------


def test_the_optimizer_writes_a_skill_once_under_the_same_ledger(compiled: Compiled, tmp_path: Path) -> None:
    folder = copied(compiled, tmp_path / "things")
    found = measured(folder, arms=("none", "initial", "one_shot", "compiled"), split="test")
    (each,) = found.each
    assert [score.arm.name for score in each.models[0].scores] == ["none", "initial", "one_shot", "compiled"]
    assert found.one_shot is not None
    assert found.one_shot.skill is not None
    lines: Any = found.spent["charged"]
    assert {line["stage"] for line in lines["lines"]} >= {"search", "propose", "one_shot", "compiled"}
    assert next(line for line in lines["lines"] if line["stage"] == "propose")["role"] == "optimizer"
    assert lines["total"]["calls"] <= found.job.bound.most.calls
    gain = next(gain for gain in each.models[0].gains if gain.arm.name == "one_shot")
    assert gain.look > 1
    assert len(read_lock(folder / LOCK).looks) == 3
    assert run_json(found)["one_shot"]["text"].startswith("---")  # type: ignore[index, call-overload, union-attr]
    assert "and one skill to write" in run_preview_lines(found.job)[0]
    assert "3 looks at the test split" in run_preview_lines(found.job)[1]


def test_an_optimizer_that_fails_leaves_the_arm_out_and_says_so(compiled: Compiled, tmp_path: Path) -> None:
    class Silent(Failing):
        @staticmethod
        def fails(call: Any) -> str | None:
            return "transient" if call.role == "optimizer" else None

    folder = copied(compiled, tmp_path / "things")
    found = measured(folder, arms=("initial", "one_shot"), client=Silent)
    assert [score.arm.name for score in found.each[0].models[0].scores] == ["initial"]
    assert "there is no one-shot skill: the optimizer gave no rewrite" in " ".join(shown(found).split())


def test_nothing_is_compared_with_a_skill_that_is_not_written_yet(compiled: Compiled, tmp_path: Path) -> None:
    folder = copied(compiled, tmp_path / "things")
    with pytest.raises(SkillcError, match="--against one_shot"):
        run_of(folder, arms=("initial", "one_shot"), against="one_shot")
