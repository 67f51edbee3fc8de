"""The promise behind early decisions, over random gates, cells, waves and orders."""

from fractions import Fraction
from unittest.mock import patch

import pytest
from gate_worlds import METRICS, Exact, UndefinedError, evidence, example, gates, sure, worlds
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import example_count

from skillc.errors import SkillcError
from skillc.gates.evaluate import decide, decide_all, value
from skillc.gates.evidence import Evidence, MetricRange, SplitEvidence, TextEvidence
from skillc.gates.intervals import Interval, Truth
from skillc.gates.terms import CallTerm, Constant, MeanTerm, MetricTerm, Operation, StateTerm, WordTerm
from skillc.outcomes import MICRO, Example, Scored, Unmeasured
from skillc.plan.schema import GatePlan

SMALLEST = 2


@pytest.fixture(autouse=True, scope="module")
def _groups_of_two_stand_alone():
    with patch("skillc.gates.evidence.SMALLEST_GROUP", SMALLEST):
        yield


def named(terms):
    return [GatePlan(name=f"g{i}", term=t, text="", stage="validation") for i, t in enumerate(terms)]


@settings(max_examples=example_count(300), deadline=None)
@given(gates, worlds())
def test_a_lazily_decided_gate_equals_the_fully_evaluated_one(gate, world):
    """Evidence that is kept up to date, against evidence that is read anew: wave by wave, and at the end."""
    examples, samples, cells, order, wave = world
    by_id = {item.id: item for item in examples}
    full = decide(gate, evidence(examples, samples, cells, set(order)))
    sent = set()
    running, definite = evidence(examples, samples, cells, sent), {}
    for start in range(0, len(order) + wave, wave):
        early = decide_all(named([gate]), running, definite)
        definite.update((name, truth) for name, truth in early.truths if truth is not Truth.UNKNOWN)
        assert early.truth is decide(gate, evidence(examples, samples, cells, set(sent)))
        assert early.truth in (Truth.UNKNOWN, full)
        arrived = order[start : start + wave]
        sent.update(arrived)
        running.validation.refresh("candidate", [by_id[name] for name, _ in arrived])
        running.batch.refresh(
            "candidate", [by_id[n] for n, _ in arrived if n in {i.id for i in running.batch.examples}]
        )
    assert early.truth is full


@settings(max_examples=example_count(300), deadline=None)
@given(gates, worlds(lost=0))
def test_full_evaluation_is_what_plain_numbers_say(gate, world):
    examples, samples, cells, order, _ = world
    full = decide(gate, evidence(examples, samples, cells, set(order)))
    try:
        exact = Exact(examples, samples, cells, SMALLEST).holds(gate)
    except UndefinedError:
        return
    assert full is (Truth.TRUE if exact else Truth.FALSE)


