"""What is logged to MLflow of a run; `make test-mlflow` logs it with the client."""

import sys

import pytest

from skillc.errors import SkillcError
from skillc.export.mlflow import log_run, values_of, write_files
from skillc.redaction import NOTHING
from skillc.review.run_view import read_run


@pytest.fixture(scope="module")
def values(exported):
    return values_of(read_run(exported.program), NOTHING)


def test_metrics_are_those_of_the_history_and_the_lock(exported, values):
    by_name = {}
    for each in values.metrics:
        by_name.setdefault(each.name, []).append((each.step, each.value))
    decisions = exported.decisions
    assert by_name["accepted"] == [(d["decision"], float(d["result"] == "accept")) for d in decisions]
    assert [step for step, _ in by_name["validation.incumbent"]] == list(range(len(decisions) + 1))
    whole = {d["decision"]: float(d["completed"]) for d in decisions if isinstance(d.get("completed"), str)}
    assert {step: value for step, value in by_name["validation.candidate"] if step in whole} == pytest.approx(whole)
    assert by_name["final.test.best"] == [(len(decisions), 0.6)]
    assert by_name["final.test.gain_low"] == [(len(decisions), 0.1)]
    assert by_name["spent.cost"] == [(len(decisions), 0.01)]
    assert all("<" not in name for name in by_name)


def test_a_candidate_that_was_measured_in_part_has_no_mean(exported, values):
    rejected = {d["decision"] for d in exported.decisions if d["result"] == "reject"}
    steps = {each.step for each in values.metrics if each.name == "validation.candidate"}
    assert rejected
    assert not rejected & steps


def test_parameters_are_the_settings_and_the_data(values):
    assert values.params["model.target"] == "rulebook/v1"
    assert values.params["budget.epochs"] == "2"
    assert values.params["data.test"].isdigit()
    assert all(len(text) <= 500 for text in values.params.values())


def test_the_files_are_those_of_the_skill_and_its_reports(exported, tmp_path):
    names = {
        path.relative_to(tmp_path).as_posix() for path in write_files(read_run(exported.program), tmp_path, NOTHING)
    }
    assert names >= {
        "skill/SKILL.md",
        "sort-things.lock",
        "sort-things.history.jsonl",
        "sort-things.report.html",
        "report.md",
        "things.skill",
    }


def test_without_the_client_the_error_names_the_extra(exported, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow.tracking", None)
    monkeypatch.setitem(sys.modules, "mlflow.exceptions", None)
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(SkillcError) as problem:
        log_run(exported.program)
    assert "skillc[mlflow]" in problem.value.hint
