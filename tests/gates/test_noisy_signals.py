"""Noisy signals: the corrected value, intervals with uncertain rates, gates on partial evidence, messages."""

from fractions import Fraction

import numpy as np
import pytest

from skillc.frontend import plan_file
from skillc.gates.evaluate import decide
from skillc.gates.evidence import Evidence, SplitEvidence, TextEvidence
from skillc.gates.intervals import Truth
from skillc.metrics.meter import Meter
from skillc.optimize.gate.gate import metric_ranges
from skillc.outcomes import MICRO, Example, Scored
from skillc.review.confidence import signal_words
from skillc.stats.error_rates import ErrorRates
from skillc.stats.misclassification import gain_interval, share_interval, times_examples, youden_interval
from skillc.stats.verdict import PairedScore, judge
from skillc.trajectories.trajectory import Trajectory

LEVEL = Fraction(1, 20)
EXACT = ErrorRates(Fraction(92, 100), Fraction(85, 100))
CHECKED = ErrorRates(Fraction(92, 100), Fraction(85, 100), 50, 40)
PROGRAM = """language 1
task {
  input ticket: text
  output team: text
}
model target = "rulebook/v1"
model optimizer = "rulebook/v1"
skill route {
  about = "Route."
  trainable section rules
}
data { source = "t.csv" }
metric passed = exact_match(team)
goal worked = noisy(passed, sensitivity = 92%, specificity = 85%, positives = 50 examples, negatives = 40 examples)
gate better = candidate.worked > incumbent.worked + 2%
budget { steps = 1 }
"""


@pytest.fixture
def plan(tmp_path):
    program = tmp_path / "route.skill"
    program.write_text(PROGRAM)
    return plan_file(program).plan


# ---- the corrected value --------------------------------------------------------------------------


@pytest.mark.parametrize("share", [Fraction(0), Fraction(3, 10), Fraction(1)])
def test_the_mean_of_corrected_values_is_the_share_of_right_answers(share):
    says_yes = share * EXACT.sensitivity + (1 - share) * (1 - EXACT.specificity)
    mean = says_yes * EXACT.corrected(Fraction(1)) + (1 - says_yes) * EXACT.corrected(Fraction(0))
    assert abs(mean - share) < Fraction(1, MICRO)


def test_the_meter_corrects_the_signal_and_an_unreadable_answer_is_wrong_for_certain(plan, tmp_path):
    meter = Meter(plan, tmp_path)
    example = Example("e1", {"ticket": "x"}, {"team": "billing"}, {}, "e1")
    values = [meter.measure(example, Trajectory(answer={"team": team})).cells["worked"] for team in ("billing", "x")]
    assert values == [Scored(round(EXACT.high * MICRO)), Scored(round(EXACT.low * MICRO))]
    assert values == [Scored(1_103_896), Scored(-194_805)]
    without = meter.measure(example, Trajectory(answer=None, problem="no answer"))
    assert without.cells == {"passed": Scored(0), "worked": Scored(0)}


def test_the_share_is_shown_in_percent_and_its_source_is_named(plan):
    assert plan.goal.shown_unit == "%"
    words = signal_words(plan.goal)
    assert "by a noisy signal, not by right answers" in words
    assert "sensitivity 92 % of 50, specificity 85 % of 40" in words
    assert signal_words(plan.metric("passed")) == ""


# ---- gates ----------------------------------------------------------------------------------------


def test_a_gate_on_partial_evidence_agrees_with_the_whole(plan):
    """2 points of right answers are 2 * 0.77 points of the signal: 6 more of 200 pass, 3 more do not."""
    examples = tuple(Example(str(i), {}, {}, {}, str(i)) for i in range(200))
    low, high = (Scored(round(end * MICRO)) for end in (EXACT.low, EXACT.high))

    def truth(wins, known):
        def lookup(state, example, _):
            i = int(example.id)
            if i >= known:
                return None
            return {"worked": high if i < 100 + wins * (state == "candidate") else low}

        split = SplitEvidence(examples, 1, lookup, metric_ranges(plan))
        nothing = SplitEvidence((), 1, lookup, metric_ranges(plan))
        return decide(plan.gates[0].term, Evidence(split, nothing, TextEvidence({}, None)))

    assert truth(3, 200) is Truth.FALSE
    assert truth(4, 200) is Truth.TRUE
    assert truth(4, 150) is Truth.UNKNOWN
    assert truth(90, 190) is Truth.TRUE


# ---- intervals ------------------------------------------------------------------------------------


def pairs_of(gained, lost, same, rates):
    values = [(0, 1)] * gained + [(1, 0)] * lost + [(1, 1)] * same
    return [
        PairedScore(str(i), *(round(rates.corrected(Fraction(each)) * MICRO) for each in pair))
        for i, pair in enumerate(values)
    ]


@pytest.mark.parametrize("gained", [10, 18, 22, 40])
def test_uncertain_rates_widen_the_interval_and_change_no_claim(gained):
    found = [
        judge(pairs_of(gained, 10, 60, rates), low=rates.low, high=rates.high, look=1, seed=3, rates=rates)
        for rates in (EXACT, CHECKED)
    ]
    exact, checked = found
    assert exact.p == checked.p
    assert exact.verdict == checked.verdict
    assert exact.gain == checked.gain == pytest.approx(Fraction(gained - 10, gained + 70) / EXACT.youden, abs=1e-6)
    assert (checked.interval[0] > 0) == (checked.verdict == "improved") == (exact.interval[0] > 0)
    assert checked.interval[1] - checked.interval[0] > exact.interval[1] - exact.interval[0]


