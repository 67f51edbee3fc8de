"""The order of gates is sound: what it takes for as strict never accepts what the old gates reject."""

from fractions import Fraction
from itertools import product

import pytest
from gate_worlds import METRICS, comparisons, evidence, gates, worlds
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from thorough import example_count

from skillc.gates.evaluate import decide_all
from skillc.gates.intervals import Interval, Truth
from skillc.gates.normal import normal_form
from skillc.gates.prove import Axioms, as_strict
from skillc.gates.terms import CallTerm, Constant, FieldTerm, MeanTerm, MetricTerm, Operation, StateTerm, WordTerm
from skillc.outcomes import MICRO
from skillc.plan.schema import GatePlan

BOUNDS = Axioms(
    {name: Interval(Fraction(each.low, MICRO), Fraction(each.high, MICRO)) for name, each in METRICS.items()}
)


def _changed(draw, term, more=comparisons):
    """A gate near another one: a constant moved, an operator changed, a part dropped or added, or none of it."""
    if isinstance(term, Constant):
        return Constant(term.value + draw(st.sampled_from([0, 0, Fraction(1, 10), Fraction(-1, 10)])))
    if isinstance(term, Operation):
        parts = tuple(_changed(draw, part, more) for part in term.operands)
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
            return Operation(draw(st.sampled_from(["and", "or"])), (Operation(term.operator, parts), draw(more)))
        return Operation(term.operator, parts)
    if isinstance(term, CallTerm) and term.function in ("min", "max", "clamp"):
        return CallTerm(term.function, tuple(_changed(draw, part, more) for part in term.arguments), term.options)
    if (
        isinstance(term, CallTerm)
        and term.function in ("improved", "regressed", "confidence", "e_value")
        and draw(st.booleans())
    ):
        return CallTerm(term.function, term.arguments, ())
    return term


@st.composite
def versions(draw):
    old = draw(st.lists(gates, min_size=1, max_size=2))
    return old, [_changed(draw, term) for term in old]


def plans(terms):
    return [GatePlan(name=f"g{i}", term=term, text="", stage="validation") for i, term in enumerate(terms)]


