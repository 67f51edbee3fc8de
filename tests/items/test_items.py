"""The grid, judges against the truth and the gains, as functions of the cells of a run."""

import math
import random
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import example_count

from skillc.errors import SkillcError
from skillc.items.gains import difference, gains_of, last_learned
from skillc.items.grid import grid_of
from skillc.items.judging import judged_truths
from skillc.items.record import Item, Measure, RunItems, Version, read_items, write_items
from skillc.items.report import gains_block, items_json, items_table, judging_lines, vanishing_lines
from skillc.outcomes import MICRO
from skillc.stats.agreement import Rated, correlation

RIGHT, WRONG = MICRO, 0


def measure(name, **changes):
    told = {"judged": False, "truth": False, "in_goal": False, "in_gates": False} | changes
    return Measure(name, Fraction(0), Fraction(1), **told)


VERDICT = measure("verdict", judged=True, in_goal=True)
CORRECT = measure("correct", truth=True)


def item(name, split, verdict, correct=None, group=None):
    cells = {"verdict": tuple(verdict), "correct": tuple(verdict if correct is None else correct)}
    return Item(name, split, group or name, f"question {name}", cells)


def run(items, versions=3, compiled=None, epochs=None):
    made = tuple(Version(f"d{i}", "start" if i == 0 else f"step {i}/9", i) for i in range(versions))
    sizes = {split: sum(each.split == split for each in items) for split in ("train", "validation", "test")}
    used = epochs or tuple((i + 1, (i,)) for i in range(versions))
    best = versions - 1 if compiled is None else compiled
    return RunItems("run", "verdict", (VERDICT, CORRECT), made, used, best, sizes, tuple(items))


