"""What `skillc plan` prints."""

import json
from fractions import Fraction

import pytest
from plan_samples import BETTER, PRICES, SAFE, SIZES, checked, plan

from skillc.budget.bounds import bounds
from skillc.budget.render import as_json, as_text, table
from skillc.gates import units
from skillc.gates.terms import CallTerm, WordTerm
from skillc.lint.rules import PlanFacts, lint
from skillc.plan.schema import ModelPlan, RequirePlan, TypePlan


def text(program=None, prices=PRICES):
    program = program or plan()
    spent = bounds(program, SIZES, prices)
    return as_text(program, spent, lint(PlanFacts(checked(), program, spent)))


def test_a_plan_says_everything_that_was_decided():
    shown = text()
    for line in [
        '  output   team     "billing" | "shipping"',
        "skill route-tickets",
        "  trainable  rules     at most 800 tokens",
        "  optimizer  openai/large  $5.00 in, $30.00 out a million tokens  replies of at most 4,096 tokens",
        "  split       2 : 1 : 2",
        "  test        160 examples in 120 groups",
        "  goal  correct  0 to 1",
        "  better   candidate.correct > incumbent.correct  on validation",
        "  steps    16",
        "  edits    at most 4 a step; as sections fill, 2 by step 16 (cosine)",
        "  wave     8 rollouts",
        "  cost      $3.00",
        "  patience  8 steps",
        "  it shows    a gain of 11 to 13 points in 8 of 10 runs, if two skills differ on 25 % of the examples",
        "  at once   the caps admit 1 of `optimizer`, 292 of `target`, each reserved at its largest",
    ]:
        assert line in shown.splitlines(), line
    assert not any(line != line.rstrip() for line in shown.splitlines())
    admitted = bounds(plan(), SIZES, PRICES).in_flight
    at_once = ", ".join(f"{admitted[role]} of `{role}`" for role in ("optimizer", "target"))
    assert f"  at once   the caps admit {at_once}, each reserved at its largest" in shown.splitlines()


def test_the_groups_of_gates_are_named():
    safe = plan().gates[0].model_copy(update={"term": SAFE})
    assert "  by product  the smallest group is `other` with 6 validation examples" in text(plan(gates=(safe,)))
    assert "by product" not in text()


def test_the_bounds_are_a_table_with_a_sum_and_what_the_caps_leave():
    lines = text().splitlines()
    start = lines.index("bounds")
    rows = {line.split("  ")[1]: line for line in lines[start + 3 : lines.index("", start)]}
    assert "baseline" in rows
    assert "never more" in rows
    assert rows["never more"].endswith("$3.00")
    assert rows["all"].split()[1] == "777"
    assert len({len(line) for line in rows.values()}) == 1


def test_what_judges_take_is_one_line_with_its_share():
    assert "judges take" not in text()
    assert "judge_share" not in as_json(plan(), bounds(plan(), SIZES, PRICES))
    goal = plan().metrics[0].model_copy(update={"term": CallTerm("judge", (), (("model", WordTerm("referee")),))})
    models = {**plan().models, "referee": ModelPlan(role="referee", model="a/b")}
    program = plan(metrics=(goal,), models=models)
    found = bounds(program, SIZES, {**PRICES, "referee": None})
    (line,) = [line for line in as_text(program, found).splitlines() if "judges take" in line]
    taken, whole = found.judges["referee"].estimate, found.total.estimate
    share = units.percent(taken.calls / whole.calls)
    assert f"  judges take about {taken.calls:,} calls ({share}), " in line
    # A price that is not known has no share.
    assert line.endswith("? of the run; an exact metric takes none")
    shares = as_json(program, found)["judge_share"]
    assert shares == {
        "calls": round(taken.calls / whole.calls, 4),
        "tokens": round(taken.tokens / whole.tokens, 4),
        "cost": None,
    }


def test_an_open_ended_run_has_no_most():
    shown = text(plan(budget={"epochs": None, "calls": 3000}))
    assert "as many as the caps pay, about" in shown
    row = next(line for line in shown.splitlines() if line.strip().startswith("rollout   "))
    assert row.split()[-1] == "-"


def test_unknown_prices_and_free_models_are_said():
    shown = text(plan(), {"target": PRICES["target"], "optimizer": None})
    assert "unknown price" in shown
    assert "?" in shown


def test_requires_types_and_switches_are_shown():
    requires = (RequirePlan(name="sure", term=BETTER, text="flip_rate(m) <= 5%"),)
    off = {"candidates": 2, "retries": 1, "screen": 0, "accept": "always", "sees": (), "successes": False}
    shown = text(plan(requires=requires, optimize=off))
    assert "once, before the first step" in shown
    assert "candidates  2 a step" in shown
    assert "inputs and scores only" in shown
    assert "the gates do not decide" in shown


def test_json_has_a_version_and_pure_values():
    program = plan()
    value = as_json(program, bounds(program, SIZES, PRICES))
    assert value["format_version"] == 1
    again = json.loads(json.dumps(value, allow_nan=False))
    assert again == value
    assert [stage["name"] for stage in again["stages"][:2]] == ["preflight", "baseline"]
    total = sum(Fraction(stage["estimate"]["cost"]) for stage in again["stages"])
    assert Fraction(again["total"]["estimate"]["cost"]) == total
    assert again["plan"]["skill"]["artifact"] == "route-tickets"


def test_notes_stand_below_and_in_json():
    shown = text().split("\nnotes\n")[1]
    assert "none of 16 candidates helps" in " ".join(shown.split())
    assert max(map(len, shown.splitlines())) <= 100
    program = plan()
    spent = bounds(program, SIZES, PRICES)
    assert "false accepts" in as_json(program, spent, lint(PlanFacts(checked(), program, spent)))["notes"][0]
    assert "notes" not in text(plan(gates=(program.gates[1],))).splitlines()


def test_tables_line_up():
    assert table([("a", "1"), ("bbb", "22")], right=[1]) == ["a     1", "bbb  22"]
    assert table([]) == []


def test_types_are_written_as_in_a_program():
    assert TypePlan(kind="list", item=TypePlan(kind="text"), optional=True).text == "list[text] | none"


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (units.tokens(950), "950"),
        (units.tokens(12_345), "12.3k"),
        (units.tokens(999_960), "1,000k"),
        (units.tokens(1_234_567), "1.2M"),
        (units.dollars(Fraction(0)), "$0"),
        (units.dollars(Fraction(12345, 10)), "$1,234.50"),
        (units.dollars(Fraction(42, 10_000)), "$0.0042"),
        (units.dollars(Fraction(1, 10**6)), "<$0.0001"),
        (units.dollars(None), "?"),
        (units.rounded_up(12_345), 13_000),
        (units.rounded_up(7), 7),
        (units.cents_up(Fraction("0.421")), "0.43"),
        (units.cents_up(Fraction(3)), "3"),
        (units.cents_up(Fraction(1, 10**9)), "0.01"),
    ],
)
def test_figures(shown, expected):
    assert shown == expected