@settings(max_examples=example_count(150), deadline=None)
@given(gates, worlds(lost=3), st.data())
def test_a_definite_answer_with_unmeasured_cells_is_that_of_every_completion(gate, world, data):
    examples, samples, cells, order, _ = world
    known = decide(gate, evidence(examples, samples, cells, set(order)))
    if known is Truth.UNKNOWN or "cost" in str(gate):
        return
    whole = {
        key: {
            m: Scored(data.draw(st.integers(METRICS[m].low // MICRO, METRICS[m].high // MICRO)) * MICRO)
            if isinstance(cell, Unmeasured)
            else cell
            for m, cell in found.items()
        }
        for key, found in cells.items()
    }
    try:
        assert Exact(examples, samples, whole, SMALLEST).holds(gate) == (known is Truth.TRUE)
    except UndefinedError:
        return


@settings(max_examples=example_count(150), deadline=None)
@given(st.lists(gates, min_size=1, max_size=3), worlds(), st.booleans())
def test_gates_together_are_lazy_too_and_the_blame_is_the_first_that_fails(terms, world, has_batch):
    examples, samples, cells, order, wave = world
    batch = None if has_batch else ()
    plans = named(terms)
    full = decide_all(plans, evidence(examples, samples, cells, set(order), batch))
    failed = [name for name, truth in full.truths if truth is Truth.FALSE]
    assert full.blame == (failed[0] if failed else None)
    for start in range(0, len(order) + 1, wave):
        early = decide_all(plans, evidence(examples, samples, cells, set(order[:start]), batch))
        if early.truth is not Truth.UNKNOWN:
            assert early.truth is full.truth
            break


@settings(max_examples=example_count(150), deadline=None)
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
    assert decide_all(named([term]), evidence(examples, 1, cells, sent, ())).truth is truth


def test_without_a_batch_the_range_of_what_reads_it_decides_nothing():
    """`clamp` bounds the gain on a batch to 0, so the comparison could be decided; it does not apply all the same."""
    gain = CallTerm("improved", (MetricTerm("m"),), (("on", WordTerm("batch")),))
    term = Operation(">", (MeanTerm("candidate", "m"), CallTerm("clamp", (gain, *[Constant(Fraction(0))] * 2))))
    cells = {(state, "e0", 0): {"m": Scored(0)} for state in ("candidate", "incumbent")}
    for sent in (set(), {("e0", 0)}):
        assert decide_all(named([term]), evidence([example(0, [0])], 1, cells, sent, ())).truth is Truth.TRUE


@settings(max_examples=example_count(150), deadline=None)
@given(sure(), worlds(lost=0))
def test_what_is_known_of_a_tested_claim_narrows_to_its_value(call, world):
    examples, samples, cells, order, wave = world
    exact, before = Exact(examples, samples, cells, SMALLEST).value(call), Interval(Fraction(0), Fraction(10**9))
    for start in range(0, len(order) + wave, wave):
        known = value(call, evidence(examples, samples, cells, set(order[:start])))
        assert before.low <= known.low <= exact <= known.high <= before.high
        before = known
    assert before == Interval.point(exact)


def test_a_hopeless_candidate_is_rejected_on_the_incumbents_failures():
    examples = [example(i, [0] * 10) for i in range(10)]
    cells = {("incumbent", f"e{i}", 0): {"m": Scored(MICRO if i >= 2 else 0)} for i in range(10)}
    cells |= {("candidate", f"e{i}", 0): {"m": Scored(0)} for i in range(10)}
    gate = BETTER
    assert decide(gate, evidence(examples, 1, cells, set())) is Truth.UNKNOWN
    assert decide(gate, evidence(examples, 1, cells, {("e0", 0)})) is Truth.UNKNOWN
    assert decide(gate, evidence(examples, 1, cells, {("e0", 0), ("e1", 0)})) is Truth.FALSE


@settings(max_examples=example_count(200), deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=9), st.randoms(use_true_random=False))
def test_no_order_rejects_before_as_many_rollouts_as_failures(outcomes, chance):
    """The floor that docs/design/gates.md derives; `test_a_hopeless_candidate_...` reaches it."""
    examples = [example(i, [0] * 10) for i in range(len(outcomes))]
    cells = {
        (name, f"e{i}", 0): {"m": Scored(MICRO * right)}
        for i, pair in enumerate(outcomes)
        for name, right in zip(("incumbent", "candidate"), pair, strict=True)
    }
    failures = sum(not incumbent for incumbent, _ in outcomes)
    order = chance.sample(range(len(outcomes)), len(outcomes))
    for measured in range(failures):
        sent = {(f"e{i}", 0) for i in order[:measured]}
        assert decide(BETTER, evidence(examples, 1, cells, sent)) is not Truth.FALSE


def test_small_groups_are_pooled():
    examples = [Example(f"e{i}", {}, {}, {"f": "big" if i < 20 else f"s{i}"}, "g") for i in range(25)]
    split = SplitEvidence(tuple(examples), 1, lambda *_: None, METRICS)
    with patch("skillc.gates.evidence.SMALLEST_GROUP", 20):
        assert split.named_groups("f") == [("big", list(range(20))), ("other", list(range(20, 25)))]


def test_sums_past_64_bits_stay_exact():
    huge = 2**70
    examples = tuple(example(i, [0, 1, 2]) for i in range(3))
    cells = {"e0": huge - 1, "e1": -huge, "e2": 2}
    split = SplitEvidence(examples, 1, lambda s, e, _: {"m": Scored(cells[e.id])}, {"m": MetricRange(-huge, huge)})
    known = Evidence(split, split, TextEvidence({}, None))
    assert value(MeanTerm("candidate", "m"), known) == Interval.point(Fraction(1, 3 * MICRO))


# ---- cost ----------------------------------------------------------------------------------------


def priced(prices, dearest):
    examples = tuple(example(i, [0] * 4) for i in range(4))

    def price(state, item, sample):
        return prices.get(item.id)

    split = SplitEvidence(examples, 1, lambda *_: None, METRICS, price, dearest)
    return Evidence(split, split, TextEvidence({}, None)), prices, examples


def test_the_cost_of_an_unknown_cell_lies_between_nothing_and_the_worst_case():
    known, prices, examples = priced({"e0": 10, "e1": 30}, 100)
    term = CallTerm("cost", (StateTerm("candidate"),))
    assert value(term, known) == Interval(Fraction(40, 4 * 10**9), Fraction(240, 4 * 10**9))
    prices["e2"] = 500
    known.validation.refresh("candidate", examples)
    assert value(term, known) == Interval(Fraction(140, 4 * 10**9), Fraction(240, 4 * 10**9))


def test_a_gate_on_cost_is_decided_early_and_never_without_a_price():
    term = Operation("<=", (CallTerm("cost", (StateTerm("candidate"),)), Constant(Fraction(60, 10**9), "$")))
    assert decide(term, priced({"e0": 10, "e1": 20}, 100)[0]) is Truth.TRUE
    assert decide(term, priced({"e0": 100, "e1": 90, "e2": 80}, 100)[0]) is Truth.FALSE
    assert decide(term, priced({"e0": 10, "e1": 20}, None)[0]) is Truth.UNKNOWN
    assert decide(term, priced({"e0": 100, "e1": 90, "e2": 80}, None)[0]) is Truth.FALSE


def test_a_function_of_a_later_version_is_a_message():
    gate = Operation("<", (CallTerm("latency", (StateTerm("candidate"),)), Constant(Fraction(2))))
    with pytest.raises(SkillcError, match="cannot measure `latency`"):
        decide(gate, evidence([example(0, [0])], 1, {}, set()))
