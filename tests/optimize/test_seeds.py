from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from skillc.optimize.schedule import batches, seed_for, shuffled


@dataclass(frozen=True)
class Item:
    id: str


ids = st.lists(st.text(min_size=1, max_size=5), unique=True, max_size=40)


@given(ids, st.randoms())
def test_the_order_does_not_depend_on_the_order_of_arrival(names, chance):
    items = [Item(name) for name in names]
    mixed = list(items)
    chance.shuffle(mixed)
    assert shuffled(items, b"seed") == shuffled(mixed, b"seed")


@given(ids.filter(len))
def test_a_new_example_never_changes_the_order_of_the_others(names):
    items = [Item(name) for name in names]
    with_all = shuffled(items, b"seed")
    assert [item for item in with_all if item != items[0]] == shuffled(items[1:], b"seed")


@given(ids, st.integers(1, 10))
def test_an_epoch_has_every_example_once(names, size):
    parts = batches([Item(name) for name in names], size, plan_seed=7, epoch=1)
    assert sorted(item.id for part in parts for item in part) == sorted(names)
    assert all(len(part) <= size for part in parts)


def test_each_place_and_purpose_has_its_own_seed():
    seeds = {seed_for(s, p, epoch=e, step=n) for s in (0, 1) for p in ("a", "b") for e in (0, 1) for n in (0, 1)}
    assert len(seeds) == 16
