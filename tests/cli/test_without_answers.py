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


# ---- judges ---------------------------------------------------------------------------------------

JUDGE = """
import json, re

WORDS = {"fruit": "apple pear cherry mango", "tool": "hammer saw chisel wrench", "animal": "horse otter heron lynx"}

def part(text, title):
    return re.search(rf"BEGIN \\w+ {title}\\n(.*?)\\nEND", text, re.DOTALL)[1]

def judge(messages, model, parameters):
    text = messages[-1]["content"]
    case = re.search(r"Case (\\w+)", text)[1]
    asked, said = part(text, "input text"), part(text, "answer kind")
    right = next(kind for kind, words in WORDS.items() if any(word in asked for word in words.split()))
    reason = "it names the kind" if said == right else f"the reply should be `{right}`"
    return json.dumps({"case": case, "verdicts": [{"reason": reason, "level": 3 if said == right else 1}]})
"""
RUBRIC = """rubric fits = \"\"\"
  3  the kind is that of the thing
  1  it is another
\"\"\" { sees = SEES }
model referee = "own/judge" { backend = python("judges:judge") }
"""


def by_judge(sees: str, more: str = "") -> str:
    rubric = RUBRIC.replace(" { sees = SEES }", f" {{ sees = [{sees}] }}" if sees else "")
    text = PROGRAM.replace("exact_match(kind)", f"judge(kind, fits, model = referee{more})")
    return text.replace("data {", f"{rubric}data {{")


@pytest.mark.parametrize(("sees", "more"), [("gold", ""), ("", ", against = gold")])
def test_a_judge_that_reads_right_answers_needs_them(tmp_path: Path, sees: str, more: str) -> None:
    folder = without_answers(tmp_path, by_judge(sees, more))
    plan = plan_file(folder / "things.skill", complete=False).plan
    with pytest.raises(SkillcError, match="`correct` compares `kind` with it"):
        load_data(plan, folder)
    folder = without_answers(tmp_path, by_judge("trajectory", ", against = initial"))
    assert not load_data(plan_file(folder / "things.skill", complete=False).plan, folder).answered


@pytest.mark.thorough
def test_the_loop_improves_from_the_reasons_of_a_judge_alone(tmp_path: Path) -> None:
    folder = without_answers(tmp_path, by_judge(""))
    (folder / "judges.py").write_text(JUDGE)
    done = skillc("compile", "things.skill", "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["verdict"] == "improved"
    assert told["test"]["best"]["mean"] > told["test"]["initial"]["mean"] + 0.3
    calls, every = told["judges"]["spent"]["referee"]["calls"], told["spent"]["charged"]["total"]["calls"]
    assert told["judges"]["share"]["calls"] == pytest.approx(calls / every, abs=1e-6)


# ---- new ------------------------------------------------------------------------------------------


def mails(folder: Path, header: str = "mail,customer") -> Path:
    (folder / "mails.csv").write_text(
        f"{header}\n" + "".join(f"Where is my order number {i}?,c{i % 60}\n" for i in range(200))
    )
    return folder


def test_new_writes_a_program_with_a_rubric_for_data_without_answers(tmp_path: Path) -> None:
    done = skillc("new", "mails.csv", "--judge", "reply", folder=mails(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "named by --judge: the data has no right answers" in done.stdout
    text = (tmp_path / "mails.skill").read_text()
    assert "goal score = judge(reply, quality, model = referee)" in text
    assert {each.code for each in check_data(tmp_path / "mails.skill").kept} <= {"SK557"}
    planned = plan_file(tmp_path / "mails.skill", offline=True)
    assert not estimate(planned).failed
    assert skillc("fmt", "--check", "mails.skill", folder=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--judge", "mail"), "has a column `mail`"),
        (("--judge", "a reply"), "`a reply` is not a name for an output"),
        (("--judge", "reply", "--answer", "mail"), "`--judge` is for data without right answers"),
    ],
)
def test_mistakes_with_a_judged_output_are_messages(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    done = skillc("new", "mails.csv", *arguments, folder=mails(tmp_path))
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_one_column_is_enough_for_a_judge_and_the_error_without_says_so(tmp_path: Path) -> None:
    (tmp_path / "mails.csv").write_text("mail\n" + "".join(f"Where is my order number {i}?\n" for i in range(200)))
    refused = skillc("new", "mails.csv", folder=tmp_path)
    assert refused.returncode == 2
    assert "`--judge reply`" in refused.stderr
    assert skillc("new", "mails.csv", "--judge", "reply", folder=tmp_path).returncode == 0
