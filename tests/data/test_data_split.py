"""Splits: hashes decide, and nothing stands on two sides."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import example_count

from skillc.data.dataset import Dataset, load
from skillc.data.split import SIDES, split_groups
from skillc.errors import SkillcError
from skillc.metrics.baselines import baseline_predictions
from skillc.plan.schema import DataPlan, FieldPlan, SplitPlan, TaskPlan, TypePlan


def field(name: str, kind: str = "text", **more: Any) -> FieldPlan:
    return FieldPlan(name=name, type=TypePlan(kind=kind, **more), column=name)  # type: ignore[arg-type]


LABELS = ("billing", "shipping", "other")
TASK = TaskPlan(inputs=(field("ticket"),), outputs=(field("team", "labels", labels=LABELS),))
CUSTOMER = (field("customer"),)
SHARES = SplitPlan(unit="share", parts=(Fraction(2), Fraction(1), Fraction(2)))


def counts(*parts: int) -> SplitPlan:
    return SplitPlan(unit="examples", parts=tuple(map(Fraction, parts)))


def row(i: int, customer: str | None = None, ticket: str | None = None, team: str = "billing") -> dict[str, Any]:
    return {"ticket": ticket or f"text {i}", "team": team, "customer": customer or f"c{i}"}


def write(tmp_path: Path, rows: list[dict[str, Any]], name: str = "a.jsonl") -> str:
    (tmp_path / name).write_text("".join(json.dumps(r) + "\n" for r in rows))
    return name


def loaded(tmp_path: Path, rows: list[dict[str, Any]], **data: Any) -> Dataset:
    return load(TASK, DataPlan(source=write(tmp_path, rows), **{"fields": CUSTOMER, **data}), tmp_path)


def sides(dataset: Dataset) -> dict[str, str]:
    return {example.id: side for side in SIDES for example in getattr(dataset, side)}


NAMES = st.lists(st.text(max_size=4), min_size=40, max_size=120, unique=True)


@settings(max_examples=example_count(60), deadline=None)
@given(NAMES, st.randoms(use_true_random=False), st.integers(0, 5))
def test_a_new_row_never_moves_the_others(names: list[str], random: Any, seed: int) -> None:
    before = split_groups(names, SHARES, seed, file="x")
    more = [*names, "a new group", "another one"]
    random.shuffle(more)
    after = split_groups(more, SHARES, seed, file="x")
    assert {name: after[name] for name in names} == before


@settings(max_examples=example_count(60), deadline=None)
@given(st.lists(st.integers(1, 5), min_size=10, max_size=40), st.randoms(use_true_random=False))
def test_counts_fill_sides_by_whole_groups(sizes: list[int], random: Any) -> None:
    groups = [f"g{i}" for i, size in enumerate(sizes) for _ in range(size)]
    third = len(groups) // 5
    plan = counts(third, third, third)
    before = split_groups(groups, plan, 1, file="x")
    random.shuffle(groups)
    assert split_groups(groups, plan, 1, file="x") == before
    got = Counter(before[group] for group in groups if group in before)
    assert all(third <= got[side] < third + 5 for side in SIDES)


def test_shares_come_near_their_sizes() -> None:
    got = Counter(split_groups(map(str, range(10_000)), SHARES, 7, file="x").values())
    assert abs(got["train"] - 4000) < 200 and abs(got["validation"] - 2000) < 200 and abs(got["test"] - 4000) < 200
    two = split_groups(map(str, range(100)), SplitPlan(parts=(Fraction(2), Fraction(1))), 7, file="x")
    assert set(two.values()) == {"train", "validation"}


def test_the_seed_chooses_the_split() -> None:
    names = [str(i) for i in range(50)]
    assert split_groups(names, SHARES, 1, file="x") != split_groups(names, SHARES, 2, file="x")
    assert split_groups(names, SHARES, 1, file="x") == split_groups(names, SHARES, 1, file="y")


def test_an_empty_side_is_refused_with_sizes_and_a_fix() -> None:
    with pytest.raises(SkillcError, match=r"leaves .* empty: 1 example fall on") as caught:
        split_groups(["a"], SHARES, 1, file="`a.jsonl`")
    assert "more data" in (caught.value.hint or "")
    wide = SplitPlan(parts=(Fraction(1000), Fraction(1), Fraction(1)))
    with pytest.raises(SkillcError, match=r"validation 0") as caught:
        split_groups(map(str, range(20)), wide, 1, file="`a.jsonl`")
    assert "split = " in (caught.value.hint or "") and "examples" in (caught.value.hint or "")
    with pytest.raises(SkillcError, match="needs 30 examples, x has 20"):
        split_groups(map(str, range(20)), counts(10, 10, 10), 1, file="x")
    with pytest.raises(SkillcError, match=r"20 examples in 1 group"):
        split_groups(["a"] * 20, counts(5, 5, 5), 1, file="x")


ROWS = st.lists(
    st.builds(
        row,
        st.integers(0, 60),
        st.sampled_from([f"c{i}" for i in range(30)]),
        st.one_of(st.none(), st.sampled_from(["same", "again"])),
        st.sampled_from(LABELS),
    ),
    min_size=60,
    max_size=90,
)


@settings(max_examples=example_count(40), deadline=None)
@given(ROWS, st.randoms(use_true_random=False), st.booleans())
def test_no_group_and_no_input_stands_on_two_sides_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], random: Any, grouped: bool
) -> None:
    tmp_path = tmp_path_factory.getbasetemp()
    data = {"group": "customer" if grouped else None, "split": SplitPlan(parts=(Fraction(1), Fraction(1)))}
    try:
        dataset = loaded(tmp_path, rows, **data)
    except SkillcError as error:
        assert "empty" in error.message or "another side" in error.message
        return
    places: dict[str, set[str]] = defaultdict(set)
    for side in SIDES:
        for example in getattr(dataset, side):
            places["input " + str(example.inputs["ticket"])].add(side)
            places["group " + example.group].add(side)
            if grouped:
                assert example.group == example.fields["customer"]
    assert all(len(on) == 1 for on in places.values())
    assert len(sides(dataset)) == len(dataset.train) + len(dataset.validation) + len(dataset.test)
    random.shuffle(rows)
    again = loaded(tmp_path, rows, **data)
    assert (again.train, again.validation, again.test) == (dataset.train, dataset.validation, dataset.test)
    assert again.digest == dataset.digest


def test_a_new_row_moves_no_example(tmp_path: Path) -> None:
    rows = [row(i) for i in range(60)]
    before = sides(loaded(tmp_path, rows))
    after = sides(loaded(tmp_path, [row(99), *reversed(rows)]))
    assert len(after) == 61
    assert {name: after[name] for name in before} == before


def test_neither_answers_nor_fields_decide_the_side(tmp_path: Path) -> None:
    rows = [row(i) for i in range(60)]
    before = sides(loaded(tmp_path, rows))
    corrected = [{**r, "team": "other", "customer": "x"} for r in rows]
    assert sides(loaded(tmp_path, corrected)) == before
    assert sides(loaded(tmp_path, rows, fields=())) == before


def test_ids_of_rows_and_ids_of_content(tmp_path: Path) -> None:
    rows = [{**row(i), "id": i if i % 2 else f"t{i}"} for i in range(40)]
    assert set(sides(loaded(tmp_path, rows))) == {str(i) if i % 2 else f"t{i}" for i in range(40)}
    rows = [row(i) for i in range(40)]
    twice = loaded(tmp_path, [*rows, {**rows[0], "team": "other"}])
    assert len(sides(twice)) == 41
    assert sum(name.endswith("-2") for name in sides(twice)) == 1
    assert twice.warnings == ("1 input has two different answers, the first at `a.jsonl` line 1 and `a.jsonl` line 41",)


def test_rows_equal_in_everything_count_once(tmp_path: Path) -> None:
    rows = [row(i) for i in range(40)]
    once, twice = loaded(tmp_path, rows), loaded(tmp_path, [*rows, *rows[:3]])
    assert once.digest == twice.digest
    assert twice.warnings == ("left out 3 duplicate rows",)


def test_inputs_under_two_groups_stay_on_one_side(tmp_path: Path) -> None:
    rows = [row(i) for i in range(40)] + [row(i, f"c{i % 40}", "where is my order?") for i in range(100, 140)]
    dataset = loaded(tmp_path, rows, group="customer")
    assert (
        len({side for side in SIDES for e in getattr(dataset, side) if e.inputs["ticket"] == "where is my order?"}) == 1
    )
    assert any("the same inputs are on another side" in warning for warning in dataset.warnings)
    assert len(dataset.test) > 10


def test_examples_beyond_the_counts_are_told(tmp_path: Path) -> None:
    dataset = loaded(tmp_path, [row(i) for i in range(40)], split=counts(10, 5, 10))
    assert [len(dataset.train), len(dataset.validation), len(dataset.test)] == [10, 5, 10]
    assert dataset.warnings == ("left out 15 examples beyond the counts of `split`",)


def test_a_group_must_exist_and_have_values(tmp_path: Path) -> None:
    with pytest.raises(SkillcError, match="`group = custmer` is neither a field") as caught:
        loaded(tmp_path, [row(i) for i in range(9)], group="custmer")
    assert caught.value.hint == "did you mean `customer`?"
    with pytest.raises(SkillcError, match="no value for the group `customer`"):
        loaded(tmp_path, [row(1), {**row(2), "customer": ""}], group="customer")


# ---- files of their own ---------------------------------------------------------------------------


def from_files(tmp_path: Path, files: dict[str, list[dict[str, Any]]], **data: Any) -> Dataset:
    names = {side: write(tmp_path, rows, f"{side}.jsonl") for side, rows in files.items()}
    return load(TASK, DataPlan(fields=CUSTOMER, **names, **data), tmp_path)


def test_separate_files(tmp_path: Path) -> None:
    files = {"train": [row(i) for i in range(4)], "validation": [row(9)], "test": [row(11), row(10)]}
    dataset = from_files(tmp_path, files)
    assert [len(dataset.train), len(dataset.validation), len(dataset.test)] == [4, 1, 2]
    again = from_files(tmp_path, {side: rows[::-1] for side, rows in files.items()})
    assert again == dataset
    assert from_files(tmp_path, {**files, "test": files["test"][:1]}).digest != dataset.digest
    assert load(TASK, DataPlan(train="train.jsonl", validation="validation.jsonl"), tmp_path).test == ()


@pytest.mark.parametrize(
    ("test", "data", "words"),
    [
        ([row(2, "new")], {}, "line 1: the same inputs are at `train.jsonl` line 3, on train"),
        (
            [row(20, "c2")],
            {"group": "customer"},
            "the `customer` of this row is on train too, at `train.jsonl` line 3",
        ),
        ([{**row(20), "id": "a"}], {}, "the id `a` is already used at `train.jsonl` line 5"),
    ],
)
def test_nothing_stands_on_two_sides(
    tmp_path: Path, test: list[dict[str, Any]], data: dict[str, Any], words: str
) -> None:
    train = [*(row(i) for i in range(4)), {**row(5), "id": "a"}]
    with pytest.raises(SkillcError) as caught:
        from_files(tmp_path, {"train": train, "validation": [row(9)], "test": test}, **data)
    assert words in caught.value.message


def test_a_customer_may_stand_on_two_sides_where_no_group_is_named(tmp_path: Path) -> None:
    files = {"train": [row(1, "c")], "validation": [row(2, "c")]}
    assert len(from_files(tmp_path, files).train) == 1


def test_a_missing_side_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SkillcError, match="no validation file"):
        from_files(tmp_path, {"train": [row(1)]})


# ---- baselines ------------------------------------------------------------------------------------


def test_baselines_learn_on_train_alone(tmp_path: Path) -> None:
    words = {"billing": "refund invoice", "shipping": "parcel late", "other": "hello there"}
    rows = [row(i, ticket=f"{words[LABELS[i % 3]]} {i}", team=LABELS[i % 3]) for i in range(150)]
    rows += [row(i, ticket=f"refund {i}", team="billing") for i in range(200, 240)]
    dataset = loaded(tmp_path, rows)
    predictions = baseline_predictions(TASK, dataset, dataset.test)
    assert set(predictions["most frequent label"]) == {"billing"}
    assert predictions["keywords"] == tuple(example.gold["team"] for example in dataset.test)
    assert baseline_predictions(TASK, dataset, dataset.test) == predictions


def test_baselines_are_for_one_output_of_labels(tmp_path: Path) -> None:
    dataset = loaded(tmp_path, [row(i) for i in range(40)])
    free = TaskPlan(inputs=TASK.inputs, outputs=(field("team"),))
    two = TaskPlan(inputs=TASK.inputs, outputs=(*TASK.outputs, field("customer")))
    assert baseline_predictions(free, dataset, dataset.test) == {} == baseline_predictions(two, dataset, dataset.test)
    without = loaded(tmp_path, [row(i) for i in range(40)], split=counts(20, 20))
    assert baseline_predictions(TASK, without, without.test) == {}


def test_baselines_on_the_example_beat_chance() -> None:
    root = Path(__file__).parents[2] / "examples" / "tickets"
    labels = ("billing", "shipping", "technical", "account", "returns", "sales", "security", "feedback")
    task = TaskPlan(inputs=(field("ticket"),), outputs=(field("team", "labels", labels=labels),))
    data = DataPlan(source="tickets.jsonl", fields=(field("customer"),), group="customer", seed=7)
    dataset = load(task, data, root)
    right = [
        sum(p == e.gold["team"] for p, e in zip(predictions, dataset.test, strict=True))
        for predictions in baseline_predictions(task, dataset, dataset.test).values()
    ]
    assert right[0] < right[1]
    assert 2 * right[1] > len(dataset.test)


def test_one_example_is_one() -> None:
    with pytest.raises(SkillcError, match="`split = 1 example : 1 example : 3 examples` needs 5 examples"):
        split_groups(["a", "b"], counts(1, 1, 3), 0, file="the data")