@pytest.mark.parametrize(
    ("cells", "fate", "flips"),
    [
        ([RIGHT, RIGHT, RIGHT], "always right", 0),
        ([WRONG, WRONG, WRONG], "never solved", 0),
        ([WRONG, RIGHT, RIGHT], "newly solved", 1),
        ([RIGHT, WRONG, WRONG], "lost", 1),
        ([RIGHT, WRONG, RIGHT], "back and forth", 2),
        ([WRONG, "transport", RIGHT], "newly solved", 1),
        ([WRONG, None, WRONG], "never solved", 0),
        ([None, "judge", None], "not measured", 0),
        ([MICRO // 2, RIGHT, MICRO // 2], "back and forth", 2),
    ],
)
def test_the_fate_of_an_item_and_its_flips(cells, fate, flips):
    (row,) = grid_of(run([item("a", "validation", cells)]), "validation", "correct").rows
    assert (row.fate, row.flips) == (fate, flips)


def test_an_infrastructure_failure_is_neither_right_nor_wrong():
    grid = grid_of(
        run([item("a", "test", [RIGHT, None, "empty"]), item("b", "test", [RIGHT, None, WRONG])]), "test", "verdict"
    )
    assert [row.marks for row in grid.rows] == [("right", "unmeasured"), ("right", "wrong")]
    assert grid.right == (1, 0)
    assert grid.flips == (1, 1)


def test_columns_of_train_are_epochs_with_the_first_skill_that_met_the_item():
    items = [item("a", "train", [WRONG, RIGHT, RIGHT, None]), item("b", "train", [None, WRONG, None, RIGHT])]
    grid = grid_of(run(items, 4, epochs=((1, (0, 1)), (2, (1, 2)), (3, (3,)))), "train", "verdict")
    assert grid.columns == ("epoch 1", "epoch 2", "epoch 3")
    assert [row.marks for row in grid.rows] == [("wrong", "right", "not run"), ("wrong", "wrong", "right")]
    assert grid.right == (0, Fraction(1, 2), 1)


def coin(n, share=0.5, seed=0):
    """Rollouts whose judge agrees with the truth on a share of the items, by chance alone at one half."""
    draw = random.Random(seed)
    made = []
    for i in range(n):
        truth = [draw.choice((RIGHT, WRONG)) for _ in range(3)]
        verdict = [each if draw.random() < share else MICRO - each for each in truth]
        made.append(item(f"i{i}", ("train", "validation", "test")[i % 3], verdict, truth))
    return run(made)


@pytest.mark.parametrize(
    ("share", "chance", "says"), [(0.5, True, "not distinguishable"), (0.9, False, ""), (0.1, False, "prefers")]
)
def test_a_coin_a_good_judge_and_one_that_prefers_wrong_answers(share, chance, says):
    (found,) = judged_truths(coin(90, share))
    assert found.rollouts.by_chance is chance
    assert abs(float(found.rollouts.agreement.exact) - share) < 0.1
    text = "\n".join(line.plain for line in judging_lines(coin(90, share)))
    assert (says in text) if says else ("warning" not in text)
    assert found.pairs == 180
    assert len(found.steps) == 3


def test_a_judge_that_is_good_under_one_version_alone_is_seen_by_version():
    draw = random.Random(5)
    items = []
    for i in range(60):
        truth = [draw.choice((RIGHT, WRONG)) for _ in range(2)]
        items.append(item(f"i{i}", "validation", [truth[0], draw.choice((RIGHT, WRONG))], truth))
    (found,) = judged_truths(run(items, 2))
    (_, first), (_, second) = found.steps
    assert first.correlation == pytest.approx(1)
    assert second.by_chance
    assert found.flips != found.true_flips


def test_a_judge_that_always_says_the_same_is_no_judge():
    found = run([item(f"i{i}", "test", [RIGHT] * 3, [RIGHT, WRONG, WRONG]) for i in range(10)])
    assert judged_truths(found)[0].rollouts.correlation is None
    assert "never varies" in "\n".join(line.plain for line in judging_lines(found))


def test_few_groups_are_too_few_to_tell():
    found = run([item(f"i{i}", "test", [RIGHT, WRONG, WRONG], group=f"g{i % 3}") for i in range(12)])
    assert judged_truths(found)[0].rollouts.by_chance is None
    assert "too few groups" in "\n".join(line.plain for line in judging_lines(found))


def learned(train, validation, test, n=30):
    """An initial skill without a right answer, and a compiled one with these shares of right ones."""
    items = []
    for split, share in (("train", train), ("validation", validation), ("test", test)):
        draw = random.Random(split)
        for i in range(n):
            before = RIGHT if draw.random() < 0.3 else WRONG
            after = RIGHT if i < share * n else before if share == 0 else WRONG
            items.append(item(f"{split}{i}", split, [before, after]))
    return run(items, 2)


def lines(items):
    return " ".join(line.plain for line in vanishing_lines([[gains_of(items, "verdict"), gains_of(items, "correct")]]))


def test_a_gain_on_train_alone_vanishes():
    gains = gains_of(learned(1, 0, 0), "correct")
    assert gains.on("train").is_shown
    assert gains.on("test").gain == 0
    assert gains.vanishes is not None
    assert "vanishes  `correct`" in lines(learned(1, 0, 0))


def test_a_gain_that_is_everywhere_does_not_vanish():
    gains = gains_of(learned(0.9, 0.9, 0.9), "correct")
    assert all(each.is_shown for each in gains.splits)
    assert gains.vanishes is None
    assert lines(learned(0.9, 0.9, 0.9)) == ""


def test_too_few_test_items_leave_it_open():
    found = learned(1, 0, 0)
    few = [each for each in found.items if each.split != "test" or each.id in ("test0", "test1", "test2")]
    gains = gains_of(replace(found, items=tuple(few)), "correct")
    assert gains.vanishes is None
    assert gains.is_open
    assert "too few" in lines(replace(found, items=tuple(few)))


def test_a_goal_that_rises_while_the_truth_falls_is_apart():
    items = [item(f"i{i}", "test", [WRONG, RIGHT], [RIGHT, WRONG]) for i in range(12)]
    assert "apart     on test `verdict` +100.0 and `correct` -100.0" in lines(run(items, 2))


def test_only_items_under_both_skills_are_compared():
    items = [
        item("a", "train", [WRONG, RIGHT]),
        item("b", "train", [None, RIGHT]),
        item("c", "train", [WRONG, "empty"]),
    ]
    (found,) = gains_of(run(items, 2), "verdict").splits
    assert (found.n, found.items, found.gain, found.interval) == (1, 3, 1, None)
    assert last_learned(run(items, 2)) == 1


def test_nothing_is_said_of_a_gain_on_items_that_were_run_again_because_they_failed():
    """The compiled skill was run on the failures of the initial one alone, where any change is a gain."""
    found = learned(1, 0, 0)
    chosen = []
    for each in found.items:
        kept = each.split != "train" or each.cells["correct"][0] == WRONG
        cells = each.cells if kept else {name: (scores[0], None) for name, scores in each.cells.items()}
        chosen.append(replace(each, cells=cells))
    gains = gains_of(replace(found, items=tuple(chosen)), "correct")
    assert gains.on("train").is_shown
    assert gains.on("train").is_selective
    assert gains.vanishes is None
    assert not gains.is_open


def test_the_record_is_read_as_it_was_written(tmp_path):
    found = coin(9)
    assert read_items(tmp_path) is None
    write_items(tmp_path, found)
    assert read_items(tmp_path) == found
    assert items_json(read_items(tmp_path)) == items_json(found)
    before = (tmp_path / "items.json").read_bytes()
    write_items(tmp_path, found)
    assert (tmp_path / "items.json").read_bytes() == before
    items_table(found)


@pytest.mark.parametrize("text", ["", "{}", '{"format_version": 9}', '{"format_version": 1, "items": 3}', "[]"])
def test_a_damaged_record_is_an_error_for_its_user(tmp_path, text):
    (tmp_path / "items.json").write_text(text)
    with pytest.raises(SkillcError):
        read_items(tmp_path)


def test_an_unknown_metric_names_the_valid_ones():
    with pytest.raises(SkillcError, match="no metric `f2`") as raised:
        items_json(coin(9), "f2")
    assert "`correct`" in raised.value.hint


rated = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 9)), min_size=1, max_size=60)


