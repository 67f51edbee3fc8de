"""The promise behind early decisions, over random gates, cells, waves and orders."""

from fractions import Fraction
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillc.data.example import Example
from skillc.errors import SkillcError
from skillc.language.terms import CallTerm, Constant, FieldTerm, MeanTerm, MetricTerm, Operation, StateTerm, WordTerm
from skillc.metrics.cells import MICRO, Scored, Unmeasured
from skillc.optimize.evidence import Evidence, Range, SplitEvidence, TextEvidence
from skillc.optimize.gates import decide, decide_all
from skillc.optimize.intervals import Truth
from skillc.plan.schema import GatePlan

STATES = ("candidate", "incumbent", "best", "initial")
METRICS = {"m": Range(0, MICRO), "wide": Range(-2 * MICRO, 3 * MICRO)}


RUN = (("over", WordTerm("run")),)


def example(i, groups):
    return Example(f"e{i}", {}, {}, {"f": f"v{groups[i] % 3}"}, f"g{groups[i]}")


def means():
    return st.builds(MeanTerm, st.sampled_from(STATES), st.sampled_from(sorted(METRICS)))


def moved():
    options = st.sampled_from([(), (("by", FieldTerm("f")),), (("on", WordTerm("batch")),)])
    names = st.sampled_from(["improved", "regressed"])
    return st.builds(lambda n, m, o: CallTerm(n, (MetricTerm(m),), o), names, st.sampled_from(sorted(METRICS)), options)


def sure():
    claim = st.builds(
        lambda o, m: Operation(o, (MeanTerm("candidate", m), MeanTerm("incumbent", m))),
        st.sampled_from([">", "<", ">="]),
        st.sampled_from(sorted(METRICS)),
    )
    return st.builds(lambda c, o: CallTerm("confidence", (c,), o), claim, st.sampled_from([(), RUN]))


constants = st.fractions(min_value=-1, max_value=2, max_denominator=10).map(Constant)
texts = st.sampled_from([CallTerm(f, (StateTerm("candidate"),)) for f in ("tokens", "change", "cost")])
worst = st.builds(lambda m: CallTerm("worst", (m,), (("by", FieldTerm("f")),)), means())


def sums(parts):
    binary = st.builds(lambda o, a, b: Operation(o, (a, b)), st.sampled_from("+-*/"), parts, parts)
    calls = st.builds(lambda f, a, b: CallTerm(f, (a, b)), st.sampled_from(["min", "max"]), parts, parts)
    clamped = st.builds(
        lambda x, a, b: CallTerm("clamp", (x, *sorted((a, b), key=_value))), parts, constants, constants
    )
    return binary | calls | clamped | st.builds(lambda x: Operation("negate", (x,)), parts)


def _value(constant):
    return constant.value


quantities = st.recursive(means() | moved() | worst | constants | texts | sure(), sums, max_leaves=3)
comparisons = st.builds(
    lambda o, a, b: Operation(o, (a, b)), st.sampled_from([">", ">=", "<", "<=", "==", "!="]), quantities, quantities
)


def logic(parts):
    both = st.builds(lambda o, a, b: Operation(o, (a, b)), st.sampled_from(["and", "or"]), parts, parts)
    return both | st.builds(lambda a: Operation("not", (a,)), parts)


gates = st.recursive(comparisons, logic, max_leaves=3)