@settings(max_examples=example_count(80), suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(versions(), worlds(most_examples=5, most_samples=2, lost=0), st.booleans())
def test_what_is_taken_for_as_strict_never_accepts_what_was_rejected(pair, world, batch):
    old, new = pair
    kept = [term for term in old if as_strict(new, term, BOUNDS)]
    assume(kept)
    examples, samples, cells, order, _ = world
    known = evidence(examples, samples, cells, set(order), batch=None if batch else [])
    if decide_all(plans(new), known).truth is Truth.TRUE:
        assert decide_all(plans(kept), known).truth is not Truth.FALSE


# The same on plain numbers, where ties are frequent and a thousand worlds cost nothing.
halves = st.integers(-4, 6).map(lambda n: Constant(Fraction(n, 2)))
plain = st.recursive(
    st.builds(MeanTerm, st.sampled_from(["candidate", "incumbent"]), st.sampled_from(sorted(METRICS))) | halves,
    lambda parts: (
        st.builds(lambda o, a, b: Operation(o, (a, b)), st.sampled_from("+-*"), parts, parts)
        | st.builds(lambda f, a, b: CallTerm(f, (a, b)), st.sampled_from(["min", "max"]), parts, parts)
        | st.builds(lambda a: Operation("negate", (a,)), parts)
    ),
    max_leaves=3,
)
plain_comparisons = st.builds(
    lambda o, a, b: Operation(o, (a, b)), st.sampled_from([">", ">=", "<", "<=", "==", "!="]), plain, plain
)
plain_gates = st.recursive(
    plain_comparisons,
    lambda parts: (
        st.builds(lambda o, a, b: Operation(o, (a, b)), st.sampled_from(["and", "or"]), parts, parts)
        | st.builds(lambda a: Operation("not", (a,)), parts)
    ),
    max_leaves=3,
)


def value(term, world):
    """A number or a truth, on the means of a world."""
    if isinstance(term, Constant):
        return term.value
    if isinstance(term, MeanTerm):
        return world[term.state, term.metric]
    if isinstance(term, CallTerm):
        return {"min": min, "max": max}[term.function](value(part, world) for part in term.arguments)
    parts = [value(part, world) for part in term.operands]
    return {
        "and": all,
        "or": any,
        "not": lambda p: not p[0],
        "negate": lambda p: -p[0],
        "+": sum,
        "-": lambda p: p[0] - p[1],
        "*": lambda p: p[0] * p[1],
        ">": lambda p: p[0] > p[1],
        ">=": lambda p: p[0] >= p[1],
        "<": lambda p: p[0] < p[1],
        "<=": lambda p: p[0] <= p[1],
        "==": lambda p: p[0] == p[1],
        "!=": lambda p: p[0] != p[1],
    }[term.operator](parts)


@st.composite
def plain_versions(draw):
    old = draw(plain_gates)
    return old, _changed(draw, old, plain_comparisons)


def every_world():
    steps = {"m": [0, Fraction(1, 2), 1], "wide": [-2, Fraction(-1, 2), 0, Fraction(1, 2), 3]}
    means = [(state, metric) for state in ("candidate", "incumbent") for metric in steps]
    for values in product(*(steps[metric] for _, metric in means)):
        yield dict(zip(means, values, strict=True))


WORLDS = list(every_world())


@settings(max_examples=example_count(300), suppress_health_check=[HealthCheck.filter_too_much])
@given(plain_versions())
def test_an_order_of_plain_numbers_holds_in_every_world(pair):
    old, new = pair
    assume(as_strict([new], old, BOUNDS))
    for world in WORLDS:
        assert value(old, world) or not value(new, world)


@settings(max_examples=example_count(60))
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


def bet(turned=False, **options):
    claim = compare("<=", INCUMBENT, CORRECT) if turned else compare(">", CORRECT, INCUMBENT)
    return CallTerm("e_value", (claim,), tuple(options.items()))


BETTER = compare(">", CORRECT, INCUMBENT)
BY = {"by": FieldTerm("f")}
ON_BATCH = CallTerm("improved", (MetricTerm("m"),), (("on", WordTerm("batch")),))

# (new, old, whether the new one is as strict)
CASES = [
    (compare(">=", CORRECT, INCUMBENT), BETTER, False),
    (BETTER, compare(">=", CORRECT, INCUMBENT), True),
    (compare("<", CORRECT, INCUMBENT), BETTER, False),
    (compare("<=", moved(), number("1/10")), compare("<=", moved(**BY), number("1/10")), False),
    (compare("<=", moved(**BY), number("1/10")), compare("<=", moved(), number("1/10")), True),
    (compare(">=", sure(), number("0.95")), compare(">=", sure(over=WordTerm("run")), number("0.95")), False),
    (compare(">=", sure(over=WordTerm("run")), number("0.95")), compare(">=", sure(), number("0.95")), True),
    (compare(">=", sure(), number("0.99")), compare(">=", sure(), number("0.95")), True),
    (compare(">=", sure(), number("0.9")), compare(">=", sure(), number("0.95")), False),
    (compare(">=", bet(), number("20")), compare(">=", bet(over=WordTerm("run")), number("20")), False),
    (compare(">=", bet(over=WordTerm("run")), number("20")), compare(">=", bet(), number("20")), True),
    (compare(">=", bet(), number("20")), compare(">=", bet(), number("10")), True),
    (compare(">=", bet(), number("10")), compare(">=", bet(), number("20")), False),
    (compare(">=", bet(turned=True), number("20")), compare(">=", bet(), number("20")), True),
    (compare(">=", bet(), number("-1")), compare(">=", bet(), number("0")), True),
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
    assert normal_form(total) == normal_form(usual)


def test_a_double_not_is_none():
    assert normal_form(Operation("not", (Operation("not", (BETTER,)),))) == normal_form(BETTER)
