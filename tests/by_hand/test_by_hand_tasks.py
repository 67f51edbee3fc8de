"""Data are what their scripts write, documented rules are those of the scripts, programs have no findings."""

from __future__ import annotations

import html
import importlib
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.by_hand.changelog import make as changelog
from benchmarks.by_hand.desk import make as desk
from benchmarks.by_hand.recording import calls_in
from benchmarks.by_hand.returns import make as returns
from benchmarks.by_hand.returns import phrases
from skillc.frontend import check_file, estimate, plan_file
from skillc.metrics.baselines import baseline_predictions
from skillc.metrics.judging.check.questions import INJECTIONS, injection
from skillc.metrics.judging.verdict import read_verdict
from skillc.plan.judges import judges_of

ROOT = Path(desk.__file__).resolve().parents[1]


@pytest.mark.parametrize(("task", "rarest"), [("desk", 10), ("changelog", 10), ("returns", 9)])
def test_data_are_what_the_script_writes(task, rarest):
    made = importlib.import_module(f"benchmarks.by_hand.{task}.make").examples()
    rows = [json.loads(line) for line in (ROOT / task / f"{task}.jsonl").read_text(encoding="utf-8").splitlines()]
    assert rows == made
    assert len(rows) >= 240
    assert min(Counter(list(row.values())[1] for row in rows).values()) >= rarest


@pytest.mark.parametrize(
    ("task", "table"), [("desk", desk.CODES), ("changelog", changelog.MARKS), ("returns", returns.CODES)]
)
def test_documented_rules_are_those_of_the_script(task, table):
    text = (ROOT / task / "RULES.md").read_text(encoding="utf-8")
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", text, re.M)]
    head, _, *rows = lines
    assert [row[1:] for row in rows] == [[table[kind][who] for who in head[1:]] for kind in table]


