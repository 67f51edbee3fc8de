"""Render the result of an evaluation with adapters as sentences: whether training beats the skill, and when it pays."""

from __future__ import annotations

import math
from fractions import Fraction

from skillc.dataclass import dataclass
from skillc.evaluate.adapters.adapter import Training
from skillc.evaluate.adapters.job import BASE, BOTH, LORA, SKILL, Arm, kind
from skillc.evaluate.adapters.run import ArmScores, ArmsEvaluation, PairResult, questions
from skillc.evaluate.reporting import gain_range, gain_text, has_percent, p_value
from skillc.gates.units import dollars
from skillc.optimize.null_arm import amount
from skillc.plan.schema import MetricPlan
from skillc.stats.verdict import Verdict
from skillc.text import counted, listed

_SUBJECTS = {BASE: "the base model", SKILL: "the skill", LORA: "training", BOTH: "skill and training together"}
_NANO = 10**9


@dataclass(frozen=True, slots=True)
class BreakEven:
    """The break-even point of an adapter's training.

    Attributes:
        tokens: that an example of the adapter sends less than one with the skill; negative for more.
        calls: rollouts after which the training has paid; None if they save nothing, or if it is unknown.
        unit: what is compared: `dollars` or `hours`; None if neither is known.
    """

    tokens: Fraction
    calls: int | None = None
    unit: str | None = None


def answers(found: ArmsEvaluation) -> list[str]:
    """Return the answer, one sentence for each adapter, and what belongs beside it."""
    if not found.compared:
        return []
    if found.job.split != "test":
        return [f"no answer: {_not_held_out(found)}; `--split test` has held-out examples, and counts a look"]
    lines = []
    for result in questions(found.compared):
        lines.append(answer(result, found.job.plan.goal, len(found.compared)))
        line = break_even_words(found, result)
        lines += [line] if line else []
    trained = [
        adapter.name
        for adapter in found.job.adapters
        if adapter.training is not None and adapter.training.trained_on(found.job.examples)
    ]
    if trained:
        lines.append(
            f"{listed(trained)} was trained on some of these examples (`--allow-trained`), so its scores are too high"
        )
    return [*lines, *judge_lines(found)]


def _not_held_out(found: ArmsEvaluation) -> str:
    if found.job.split == "train":
        return "skill and adapter were trained on these examples"
    return "the skill was selected on these examples, so its score here is too high"


def answer(result: PairResult, goal: MetricPlan, tests: int) -> str:
    """Return the claim of a pair in one sentence; without a claim, the difference that would have been detectable.

    Args:
        result: the pair.
        goal: the metric.
        tests: pairs in the family.
    """
    verdict, one, other = result.member.verdict, _named(result.pair.arm), _named(result.pair.reference)
    if not verdict.n:
        return f"not measured: no example was measured with both {one} and {other}"
    if verdict.interval is None:
        return f"no answer: {verdict.reason}"
    evidence = _evidence(result, goal, tests)
    assert verdict.gain is not None
    if verdict.verdict == "improved":
        return f"{one} beat {other} by {_size(verdict.gain, goal)} ({evidence})"
    if verdict.verdict == "worse":
        return f"{other} beat {one} by {_size(-verdict.gain, goal)} ({evidence})"
    if verdict.verdict == "unverified":
        return f"no answer: {counted(result.dropped, 'example')} unmeasured in one arm could change it ({evidence})"
    least = detectable_words(verdict, goal)
    return f"no difference between {one} and {other} can be shown ({evidence}){least}"


def _named(arm: Arm) -> str:
    name = _SUBJECTS[kind(arm)]
    apart = arm.adapter is not None and arm.name != kind(arm)
    return f"{name} ({arm.adapter.name})" if apart and arm.adapter is not None else name


def _size(gain: Fraction, goal: MetricPlan) -> str:
    return f"{float(gain) * 100:.1f} points" if has_percent(goal) else amount(gain, goal)


def _evidence(result: PairResult, goal: MetricPlan, tests: int) -> str:
    verdict = result.member.verdict
    ends = verdict.interval
    if verdict.verdict == "worse" and ends is not None:
        # The sentence names the winner first.
        ends = -ends[1], -ends[0]
    level = f"{float(1 - verdict.alpha) * 100:.4g} % interval {gain_range(ends, goal)}"
    gain = "" if verdict.verdict in ("improved", "worse") else f"{gain_text(verdict.gain, goal)}, "
    corrected = f" by Holm over {counted(tests, 'pair')}" if tests > 1 else ""
    return f"{gain}{level}, p {p_value(result.member.adjusted)}{corrected}"


