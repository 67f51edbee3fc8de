"""The final test: all samples, both skills alike, and how often a split was looked at."""

import asyncio
from dataclasses import replace
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st
from scripted import World, engine_of, examples, plan_of, solves, trained

from skillc.data.split import split_digest
from skillc.optimize.engine import mean_score
from skillc.optimize.final import final_test
from skillc.outcomes import MICRO, measured_mean
from skillc.stats.verdict import PairedScore, judge

UNIT = {"low": Fraction(0), "high": Fraction(1), "look": 1, "seed": 7}


def a_test(tmp_path, world, *, samples=1, test=8):
    plan = plan_of(tmp_path, optimize=f"samples = {samples}")
    engine = engine_of(plan, {1: solves("v0", *(f"x{i}" for i in range(test)))}, world=world, train_size=1, test=test)
    done = trained(engine)
    return asyncio.run(final_test(done, look=1)), done


def by_sample(text, example, sample):
    """The solved test examples are right in their first sample only, except the first three."""
    if "solves" not in text:
        return False
    if example.id.startswith("x"):
        return sample == 0 or example.id in ("x0", "x1", "x2")
    return example.id == "v0"


def test_every_sample_of_every_test_example_is_run_under_both_skills(tmp_path):
    world = World()
    a_test(tmp_path, world, samples=3)
    assert world.count("test") == 2 * 3 * 8
    assert {call[3] for call in world.calls if call[0] == "test"} == {0, 1, 2}


def test_the_verdict_is_over_means_of_samples(tmp_path):
    found, _ = a_test(tmp_path, World(right=by_sample), samples=2)
    # 8 right in sample 0, 3 in sample 1: 11 of 16.
    assert found.verdict.gain == Fraction(11, 16)
    assert found.verdict.n == 8
    assert found.test["best"].mean == Fraction(11, 16)
    assert found.test["best"].n == 8
    assert found.test["none"].n == 8


def test_validation_is_a_mean_of_samples_too(tmp_path):
    def right(text, example, sample):
        return "solves" in text and (example.id == "v0" or (example.id == "v1" and sample == 0))

    found, done = a_test(tmp_path, World(right=right), samples=2)
    assert found.validation["best"].mean == Fraction(3, 16)
    assert mean_score(done.engine, done.state.best, "correct") == Fraction(3, 16)


def test_an_example_with_one_unmeasured_sample_is_open_on_that_half_only(tmp_path):
    def fails(text, example, sample, stage):
        return stage == "test" and sample == 1 and example.id == "x0"

    found, _ = a_test(tmp_path, World(fails), samples=2)
    assert found.test["best"].n == 7
    assert found.verdict.n == 7
    assert found.verdict.verdict == "improved"


scores = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=6, max_size=12)


@given(scores, st.integers(1, 3))
def test_repeating_each_sample_changes_nothing_that_is_said(values, samples):
    def pairs(times):
        return [
            PairedScore(f"g{i}", a * MICRO // 3, b * MICRO // 3)
            for i, (a, b) in enumerate(values)
            for _ in range(times)
        ]

    once, often = judge(pairs(1), **UNIT), judge(pairs(samples), samples=samples, **UNIT)
    assert replace(often, detectable=once.detectable) == once
    assert abs((often.detectable or 0) - (once.detectable or 0)) < 1e-9


@given(st.lists(st.none() | st.integers(-MICRO, MICRO)), st.integers(1, 3))
def test_a_mean_is_over_what_was_measured(values, samples):
    found = measured_mean(values, samples=samples)
    known = [v for v in values if v is not None]
    assert found.n == len(known)
    assert found.mean == (Fraction(sum(known), len(known) * samples * MICRO) if known else None)


# ---- looks ----------------------------------------------------------------------------------------


def test_a_split_is_named_by_its_inputs_alone():
    split = examples("x", 5)
    assert split_digest(split) == split_digest(tuple(reversed(split)))
    assert split_digest(split) == split_digest(
        [replace(e, id="other" + e.id, group="g", gold={"kind": "no"}) for e in split]
    )
    assert split_digest(split) == split_digest([*split, split[0]])
    assert split_digest(split) != split_digest(split[1:])
    assert split_digest(split) != split_digest([*split[1:], replace(split[0], inputs={"text": "new"})])


# ---- what was not measured ------------------------------------------------------------------------


def test_a_run_that_ends_on_undecided_steps_has_no_verdict(tmp_path):
    """The best skill is the initial one because nothing could be measured, which proves nothing."""

    def fails(text, example, sample, stage):
        return stage != "baseline"

    found, done = a_test(tmp_path, World(fails))
    assert done.state.best == done.state.initial
    assert found.verdict.verdict == "unverified"
    assert found.verdict.reason == "the last step could not be decided: rollouts stayed unmeasured"


def test_a_run_whose_decisions_were_all_made_may_end_with_the_initial_skill(tmp_path):
    found, done = a_test(tmp_path, World(right=lambda text, example, sample: "solves" not in text))
    assert done.state.best == done.state.initial
    assert found.verdict.verdict == "no significant gain"


@given(
    st.lists(st.tuples(st.none() | st.integers(0, 1), st.none() | st.integers(0, 1)), min_size=6, max_size=9),
    st.integers(1, 2),
)
def test_a_verdict_holds_under_every_completion_of_what_was_not_measured(values, look):
    unit = {**UNIT, "look": look}

    def scored(pairs):
        return [
            PairedScore(f"g{i}", *(None if score is None else score * MICRO for score in pair))
            for i, pair in enumerate(pairs)
        ]

    word = judge(scored(values), **unit).verdict
    worst = [(1 if a is None else a, 0 if b is None else b) for a, b in values]
    best = [(0 if a is None else a, 1 if b is None else b) for a, b in values]
    words = {judge(scored(each), **unit).verdict for each in (worst, best)}
    assert word == "unverified" if len(words) > 1 else word in {*words, "unverified"}
