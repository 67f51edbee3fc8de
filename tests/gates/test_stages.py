"""What evidence a gate needs."""

from fractions import Fraction

import pytest

from skillc.gates.stages import stage_of
from skillc.gates.terms import (
    CallTerm,
    Constant,
    FieldTerm,
    MeanTerm,
    MetricTerm,
    Operation,
    StateTerm,
    WordTerm,
    conjuncts,
    walk,
)

BETTER = Operation(">", (MeanTerm("candidate", "correct"), MeanTerm("incumbent", "correct")))
SAFE = Operation(
    "<=",
    (CallTerm("regressed", (MetricTerm("correct"),), (("by", FieldTerm("product")),)), Constant(Fraction(1, 10))),
)
COMPACT = Operation("<=", (CallTerm("tokens", (StateTerm("candidate"),)), Constant(Fraction(2000), "tokens")))
ZERO = Constant(Fraction(0))
CURES = Operation(">", (CallTerm("improved", (MetricTerm("soft"),), (("on", WordTerm("batch")),)), ZERO))
STEADY = Operation("<=", (CallTerm("change", (StateTerm("candidate"),)), Constant(Fraction(3, 10))))


@pytest.mark.parametrize(
    ("term", "stage"),
    [
        (BETTER, "validation"),
        (SAFE, "validation"),
        (COMPACT, "text"),
        (STEADY, "text"),
        (CURES, "batch"),
        (Operation("and", (COMPACT, CURES)), "batch"),
        (Operation("or", (STEADY, BETTER)), "validation"),
        (Operation("<", (CallTerm("cost", (StateTerm("candidate"),)), Constant(Fraction(1), "$"))), "validation"),
        (Operation(">=", (CallTerm("confidence", (BETTER,)), Constant(Fraction(19, 20)))), "validation"),
        (Operation(">=", (CallTerm("e_value", (BETTER,)), Constant(Fraction(20)))), "validation"),
        (Operation("<", (CallTerm("max", (CallTerm("tokens", (StateTerm("best"),)), ZERO)), ZERO)), "text"),
        (Operation("<", (CallTerm("max", (MeanTerm("best", "m"), ZERO)), ZERO)), "validation"),
        (Operation("<", (CallTerm("of_somebody_else", (StateTerm("candidate"),)), ZERO)), "validation"),
        (Operation("not", (COMPACT,)), "text"),
    ],
)
def test_a_gate_takes_the_stage_of_its_dearest_part(term, stage):
    assert stage_of(term) == stage


def test_walk_sees_arguments_and_options():
    assert MetricTerm("soft") in list(walk(CURES))
    assert WordTerm("batch") in list(walk(CURES))


def test_conjuncts_are_the_parts_that_all_have_to_hold():
    both = Operation("and", (COMPACT, Operation("and", (CURES, BETTER))))
    assert list(conjuncts(both)) == [COMPACT, CURES, BETTER]
    assert list(conjuncts(Operation("or", (COMPACT, CURES)))) == [Operation("or", (COMPACT, CURES))]
