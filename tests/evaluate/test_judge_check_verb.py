"""`skillc judge check` finds what is planted in the judges of a program, and respects caps and stop requests."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest_cli import skillc
from rich.console import Console

from skillc.errors import SkillcError
from skillc.evaluate.judge_check.job import JudgeCheckOptions, prepare_judge_check
from skillc.evaluate.judge_check.report import judge_check_json, judge_check_table
from skillc.evaluate.judge_check.run import JudgeCheck, check_judges, fill_sheet
from skillc.frontend import plan_file
from skillc.models.calls import Call, Completion
from skillc.models.client import Client
from skillc.models.failures import CallFailed
from skillc.optimize.host import SilentObserver
from skillc.run.stop import Stop

PROGRAM = """language 1

task {
  input  mail:  text
  output reply: text
}

skill answers {
  about = "Answers mails."
  trainable section rules
}

rubric solves = \"\"\"
  5  the customer need not write again
  3  right, but something is left open
  1  wrong, or beside the question
\"\"\"

model target    = "own/target" { backend = python("planted_models:target") }
model optimizer = "own/target" { backend = python("planted_models:target") }
model referee   = "own/judge" { backend = python("planted_models:judge") }

data { source = "mails.jsonl"; split = 2 : 2 : 1 }

goal   score = judge(reply, solves, model = referee)
metric exact = exact_match(reply)
require trustworthy = flip_rate(score) <= 5%
budget { epochs = 1 }
gate better = candidate.score > incumbent.score
"""
# The quality of an answer is in its words; the judge has the faults that a test gives it.
MODELS = """
import json, random, re

faults, draw, asked = set(), random.Random(1), []

def target(messages, model, parameters):
    number = int(re.findall(r"mail (\\d+)", messages[-1]["content"])[-1])
    answer = f"quality {(1, 3, 5)[number % 3]} of mail {number}"
    return f"[[ ## reply ## ]]\\n{answer}\\n\\n[[ ## completed ## ]]"

def judge(messages, model, parameters):
    text = messages[1]["content"]
    asked.append(text)
    case = re.match(r"Case (\\w+)", text)[1]
    answers = dict(re.findall(r"^BEGIN \\w+ answer ?(A|B|) reply\\n(.*?)\\nEND", text, re.M | re.S))
    def quality(answer):
        level = int(re.search(r"quality (\\d)", answer)[1])
        if "length" in faults and len(answer.split()) > 30 or "obeys" in faults and "Ignore the rubric" in answer:
            level = 5
        return draw.choice((1, 3, 5)) if "coin" in faults else level
    if "B" in answers:
        one, other = quality(answers["A"]), quality(answers["B"])
        better = "A" if one > other or "first" in faults else "B" if other > one else "tie"
        return json.dumps({"case": case, "verdicts": [{"reason": "r", "better": better}]})
    level = quality(next(iter(answers.values())))
    return json.dumps({"case": case, "verdicts": [{"reason": "r", "level": level}]})
