"""How sure the figures of a run are, in the words that every view uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from skillc.gates.units import SHARE, format_amount
from skillc.items.record import SplitName
from skillc.optimize.null_arm import amount
from skillc.plan.lock import Lock
from skillc.plan.schema import MetricPlan
from skillc.stats.misclassification import share_interval
from skillc.stats.power import mean_interval
from skillc.text import counted

SPLIT_WORDS: Mapping[SplitName, str] = {
    "train": "train (learned from)",
    "validation": "validation (selected on)",
    "test": "test (held out)",
}
ARM_WORDS: Mapping[str, str] = {"none": "no skill", "initial": "initial skill", "best": "compiled skill"}
SELECTED_ON = (
    "Validation is the split that skills were selected on, so the compiled skill's mean there is too high. "
    "Test is held out: nothing was selected on it."
)
NO_LOCK = "no verdict: test (held out) is scored after the last decision, and no lock of this run is here"


def score(value: Fraction | None, metric: MetricPlan) -> str:
    """Render a mean of a metric in its unit: `61.9 %`; `–` for none."""
    if value is None:
        return "–"
    unit = metric.shown_unit
    return f"{float(value) * 100:.1f} %" if unit == SHARE else format_amount(value, unit, 3)


def ends_of_mean(scores: Iterable[tuple[str, Fraction]], metric: MetricPlan) -> tuple[Fraction, Fraction] | None:
    """Return the 95 % interval of the mean of a metric by group, with the error of declared rates."""
    rates = metric.rates
    return mean_interval(scores, low=metric.low, high=metric.high) if rates is None else share_interval(scores, rates)


def signal_words(metric: MetricPlan) -> str:
    """Return whose word the figures of a noisy signal are; empty for any other metric."""
    rates = metric.rates
    if rates is None:
        return ""
    parts = [
        f"{name} {share(rate)}" + ("" if count is None else f" of {count:,}")
        for name, rate, count in (
            ("sensitivity", rates.sensitivity, rates.positives),
            ("specificity", rates.specificity, rates.negatives),
        )
    ]
    how = "the interval of the gain includes their error" if rates.estimated else "taken as exact"
    return f"by a noisy signal, not by right answers: declared {', '.join(parts)}; {how}"


def share(value: Fraction) -> str:
    """Render a declared share: `92 %`."""
    return f"{float(value) * 100:.4g} %"


def difference(value: Fraction | None, metric: MetricPlan) -> str:
    """Render a difference of two means with its sign: `+12.1 points`; `–` for none."""
    return "–" if value is None else f"{'+' if value >= 0 else '-'}{amount(abs(value), metric)}"


def ends(interval: tuple[Fraction, Fraction] | None, metric: MetricPlan) -> str:
    """Render the 95 % interval of a mean: `57.8 to 65.9 %`; empty for none."""
    if interval is None:
        return ""
    low, high = (score(end, metric) for end in interval)
    return f"{low.removesuffix(' %')} to {high}" if high.endswith(" %") else f"{low} to {high}"


def ends_of_difference(interval: tuple[Fraction, Fraction], metric: MetricPlan) -> str:
    """Render the interval of a difference: `+10.0 to +40.0`."""
    return " to ".join(difference(end, metric).removesuffix(" points") for end in interval)


def gain_words(lock: Lock, metric: MetricPlan) -> str:
    """Return the paired gain on test with its interval, or why there is none."""
    test = lock.test
    if test.gain is None:
        return lock.reason or "there was no final test"
    found = f"gain {difference(test.gain, metric)} on test (held out)"
    if test.interval is None or test.alpha is None:
        return found
    level = f"{float(1 - test.alpha) * 100:.4g} % interval"
    between = ends_of_difference(test.interval, metric)
    return f"{found}, {level} {between}, {counted(test.n, 'pair')} in {counted(test.groups, 'group')}"


def look_words(lock: Lock) -> str:
    """Return which look at the test split this was, and its result; empty without a test."""
    test = lock.test
    if not test.look or test.alpha is None:
        return ""
    found = f"look {test.look} at this test split, tested at level {float(test.alpha):.3g}"
    return found if test.p is None else f"{found}: p = {float(test.p):.2g}"


def detectable_words(lock: Lock, metric: MetricPlan) -> str:
    """Return the smallest gain that the final test could have detected."""
    smallest = lock.test.smallest_detectable
    if smallest is None:
        return "smallest detectable gain: not known without a final test"
    return smallest_words(smallest, metric)


def smallest_words(smallest: Fraction, metric: MetricPlan) -> str:
    """Render the smallest gain that a test can detect."""
    return f"smallest detectable gain: {amount(smallest, metric)} (80 % power)"


def noise_words(lock: Lock, metric: MetricPlan) -> str:
    """Return how much the initial skill differs from itself."""
    found = lock.validation.null_arm
    if found is None:
        return "noise floor: not measured; skillc noise measures it"
    again = f"noise floor: measured again, {found.changed} of {found.n} validation examples score differently"
    return f"{again}; a gain below {amount(found.margin, metric)} is within it" if found.changed else again


def confidence_lines(lock: Lock | None, metric: MetricPlan) -> tuple[str, ...]:
    """Return what is known of the certainty of a run, a line each."""
    if lock is None:
        return (NO_LOCK,)
    lines = (
        gain_words(lock, metric),
        signal_words(metric),
        look_words(lock),
        detectable_words(lock, metric),
        noise_words(lock, metric),
    )
    return tuple(line for line in lines if line)
