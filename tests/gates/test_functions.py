"""Every function that runs has an evaluator, and what the table says of a function holds of its values."""

from fractions import Fraction

import pytest
from gate_worlds import METRICS, evidence, means, moved, sure, texts, worlds, worst
from hypothesis import given, settings
from thorough import example_count

from skillc.gates.evaluate import EVALUATORS, value
from skillc.gates.functions import RUN_FUNCTIONS
from skillc.gates.intervals import Interval
from skillc.gates.prove import Axioms
from skillc.gates.terms import CallTerm, FieldTerm, MetricTerm
from skillc.outcomes import MICRO

AXIOMS = Axioms(
    {name: Interval(Fraction(each.low, MICRO), Fraction(each.high, MICRO)) for name, each in METRICS.items()}
)


def test_every_function_of_gates_that_runs_has_an_evaluator():
    runs = {name for name, each in RUN_FUNCTIONS.items() if each.level is not None and not each.later}
    assert runs == EVALUATORS.keys()


def test_options_that_move_the_result_are_options_of_the_function():
    for builtin in RUN_FUNCTIONS.values():
        assert {*builtin.lowered_by, *builtin.raised_by} <= {option.name for option in builtin.options}


@settings(max_examples=example_count(100), deadline=None)
@given(means() | moved() | worst | sure() | texts, worlds(most_examples=5, most_samples=2, lost=0))
def test_what_is_known_of_a_quantity_holds_of_its_value(quantity, world):
    examples, samples, cells, order, _ = world
    known = evidence(examples, samples, cells, set(order))
    for fact in AXIOMS.about([quantity]):
        total = Interval.point(fact.constant)
        for atom, weight in fact.weights.items():
            total = total + value(atom, known) * Interval.point(weight)
        assert total.high >= 0


@pytest.mark.parametrize(("name", "sign"), [("improved", -1), ("regressed", 1)])
def test_the_worst_group_gains_no_more_and_loses_no_less_than_all(name, sign):
    overall = CallTerm(name, (MetricTerm("m"),))
    grouped = CallTerm(name, (MetricTerm("m"),), (("by", FieldTerm("f")),))
    weights = [dict(fact.weights) for fact in AXIOMS.about([grouped])]
    assert {grouped: sign, overall: -sign} in weights
