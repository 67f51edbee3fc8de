"""Wins and losses, latency and cost, parts by a field, and the files of an evaluation."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from conftest_cli import PROGRAM
from evaluations import Failing, copied, evaluated, job_of, paid, score, shown

from skillc.errors import SkillcError
from skillc.evaluate.as_json import eval_json
from skillc.evaluate.files import csv_text, junit_text, write_files
from skillc.evaluate.run import Evaluation
from skillc.evaluate.scores import Costs

Compiled = tuple[Path, Any, Any]
# The attributes that Jenkins (junit-10.xsd) and Surefire (surefire-test-report.xsd) both know, and what they require.
SUITE = {"name", "time", "tests", "errors", "skipped", "failures"}
CASE = {"name", "classname", "time"}
PROBLEM = {"failure": {"message", "type"}, "error": {"message", "type"}, "skipped": {"message"}}


@pytest.fixture(scope="module")
def found(compiled: Compiled, tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    """All examples of validation but one have one of two shops: one part has a single example."""
    folder = copied(compiled, tmp_path_factory.mktemp("parts") / "things")
    lines = (folder / "things.jsonl").read_text().replace('"market"', '"harbour"').replace('"school"', '"harbour"')
    (folder / "things.jsonl").write_text(lines)
    (folder / "things.skill").write_text(PROGRAM.replace("seed = 3 }", "seed = 3; field shop: text }"))
    alone = job_of(folder).examples[0].id
    rows = [
        line if f'"{alone}"' not in line else line.replace('"shop": "', '"shop": "=1+1') for line in lines.split("\n")
    ]
    (folder / "things.jsonl").write_text("\n".join(rows))
    return evaluated(folder, by="shop")


def test_wins_and_losses_add_up_to_the_gain(found: Evaluation) -> None:
    for gain in found.models[0].gains:
        duel = gain.duel
        assert duel.wins + duel.losses + duel.ties == gain.verdict.n == len(found.job.examples)
        assert gain.verdict.gain == Fraction(duel.wins - duel.losses, gain.verdict.n)
    compiled = next(gain for gain in found.models[0].gains if gain.arm.name == "compiled")
    assert compiled.duel.wins > 0
    (pair,) = (each for each in _json(found)["models"][0]["pairs"] if each["skill"] == "compiled")
    assert (pair["wins"], pair["losses"], pair["ties"]) == (
        compiled.duel.wins,
        compiled.duel.losses,
        compiled.duel.ties,
    )


def test_a_right_answer_costs_what_all_answers_cost_together() -> None:
    costs = Costs(rollouts=8, right=2, tokens=80, cost=4_000)
    assert (costs.per_rollout, costs.per_right) == (500, 2_000)
    assert Costs(rollouts=8, right=0, cost=4_000).per_right is None
    assert Costs(rollouts=8, right=2, cost=None).per_rollout is None


def test_the_embedded_model_has_no_latency_and_its_tokens_are_those_of_the_ledger(found: Evaluation) -> None:
    for each in found.models[0].scores:
        assert each.costs.median is None
        assert each.costs.tokens == each.tally.prompt + each.tally.completion
        assert each.costs.right == (each.goal.mean or 0) * each.goal.n
    assert "median" not in shown(found)


def test_a_cached_reply_keeps_the_latency_of_its_call(compiled: Compiled, tmp_path: Path) -> None:
    folder = copied(compiled, tmp_path / "things")
    (folder / "mine.py").write_text(
        "import time\n\ndef slow(messages, model, parameters):\n    time.sleep(0.02)\n"
        "    return '[[ ## kind ## ]]\\nfruit\\n\\n[[ ## completed ## ]]'\n"
    )
    own = 'model mine = "own/slow" { backend = python("mine:slow") }\ndata {'
    (folder / "things.skill").write_text(PROGRAM.replace("data {", own))
    first, again = (evaluated(folder, models=("mine",), without=("none", "compiled")) for _ in range(2))
    costs = score(first, "initial").costs
    assert costs.timed == costs.rollouts == len(first.job.examples)
    assert costs.median is not None
    assert costs.p95 is not None
    assert 0.02 <= costs.median <= costs.p95
    assert paid(again) == 0
    assert score(again, "initial").costs == costs
    assert "median" in shown(again)


def test_parts_add_up_and_one_example_has_no_interval(found: Evaluation) -> None:
    parts = found.models[0].parts
    assert sum(part.examples for part in parts) == len(found.job.examples)
    assert [part.examples for part in parts] == sorted((part.examples for part in parts), reverse=True)
    for i, whole in enumerate(found.models[0].scores):
        sums = [(part.scores[i].goal.mean or 0) * part.scores[i].goal.n for part in parts]
        assert sum(sums) == (whole.goal.mean or 0) * whole.goal.n
    alone = parts[-1]
    assert (alone.examples, alone.value[:4]) == (1, "=1+1")
    assert alone.scores[0].interval is None
    assert sum(duel.wins + duel.losses + duel.ties for _, duel in (part.gains["compiled"] for part in parts)) == len(
        found.job.examples
    )
    assert "parts are not tested" in shown(found)
    assert _json(found)["models"][0]["by"][-1]["skills"][0]["interval"] is None


def test_a_goal_that_is_no_share_is_shown_in_its_own_range(compiled: Compiled, tmp_path: Path) -> None:
    goal = "goal correct = clamp(10 * exact_match(kind), 0, 10)"
    folder = copied(compiled, tmp_path / "things", PROGRAM.replace("goal correct = exact_match(kind)", goal))
    one = evaluated(folder, by="kind")
    mean = score(one, "compiled").goal.mean or Fraction(0)
    assert 1 < mean <= 10
    page = shown(one)
    assert f"{float(mean):.4g}" in page
    assert " %  " not in page.replace("95 %", "")


def test_an_unknown_field_names_the_known_ones(compiled: Compiled, tmp_path: Path) -> None:
    folder = copied(compiled, tmp_path / "things")
    with pytest.raises(SkillcError, match="no such field") as error:
        job_of(folder, by="knd")
    assert error.value.hint == "did you mean `kind`?"


def test_a_row_of_csv_for_each_rollout_and_no_formula(found: Evaluation) -> None:
    rows = list(csv.DictReader(io.StringIO(csv_text([found]))))
    assert len(rows) == 3 * len(found.job.examples)
    compiled = [row for row in rows if row["skill"] == "compiled"]
    mean = sum(float(row["goal correct"]) for row in compiled) / len(compiled)
    assert mean == pytest.approx(float(score(found, "compiled").goal.mean or 0))
    assert {row["by shop"][:5] for row in rows if row["by shop"].startswith(("=", "'"))} == {"'=1+1"}
    hostile = replace(found.rows[0], answer={"kind": '@SUM(A1)\x1b[2J,"x"\n'}, expected={"kind": "-5"}, detail="+1+1")
    (row,) = csv.DictReader(io.StringIO(csv_text([replace(found, rows=(hostile,))])))
    assert row["answer"] == '\'@SUM(A1)[2J,"x"\n'
    assert row["expected"] == "-5"
    assert row["detail"] == "'+1+1"


def test_junit_has_a_case_for_each_example_of_the_skills_that_are_news(found: Evaluation) -> None:
    root = Xml.fromstring(junit_text([found]))
    (suite,) = root
    count, right = len(found.job.examples), score(found, "compiled").costs.right
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == (str(count), str(count - right), "0")
    assert len({(case.get("classname"), case.get("name")) for case in suite.iter("testcase")}) == count
    names = {each.get("name"): each.get("value") for each in suite.iter("property")}
    assert names["reference"] == "initial"
    assert "verdict" not in names
    _check_schema(root)


def test_junit_drops_what_xml_cannot_contain_and_keeps_failures_apart(found: Evaluation) -> None:
    compiled = [row for row in found.rows if row.skill == "compiled"][:3]
    hostile = (
        replace(compiled[0], right=False, answer={"kind": "]]></failure>\x00\x1b[2J\ud800&<"}, example='"<x>'),
        replace(compiled[1], state="transport", goal=None, right=False, detail="a & b"),
        replace(compiled[2], state="not run", goal=None, right=False),
    )
    text = junit_text([replace(found, rows=hostile)])
    assert text.encode()
    root = Xml.fromstring(text)
    (suite,) = root
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["3", "1", "1", "1"]
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.text is not None
    assert "answer: ]]></failure>[2J&<" in failure.text
    _check_schema(root)


def test_a_metric_that_fails_for_one_arm_is_an_error_of_its_cases_and_no_score(
    compiled: Compiled, tmp_path: Path
) -> None:
    class Lost(Failing):
        @staticmethod
        def fails(call: Any) -> str | None:
            return "cut" if call.stage == "compiled" else None

    one = evaluated(copied(compiled, tmp_path / "things"), client=Lost, by="kind")
    arm = score(one, "compiled")
    assert (arm.goal.mean, arm.costs.rollouts, arm.costs.per_right) == (None, 0, None)
    gain = next(gain for gain in one.models[0].gains if gain.arm.name == "compiled")
    assert (gain.duel.wins, gain.duel.losses, gain.duel.ties) == (0, 0, 0)
    assert all(part.gains["compiled"][0] is None for part in one.models[0].parts)
    (suite,) = Xml.fromstring(junit_text([one]))
    assert suite.get("errors") == suite.get("tests")
    assert "–" in shown(one)


def test_files_are_written_whole_or_not_at_all(found: Evaluation, tmp_path: Path) -> None:
    table, report = tmp_path / "o.csv", tmp_path / "o.xml"
    assert write_files([found], table, report) == []
    assert table.read_text() == csv_text([found])
    assert write_files([replace(found, rows=())], tmp_path / "no.csv", None) == [
        f"`{tmp_path / 'no.csv'}` is not written: there are no scores"
    ]
    with pytest.raises(SkillcError, match="cannot be written"):
        write_files([found], tmp_path / "missing" / "o.csv", None)


def _json(found: Evaluation) -> Any:
    return eval_json(found)


def _check_schema(root: Xml.Element) -> None:
    """The order and the attributes that both schemas have."""
    assert root.tag == "testsuites"
    assert set(root.attrib) <= {"name", "time", "tests", "failures", "errors"}
    for suite in root:
        assert set(suite.attrib) == SUITE
        assert [each.tag for each in suite] == ["properties"] + ["testcase"] * (len(suite) - 1)
        for case in suite.iter("testcase"):
            assert set(case.attrib) == CASE
            assert len(case) <= 1
            for problem in case:
                assert set(problem.attrib) == PROBLEM[problem.tag]