@st.composite
def worlds(draw):
    n, samples = draw(st.integers(1, 8)), draw(st.integers(1, 2))
    groups = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    cells = {}
    for state in STATES:
        for i in range(n):
            for sample in range(samples):
                values = {m: draw(st.integers(r.low // MICRO, r.high // MICRO)) * MICRO for m, r in METRICS.items()}
                lost = state == "candidate" and draw(st.integers(0, 19)) == 0
                cells[state, f"e{i}", sample] = {
                    m: Unmeasured("transport") if lost else Scored(v) for m, v in values.items()
                }
    order = draw(st.permutations([(f"e{i}", s) for i in range(n) for s in range(samples)]))
    return [example(i, groups) for i in range(n)], samples, cells, order, draw(st.integers(1, 4))


def evidence(examples, samples, cells, sent, batch=None):
    def lookup(state, item, sample):
        if state == "candidate" and (item.id, sample) not in sent:
            return None
        return cells.get((state, item.id, sample))

    def price(state, item, sample):
        return None if lookup(state, item, sample) is None else 1000 + len(item.id) * sample

    split = SplitEvidence(tuple(examples), samples, lookup, METRICS, price)
    seen = SplitEvidence(tuple(examples[:3] if batch is None else batch), 1, lookup, METRICS, price)
    return Evidence(split, seen, TextEvidence(dict.fromkeys(STATES, 40), Fraction(1, 5)), planned=3, seed=7)


@pytest.fixture(autouse=True, scope="module")
def _groups_of_two_stand_alone():
    with patch("skillc.optimize.evidence.SMALLEST_GROUP", 2):
        yield


@settings(max_examples=400, deadline=None)
@given(gates, worlds())
def test_a_lazily_decided_gate_equals_the_fully_evaluated_one(gate, world):
    examples, samples, cells, order, wave = world
    full = decide(gate, evidence(examples, samples, cells, set(order)))
    for start in range(0, len(order) + 1, wave):
        early = decide(gate, evidence(examples, samples, cells, set(order[:start])))
        if early is not Truth.UNKNOWN:
            assert early is full
            break


@settings(max_examples=150, deadline=None)
@given(st.lists(gates, min_size=1, max_size=3), worlds(), st.booleans())
def test_gates_together_are_lazy_too_and_the_blame_is_the_first_that_fails(terms, world, has_batch):
    examples, samples, cells, order, wave = world
    batch = None if has_batch else ()
    plans = [GatePlan(name=f"g{i}", term=t, text="", stage="validation") for i, t in enumerate(terms)]
    full = decide_all(plans, evidence(examples, samples, cells, set(order), batch))
    failed = [name for name, truth in full.truths if truth is Truth.FALSE]
    assert full.blame == (failed[0] if failed else None)
    for start in range(0, len(order) + 1, wave):
        early = decide_all(plans, evidence(examples, samples, cells, set(order[:start]), batch))
        if early.truth is not Truth.UNKNOWN:
            assert early.truth is full.truth
            break


@settings(max_examples=150, deadline=None)
@given(gates, worlds())
def test_only_an_unmeasured_cell_or_a_zero_divisor_leaves_a_full_gate_open(gate, world):
    examples, samples, cells, order, _ = world
    whole = {key: {m: Scored(0) if isinstance(c, Unmeasured) else c for m, c in v.items()} for key, v in cells.items()}
    full = decide(gate, evidence(examples, samples, whole, set(order)))
    assert full is not Truth.UNKNOWN or "/" in str(gate)


CURES = Operation(">", (CallTerm("improved", (MetricTerm("m"),), (("on", WordTerm("batch")),)), Constant(Fraction(0))))
BETTER = Operation(">", (MeanTerm("candidate", "m"), MeanTerm("incumbent", "m")))


@pytest.mark.parametrize(
    ("term", "gains", "truth"),
    [
        (CURES, False, Truth.TRUE),
        (Operation("and", (CURES, BETTER)), True, Truth.TRUE),
        (Operation("and", (CURES, BETTER)), False, Truth.FALSE),
        (Operation("or", (CURES, BETTER)), True, Truth.TRUE),
        (Operation("or", (CURES, BETTER)), False, Truth.UNKNOWN),
        (Operation("not", (CURES,)), False, Truth.TRUE),
    ],
)
def test_without_a_batch_what_reads_it_does_not_apply_and_nothing_fails_for_it(term, gains, truth):
    examples = [example(i, [0] * 4) for i in range(4)]
    cells = {("incumbent", f"e{i}", 0): {"m": Scored(0)} for i in range(4)}
    cells |= {("candidate", f"e{i}", 0): {"m": Scored(MICRO * gains)} for i in range(4)}
    sent = {(f"e{i}", 0) for i in range(4)}
    gate = GatePlan(name="g", term=term, text="", stage="validation")
    assert decide_all([gate], evidence(examples, 1, cells, sent, ())).truth is truth


def test_a_hopeless_candidate_is_rejected_on_the_incumbents_failures():
    examples = [example(i, [0] * 10) for i in range(10)]
    cells = {("incumbent", f"e{i}", 0): {"m": Scored(MICRO if i >= 2 else 0)} for i in range(10)}
    cells |= {("candidate", f"e{i}", 0): {"m": Scored(0)} for i in range(10)}
    gate = BETTER
    assert decide(gate, evidence(examples, 1, cells, set())) is Truth.UNKNOWN
    assert decide(gate, evidence(examples, 1, cells, {("e0", 0)})) is Truth.UNKNOWN
    assert decide(gate, evidence(examples, 1, cells, {("e0", 0), ("e1", 0)})) is Truth.FALSE


def test_small_groups_are_pooled():
    examples = [Example(f"e{i}", {}, {}, {"f": "big" if i < 20 else f"s{i}"}, "g") for i in range(25)]
    split = SplitEvidence(tuple(examples), 1, lambda *_: None, METRICS)
    with patch("skillc.optimize.evidence.SMALLEST_GROUP", 20):
        assert split.named_groups("f") == [("big", list(range(20))), ("other", list(range(20, 25)))]


def test_a_function_of_a_later_version_is_a_message():
    gate = Operation("<", (CallTerm("latency", (StateTerm("candidate"),)), Constant(Fraction(2), "s")))
    with pytest.raises(SkillcError, match="cannot measure `latency`"):
        decide(gate, evidence([example(0, [0])], 1, {}, set()))
