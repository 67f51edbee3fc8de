"""Real programs, checked and resolved: what they mean decides, never how they are written."""

import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_samples import PRICES, SIZES
from thorough import example_count

from skillc.budget.bounds import bounds
from skillc.budget.render import as_json, as_text
from skillc.frontend import check_file
from skillc.gates.terms import CallTerm, FieldTerm, MeanTerm, Operation
from skillc.lint.rules import PlanFacts, lint
from skillc.plan.digest import plan_digest, run_id, run_parts
from skillc.plan.resolve import resolve

PROGRAMS = Path(__file__).parents[1] / "language" / "programs"
HOUSE = """language 1
frozen section style = "Plain words."
"""
TODAY = """---
name: minutes
description: Minutes.
---

## Rules

- Name who decided.
- Give dates.
"""


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The programs with the files that they use."""
    place = tmp_path_factory.mktemp("programs")
    for path in PROGRAMS.glob("*.skill"):
        (place / path.name).write_text(path.read_text("utf-8"), "utf-8")
    (place / "house_style.skill").write_text(HOUSE)
    (place / "SKILL.md").write_text(TODAY)
    return place


def resolved(folder, name, text=None):
    path = folder / name
    if text is not None:
        path = folder / f"changed_{name}"
        path.write_text(text, "utf-8")
    checked = check_file(path)
    assert not checked.broken, [d.message for d in checked.diagnostics]
    return checked, resolve(checked)


@pytest.mark.parametrize("name", ["minutes", "replies", "spreadsheets", "tickets", "trivia"])
def test_every_program_has_a_plan_with_bounds(folder, name):
    checked, result = resolved(folder, f"{name}.skill")
    assert result.diagnostics == ()
    prices = dict.fromkeys(result.plan.models, PRICES["target"])
    spent = bounds(result.plan, SIZES, prices)
    assert spent.total.least.calls <= spent.total.estimate.calls
    assert as_text(result.plan, spent)
    assert as_json(result.plan, spent)["format_version"] == 1
    for finding in lint(PlanFacts(checked, result.plan, spent)):
        assert finding.primary.source.slice(finding.primary.span).strip()


@pytest.mark.parametrize("name", ["lab", "std_gates"])
def test_a_library_has_none(folder, name):
    _, result = resolved(folder, f"{name}.skill")
    assert result.plan is None
    assert {d.code for d in result.diagnostics} == {"SK559"}


def test_one_of_two_skills_is_trained_and_the_other_is_company(folder):
    _, result = resolved(folder, "alfworld.skill")
    assert result.diagnostics == ()
    assert result.plan.skill.name == "find_objects"
    assert [other.name for other in result.plan.others] == ["heat_and_cool"]


def test_the_plan_of_tickets(folder):
    plan = resolved(folder, "tickets.skill")[1].plan
    assert plan.skill.artifact == "route-tickets"
    assert plan.goal.name == "score"
    assert [(g.name, g.stage) for g in plan.gates] == [
        ("better", "validation"),
        ("safe", "validation"),
        ("compact", "text"),
        ("steady", "text"),
    ]
    assert plan.models["target"].serve == {"max_len": 8192}
    assert plan.models["target"].parameters == {"temperature": 0}
    assert plan.budget.time == 5400
    assert plan.data.group == "customer"
    assert plan.task.outputs[0].type.labels == ("billing", "shipping", "technical", "account")


def test_modules_are_followed_and_overridden(folder):
    plan = resolved(folder, "minutes.skill")[1].plan
    assert plan.models["target"].parameters == {"temperature": 0.2}
    assert plan.models["target"].model == "hosted_vllm/Qwen/Qwen3.5-4B"
    assert (plan.budget.epochs, plan.budget.cost, plan.budget.time) == (2, 2, 28800)
    assert [section.limit for section in plan.skill.sections] == [None, 600]
    assert "Name who decided." in plan.skill.sections[1].text
    better = plan.gates[0].term
    assert isinstance(better, Operation)
    assert better.operands[0] == Operation(">", (MeanTerm("candidate", "score"), MeanTerm("incumbent", "score")))


def test_a_field_of_a_group_is_a_field(folder):
    plan = resolved(folder, "replies.skill")[1].plan
    worst = [c for g in plan.gates for c in _calls(g.term) if c.function == "worst"]
    assert worst[0].option("by") == FieldTerm("country")
    assert plan.data.fields[0].column == "Ship To Country"
    assert [r.name for r in plan.requires] == ["trustworthy"]
    assert plan.rubrics["solves"].criteria[0].levels[0] == (5, "the customer need not write again")
    assert plan.models["optimizer"].key_env == "OPENAI_API_KEY"


def _calls(term):
    from skillc.gates.terms import calls

    return [c for c in calls(term) if isinstance(c, CallTerm)]


# ---- what does not count ----------------------------------------------------------------------------


def hashes(plan):
    parts = run_parts(plan, data_digest="d", initial_skill="s", metric_sources={}, decision_version="1")
    return plan_digest(plan), run_id(parts)


def statements(text):
    """The top-level statements of a program, each with the lines before it that are not blank."""
    return [part for part in re.split(r"\n\n+(?=\S)", text.strip()) if part]


def rearranged(text, seed):
    """The program with its top-level statements in another order, with comments and blank lines strewn in.

    Gates keep their order among themselves: it says who is blamed.
    """
    drawn = random.Random(seed)
    head, *rest = statements(text)
    gates = [part for part in rest if re.match(r"(///|gate|require)", part)]
    ordered = [part for part in rest if part not in gates]
    drawn.shuffle(ordered)
    for place, gate in zip(sorted(drawn.randint(0, len(ordered)) for _ in gates), reversed(gates), strict=True):
        ordered.insert(len(ordered) - place, gate)
    strewn = [("# a comment\n\n" if drawn.random() < 0.5 else "\n") + part for part in ordered]
    return head + "\n\n" + "\n\n".join(strewn) + "\n# the end\n"


@settings(max_examples=example_count(25), deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["trivia.skill", "tickets.skill", "spreadsheets.skill", "replies.skill"]))
def test_comments_white_space_and_the_order_of_statements_never_change_a_hash(folder, seed, name):
    text = (folder / name).read_text("utf-8")
    original = resolved(folder, name)[1].plan
    changed = resolved(folder, name, rearranged(text, seed))[1].plan
    assert hashes(changed) == hashes(original)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("split  = 2 : 1 : 2  ", "split = 4 : 2 : 4"),
        ("split  = 2 : 1 : 2  ", "split = 40% : 20% : 40%"),
        ("time     = 90 min", "time = 5400 s"),
        ("{ limit = 800 tokens }", "{ # a limit\n limit = 800  tokens\n}"),
        ("<= 2k tokens", "<= 2_000 tokens"),
        ("<= 10%", "<= 0.1"),
        ("candidate.score > incumbent.score", "(candidate.score\n  > incumbent.score)"),
        ("field customer: text\n  field product: text", "field product: text; field customer: text"),
        ("temperature = 0;", "temperature = 0.0;"),
        ("metric brief ", "/// Short answers.\nmetric brief "),
        ("model optimizer", "# who reflects\nmodel optimizer"),
        ("edits = cosine(4, 2)", "edits = cosine(4, 2); minibatch = 8; screen = 3"),
    ],
)
def test_other_words_for_the_same_thing_never_change_a_hash(folder, old, new):
    text = (folder / "tickets.skill").read_text("utf-8")
    original = resolved(folder, "tickets.skill")[1].plan
    assert hashes(resolved(folder, "tickets.skill", text.replace(old, new))[1].plan) == hashes(original)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("0.9 * correct + 0.1 * brief", "0.8 * correct + 0.2 * brief"),
        ("<= 10%", "<= 11%"),
        ("by = product", "by = customer"),
        ("batch = 40", "batch = 41"),
        ("You route support tickets", "You route tickets"),
        ('"shipping" | "technical"', '"technical" | "shipping"'),
        ("temperature = 0;", "temperature = 0.1;"),
        ("as the customer wrote it", "as it came"),
        ("epochs   = 4", "epochs = 5"),
    ],
)
def test_another_meaning_is_another_hash(folder, old, new):
    text = (folder / "tickets.skill").read_text("utf-8")
    assert old in text
    original = hashes(resolved(folder, "tickets.skill")[1].plan)
    changed = hashes(resolved(folder, "tickets.skill", text.replace(old, new))[1].plan)
    assert changed[0] != original[0]
    assert changed[1] != original[1]