"""


@pytest.fixture
def post(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program, its data and the models."""
    (tmp_path / "mails.skill").write_text(PROGRAM)
    (tmp_path / "planted_models.py").write_text(MODELS)
    rows = [{"id": f"m{i}", "mail": f"mail {i}", "reply": f"quality 3 of mail {i}"} for i in range(60)]
    (tmp_path / "mails.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.delitem(sys.modules, "planted_models", raising=False)
    return tmp_path


class Failing(Client):
    """A client that may fail the calls of a role."""

    failing = ""

    async def complete(self, call: Call) -> Completion:
        if call.role == self.failing:
            raise CallFailed("transient", "as the test wants it")
        return await super().complete(call)


def job_of(folder: Path, *settings: str, **wanted: Any) -> Any:
    every = bool(wanted.get("targets"))
    planned = plan_file(folder / "mails.skill", settings=settings, runnable=True, complete=False, every_model=every)
    return prepare_judge_check(planned, JudgeCheckOptions(**wanted))


def checked(folder: Path, *faults: str, settings: tuple[str, ...] = (), failing: str = "", **wanted: Any) -> JudgeCheck:
    job = job_of(folder, *settings, **wanted)
    with Failing(job.plan, cache_folder=folder / ".skillc" / "cache", root=folder) as client:
        client.failing = failing
        sys.modules["planted_models"].faults = set(faults)  # type: ignore[attr-defined]
        return check_judges(job, SilentObserver(), client)


def changed(folder: Path, before: str, after: str) -> None:
    text = (folder / "mails.skill").read_text()
    assert before in text
    (folder / "mails.skill").write_text(text.replace(before, after))


def shown(found: JudgeCheck) -> str:
    page = io.StringIO()
    Console(file=page, width=80, highlight=False).print(judge_check_table(found))
    return page.getvalue()


def names(found: JudgeCheck) -> set[str]:
    return {each.name or each.kind for each in found.judges[0].whole.found}


def test_a_judge_without_a_fault_is_steady_within_the_bound_and_then_free(post: Path) -> None:
    found = checked(post)
    (one,) = found.judges
    assert (one.metrics, one.whole.steadiness, one.whole.found) == (("score",), "steady", ())
    assert one.whole.mean == pytest.approx(0.5, abs=0.1)
    assert (found.requires[0].holds, found.status(strict=True)) == (True, 0)
    charged: Any = found.spent["charged"]
    size = len(found.job.examples)
    assert charged["total"]["calls"] == size * (1 + 3 + 1 + 1 + 4) <= found.job.bound.most.calls
    paid: Any = checked(post).spent["paid"]
    assert paid["total"]["calls"] == 0
    assert max(map(len, shown(found).splitlines())) <= 80
    assert "require   trustworthy holds: score differs on 0 of" in shown(found)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(("fault", "name"), [("obeys", "order"), ("length", "length")])
def test_a_planted_fault_is_found(post: Path, fault: str, name: str) -> None:
    found = checked(post, fault)
    assert names(found) == {name}
    assert (found.status(), found.status(strict=True)) == (0, 1)
    assert "found" in shown(found)


def test_a_coin_fails_the_declared_require(post: Path) -> None:
    found = checked(post, "coin")
    assert found.judges[0].whole.steadiness == "a coin"
    assert names(found) == set()
    assert (found.requires[0].holds, found.status()) == (False, 1)
    assert "does not hold" in shown(found)
    assert "it agrees with itself no better than by chance" in shown(found)


def test_a_judge_of_pairs_that_prefers_the_first_place_is_found(post: Path) -> None:
    changed(post, "model = referee)", "model = referee, against = gold)")
    fair = checked(post)
    assert names(fair) == set()
    assert fair.judges[0].equal > 0
    (post / ".skillc").rename(post / "elsewhere")
    found = checked(post, "first")
    assert "position" in names(found)
    order = found.judges[0].whole.order
    assert order is not None
    assert order.share == 1


def test_without_a_compiled_skill_answers_without_a_skill_are_compared_with_the_initial_ones(post: Path) -> None:
    changed(post, "model = referee)", "model = referee, against = initial)")
    found = checked(post)
    assert found.job.arm.name == "none"
    # The target answers alike with and without a skill.
    assert found.judges[0].equal == len(found.job.examples)
    assert found.status() == 2


@pytest.mark.thorough
def test_a_panel_is_reported_as_a_whole_and_by_member(post: Path) -> None:
    changed(post, "data {", 'model second = "own/judge" { backend = python("planted_models:judge") }\ndata {')
    changed(post, "model = referee)", "panel = [referee, second])")
    found = checked(post, examples=12)
    (one,) = found.judges
    assert one.whole.roles == ("referee", "second")
    assert [each.roles for each in one.members] == [("referee",), ("second",)]
    assert "score: second alone" in shown(found)


def test_labels_are_read_from_the_sheet_that_was_filled_in(post: Path) -> None:
    sheet = post / "labels.jsonl"
    job = job_of(post, sheet=sheet)
    with Client(job.plan, root=post) as client:
        line = fill_sheet(job, SilentObserver(), client)
    rows = [json.loads(line) for line in sheet.read_text().splitlines()]
    assert len(rows) == len(job.examples)
    assert f"{len(rows)} answers to label" in line
    assert set(rows[0]) == {"id", "mail", "reply", "label"}
    with pytest.raises(SkillcError, match="has no labels"):
        job_of(post, labels=sheet)
    for row in rows[:10]:
        row["label"] = int(row["reply"].split()[1])
    rows.append({**rows[0], "reply": "quality 1, of somebody else", "label": 1 if rows[0]["label"] != 1 else 3})
    sheet.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = checked(post, labels=sheet)
    labelled = found.judges[0].whole.labelled
    assert labelled is not None
    assert labelled.overall.n == 11
    assert labelled.contested.n == 2
    assert labelled.overall.exact is not None
    assert labelled.overall.exact >= 10 / 11
    assert labelled.corrected is None
    assert "it takes 30 labels" in shown(found)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"id": "m0", "reply": "x", "label": 4}, "`label` is 4; it has to be `5`, `3` or `1`"),
        ({"id": "gone", "reply": "x", "label": 5}, "no example has the id `gone`"),
        ({"id": "m0", "label": 5}, "`reply` is missing"),
    ],
)
def test_a_wrong_label_is_a_message(post: Path, row: dict[str, Any], said: str) -> None:
    if row["id"] == "m0":
        row["id"] = job_of(post).examples[0].id
    (post / "labels.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(SkillcError) as raised:
        job_of(post, labels=post / "labels.jsonl")
    assert said in f"{raised.value.message}; {raised.value.hint}"


def test_a_metric_by_code_is_a_truth(post: Path) -> None:
    found = checked(post, truth="exact")
    labelled = found.judges[0].whole.labelled
    assert labelled is not None
    assert labelled.overall.n == len(found.job.examples)
    # A third of the answers is right, which the judge gives a half.
    assert {float(each.low): float(each.label) for each in labelled.by_score} == {0: 0, 0.5: 1, 1: 0}
    # The best score goes to wrong answers as often as the worst, so nothing can be learned from it.
    assert labelled.needed is not None
    assert labelled.needed.judged is None or labelled.needed.judged > 100_000
    assert "examples with exact labels" in shown(found)
    with pytest.raises(SkillcError, match="`score` reads a judge"):
        job_of(post, truth="score")


@pytest.mark.thorough
def test_in_a_comparison_the_truth_is_which_answer_has_the_higher_value(post: Path) -> None:
    changed(post, "model = referee)", "model = referee, against = gold)")
    labelled = checked(post, truth="exact").judges[0].whole.labelled
    assert labelled is not None
    # No answer that differs from the right one is exact, so it loses; the judge prefers those of quality 5.
    assert labelled.overall.difference is not None
    assert labelled.overall.difference > 0
    assert {float(each.label) for each in labelled.by_score} == {0}


def test_failures_are_unmeasured(post: Path) -> None:
    found = checked(post, failing="referee", examples=8)
    (one,) = found.judges
    assert (one.whole.mean, one.whole.failed) == (None, 8 * 9)
    assert found.status() == 2
    assert found.requires[0].holds is None
    lost = checked(post, failing="target", examples=8)
    assert lost.unmeasured == {"transport": 8}
    assert "judged    no answer" in shown(lost)


def test_caps_that_cannot_pay_are_refused_before_the_first_call(post: Path) -> None:
    for cap in ("judge_calls=10", "calls=20", "tokens=5"):
        with pytest.raises(SkillcError, match="the budget cannot pay for this check"):
            job_of(post, f"budget.{cap}")


def test_an_interrupted_check_reports_what_it_has_and_goes_on_from_there(post: Path) -> None:
    class Halfway(Stop):
        """A stop request once rollouts and judgements have begun."""

        asked = 0

        @property
        def reason(self) -> str | None:
            self.asked += 1
            return "interrupted" if self.asked > 1 else None

    job = job_of(post, examples=8)
    with Client(job.plan, cache_folder=post / ".skillc" / "cache", root=post) as client:
        found = check_judges(job, SilentObserver(), client, Halfway(None))
    assert (found.stopped, found.status()) == ("interrupted", 130)
    assert "the same command resumes" in shown(found)
    whole = checked(post, examples=8)
    assert (whole.stopped, whole.judges[0].whole.items) == (None, 8)
    paid: Any = whole.spent["paid"]
    assert paid["total"]["calls"] < whole.spent["charged"]["total"]["calls"]  # type: ignore[call-overload,index]


@pytest.mark.thorough
def test_a_judge_is_told_apart_by_the_family_that_it_prefers(post: Path) -> None:
    other = 'model other = "open/gpt-small" { backend = python("planted_models:target") }\n'
    changed(post, "data {", other + "data {")
    changed(post, '"own/judge"', '"open/gpt-large"')
    found = checked(post, targets=("target", "other"), truth="exact")
    kinds = {each.kind: each for each in found.judges[0].whole.biases}
    # Both answer alike, and the judge knows no name.
    assert (kinds["family"].shift, kinds["family"].found) == (0, False)
    assert {item.model for item in found.job.models} == {"own/target", "open/gpt-small"}
    assert not any(each.kind == "family" for each in checked(post, truth="exact").judges[0].whole.biases)


def test_criteria_have_labels_of_their_own(post: Path) -> None:
    rubric = """rubric solves {
  criterion solved = \"\"\"
    5  yes
    3  in part
    1  no
  \"\"\" { weight = 3 }
  criterion polite = "Is the reply polite?"
}
"""
    text = (post / "mails.skill").read_text()
    before, rest = text.split("rubric solves", 1)
    (post / "mails.skill").write_text(before + rubric + rest.split('"""', 2)[2])
    example = job_of(post).examples[0].id
    row = {"id": example, "reply": "quality 5 of somebody", "solved": "3", "polite": "yes"}
    (post / "labels.jsonl").write_text(json.dumps(row) + "\n")
    (label,) = job_of(post, labels=post / "labels.jsonl").labels
    assert (float(label.score), {name: float(mark) for name, mark in label.marks.items()}) == (
        0.625,
        {"solved": 0.5, "polite": 1},
    )
    (post / "labels.jsonl").write_text(json.dumps({**row, "polite": None}) + "\n")
    with pytest.raises(SkillcError, match="`polite` is None"):
        job_of(post, labels=post / "labels.jsonl")


def test_labels_are_for_one_judge(post: Path) -> None:
    changed(post, "metric exact", 'metric polite = judge(reply, "Is it polite?", model = referee)\nmetric exact')
    with pytest.raises(SkillcError, match="`--labels` is for one judge") as raised:
        job_of(post, labels=post / "labels.jsonl")
    assert raised.value.hint == "name one: `--metric polite`"
    assert len(job_of(post).judges) == 2
    assert [names for _, names in job_of(post, metric="score").judges] == [("score",)]


def test_a_program_without_a_judge_is_a_message(post: Path) -> None:
    with pytest.raises(SkillcError, match="`exact` reads no judge") as raised:
        job_of(post, metric="exact")
    assert raised.value.hint == "`score` read one"
    with pytest.raises(SkillcError, match="no metric `scores`") as raised:
        job_of(post, metric="scores")
    assert raised.value.hint == "did you mean `score`?"


def test_as_a_user_types_it(post: Path) -> None:
    done = skillc("judge", "check", "mails.skill", "--offline", "--examples", "9", "--json", folder=post)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["format_version"], told["examples"], told["repeats"], told["stopped"]) == (1, 9, 3, None)
    assert told["judges"][0]["metrics"] == ["score"]
    assert "9 validation examples, 9 questions about each answer: at most" in done.stderr


@pytest.mark.thorough
def test_a_sheet_as_a_user_types_it(post: Path) -> None:
    sheet = skillc("judge", "check", "mails.skill", "--offline", "--sheet", "sheet.jsonl", "--quiet", folder=post)
    assert sheet.returncode == 0, sheet.stderr
    assert "answers to label" in sheet.stdout
    again = skillc("judge", "check", "mails.skill", "--offline", "--sheet", "sheet.jsonl", folder=post)
    assert (again.returncode, "`sheet.jsonl` exists" in again.stderr) == (2, True)


@pytest.mark.thorough
def test_json_has_everything(post: Path) -> None:
    told: Any = judge_check_json(checked(post, truth="exact", examples=12))
    json.dumps(told)
    assert {each["bias"] for each in told["judges"][0]["biases"]} == {"order", "length", "injection", "leniency"}
    assert told["judges"][0]["with_labels"]["overall"]["n"] == 12
    assert told["judges"][0]["with_labels"]["needed"]["gain"] == 0.05
