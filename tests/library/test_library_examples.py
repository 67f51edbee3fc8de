"""What the standard library says of itself: its documentation, its examples, its schedules and rubrics."""

from dataclasses import replace
from fractions import Fraction

import pytest
from library_programs import checked, plan

from skillc.frontend import check
from skillc.language.library import describe_module, standard_library
from skillc.language.loop import BudgetPlan, SchedulePlan
from skillc.language.modules import standard
from skillc.plan.judges import judges_of
from skillc.syntax.source import Source

LIBRARY = standard_library()
DECLARED = [each for module in LIBRARY.modules for each in module.declarations]
TOPICS = {"text", "numbers", "classification", "extraction", "code", "judging", "gates", "schedules"}


def test_the_library_covers_its_topics():
    assert {f"std.{topic}" for topic in TOPICS} <= {module.name for module in LIBRARY.modules}
    assert LIBRARY.problems == ()


@pytest.mark.parametrize("module", LIBRARY.modules, ids=lambda module: module.name)
def test_a_module_says_what_it_is_for(module):
    head, _, rest = module.about.partition("\n")
    assert head
    assert rest.strip()
    assert not head.endswith(".")
    assert len(module.declarations) >= 3


@pytest.mark.parametrize("declared", DECLARED, ids=lambda each: each.name)
def test_a_declaration_says_what_it_means_and_its_example_checks(declared):
    assert declared.doc.rstrip().endswith(".")
    assert declared.summary
    assert declared.signature.split("(")[0].split()[-1] == declared.name.partition(".")[2]
    assert declared.source.startswith(declared.signature.split("(")[0].split()[0])
    assert declared.name in declared.example
    checked(declared.example)


# ---- schedules ------------------------------------------------------------------------------------

OPTIMIZE = {
    "careful": {"edits": SchedulePlan(kind="cosine", start=2, end=1), "screen": 5, "control": True, "retries": 2},
    "bold": {"edits": SchedulePlan(kind="linear", start=8, end=2), "candidates": 3, "screen": 2, "retries": 1},
    "frugal": {"batch": 20, "screen": 1, "replay": 0, "successes": False, "speculate": False, "together": False},
    "broad": {"method": "gepa"},
    "plain": {"screen": 0, "replay": 0, "rejected_buffer": False, "meta_skill": False, "slow_update": False},
    "blind": {"sees": ("feedback", "trajectory")},
    "skillopt": {
        "batch": 40,
        "minibatch": 8,
        "edits": SchedulePlan(kind="cosine", start=4, end=2),
        "update": "edits",
        "drafts": 0,
        "screen": 0,
        "successes": True,
    },
}
BUDGETS = {
    "glance": {"steps": 2},
    "short": {"epochs": 2, "patience": 6, "time": Fraction(3600)},
    "nightly": {"epochs": 6, "patience": 15, "time": Fraction(8 * 3600)},
    "skillopt_epochs": {"epochs": 4, "patience": 0},
}


def test_every_schedule_and_budget_is_taken_over_here():
    found = {(d.kind, d.name.partition(".")[2]) for d in DECLARED if d.kind in ("optimize", "budget")}
    assert found == {*(("optimize", name) for name in OPTIMIZE), *(("budget", name) for name in BUDGETS)}


@pytest.mark.parametrize("name", OPTIMIZE)
def test_a_schedule_sets_what_it_says_and_leaves_the_rest(name):
    found = plan(f"optimize = schedules.{name}").optimize
    assert {key: getattr(found, key) for key in OPTIMIZE[name]} == OPTIMIZE[name]
    assert plan(f"optimize = schedules.{name} {{ batch = 7 }}").optimize == replace(found, batch=7)


@pytest.mark.parametrize("name", BUDGETS)
def test_a_budget_caps_what_it_says_and_nothing_else(name):
    assert plan(f"budget = schedules.{name}").budget == BudgetPlan(**BUDGETS[name])
    changed = plan(f"budget = schedules.{name} {{ cost = $2 }}").budget
    assert changed == BudgetPlan(**BUDGETS[name], cost=Fraction(2))


# ---- rubrics --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rubric", [d for d in DECLARED if d.kind == "rubric"], ids=lambda each: each.name)
def test_a_rubric_reaches_the_judge_with_its_text_and_can_be_given_a_name(rubric):
    declared = f"rubric own = {rubric.name}"
    direct = plan(f"metric m = judge(answer, {rubric.name}, model = referee)")
    named = plan(declared, "metric m = judge(answer, own, model = referee)")
    (one,), (other,) = (judges_of(each, each.metric("m")) for each in (direct, named))
    (criterion,) = one.rubric.criteria
    assert [level for level, _ in criterion.levels] == [5, 4, 3, 2, 1]
    assert one.rubric == other.rubric
    assert one.rubric.sees == (("gold",) if rubric.name == "judging.agrees" else ())


# ---- described ------------------------------------------------------------------------------------


def test_a_file_describes_itself_as_far_as_it_can_be_read():
    text = """# Ours
#
# More of it.
language 1
/// A bound. It is
/// kept.
///
///     gate g = ours.most(score)
gate most(
  m: metric,   # the one
  least: share = 5%
) = candidate.m >= least
frozen section style = "Short (very)."
gate ][
metric
"""
    found = describe_module("acme.ours", Source("ours.skill", text))
    assert (found.summary, found.about) == ("Ours", "Ours\n\nMore of it.")
    gate, section = found.declarations
    assert (gate.name, gate.kind, gate.example) == ("ours.most", "gate", "gate g = ours.most(score)")
    assert gate.signature.startswith("gate most( m: metric,")
    assert gate.signature.endswith("least: share = 5% )")
    assert gate.summary == "A bound."
    assert (section.name, section.signature, section.doc) == ("ours.style", "frozen section style", "")


def test_no_file_of_the_library_has_a_finding():
    for module in LIBRARY.modules:
        assert check(standard(module.name.partition(".")[2])).diagnostics == ()