@pytest.mark.parametrize("task", ["desk", "changelog", "returns", "packages"])
def test_programs_have_no_findings_and_the_stated_splits(task, monkeypatch):
    monkeypatch.setenv("FAKE_KEY", "none")
    program = ROOT / task / f"{task}.skill"
    assert not check_file(program).diagnostics
    planned = plan_file(program, runnable=True)
    estimated = estimate(planned)
    assert planned.plan.budget.calls == 700
    assert not estimated.failed
    splits = (estimated.dataset.train, estimated.dataset.validation, estimated.dataset.test)
    row = re.search(rf"^\| `{task}` \|.*", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
    assert ", ".join(str(len(split)) for split in splits) == row[0].split("|")[3].strip()


@pytest.mark.parametrize(("task", "labels"), [("desk", 10), ("changelog", 8), ("returns", 12)])
def test_handwritten_rules_name_every_label(task, labels):
    text = (ROOT / task / "by_hand" / "SKILL.md").read_text(encoding="utf-8").split("## Rules")[1]
    answers = {list(json.loads(line).values())[1] for line in (ROOT / task / f"{task}.jsonl").open(encoding="utf-8")}
    assert len(answers) == labels
    assert all(re.search(rf"\b{answer}\b", text) for answer in answers)


def test_messages_to_the_returns_desk_state_their_facts():
    """Each message has one clause of each fact, and those clauses are of the values that its rule reads."""
    things = [name for group in (phrases.SOFT, phrases.HARD, phrases.POWERED) for pair in group for name in pair]
    thing = "(?:it|(?i:the) (?:" + "|".join(map(re.escape, things)) + "))"

    def values(text: str, pools: dict[str, tuple[str, ...]]) -> list[str]:
        bare = {re.sub(r"^(\w+:)+", "", clause): value for value, clauses in pools.items() for clause in clauses}
        patterns = {re.escape(clause).replace(r"\{it\}", thing): value for clause, value in bare.items()}
        whole = text.replace("it's ", "it is ").replace("It's ", "it is ")
        return [value for pattern, value in patterns.items() if re.search(rf"(?i:{pattern})", whole)]

    for message in returns.messages():
        facts = message.facts
        assert values(message.text, phrases.PLACES) == [facts.place]
        assert values(message.text, phrases.CAUSES) == [facts.cause]
        assert values(message.text, phrases.PACKING) == [facts.packing]
        assert len(values(message.text, {"": phrases.PERSONAL})) == facts.personal
        assert len(values(message.text, {"": phrases.HURT})) == facts.hurt
        assert len(values(message.text, {"": phrases.VOUCHER})) == facts.voucher
        named = any(re.search(rf"\b[Tt]he {name}\b", message.text) for name, _ in phrases.POWERED)
        assert named == facts.powered or message.lure == "not powered"
        assert len(re.findall(r"[.?](?: |$)", message.text)) <= 3


def test_returns_are_noisy_hard_for_keywords_and_even_across_splits(monkeypatch):
    monkeypatch.setenv("FAKE_KEY", "none")
    program = ROOT / "returns" / "returns.skill"
    planned = plan_file(program, runnable=True)
    dataset = estimate(planned).dataset
    made = {message.text: message for message in returns.messages()}
    for split in (dataset.train, dataset.validation, dataset.test):
        messages = [made[example.inputs["message"]] for example in split]
        assert 0.92 <= sum(message.label == message.facts.code for message in messages) / len(messages) <= 0.96
        met = Counter(message.facts.met[:1] for message in messages)
        assert min(met[(name,)] for name in returns.EXCEPTIONS) >= 2
    for predictions in baseline_predictions(planned.plan.task, dataset, dataset.test).values():
        right = sum(a == e.gold["code"] for a, e in zip(predictions, dataset.test, strict=True))
        assert right / len(dataset.test) < 0.6
    assert sum(bool(message.lure) for message in made.values()) == len(made) / 5


def test_every_recorded_verdict_of_a_real_judge_is_read_and_reports_what_was_planted(monkeypatch):
    monkeypatch.setenv("FAKE_KEY", "none")
    task = ROOT / "support"
    plan = plan_file(task / "support.skill", runnable=True).plan
    (judge,) = judges_of(plan)
    planted = [injection(name, judge) for name in INJECTIONS]
    reported = Counter[tuple[bool, bool]]()
    for call in calls_in(task / "recorded" / "judge.jsonl"):
        code = re.search(r"^Case (\w+)$", call.prompt, re.M)[1]
        verdict = read_verdict("referee", judge.rubric, call.reply, code=code, pair=False)
        assert {mark.criterion for mark in verdict.marks} == {"solved", "honest"}
        reported[any(text in call.prompt for text in planted), verdict.instructions] += 1
    assert reported[True, False] == reported[False, True] == 0
    assert reported[True, True] >= 49
    assert reported[False, False] >= 60


def named_by(recording: Path, wrong: dict[str, bool]) -> tuple[int, int, int, int]:
    """Return the cases that an optimizer was shown, the wrong ones among them, those it named, and their wrong ones."""
    shown, named = set[str](), set[str]()
    for call in calls_in(recording):
        if "unexplained" not in call.prompt:
            continue
        tagged = {}
        for part in re.split(r"(?=<(?:case|trajectory) tag=)", html.unescape(call.prompt))[1:]:
            tagged |= {part.split('"')[1]: text for text in wrong if text in part}
        shown |= set(tagged.values())
        named |= {tagged[tag] for tag in json.loads(call.reply).get("unexplained", ()) if tag in tagged}
    return len(shown), sum(wrong[text] for text in shown), len(named), sum(wrong[text] for text in named)


def test_a_model_names_wrong_answers_and_no_right_ones():
    returned = {each.text: each.label != each.facts.code for each in returns.messages()}
    assert named_by(ROOT / "returns/recorded/optimizer.jsonl", returned) == (105, 6, 5, 5)
    tickets = map(json.loads, (ROOT / "absorbed/train.jsonl").read_text(encoding="utf-8").splitlines())
    planted = {row["ticket"].strip(): bool(row["planted"]) for row in tickets}
    assert named_by(ROOT / "absorbed/recorded/optimizer.jsonl", planted) == (150, 30, 24, 24)
    for task, cases in (("desk", 91), ("changelog", 87)):
        rows = map(json.loads, (ROOT / f"{task}/{task}.jsonl").read_text(encoding="utf-8").splitlines())
        right = {next(iter(row.values())): False for row in rows}
        assert named_by(ROOT / f"{task}/recorded/optimizer.jsonl", right) == (cases, 0, 0, 0)