def detectable_words(verdict: Verdict, goal: MetricPlan) -> str:
    """Return the smallest detectable difference; empty if unknown."""
    if verdict.detectable is None:
        return ""
    smallest = Fraction(verdict.detectable).limit_denominator(10**6)
    if smallest >= goal.widest:
        return f"; with {counted(verdict.n, 'example')} no difference would have shown"
    return (
        f"; with {counted(verdict.n, 'example')} the smallest difference that would have shown is "
        f"{_size(smallest, goal)} (80 % power)"
    )


# ---- break-even -----------------------------------------------------------------------------------


def break_even(skill: ArmScores, lora: ArmScores, training: Training | None) -> BreakEven | None:
    """Return when the adapter has paid, by the cost of a rollout at list price, else by the median latency.

    calls = training / (rollout with the skill - rollout with the adapter), rounded up. None without measured rollouts.
    """
    ran = skill.score.costs.rollouts, lora.score.costs.rollouts
    if not all(ran):
        return None
    tokens = Fraction(skill.score.tally.prompt, max(1, skill.score.tally.calls)) - Fraction(
        lora.score.tally.prompt, max(1, lora.score.tally.calls)
    )
    if training is None:
        return BreakEven(tokens)
    before, after = skill.score.costs.per_rollout, lora.score.costs.per_rollout
    if training.dollars is not None and before is not None and after is not None and (before or after):
        saved = (before - after) / _NANO
        return BreakEven(tokens, math.ceil(Fraction(training.dollars) / saved) if saved > 0 else None, "dollars")
    slow, fast = skill.score.costs.median, lora.score.costs.median
    if training.hours is not None and slow is not None and fast is not None:
        return BreakEven(tokens, math.ceil(training.hours * 3600 / (slow - fast)) if slow > fast else None, "hours")
    return BreakEven(tokens)


def break_even_words(found: ArmsEvaluation, result: PairResult) -> str:
    """Return when the adapter has paid; empty if it is worse than the skill, or is not compared with it."""
    verdict = result.member.verdict
    if not result.pair.is_question or verdict.verdict in ("worse", "unverified") or verdict.interval is None:
        return ""
    skill, lora = (
        next(each for each in found.scored if each.arm is arm) for arm in (result.pair.reference, result.pair.arm)
    )
    assert lora.arm.adapter is not None
    training = lora.arm.adapter.training
    paid = break_even(skill, lora, training)
    if paid is None:
        return ""
    tokens = round(paid.tokens)
    line = (
        f"the adapter sends {counted(abs(tokens), 'token')} {'less' if tokens >= 0 else 'more'} per call than the skill"
    )
    if verdict.verdict != "improved":
        line = f"if it is as good, which is not shown: {line}"
    if training is None or (training.hours is None and training.dollars is None):
        return f"{line}; what its training cost is not recorded"
    cost = ", ".join(
        [
            *([f"{training.hours:.3g} h"] if training.hours is not None else []),
            *([dollars(Fraction(training.dollars))] if training.dollars is not None else []),
        ]
    )
    if paid.unit is None:
        return f"{line}; its training took {cost}, and no price or latency is known to compare that with"
    if paid.calls is None and paid.unit == "dollars":
        return f"{line}; its training ({cost}) is never paid back: a rollout with it is not cheaper at list price"
    if paid.calls is None:
        return f"{line}; its training took {cost}, and by the median latency a rollout with it saves no time"
    by = "at list price" if paid.unit == "dollars" else "by the median latency"
    return f"{line}; its training ({cost}) has paid after {counted(paid.calls, 'rollout')}, {by}"


# ---- judges ---------------------------------------------------------------------------------------


def judge_lines(found: ArmsEvaluation) -> list[str]:
    """Return lines on the reliability of the goal's judge; none if no judge is asked."""
    lines, program = list[str](), found.job.planned.path.name
    for role in found.job.judged:
        rates = found.job.flips.get(role)
        if rates is None or (rates.again is None and rates.other_order is None):
            lines.append(
                f"the score is the verdict of `{role}`, whose flip rate is not known: a judge that contradicts itself "
                f"hides differences and can favour one style; `skillc judge check {program} --json > check.json` "
                f"measures it, also in the other order, and `--judge-check check.json` reads it"
            )
            continue
        measured = " and ".join(
            f"{rate:.0%} of its verdicts {how}".replace("%", " %")
            for rate, how in ((rates.again, "when asked again"), (rates.other_order, "in the other order"))
            if rate is not None
        )
        order = "" if rates.other_order is not None else "; the other order is not measured"
        high = "; that is high, so do not trust a small difference: repair the judge first" if rates.is_high else ""
        lines.append(f"the score is the verdict of `{role}`, which flips {measured}{order}{high}")
    return lines
