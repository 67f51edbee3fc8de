"""The power of the paired test at the computed number of examples, with exact labels and with judges that err."""

import random
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from skillc.outcomes import MICRO
from skillc.stats.agreement import Rated
from skillc.stats.power import smallest_gain
from skillc.stats.sample_size import ErrorModel, examples_needed, needed, two_valued
from skillc.stats.verdict import PairedScore, judge

REPEATS = 20_000
# Three standard errors of a simulated power, and one point for the normal approximation.
NEAR = 3 * (0.8 * 0.2 / REPEATS) ** 0.5 + 0.01
ERRORS = [(0.0, 0.0), (0.1, 0.1), (0.2, 0.05), (0.05, 0.3), (0.3, 0.3)]
# Gain, share of examples on which the labels differ, share of right answers.
WORLDS = [(0.05, 0.25, 0.5), (0.1, 0.25, 0.5), (0.05, 0.1, 0.9), (0.1, 0.3, 0.7), (0.05, 0.2, 0.3)]


def cells(gain: float, differing: float, right: float) -> dict[tuple[int, int], float]:
    """The probability of each pair of labels."""
    lost, gained = (differing - gain) / 2, (differing + gain) / 2
    both = right - gain / 2 - lost
    return {(0, 1): gained, (1, 0): lost, (1, 1): both, (0, 0): 1 - differing - both}


def judged_pairs(p: float, q: float, shared: bool) -> dict[tuple[int, int], tuple[float, float]]:
    """The probabilities of a judged gain and of a judged loss, by the pair of labels.

    Independent errors, or errors that both answers of an example share if their labels are equal.
    """
    says = {0: p, 1: 1 - q}
    found = {(x, y): ((1 - says[x]) * says[y], says[x] * (1 - says[y])) for x in says for y in says}
    return found | (dict.fromkeys([(0, 0), (1, 1)], (0.0, 0.0)) if shared else {})


def power(
    n: int, world: tuple[float, float, float], errors: tuple[float, float] = (0, 0), *, shared: bool = False
) -> float:
    """The share of simulated comparisons in which McNemar's test with Edwards' correction shows the gain at 5 %."""
    draw, labels = np.random.default_rng(7), cells(*world)
    drawn = draw.multinomial(n, list(labels.values()), size=REPEATS)
    wins, losses = np.zeros(REPEATS, int), np.zeros(REPEATS, int)
    for column, cell in enumerate(labels):
        gain, loss = judged_pairs(*errors, shared)[cell]
        outcome = draw.multinomial(drawn[:, column], [gain, loss, 1 - gain - loss])
        wins, losses = wins + outcome[:, 0], losses + outcome[:, 1]
    return float(((wins - losses - 1) / np.sqrt(np.maximum(wins + losses, 1)) > 1.959964).mean())


def with_judge(world: tuple[float, float, float], errors: tuple[float, float]) -> int:
    gain, differing, right = world
    found = examples_needed(gain, differing - gain**2, two_valued(*errors, right))
    assert found is not None
    return found


@pytest.mark.parametrize("errors", ERRORS)
@pytest.mark.parametrize("world", WORLDS)
def test_a_judge_that_errs_shows_as_much_on_its_number_as_exact_labels_on_theirs(
    world: tuple[float, float, float], errors: tuple[float, float]
) -> None:
    exact, judged = with_judge(world, (0, 0)), with_judge(world, errors)
    assert (judged > exact) == (errors != (0, 0))
    assert power(exact, world) == pytest.approx(0.8, abs=NEAR)
    assert power(judged, world, errors) == pytest.approx(power(exact, world), abs=2 * NEAR)
    # Without the further examples the judge shows less.
    assert errors == (0, 0) or power(exact, world, errors) < 0.65


@pytest.mark.parametrize("world", WORLDS)
def test_errors_that_both_skills_share_need_no_more(world: tuple[float, float, float]) -> None:
    for errors in ERRORS[1:]:
        assert power(with_judge(world, errors), world, errors, shared=True) > 0.8 - NEAR


def test_the_exact_number_is_the_one_at_which_plan_reports_the_gain() -> None:
    for gain in (0.03, 0.05, 0.1, 0.2):
        found = examples_needed(gain, 0.25 - gain**2)
        assert found is not None
        # `plan` takes the variance at the gain without the correction for whole counts.
        assert smallest_gain(found) == pytest.approx(gain, rel=0.02)


def test_the_number_grows_with_each_error_and_none_suffices_at_chance() -> None:
    rates = [examples_needed(0.05, 0.25, two_valued(e, e, 0.5)) for e in (0, 0.1, 0.2, 0.3, 0.4, 0.49)]
    assert all(one is not None and other is not None and one < other for one, other in pairwise(rates))
    for p, q in ((0.5, 0.5), (0.7, 0.3), (0.9, 0.4)):
        assert examples_needed(0.05, 0.25, two_valued(p, q, 0.5)) is None
    assert examples_needed(0.05, 0.25, ErrorModel(slope=0.0, noise=0.1)) is None