@settings(deadline=None, max_examples=example_count(100))
@given(rated)
def test_the_correlation_is_that_of_the_textbook(rows):
    pairs = [Rated(str(group), Fraction(one, 4), Fraction(other, 4)) for one, other, group in rows]
    value, ends = correlation(pairs)
    xs, ys = [one / 4 for one, _, _ in rows], [other / 4 for _, other, _ in rows]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = math.sqrt(sum((x - mean_x) ** 2 for x in xs) * sum((y - mean_y) ** 2 for y in ys))
    if len(set(xs)) < 2 or len(set(ys)) < 2:
        assert value is None
    else:
        expected = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread
        assert value == pytest.approx(expected, abs=1e-9)
        assert -1 - 1e-9 <= value <= 1 + 1e-9
    if ends is not None:
        assert ends[0] <= value + 1e-9
        assert ends[1] >= value - 1e-9


def test_coins_are_called_good_judges_in_few_of_many_runs():
    called = sum(judged_truths(coin(45, seed=seed))[0].rollouts.by_chance is False for seed in range(40))
    assert called <= 6


def equal_gain(seed, n=24, gain=0.3):
    """A compiled skill that solves a share of the failures of each split, and loses a tenth of the rest."""
    draw = random.Random(seed)
    items = []
    for split in ("train", "validation", "test"):
        for i in range(n):
            before = RIGHT if draw.random() < 0.35 else WRONG
            changed = draw.random() < (0.1 if before else gain)
            items.append(item(f"{split}{i}", split, [before, MICRO - before if changed else before]))
    return run(items, 2)


@pytest.mark.thorough
def test_an_equal_gain_seldom_vanishes():
    assert sum(gains_of(equal_gain(seed), "correct").vanishes is not None for seed in range(60)) <= 6


def test_the_interval_of_a_difference_covers_the_parts():
    gains = gains_of(learned(1, 0, 0), "correct")
    low, high = difference(gains.on("train"), gains.on("test"))
    assert low <= gains.on("train").gain - gains.on("test").gain <= high


@pytest.mark.parametrize(("pleased", "differs"), [(0, False), (16, True)])
def test_a_signal_that_the_new_skill_pleases_is_reported(pleased, differs):
    """The truth gains on 12 of 40 items, the signal on 9 of these, as its rates say, and on wrong ones that please."""
    high, low = round(Fraction(85, 77) * MICRO), round(Fraction(-15, 77) * MICRO)
    items = [item(f"t{i}", "test", [low, high if i < 9 else low], [WRONG, RIGHT]) for i in range(12)]
    items += [item(f"p{i}", "test", [low, high], [WRONG, WRONG]) for i in range(pleased)]
    items += [item(f"s{i}", "test", [low, low], [WRONG, WRONG]) for i in range(28 - pleased)]
    measured = replace(VERDICT, signal=True, low=Fraction(low, MICRO), high=Fraction(high, MICRO))
    found = replace(run(items, 2), measures=(measured, CORRECT))
    shown = "\n".join(str(part) for part in gains_block(found, ["verdict", "correct"]))
    assert ("differs   `verdict` gains" in shown) is differs
    assert ("not the same for both skills" in shown) is differs
    exact = replace(found, measures=(replace(measured, signal=False), CORRECT))
    assert "differs" not in "\n".join(str(part) for part in gains_block(exact, ["verdict", "correct"]))
