"""Conditions of `precision` and `recall`: decided by the data alone, and checked before the first call."""

import json

import pytest

from skillc.data.dataset import load
from skillc.errors import SkillcError
from skillc.frontend import check_file, plan_file
from skillc.metrics.meter import Meter
from skillc.metrics.triggers import check_decided, undecided

PROGRAM = """language 1
task { input ticket: text; output team: "billing" | "shipping" }
skill route { about = "Route a ticket."; LOAD; trainable section rules }
model target    = "rulebook/v1"
model optimizer = "rulebook/v1"
data { train = "train.jsonl"; validation = "validation.jsonl"; field kind: text }
budget { steps = 1 }
goal correct = exact_match(team)
metric opens = opened(route)
metric hot = mentions(ticket, "invoice")
gate better = candidate.correct > incumbent.correct
GATE
"""


def program(folder, gate="", load_="load = on_demand", kinds=("ours", "near")):
    (folder / "p.skill").write_text(PROGRAM.replace("GATE", gate).replace("LOAD", load_))
    for side in ("train", "validation"):
        rows = [
            {
                "ticket": f"{side} {i} {'invoice' if i % 2 else 'parcel'}",
                "team": "billing",
                "kind": kinds[i % len(kinds)],
            }
            for i in range(6)
        ]
        (folder / f"{side}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "p.skill"


def codes(path):
    return [each.code for each in check_file(path).diagnostics if each.severity.name == "ERROR"]


def planned(path):
    plan = plan_file(path).plan
    return plan, load(plan.task, plan.data, path.parent)


WORDS = ("parcel", "invoice")
OURS = 'gate g = precision(opens, kind == "ours") >= 90%'


@pytest.mark.parametrize(
    ("kinds", "problem"),
    [(("ours", "near"), None), (("ours",), "holds for all of 6"), (("near",), "holds for none of 6")],
)
def test_near_misses_and_examples_of_the_skill_are_required_before_the_first_call(tmp_path, kinds, problem) -> None:
    plan, dataset = planned(program(tmp_path, OURS, kinds=kinds))
    if problem is None:
        check_decided(plan, dataset)
        return
    with pytest.raises(SkillcError, match=problem) as raised:
        check_decided(plan, dataset)
    assert "says nothing without them" in raised.value.hint


def test_one_condition_in_two_gates_is_reported_once(tmp_path) -> None:
    both = f'{OURS}\ngate h = precision(opens, kind == "ours") >= 50%'
    plan, dataset = planned(program(tmp_path, both, kinds=("near",)))
    assert len(undecided(plan, dataset, [gate.term for gate in plan.gates])) == 1


def test_a_condition_may_read_inputs_and_metrics_of_inputs(tmp_path) -> None:
    plan, dataset = planned(program(tmp_path, "gate g = recall(opens, hot == 1) >= 50%"))
    condition = plan.gates[1].term.operands[0].arguments[1]
    meter = Meter(plan, tmp_path)
    held = [meter.holds(condition, example) for example in dataset.validation]
    assert held == ["invoice" in example.inputs["ticket"] for example in dataset.validation]
    assert sorted(held) == [False] * 3 + [True] * 3


@pytest.mark.parametrize(
    ("gate", "code"),
    [
        ('gate g = precision(opens, team == "billing") >= 90%', "SK319"),
        ("gate g = recall(opens, correct == 1) >= 90%", "SK319"),
        ("gate g = recall(opens, opens == 1) >= 90%", "SK319"),
        ('gate g = precision(words(ticket), kind == "ours") >= 90%', "SK304"),
        ('gate g = precision(2 * opens, kind == "ours") >= 90%', "SK311"),
    ],
)
def test_what_check_refuses(tmp_path, gate, code) -> None:
    assert code in codes(program(tmp_path, gate))


@pytest.mark.parametrize(("load_", "found"), [("load = on_demand", []), ("load = always", ["SK410"])])
def test_only_a_skill_that_is_not_read_anyway_is_opened(tmp_path, load_, found) -> None:
    path = program(tmp_path)
    path.write_text(path.read_text().replace("load = on_demand", load_))
    assert codes(path) == found