@pytest.mark.parametrize("spread", [0.6, 1.0, 1.5])
@pytest.mark.parametrize("correlated", [False, True])
def test_levels_take_more_by_their_reliability(spread: float, correlated: bool) -> None:
    draw, gain = np.random.default_rng(3), 0.1

    def judged(labels: "np.ndarray") -> "np.ndarray":
        return labels + draw.normal(0, spread / 4, labels.shape)

    def pairs(size: tuple[int, ...]) -> tuple["np.ndarray", "np.ndarray"]:
        first = draw.integers(0, 5, size) / 4
        second = np.where(draw.random(size) < 0.5, first, draw.integers(0, 5, size) / 4) if correlated else None
        return first, gain + (draw.integers(0, 5, size) / 4 if second is None else second)

    variance, noise = 0.125, (spread / 4) ** 2
    apart = variance if correlated else 2 * variance
    exact, count = (examples_needed(gain, apart, ErrorModel(1.0, each, 0)) for each in (0.0, noise))
    assert exact is not None
    assert count is not None
    reliability = variance / (variance + noise)
    ratio = 2 / reliability - 1 if correlated else 1 / reliability
    assert count / exact == pytest.approx(ratio, rel=0.03)
    first, second = pairs((4_000, count))
    moved = judged(second) - judged(first)
    shown = (moved.mean(1) / (moved.std(1, ddof=1) / count**0.5) > 1.959964).mean()
    assert shown == pytest.approx(0.8, abs=0.03)


def answers(count: int, right: float, p: float, q: float, draw: random.Random) -> list[Rated]:
    found = []
    for i in range(count):
        label = draw.random() < right
        score = draw.random() >= q if label else draw.random() < p
        found.append(Rated(str(i), Fraction(score), Fraction(label)))
    return found


@pytest.mark.parametrize(("right", "p", "q"), [(0.5, 0.1, 0.1), (0.8, 0.2, 0.05), (0.7, 0.05, 0.3)])
def test_the_interval_contains_the_number_of_the_true_error_rates(right: float, p: float, q: float) -> None:
    draw, inside = random.Random(5), 0
    for _ in range(100):
        found = needed(answers(50, right, p, q, draw))
        if found is None or found.interval is None:
            inside += 1
            continue
        spread = right * (1 - right)
        true = examples_needed(0.05, spread, two_valued(p, q, right))
        assert true is not None
        # The exact number follows from the labels, which the interval takes as they are.
        ratio = true / (examples_needed(0.05, spread) or 1)
        least, most = found.interval
        inside += least <= ratio * found.exact and (most is None or ratio * found.exact <= most)
    assert inside >= 88


def test_what_labels_cannot_say_is_not_said() -> None:
    assert needed([]) is None
    assert needed([Rated(str(i), Fraction(i % 2), Fraction(1)) for i in range(40)]) is None
    perfect = needed([Rated(str(i), Fraction(i % 2), Fraction(i % 2)) for i in range(40)])
    assert perfect is not None
    assert perfect.judged == perfect.exact
    assert perfect.interval is not None
    least, most = perfect.interval
    assert least == perfect.exact
    assert most is not None
    assert most > perfect.exact
    # It says yes to every second answer, whatever the label.
    coin = needed([Rated(str(i), Fraction(i % 2), Fraction(i // 2 % 2)) for i in range(40)])
    assert coin is not None
    assert coin.judged is None
    assert coin.interval is None or coin.interval[1] is None
    few = needed([Rated(str(i % 5), Fraction(i % 2), Fraction(i % 2)) for i in range(40)])
    assert few is not None
    assert few.interval is None


@pytest.mark.thorough
def test_the_verdict_shows_a_gain_in_8_of_10_runs_at_either_number() -> None:
    world, errors, draw = (0.1, 0.3, 0.7), (0.1, 0.1), random.Random(11)
    for found, rates in ((with_judge(world, (0, 0)), (0.0, 0.0)), (with_judge(world, errors), errors)):
        shown = 0
        for repeat in range(300):
            pairs = []
            labels = draw.choices(list(cells(*world)), list(cells(*world).values()), k=found)
            for i, pair in enumerate(labels):
                says = [draw.random() < (1 - rates[1] if label else rates[0]) for label in pair]
                pairs.append(PairedScore(str(i), says[0] * MICRO, says[1] * MICRO))
            shown += judge(pairs, low=Fraction(0), high=Fraction(1), look=1, seed=repeat).verdict == "improved"
        assert 0.74 < shown / 300 < 0.86
