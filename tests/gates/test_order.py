from hypothesis import given
from hypothesis import strategies as st

from skillc.optimize.gate.pool import validation_order
from skillc.outcomes import Example

SCORES = {"a": 1, "b": 0, "c": None, "d": 1, "e": 0, "f": 1}
EXAMPLES = [Example(name, {}, {}, {}, name) for name in SCORES]


def order(examples=EXAMPLES, seed=7, **options):
    return [e.id for e in validation_order(examples, lambda e: SCORES[e.id], seed=seed, **options)]


def test_failures_go_first_and_what_is_unknown_last():
    assert [SCORES[name] for name in order()] == [0, 0, 1, 1, 1, None]


def test_what_flipped_before_goes_before_its_equals():
    found = order(flips=lambda e: {"d": 2, "f": 1}.get(e.id, 0))
    assert found[2:5] == ["d", "f", "a"]


@given(st.permutations(EXAMPLES), st.integers(0, 5))
def test_the_order_depends_on_the_seed_and_not_on_arrival(examples, seed):
    assert order(examples, seed) == order(seed=seed)


def test_another_seed_is_another_order():
    assert len({tuple(order(seed=seed)) for seed in range(10)}) > 1
