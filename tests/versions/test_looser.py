"""The order of gates is sound: what it takes for as strict never accepts what the old gates reject."""

from fractions import Fraction

import pytest
from gate_worlds import METRICS, comparisons, evidence, gates, worlds
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from skillc.language.terms import CallTerm, Constant, FieldTerm, MeanTerm, MetricTerm, Operation, StateTerm, WordTerm
from skillc.metrics.cells import MICRO
from skillc.optimize.gates import decide_all
from skillc.optimize.intervals import Truth
from skillc.plan.schema import GatePlan
from skillc.versions.looser import as_strict
from skillc.versions.order import Bounds
from skillc.versions.quantities import condition, quantity

BOUNDS = Bounds({name: (Fraction(each.low, MICRO), Fraction(each.high, MICRO)) for name, each in METRICS.items()})


def _changed(draw, term):
    """A gate near another one: a constant moved, an operator changed, a part dropped or added, or none of it."""
    if isinstance(term, Constant):
        return Constant(term.value + draw(st.sampled_from([0, 0, Fraction(1, 10), Fraction(-1, 10)])))
    if isinstance(term, Operation):
        parts = tuple(_changed(draw, part) for part in term.operands)
        kind = draw(st.integers(0, 9))
        if term.operator in ("and", "or") and kind == 0:
            return parts[0]
        if term.operator in (">", ">=", "<", "<=") and kind == 1:
            other = {">": ">=", ">=": ">", "<": "<=", "<=": "<"}[term.operator]
            return Operation(other, parts)
        if term.operator in (">", ">=", "<", "<=") and kind == 2:
            flipped = {">": "<", ">=": "<=", "<": ">", "<=": ">="}[term.operator]
            return Operation(flipped, parts[::-1])
        if term.operator in (">", ">=", "<", "<=", "and", "or") and kind == 3:
            return Operation(draw(st.sampled_from(["and", "or"])), (Operation(term.operator, parts), draw(comparisons)))
        return Operation(term.operator, parts)
    if isinstance(term, CallTerm) and term.function in ("min", "max", "clamp"):
        return CallTerm(term.function, tuple(_changed(draw, part) for part in term.arguments), term.options)
    if isinstance(term, CallTerm) and term.function in ("improved", "regressed", "confidence") and draw(st.booleans()):
        return CallTerm(term.function, term.arguments, ())
    return term


@st.composite
def versions(draw):
    old = draw(st.lists(gates, min_size=1, max_size=2))
    return old, [_changed(draw, term) for term in old]


def plans(terms):
    return [GatePlan(name=f"g{i}", term=term, text="", stage="validation") for i, term in enumerate(terms)]


@settings(max_examples=80, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(versions(), worlds(most_examples=5, most_samples=2, lost=0), st.booleans())
def test_what_is_taken_for_as_strict_never_accepts_what_was_rejected(pair, world, batch):
    old, new = pair
    kept = [term for term in old if as_strict(new, term, BOUNDS)]
    assume(kept)
    examples, samples, cells, order, _ = world
    known = evidence(examples, samples, cells, set(order), batch=None if batch else [])
    if decide_all(plans(new), known).truth is Truth.TRUE:
        assert decide_all(plans(kept), known).truth is not Truth.FALSE


@settings(max_examples=60)
@given(gates)
def test_a_gate_is_as_strict_as_itself(term):
    assert as_strict([term], term, BOUNDS)


CORRECT, INCUMBENT = MeanTerm("candidate", "m"), MeanTerm("incumbent", "m")


def number(value):
    return Constant(Fraction(value))


def compare(operator, left, right):
    return Operation(operator, (left, right))


def moved(**options):
    return CallTerm("regressed", (MetricTerm("m"),), tuple(options.items()))


def sure(**options):
    return CallTerm("confidence", (compare(">", CORRECT, INCUMBENT),), tuple(options.items()))


BETTER = compare(">", CORRECT, INCUMBENT)
BY = {"by": FieldTerm("f")}
ON_BATCH = CallTerm("improved", (MetricTerm("m"),), (("on", WordTerm("batch")),))

# (new, old, whether the new one is as strict)
CASES = [
    (compare(">=", CORRECT, INCUMBENT), BETTER, False),
    (BETTER, compare(">=", CORRECT, INCUMBENT), True),
    (compare("<=", moved(), number("1/10")), compare("<=", moved(**BY), number("1/10")), False),
    (compare("<=", moved(**BY), number("1/10")), compare("<=", moved(), number("1/10")), True),
    (compare(">=", sure(), number("0.95")), compare(">=", sure(over=WordTerm("run")), number("0.95")), False),
    (compare(">=", sure(over=WordTerm("run")), number("0.95")), compare(">=", sure(), number("0.95")), True),
    (compare(">=", sure(), number("0.99")), compare(">=", sure(), number("0.95")), True),
    (compare(">=", sure(), number("0.9")), compare(">=", sure(), number("0.95")), False),
    (Operation("and", (BETTER, compare(">", CORRECT, number("1/2")))), BETTER, True),
    (Operation("or", (BETTER, compare(">", CORRECT, number("1/2")))), BETTER, False),
    (Operation("not", (compare("<=", CORRECT, INCUMBENT),)), BETTER, True),
    (compare("==", CORRECT, number("1/2")), compare(">", CORRECT, number("1/3")), True),
    (compare(">", CORRECT, number("1/2")), compare("!=", CORRECT, number("1/2")), True),
    (compare(">", CORRECT, number("-5")), compare(">", CORRECT, number("-6")), True),
    # A metric keeps within its range, so that these always hold.
    (BETTER, compare(">=", CORRECT, number(0)), True),
    # A gate that reads the batch says nothing where there is none, as at an epoch's end.
    (compare(">", CallTerm("min", (ON_BATCH, CORRECT)), number(0)), compare(">", CORRECT, number(0)), False),
    (compare("<=", CallTerm("tokens", (StateTerm("candidate"),)), number(400)),
     compare("<=", CallTerm("tokens", (StateTerm("candidate"),)), number(500)), True),
]  # fmt: skip


@pytest.mark.parametrize(("new", "old", "strict"), CASES, ids=range(len(CASES)))
def test_known_pairs(new, old, strict):
    assert as_strict([new], old, BOUNDS) is strict


def test_a_conjunction_may_be_parted_into_gates():
    half = compare(">", CORRECT, number("1/2"))
    assert as_strict([half, BETTER], Operation("and", (BETTER, half)), BOUNDS)
    assert not as_strict([half], Operation("and", (BETTER, half)), BOUNDS)


@given(st.permutations([CORRECT, INCUMBENT, number(2), number("1/3")]))
def test_sums_have_one_form_in_any_order(parts):
    total = parts[0]
    for part in parts[1:]:
        total = Operation("+", (total, part))
    usual = Operation("+", (Operation("+", (CORRECT, INCUMBENT)), number("7/3")))
    assert quantity(total) == quantity(usual)


def test_a_double_not_is_none():
    assert condition(Operation("not", (Operation("not", (BETTER,)),))) == condition(BETTER)
