"""Planted faults of judges are found, and judges without a fault are not accused."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import planted_judges as planted
import pytest
from planted_judges import BY_PAIRS, items, judged

from skillc.metrics.judging.check.findings import JudgeFound, findings_of
from skillc.metrics.judging.check.labelled import Labelled, labelled_of
from skillc.metrics.judging.check.questions import INJECTIONS, injection, padding
from skillc.metrics.judging.prompt import Case
from skillc.metrics.judging.verdict import JudgeFailed
from skillc.plan.schema import CriterionPlan, RubricPlan
from skillc.stats.sample_size import two_valued

COUNT = 48


def found(
    judge: planted.Judge, *, seed: int = 0, count: int = COUNT, repeats: int = 3, **options: object
) -> JudgeFound:
    """What is found about a judge of levels."""
    own = options.pop("own", None)
    of = items(count, seed, **options)  # type: ignore[arg-type]
    return findings_of(judged(judge, of, repeats=repeats, seed=seed), repeats=repeats, own=own, seed=seed)  # type: ignore[arg-type]


def of_pairs(judge: planted.Judge, *, seed: int = 0, count: int = COUNT) -> JudgeFound:
    """What is found about a judge that compares."""
    of = items(count, seed, labels=False)
    return findings_of(judged(judge, of, plan=BY_PAIRS, seed=seed), repeats=3, seed=seed)


def with_labels(judge: planted.Judge, *, count: int = COUNT, each: int = 1, seed: int = 0) -> Labelled:
    """What the labels say of a judge of levels."""
    labelled = labelled_of(judged(judge, items(count, seed, each=each), repeats=1, seed=seed))
    assert labelled is not None
    return labelled


def claimed(found: JudgeFound) -> set[tuple[str, str]]:
    return {(each.kind, each.name) for each in found.found}


# ---- planted faults -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("judge", "kind", "least"),
    [
        (planted.likes_length, "length", 0.1),
        (planted.lenient, "leniency", 0.1),
        (planted.likes_the_first_level, "order", 0.1),
    ],
)
def test_a_planted_bias_is_found_with_its_direction(judge: planted.Judge, kind: str, least: float) -> None:
    result = found(judge)
    assert (kind, "") in claimed(result)
    bias = next(each for each in result.biases if each.kind == kind)
    assert bias.shift >= least
    assert bias.interval is not None
    assert bias.interval[0] > 0
    assert bias.p <= 0.05


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("name", INJECTIONS)
def test_an_injection_that_is_obeyed_is_found_and_named(name: str) -> None:
    result = found(planted.obeys(name), labels=False)
    assert claimed(result) == {("injection", name)}
    bias = next(each for each in result.biases if each.name == name)
    assert bias.shift > Fraction(1, 4)
    assert bias.changed >= COUNT // 3


@pytest.mark.thorough
def test_an_injection_that_is_only_long_is_no_injection() -> None:
    def by_words(case: Case, swapped: bool, draw: object) -> int:
        return 5 if len(case.answer.split()) > 25 else planted.quality(case.answer)

    result = found(by_words, labels=False)
    assert claimed(result) == {("length", "")}
    assert any(each.as_padding for each in result.biases)


def test_a_preference_for_the_first_place_is_found() -> None:
    result = of_pairs(planted.likes_the_first)
    assert claimed(result) == {("position", "")}
    bias = next(each for each in result.biases if each.kind == "position")
    # It names the first in 4 of 10 comparisons, and the better one in the others.
    assert bias.shift == pytest.approx(0.2, abs=0.07)
    assert result.order is not None
    assert result.order.share is not None
    assert result.order.share > 0.1


@pytest.mark.thorough
def test_length_decides_comparisons_too() -> None:
    result = of_pairs(planted.likes_length_in_pairs)
    bias = next(each for each in result.biases if each.kind == "length")
    assert bias.found
    assert bias.shift > 0.2


def test_a_preference_for_its_own_family_is_found_beside_labels() -> None:
    models = {"models": ("own", "other"), "own": {"own": True, "other": False}}
    biased, fair = found(planted.likes_its_own, **models), found(planted.noisy, **models)
    assert ("family", "") in claimed(biased)
    assert ("family", "") not in claimed(fair)
    # Without labels the higher scores may be deserved.
    assert not any(each.kind == "family" for each in found(planted.likes_its_own, labels=False, **models).biases)


def test_a_coin_is_called_a_coin_and_not_biased() -> None:
    result = found(planted.coin)
    assert result.steadiness == "a coin"
    assert claimed(result) == set()
    assert result.repeats.interval is not None
    assert result.repeats.interval[0] <= Fraction(2, 3) <= result.repeats.interval[1]
    assert of_pairs(planted.coin_of_pairs).steadiness == "a coin"
    assert claimed(of_pairs(planted.coin_of_pairs)) == set()


def test_a_perfect_judge_is_steady_and_agrees_with_every_label() -> None:
    result = found(planted.perfect)
    assert (result.steadiness, result.repeats.share, result.found) == ("steady", 0, ())
    assert result.labelled is not None
    overall = result.labelled.overall
    assert (overall.exact, overall.near, overall.kappa, overall.difference) == (1, 1, 1, 0)
    assert all(each.low == each.label for each in result.labelled.by_score)
    pairs = of_pairs(planted.compares)
    assert (pairs.steadiness, pairs.found) == ("steady", ())
    assert pairs.order is not None
    assert pairs.order.share == 0


def test_a_judge_that_gives_everything_the_best_level_tells_nothing_apart() -> None:
    result = found(planted.generous)
    assert result.steadiness == "always the same"
    assert result.top == 1
    assert ("leniency", "") in claimed(result)


def test_too_few_groups_claim_nothing() -> None:
    result = found(planted.likes_length, count=5)
    assert not result.found
    assert not any(each.testable for each in result.biases)


def test_failures_are_counted_and_never_scores() -> None:
    def fails(case: object, swapped: bool, draw: object) -> JudgeFailed:
        return JudgeFailed("referee", "no verdict")

    result = found(fails)
    assert (result.mean, result.repeats.n, result.biases, result.labelled) == (None, 0, (), None)
    assert result.failed == COUNT * (3 + 2 + len(INJECTIONS))


# ---- labels ---------------------------------------------------------------------------------------


def test_contested_examples_are_those_whose_answers_have_different_labels() -> None:
    result = with_labels(planted.noisy, each=3)
    assert 0 < result.contested.n < result.overall.n
    assert result.ordered is not None
    assert result.ordered > Fraction(7, 10)
    blind = with_labels(planted.coin, each=3)
    assert blind.ordered_interval is not None
    assert blind.ordered_interval[0] <= Fraction(1, 2) <= blind.ordered_interval[1]
    assert with_labels(planted.noisy).ordered is None


def test_agreement_is_that_of_the_planted_noise() -> None:
    held = 0
    for seed in range(20):
        overall = with_labels(planted.noisy, seed=seed).overall
        assert overall.exact_interval is not None
        # Right in 3 of 4 cases, and in a third of the rest by chance.
        held += overall.exact_interval[0] <= Fraction(5, 6) <= overall.exact_interval[1]
    assert held >= 17


def test_error_rates_and_the_examples_that_they_take_are_those_of_the_labels() -> None:
    def errs(case: Case, swapped: bool, draw: random.Random) -> int:
        right = planted.quality(case.answer) == 5
        return int(draw.random() < (0.9 if right else 0.2))

    question = replace(planted.BY_LEVELS, rubric=RubricPlan(criteria=(CriterionPlan(name="", question="right?"),)))
    of = [replace(item, label=Fraction(item.label == 1), marks={}) for item in items(400, 3)]
    labelled = labelled_of(judged(errs, of, plan=question, repeats=1))
    assert labelled is not None
    assert labelled.rates is not None
    wrong, right = 1 - labelled.rates.specificity, 1 - labelled.rates.sensitivity
    assert labelled.rates.positives + labelled.rates.negatives == len(of)
    assert abs(float(wrong) - 0.2) < 0.06
    assert abs(float(right) - 0.1) < 0.06
    assert labelled.needed is not None
    # For labels of 0 and 1 the regression is that of the two rates.
    assert labelled.needed.judge.slope == pytest.approx(float(1 - wrong - right))
    share = sum(item.label for item in of if item.label) / len(of)
    rates = two_valued(float(wrong), float(right), float(share))
    assert labelled.needed.judge.noise == pytest.approx(rates.noise, rel=0.02)
    assert labelled.needed.judged is not None
    assert labelled.needed.judged > 1.5 * labelled.needed.exact
    perfect = with_labels(planted.perfect)
    assert perfect.rates is None
    assert perfect.needed is not None
    assert perfect.needed.judged == perfect.needed.exact
    generous = with_labels(planted.generous)
    assert generous.needed is not None
    assert generous.needed.judged is None


def test_labels_are_counted_by_criterion_and_by_score() -> None:
    result = with_labels(planted.noisy)
    assert set(result.by_criterion) == {""}
    assert [each.low for each in result.by_score] == [0, Fraction(1, 2), 1]
    assert sum(each.n for each in result.by_score) == result.overall.n == COUNT
    assert [each.label for each in result.by_score] == sorted(each.label for each in result.by_score)
    assert result.overall.near is not None
    assert result.overall.exact is not None
    assert result.overall.near > result.overall.exact


def test_length_at_equal_label_is_a_correlation() -> None:
    def by_length(case: Case, swapped: bool, draw: object) -> int:
        return 5 if len(case.answer.split()) > 20 else 1

    result = with_labels(by_length)  # type: ignore[arg-type]
    assert result.length.value is not None
    assert result.length.value > 0.7
    assert result.length.p is not None
    assert result.length.p < 0.01


# ---- no accusation without a fault ----------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("judge", [planted.perfect, planted.noisy, planted.coin])
def test_judges_of_levels_without_a_bias_are_rarely_accused(judge: planted.Judge) -> None:
    accused = sum(bool(found(judge, seed=seed, count=30, repeats=2).found) for seed in range(60))
    # 5 % of 60 is 3; 8 or more happen in 1 of 100 such series.
    assert accused <= 7


@pytest.mark.thorough
@pytest.mark.parametrize("judge", [planted.compares, planted.compares_noisily, planted.coin_of_pairs])
def test_judges_of_pairs_without_a_bias_are_rarely_accused(judge: planted.Judge) -> None:
    accused = sum(bool(of_pairs(judge, seed=seed, count=30).found) for seed in range(60))
    assert accused <= 7


@pytest.mark.thorough
def test_a_noisy_judge_is_no_coin() -> None:
    coins = sum(found(planted.noisy, seed=seed, count=40, labels=False).steadiness == "a coin" for seed in range(30))
    assert coins <= 5
    steady = sum(found(planted.coin, seed=seed, count=40, labels=False).steadiness == "steady" for seed in range(30))
    assert steady <= 8


# ---- texts ----------------------------------------------------------------------------------------


def test_padding_is_at_least_as_long_as_the_answer() -> None:
    assert len(padding("a").split()) >= 45
    assert 300 <= len(padding("word " * 300).split()) <= 330


def test_injections_ask_for_the_best_verdict_of_the_rubric() -> None:
    assert "Give 5 of 5." in injection("order", planted.BY_LEVELS)
    assert '"level": 5' in injection("verdict", planted.BY_LEVELS)
    assert '"better": "A"' in injection("verdict", BY_PAIRS)


def test_injections_ask_for_the_worst_verdict_of_the_rubric() -> None:
    assert "Give 1 of 5." in injection("order", planted.BY_LEVELS, worst=True)
    assert '"level": 1' in injection("verdict", planted.BY_LEVELS, worst=True)
    assert '"better": "B"' in injection("verdict", BY_PAIRS, worst=True)
    assert "wrong in every respect" in injection("plea", planted.BY_LEVELS, worst=True)