def test_the_interval_of_a_gain_is_that_of_newcombe_and_mirrors():
    ends = Fraction(1, 10), Fraction(3, 10)
    low, high = gain_interval(Fraction(1, 5), ends, CHECKED, LEVEL)
    # The r with (0.2 - r)^2 = 0.1^2 + (r * spread)^2 on either side, spread relative to J.
    least, most = (float(end / CHECKED.youden) for end in youden_interval(CHECKED))
    assert (0.2 - float(low)) ** 2 == pytest.approx(0.01 + (float(low) * (most - 1)) ** 2)
    assert (float(high) - 0.2) ** 2 == pytest.approx(0.01 + (float(high) * (1 - least)) ** 2)
    mirrored = gain_interval(Fraction(-1, 5), (-ends[1], -ends[0]), CHECKED, LEVEL)
    assert mirrored == (-high, -low)
    assert gain_interval(Fraction(1, 5), ends, EXACT, LEVEL) == ends


def test_rates_that_allow_a_coin_leave_the_gain_open_at_the_top():
    weak = ErrorRates(Fraction(6, 10), Fraction(6, 10), 10, 10)
    assert youden_interval(weak)[0] < 0
    low, high = gain_interval(Fraction(1, 2), (Fraction(1, 4), Fraction(3, 4)), weak, LEVEL)
    assert high == 1
    assert 0 < low < Fraction(1, 4)
    assert gain_interval(Fraction(0), (Fraction(-1, 4), Fraction(1, 4)), weak, LEVEL) == (-1, 1)


@pytest.mark.parametrize(("counts", "least"), [(None, 0.92), (40, 0.92), (15, 0.9)])
def test_the_interval_of_a_mean_covers_the_share_of_right_answers(counts, least):
    draw, held = np.random.default_rng(11), 0
    for _ in range(300):
        rates = EXACT
        if counts is not None:
            seen = [Fraction(int(draw.binomial(counts, rate)), counts) for rate in (0.92, 0.85)]
            rates = ErrorRates(*seen, counts, counts)
        right = draw.random(150) < 0.6
        yes = np.where(right, draw.random(150) < 0.92, draw.random(150) >= 0.85)
        low, high = share_interval([(str(i), rates.corrected(Fraction(int(y)))) for i, y in enumerate(yes)], rates)
        held += low <= Fraction(6, 10) <= high
    assert held / 300 >= least


def test_errors_cost_examples():
    assert times_examples(ErrorRates(Fraction(1), Fraction(1))) == 1
    # 10 % errors in both directions: the factor of the guide to judges.
    assert times_examples(ErrorRates(Fraction(9, 10), Fraction(9, 10))) == pytest.approx(2.125)


def test_equal_answers_seem_to_regress_by_the_errors_alone():
    draw = np.random.default_rng(2)
    right = draw.random(200_000) < 0.7
    one, other = (np.where(right, draw.random(200_000) < 0.92, draw.random(200_000) >= 0.85) for _ in range(2))
    seen = float(np.mean(one & ~other)) * float(EXACT.high - EXACT.low)
    assert float(EXACT.at_equal_answers(Fraction(7, 10))) == pytest.approx(seen, abs=0.003)


# ---- the checker ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "code", "message"),
    [
        ("specificity = 85%", "specificity = 8%", "SK322", "says nothing"),
        ("specificity = 85%", "specificity = 850%", "SK311", "`specificity` is a share between 0 and 1"),
        (", specificity = 85%", "", "SK310", "`noisy` needs `specificity = ...`"),
        ("noisy(passed", "noisy(words(team)", "SK311", "`words(team)` is not between 0 and 1"),
        ("positives = 50 examples", "positives = 50", "SK302", "expected a number of examples"),
        ("positives = 50 examples", "positives = 0.5 examples", "SK311", "a whole number of examples"),
        ("budget", "metric half = 0.5 * worked\nbudget", "SK323", "`worked` is right on average only"),
        ("candidate.worked >", "regressed(worked) <= 5% and candidate.worked >", "SK609", "9.6 to 16.6 points"),
        ("sensitivity = 92%", "sensitivity = 60%", "SK608", "keeps 45 % of a gain"),
    ],
)
def test_what_the_checker_says(old, new, code, message, tmp_path):
    from skillc.frontend import check_file

    program = tmp_path / "route.skill"
    program.write_text(PROGRAM.replace(old, new))
    found = [(each.code, each.message) for each in check_file(program).diagnostics]
    assert any(each == code and message in text for each, text in found), found


def test_a_function_passes_its_rates_on(tmp_path):
    program = tmp_path / "route.skill"
    rated = "metric rated(m: metric, right: share) = noisy(m, sensitivity = right, specificity = 85%)\n"
    text = PROGRAM.replace("goal worked = noisy(passed, sensitivity = 92%", "goal worked = rated(passed, 92%)\n# ")
    program.write_text(text.replace("data {", f"{rated}data {{"))
    assert plan_file(program).plan.goal.rates == EXACT
