"""Programs whose data has no right answers: allowed where no metric compares with them, refused where one does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest_cli import PROGRAM, rows, skillc

from skillc.data.dataset import load_data
from skillc.diagnostics.diagnostic import Diagnostic
from skillc.errors import SkillcError
from skillc.frontend import check_data, estimate, plan_file
from skillc.metrics.baselines import baseline_predictions

SCORED = """
WORDS = {"fruit": "apple pear cherry mango", "tool": "hammer saw chisel wrench", "animal": "horse otter heron lynx"}

def scored(example, prediction):
    assert example["gold"] == {}
    right = next(kind for kind, words in WORDS.items() if any(word in example["text"] for word in words.split()))
    said = prediction["kind"]
    return (1, "right") if said == right else (0, f"the reply should be `{right}`, not `{said}`")
"""
BY_CODE = PROGRAM.replace("exact_match(kind)", 'python("mine:scored")')


def without_answers(folder: Path, program: str = BY_CODE, keep: int = 0) -> Path:
    """The shop without right answers in all rows after the first `keep`."""
    (folder / "things.skill").write_text(program)
    (folder / "mine.py").write_text(SCORED)
    every: list[dict[str, Any]] = list(rows())
    for row in every[keep:]:
        del row["kind"]
    (folder / "things.jsonl").write_text("".join(json.dumps(row) + "\n" for row in every))
    return folder


def findings(folder: Path) -> list[Diagnostic]:
    return list(check_data(folder / "things.skill").kept)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = without_answers(tmp_path_factory.mktemp("judged"))
    done = skillc("compile", "things.skill", "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def test_the_loop_improves_from_what_a_metric_says_alone(judged: tuple[Path, Any]) -> None:
    folder, told = judged
    assert told["verdict"] == "improved"
    assert told["test"]["best"]["mean"] > told["test"]["initial"]["mean"] + 0.3
    assert "answer tool" in (folder / "skills/sort-things/SKILL.md").read_text()


def test_what_follows_a_compile_works_too(judged: tuple[Path, Any]) -> None:
    folder, _ = judged
    done = skillc("eval", "things.skill", "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["baselines"] == {}
    done = skillc("recheck", "things.skill", "--rules", "2", "--json", folder=folder)
    assert done.returncode in (0, 1), done.stderr
    assert {each.severity.name for each in findings(folder)} == {"NOTE"}


def test_a_metric_that_compares_is_refused_at_its_place(tmp_path: Path) -> None:
    folder = without_answers(tmp_path, PROGRAM)
    (found,) = [each for each in findings(folder) if each.code == "SK437"]
    source, span = found.primary.source, found.primary.span
    assert "goal correct" in source.text[span.start : span.end]
    assert "no `kind`; the row has `id`, `text`, `shop`, and `correct` compares `kind` with it" in found.message
    assert found.hint is not None
    assert "`python(...)`" in found.hint


def test_one_metric_that_compares_is_enough(tmp_path: Path) -> None:
    both = BY_CODE.replace("goal ", "metric same = exact_match(kind)\ngoal ")
    folder = without_answers(tmp_path, both)
    with pytest.raises(SkillcError, match="`same` compares `kind` with it"):
        load_data(plan_file(folder / "things.skill").plan, folder)


@pytest.mark.parametrize(
    "metric", ['mentions(kind, ["fruit"])', "one_of(kind)", "1 - words(kind) / 100", "kind == shop", "valid_json(kind)"]
)
def test_metrics_of_the_output_alone_need_none(tmp_path: Path, metric: str) -> None:
    text = PROGRAM.replace("exact_match(kind)", f"clamp({metric}, 0, 1)")
    text = text.replace('"things.jsonl";', '"things.jsonl"; field shop: text;')
    text = (
        text.replace('kind: "fruit" | "tool" | "animal"', "kind: text")
        if "words" in metric or "json" in metric
        else text
    )
    folder = without_answers(tmp_path, text)
    estimated = estimate(plan_file(folder / "things.skill"))
    assert not estimated.failed
    assert all(example.gold == {} for example in estimated.dataset.train)
    assert not estimated.dataset.answered
    assert estimated.dataset.warnings == ()


def test_answers_in_some_rows_are_kept_and_said(tmp_path: Path) -> None:
    folder = without_answers(tmp_path, keep=30)
    plan = plan_file(folder / "things.skill").plan
    data = load_data(plan, folder)
    every = (*data.train, *data.validation, *data.test)
    assert sum(bool(example.gold) for example in every) == 30
    assert data.answered
    assert data.warnings == ("90 of 120 rows have no `kind`, and no right answer",)


def test_a_table_without_the_column_is_read_whole(tmp_path: Path) -> None:
    folder = without_answers(tmp_path, BY_CODE.replace("things.jsonl", "things.csv"))
    (folder / "things.csv").write_text("text,kind\n" + "".join(f"a pear of {i},\n" for i in range(40)))
    plan = plan_file(folder / "things.skill").plan
    assert len(load_data(plan, folder).train) == 13
    (folder / "things.csv").write_text("text\n" + "".join(f"a pear of {i}\n" for i in range(40)))
    data = load_data(plan, folder)
    assert len(data.train) == 13
    assert data.warnings == ("no row has `kind`, so `python` metrics are given no right answer for it",)


def test_a_wrong_label_is_a_mistake_even_if_nothing_compares_it(tmp_path: Path) -> None:
    folder = without_answers(tmp_path, keep=120)
    place = folder / "things.jsonl"
    place.write_text(place.read_text().replace('"kind": "fruit"', '"kind": "friut"', 1))
    with pytest.raises(SkillcError, match=r"`friut` in `kind` is not a declared label"):
        load_data(plan_file(folder / "things.skill").plan, folder)


def test_there_is_no_baseline_and_no_missing_label_without_answers(tmp_path: Path) -> None:
    folder = without_answers(tmp_path)
    plan = plan_file(folder / "things.skill").plan
    data = load_data(plan, folder)
    assert baseline_predictions(plan.task, data, data.test) == {}
    assert not {each.code for each in findings(folder)} & {"SK434", "SK435", "SK436"}


def test_equal_inputs_with_and_without_an_answer_do_not_contradict(tmp_path: Path) -> None:
    folder = without_answers(tmp_path)
    with (folder / "things.jsonl").open("a") as file:
        file.write('{"text": "A pear.", "kind": "fruit"}\n{"text": "A pear."}\n{"text": "a pear"}\n')
    assert not {each.code for each in findings(folder)} & {"SK431", "SK434", "SK435"}
    assert not any("different answers" in each.message for each in findings(folder))


def test_a_bound_is_made_without_answers(tmp_path: Path) -> None:
    from skillc.data.dataset import sizes_of

    folder = without_answers(tmp_path)
    plan = plan_file(folder / "things.skill").plan
    sizes = sizes_of(plan, load_data(plan, folder), folder)
    assert (sizes.outputs.mean, sizes.outputs.most) == (1, 1)
