"""`precision` and `recall`: sound on partial evidence, and without a value where nothing decides them."""

import random
from fractions import Fraction
from itertools import product

import pytest

from skillc.gates.draw import brief, draw
from skillc.gates.evaluate import decide, value
from skillc.gates.evidence import Evidence, MetricRange, SplitEvidence, TextEvidence
from skillc.gates.intervals import Truth
from skillc.gates.terms import CallTerm, Constant, FieldTerm, MetricTerm, Operation, TextConstant
from skillc.outcomes import MICRO, Example, Scored, Unmeasured

WANTED = Operation("==", (FieldTerm("kind"), TextConstant("ours")))
PRECISION, RECALL = (CallTerm(name, (MetricTerm("opens"), WANTED)) for name in ("precision", "recall"))


def evidence(kinds, opened, samples=1):
    """`opened` has the cells of each example; None is not measured yet, "" failed."""

    def lookup(state, example, sample):
        cell = opened[int(example.id) * samples + sample]
        if cell is None:
            return None
        return {"opens": Unmeasured("transport") if cell == "" else Scored(cell * MICRO)}

    examples = tuple(Example(str(i), {}, {}, {"kind": kind}, str(i)) for i, kind in enumerate(kinds))
    split = SplitEvidence(
        examples,
        samples,
        lookup,
        {"opens": MetricRange(0, MICRO)},
        holds=lambda condition, example: example.fields["kind"] == "ours",
    )
    return Evidence(split, split, TextEvidence({}, None))


def share(part, whole):
    return Fraction(part, whole) if whole else Fraction(0)


def reference(kinds, opened):
    """Precision and recall of complete measurements, by their definition."""
    hits = sum(cell for kind, cell in zip(kinds, opened, strict=True) if kind == "ours")
    return share(hits, sum(opened)), share(hits, kinds.count("ours"))


def test_they_are_what_their_names_say() -> None:
    found = evidence(["ours", "ours", "ours", "near", "near", "near"], [1, 1, 0, 1, 0, 0])
    assert value(PRECISION, found).known
    assert value(PRECISION, found).low == value(RECALL, found).low == Fraction(2, 3)


@pytest.mark.parametrize("seed", range(40))
def test_an_interval_contains_every_completion_and_both_its_ends(seed) -> None:
    rng = random.Random(seed)
    kinds = ["ours", "near", *rng.choices(["ours", "near"], k=4)]
    opened = [rng.choice([0, 1, None, ""]) for _ in kinds]
    found = evidence(kinds, opened)
    unknown = [i for i, cell in enumerate(opened) if cell in (None, "")]
    results = []
    for cells in product((0, 1), repeat=len(unknown)):
        whole = [cells[unknown.index(i)] if i in unknown else cell for i, cell in enumerate(opened)]
        results.append(reference(kinds, whole))
    for term, values in zip((PRECISION, RECALL), zip(*results, strict=True), strict=True):
        interval = value(term, found)
        assert (interval.low, interval.high) == (min(values), max(values))


def test_samples_of_an_example_count_alone() -> None:
    found = evidence(["ours", "near"], [1, 0, 1, 1], samples=2)
    assert value(PRECISION, found).low == Fraction(1, 3)
    assert value(RECALL, found).low == Fraction(1, 2)


def test_a_skill_that_is_never_opened_has_no_precision_to_speak_of() -> None:
    found = evidence(["ours", "near"], [0, 0])
    assert value(PRECISION, found).high == 0
    assert decide(at_least(PRECISION, "9/10"), found) is Truth.FALSE


def at_least(term, share):
    return Operation(">=", (term, Constant(Fraction(share))))


@pytest.mark.parametrize("kinds", [["ours"] * 3, ["near"] * 3, []])
@pytest.mark.parametrize("term", [PRECISION, RECALL])
def test_a_split_without_positives_or_without_negatives_never_passes(kinds, term) -> None:
    found = evidence(kinds, [int(kind == "ours") for kind in kinds])
    assert decide(at_least(term, "9/10"), found) is Truth.UNKNOWN
    assert decide(at_least(term, "1/100"), found) is Truth.UNKNOWN


def test_a_gate_fails_as_soon_as_the_rest_cannot_repair_it() -> None:
    kinds = ["ours"] * 5 + ["near"] * 5
    assert decide(at_least(PRECISION, "9/10"), evidence(kinds, [None] * 5 + [1] + [None] * 4)) is Truth.FALSE
    assert decide(at_least(RECALL, "9/10"), evidence(kinds, [0] + [None] * 9)) is Truth.FALSE
    assert decide(at_least(RECALL, "9/10"), evidence(kinds, [1] * 5 + [None] * 5)) is Truth.TRUE


def test_a_failed_gate_is_drawn_with_the_share_and_what_was_measured() -> None:
    found = evidence(["ours", "ours", "near", "near"], [1, None, 1, 1])
    gate = at_least(PRECISION, "9/10")
    assert brief(gate, found) == "at best 50 %, needs at least 90 %"
    assert "33.33 % to 50 % (3 of 4)" in draw(gate, found)
