"""The eight programs of the specification."""

from __future__ import annotations

import shutil
from fractions import Fraction
from pathlib import Path

import pytest
from checking import clean, entity, gate, metric

from skillc.gates.terms import (
    CallTerm,
    Constant,
    FieldTerm,
    MeanTerm,
    MetricTerm,
    Operation,
    StateTerm,
    TextConstant,
    WordTerm,
)
from skillc.language.checked import Amount, Checked, Invocation, Items, Shares, Word

PROGRAMS = Path(__file__).parent / "programs"
NAMES = sorted(path.stem for path in PROGRAMS.glob("*.skill"))
SECTIONS = {"rules": "- Name who does it.\n"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path in PROGRAMS.glob("*.skill"):
        shutil.copy(path, tmp_path)
    (tmp_path / "house_style.skill").write_text('language 1\n\nfrozen section style = "Short sentences."\n')
    (tmp_path / "SKILL.md").write_text("## rules\n\n- Name who does it.\n")
    return tmp_path


def checked(root: Path, name: str):
    return clean((root / f"{name}.skill").read_text("utf-8"), root, SECTIONS)


@pytest.mark.parametrize("name", NAMES)
def test_the_programs_of_the_specification_check_clean(root: Path, name: str) -> None:
    assert checked(root, name).library == (name in ("lab", "std_gates"))


def test_terms_of_tickets(root: Path) -> None:
    tickets = checked(root, "tickets")
    team = FieldTerm("team")
    assert metric(tickets, "correct").term == CallTerm("exact_match", (team,))
    brief = metric(tickets, "brief")
    share = Operation("/", (CallTerm("tokens", (team,)), Constant(Fraction(20), "tokens")))
    one, zero = Constant(Fraction(1)), Constant(Fraction(0))
    assert brief.term == CallTerm("clamp", (Operation("-", (one, share)), zero, one))
    score = metric(tickets, "score")
    assert (score.unit, score.low, score.high, score.goal) == ("", 0, 1, True)
    assert gate(tickets, "better").term == Operation(
        ">", (MeanTerm("candidate", "score"), MeanTerm("incumbent", "score"))
    )
    assert gate(tickets, "safe").term == Operation(
        "<=",
        (CallTerm("regressed", (MetricTerm("correct"),), (("by", FieldTerm("product")),)), Constant(Fraction(1, 10))),
    )
    assert gate(tickets, "compact").term == Operation(
        "<=", (CallTerm("tokens", (StateTerm("candidate"),)), Constant(Fraction(2000), "tokens"))
    )
    assert [g.name for g in tickets.gates] == ["better", "safe", "compact", "steady"]
    assert [m.name for m in tickets.metrics] == ["correct", "brief", "score"]


def test_entities_of_tickets(root: Path) -> None:
    tickets = checked(root, "tickets")
    task = entity(tickets, "task")
    assert [(c.kind, c.name) for c in task.children] == [("input", "ticket"), ("output", "team")]
    assert task.children[1].type is not None
    assert task.children[1].type.labels == ("billing", "shipping", "technical", "account")
    skill = entity(tickets, "skill", "route_tickets")
    assert [(c.name, c.words) for c in skill.children] == [
        ("role", ("frozen",)),
        ("rules", ("trainable",)),
        ("guidance", ("slow",)),
    ]
    assert skill.children[0].value == "You route support tickets to exactly one team."
    assert skill.children[1].settings["limit"].value == Amount(Fraction(800), "tokens")
    target = entity(tickets, "model", "target")
    assert target.value == "hosted_vllm/Qwen/Qwen3.5-4B"
    assert target.settings["serve"].value == Word("vllm")
    assert target.settings["serve"].block["max_len"].value == Amount(Fraction(8192), "tokens")
    data = entity(tickets, "data")
    assert data.settings["group"].value == Word("customer")
    assert data.settings["split"].value == Shares((Amount(Fraction(2)), Amount(Fraction(1)), Amount(Fraction(2))))
    edits = entity(tickets, "optimize").settings["edits"].value
    assert edits == Invocation("cosine", (Amount(Fraction(4)), Amount(Fraction(2))))
    budget = {name: s.value for name, s in entity(tickets, "budget").settings.items()}
    assert budget == {
        "epochs": Amount(Fraction(4), "epochs"),
        "patience": Amount(Fraction(8), "steps"),
        "cost": Amount(Fraction(3), "$"),
        "time": Amount(Fraction(5400), "s"),
    }


def test_minutes_take_from_other_files(root: Path) -> None:
    minutes = checked(root, "minutes")
    style, rules = entity(minutes, "skill", "summarise_minutes").children
    assert (style.value, dict(style.settings)) == ("Short sentences.", {})
    assert (rules.value, rules.settings["limit"].value) == (SECTIONS["rules"], Amount(Fraction(600), "tokens"))
    target, optimizer = entity(minutes, "model", "target"), entity(minutes, "model", "optimizer")
    assert set(target.settings) == {"serve", "temperature"}
    assert (target.value, optimizer.value) == ("hosted_vllm/Qwen/Qwen3.5-4B", "openai/gpt-5.5")
    budget = {name: s.value for name, s in entity(minutes, "budget").settings.items()}
    assert budget == {
        "epochs": Amount(Fraction(2), "epochs"),
        "cost": Amount(Fraction(2), "$"),
        "time": Amount(Fraction(8 * 3600), "s"),
    }
    better = Operation(">", (MeanTerm("candidate", "score"), MeanTerm("incumbent", "score")))
    few = Operation("<=", (CallTerm("regressed", (MetricTerm("score"),)), Constant(Fraction(1, 20))))
    assert gate(minutes, "better").term == Operation("and", (better, few))
    assert gate(minutes, "better").text == "family(score)"
    by_team = CallTerm("regressed", (MetricTerm("overlap"),), (("by", FieldTerm("team")),))
    assert gate(minutes, "safe").term == Operation("<=", (by_team, Constant(Fraction(1, 20))))
    assert gate(minutes, "worth_it").text == (
        "candidate.score >= incumbent.score + 2% or tokens(candidate) < tokens(incumbent)"
    )


def test_replies_judge(root: Path) -> None:
    replies = checked(root, "replies")
    judged = CallTerm("judge", (FieldTerm("reply"), WordTerm("solves")), (("model", WordTerm("referee")),))
    assert metric(replies, "helpful").term == judged
    question = metric(replies, "honest").term
    assert isinstance(question, CallTerm)
    assert question.arguments[1] == TextConstant("Does the reply state only what the order shows?")
    assert entity(replies, "rubric", "solves").value.startswith("5  the customer")
    assert entity(replies, "model", "optimizer").settings["key"].value == Invocation("env", ("OPENAI_API_KEY",))
    order = entity(replies, "task").children[1]
    assert order.type is not None
    assert order.type.optional
    assert gate(replies, "trustworthy").kind == "require"


def test_alfworld_has_an_environment_and_two_skills(root: Path) -> None:
    alfworld = checked(root, "alfworld")
    rollout = entity(alfworld, "task").settings["rollout"]
    assert rollout.value == Invocation("environment", ("alfworld",))
    assert rollout.block["turns"].value == Amount(Fraction(50), "turns")
    agent = rollout.block["agent"]
    assert agent.value == Word("react")
    tools = Items((Invocation("python", ("house:act",)), Invocation("python", ("house:inventory",))))
    assert agent.block["tools"].value == tools
    about = entity(alfworld, "skill", "find_objects").children[0]
    assert (about.kind, about.words) == ("about", ("trainable",))
    assert about.value == entity(alfworld, "skill", "find_objects").settings["about"].value
    triggers = gate(alfworld, "triggers").term
    kind = Operation("==", (FieldTerm("kind"), TextConstant("pick_heat_then_place")))
    precision = CallTerm("precision", (MetricTerm("heating"), kind))
    assert triggers == Operation(">=", (precision, Constant(Fraction(9, 10))))
    assert gate(alfworld, "triggers").doc.startswith("The heating skill")


def later(checked: Checked) -> list[tuple[str, str]]:
    """What waits for a later version: the message and what it points at."""
    return [
        (
            d.message.removesuffix("; this version can't compile it"),
            d.primary.source.slice(d.primary.span).split()[0],
        )
        for d in checked.diagnostics
        if d.code == "SK605"
    ]


def test_what_waits_for_a_later_version(root: Path) -> None:
    assert later(checked(root, "trivia")) == []
    assert later(checked(root, "alfworld")) == []
    assert later(checked(root, "replies")) == []
    spreadsheets = checked(root, "spreadsheets")
    assert later(spreadsheets) == []
    assert not spreadsheets.failed
    sandbox = entity(spreadsheets, "task").settings["rollout"].block["sandbox"]
    assert sandbox.value == Word("bubblewrap")
    assert sandbox.block["memory"].value == Amount(Fraction(2 * 10**9), "bytes")
    slow = metric(spreadsheets, "slow")
    assert (slow.unit, slow.low, slow.high) == ("s", 0, 60)
