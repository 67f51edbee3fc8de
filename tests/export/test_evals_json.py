"""`evals/evals.json` as data and as an export, and the workspace of a run in the layout of Agent Skills."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from skillc.cli import skillc
from skillc.data.dataset import load_data
from skillc.errors import SkillcError
from skillc.export.agent_skills import export_evals
from skillc.frontend import plan_file
from skillc.review.run_view import read_run

EVALS = {
    "skill_name": "csv-analyzer",
    "version": {"of": ["this", 1]},
    "evals": [
        {
            "id": 1,
            "prompt": "Find the three best months.\nThen draw a chart.",
            "expected_output": 'A chart of the "top 3" months.',
            "files": ["evals/files/sales.csv"],
            "assertions": ["The output contains “March”", "The chart shows exactly 3 months"],
        },
        {"id": 2, "prompt": "Clean it up.", "expected_output": "A cleaned CSV.", "files": []},
        {"id": 3, "prompt": "Ünïcode 日本", "expected_output": "", "files": [], "assertions": ["It is polite"]},
        {"id": 4, "name": "edge case", "prompt": "Nothing", "files": [], "expected_output": "Nothing."},
    ],
}
PROGRAM = """language 1
task {
  input prompt: text
  input files: list[file]
  output answer: text
}
skill csv_analyzer { about = "Analyze CSV files."; trainable section rules { limit = 300 tokens } }
rubric met { each = assertions; sees = [trajectory] }
model target    = "rulebook/v1"
model optimizer = "rulebook/v1"
model referee   = "rulebook/v1"
data {
  source = "evals/evals.json"
  field assertions: list[text]
  split = 2 examples : 1 example : 1 example
}
goal passed = judge(answer, met, model = referee)
gate better = candidate.passed > incumbent.passed
budget { epochs = 1 }
"""


def made(folder, evals=EVALS, program=PROGRAM):
    (folder / "evals/files").mkdir(parents=True)
    (folder / "evals/files/sales.csv").write_text("month,revenue\nMarch,3\n")
    (folder / "evals/evals.json").write_text(json.dumps(evals, indent=2, ensure_ascii=False))
    (folder / "csv.skill").write_text(program)
    return folder / "csv.skill"


def test_an_eval_is_an_example_with_its_files_and_assertions(tmp_path):
    program = made(tmp_path)
    dataset = load_data(plan_file(program, complete=False).plan, tmp_path)
    examples = {each.id: each for each in (*dataset.train, *dataset.validation, *dataset.test)}
    assert examples["1"].inputs["prompt"] == "Find the three best months.\nThen draw a chart."
    assert "month,revenue" in str(examples["1"].inputs["files"])
    assert examples["1"].fields["assertions"] == ["The output contains “March”", "The chart shows exactly 3 months"]
    assert examples["2"].fields["assertions"] == ["The output is as described: A cleaned CSV."]
    assert dataset.places["2"] == ("evals/evals.json", 22)


def test_evals_come_back_as_they_were_written(tmp_path):
    program = made(tmp_path)
    done = export_evals(program, tmp_path / "out")
    assert done.benchmark is None
    assert json.loads(done.evals.read_text())["evals"] == EVALS["evals"]
    assert (tmp_path / "out/csv-analyzer/evals/files/sales.csv").read_text().startswith("month")
    # Once more, from what was written.
    again = made(tmp_path / "again", evals=json.loads(done.evals.read_text()))
    once_more = export_evals(again, tmp_path / "more")
    assert once_more.evals.read_bytes() == done.evals.read_bytes()


def test_a_program_becomes_evals_that_code_can_grade_the_same(exported, tmp_path):
    done = export_evals(exported.program, tmp_path)
    value = json.loads(done.evals.read_text())
    assert value["skill_name"] == "sort-things"
    assert len(value["evals"]) == 30
    assert [each["id"] for each in value["evals"]] == list(range(1, 31))
    assert value["evals"][1]["assertions"] == ['The output is exactly "tool"']
    assert value["evals"][1]["expected_output"] == "tool"
    source = f'source = "{done.evals.relative_to(tmp_path).as_posix()}"'
    (tmp_path / "again.skill").write_text(PROGRAM.replace('source = "evals/evals.json"', source))
    plan = plan_file(tmp_path / "again.skill", complete=False).plan
    back = load_data(plan.model_copy(update={"data": plan.data.model_copy(update={"split": None})}), tmp_path)
    found = {each.inputs["prompt"] for each in (*back.train, *back.validation, *back.test)}
    before = {each.example.inputs["text"] for each in read_run(exported.program).examples.values()}
    assert found == before


def test_the_workspace_has_the_documented_layout_and_the_run_s_own_figures(exported, tmp_path):
    done = export_evals(exported.program, tmp_path)
    view = read_run(exported.program)
    assert done.iteration == tmp_path / "sort-things-workspace/iteration-1"
    benchmark = json.loads((done.iteration / "benchmark.json").read_text())
    summary = benchmark["run_summary"]
    assert set(summary) == {"with_skill", "without_skill", "old_skill", "delta"}
    for name, skill in (("with_skill", view.best), ("without_skill", "none")):
        cells = [view.outcome(skill, each.id).cells["correct"] for each in view.dataset.test]
        scores = [cell.value / 1e6 for cell in cells if hasattr(cell, "value")]
        assert summary[name]["pass_rate"]["mean"] == pytest.approx(sum(scores) / len(scores), abs=1e-4)
        assert {"time_seconds", "tokens"} <= summary[name].keys()
        assert {"mean", "stddev"} <= summary[name]["tokens"].keys()
    means = [summary[name]["pass_rate"]["mean"] for name in ("with_skill", "without_skill")]
    assert summary["delta"]["pass_rate"] == pytest.approx(means[0] - means[1], abs=1e-3)
    assert any("test (held out)" in note for note in benchmark["notes"])
    run = benchmark["runs"][0]
    place = done.iteration / run["eval_name"] / run["configuration"]
    grading = json.loads((place / "grading.json").read_text())
    assert grading["assertion_results"] == grading["expectations"] == run["expectations"]
    assert grading["summary"] == {name: run["result"][name] for name in ("passed", "failed", "total", "pass_rate")}
    assert json.loads((place / "timing.json").read_text())["duration_ms"] == 500
    outputs = sorted(path.name for path in (place / "outputs").rglob("*") if path.is_file())
    assert "kind.txt" in outputs
    assert all(path.resolve().is_relative_to(tmp_path) for path in done.iteration.rglob("*"))


def test_a_rollout_that_was_not_measured_is_in_no_figure(exported, tmp_path):
    done = export_evals(exported.program, tmp_path, split="all")
    assert done.benchmark.unmeasured
    number = sum(done.benchmark.unmeasured.values())
    view = read_run(exported.program)
    skills = (view.best, "none", view.initial)
    recorded = sum(view.outcome(skill, name) is not None for skill in skills for name in view.examples)
    assert len(done.benchmark.runs) == recorded - number
    notes = json.loads((done.iteration / "benchmark.json").read_text())["notes"]
    assert any("not measured (transport), in no figure" in note for note in notes)


def test_another_iteration_is_added_and_other_evals_are_not_replaced(exported, tmp_path):
    first = export_evals(exported.program, tmp_path, split="test")
    second = export_evals(exported.program, tmp_path, split="test")
    assert (first.iteration.name, second.iteration.name) == ("iteration-1", "iteration-2")
    with pytest.raises(SkillcError, match="has other evals"):
        export_evals(exported.program, tmp_path, split="validation")
    assert export_evals(exported.program, tmp_path, split="validation", force=True).number < 30


@pytest.mark.parametrize(
    ("evals", "message"),
    [
        ({"evals": [{"id": 1}]}, "an eval without a `prompt`"),
        ({"evals": [{"id": 1, "prompt": "x", "assertions": "no list"}]}, "`assertions` is not a list"),
        (
            {"evals": [{"id": 1, "prompt": "x", "assertions": [{"type": "regex"}]}]},
            "unknown type `regex`",
        ),
        ({"evals": [{"id": 1, "prompt": "x", "assertions": [3]}]}, "neither a text nor an object"),
        ({"tests": []}, "is an object, not a list of objects"),
    ],
)
def test_what_is_no_eval_is_reported_at_its_place(tmp_path, evals, message):
    program = made(tmp_path, evals=evals)
    with pytest.raises(SkillcError) as problem:
        load_data(plan_file(program, complete=False).plan, tmp_path)
    shown = " ".join([problem.value.message, *(each.message for each in getattr(problem.value, "diagnostics", ()))])
    assert message in shown


def test_typed_assertions_and_expectations_become_statements(tmp_path):
    evals = {
        "evals": [
            {
                "id": i,
                "prompt": f"prompt {i}",
                "expectations": [
                    {"name": "greets", "type": "contains", "value": "hello"},
                    {"type": "not_contains", "value": "sorry"},
                    {"type": "llm-rubric", "value": "It is kind"},
                    {"type": "is-json"},
                ],
            }
            for i in range(4)
        ]
    }
    program = made(tmp_path, evals=evals, program=PROGRAM.replace("  input files: list[file]\n", ""))
    dataset = load_data(plan_file(program, complete=False).plan, tmp_path)
    assert dataset.train[0].fields["assertions"] == [
        'The output contains "hello"',
        'The output does not contain "sorry"',
        "It is kind",
        "The output is valid JSON",
    ]


def test_new_writes_a_program_for_an_evals_json_that_compiles(tmp_path, monkeypatch):
    made(tmp_path)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(skillc, ["new", "evals/evals.json", "-o", "first.skill"])
    assert done.exit_code == 0, done.output
    text = Path("first.skill").read_text()
    assert "rubric met { each = assertions }" in text
    assert "input  files: list[file]" in text
    compiled = CliRunner().invoke(skillc, ["compile", "first.skill", "--offline", "--quiet"])
    assert compiled.exit_code == 0, compiled.output
    exported_now = CliRunner().invoke(skillc, ["export", "evals", "first.skill", "-o", "out", "--json"])
    found = json.loads(exported_now.stdout)
    assert found["number"] == 4
    assert found["runs"] > 0
    grades = [json.loads(path.read_text()) for path in Path(found["iteration"]).rglob("grading.json")]
    results = [result for grade in grades for result in grade["assertion_results"]]
    assert len(grades) == found["runs"]
    assert all(result["evidence"] for result in results)
    written = {text for each in EVALS["evals"] for text in each.get("assertions", [])}
    assert {each["text"] for each in results} <= {*written, *described()}


def described():
    return [f"The output is as described: {each['expected_output']}" for each in EVALS["evals"]]
