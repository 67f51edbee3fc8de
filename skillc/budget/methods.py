"""What the methods of peers may do and spend under a plan's caps, so that methods are compared at equal budgets."""

from __future__ import annotations

import math
from dataclasses import dataclass

from skillc.budget.spend import CallSizes, Least, Sizes, Spend, SpendBound, Stage
from skillc.budget.steps import open_ended, steps_of
from skillc.plan.initial import sections_of
from skillc.plan.schema import Plan

# Without a cap on epochs, steps or calls other caps end a method; this one is there so that each has an end.
OPEN_ENDED_ROLLOUTS = 10_000
# The numbers of instructions that MIPROv2 itself chooses between (its `auto` settings end at 18).
_FEWEST_CANDIDATES, _MOST_CANDIDATES = 2, 18
# MIPROv2 tries candidates on minibatches where the validation split is larger than this, as its own `auto` does.
_WHOLE_VALIDATION = 50
MINIBATCH = 35
FULL_EVERY = 5
# GEPA asks before each round whether it may go on; a round is 3 examples before and after, then validation.
GEPA_MINIBATCH = 3
_GEPA_ROUND = 2 * GEPA_MINIBATCH
# MIPROv2 describes the data ten examples at a time, in at most ten calls, and sums that up in one.
DESCRIBED, DESCRIPTIONS = 10, 11


def rollouts_of(plan: Plan, train: int, validation: int) -> int:
    """Rollouts of the search: one batch and one validation for each step that the plan admits."""
    whole = min(plan.optimize.batch, train) + validation
    if open_ended(plan):
        return min(plan.budget.calls or OPEN_ENDED_ROLLOUTS, OPEN_ENDED_ROLLOUTS)
    return min(steps_of(plan, train) * whole, OPEN_ENDED_ROLLOUTS)


def gepa_calls(rollouts: int, validation: int) -> int:
    """Metric calls that GEPA may make for so many rollouts: it counts the baseline, which is known before it starts."""
    return rollouts + validation


@dataclass(frozen=True, slots=True)
class Trials:
    """MIPROv2's search: instructions proposed for each section, and combinations tried."""

    candidates: int
    trials: int
    minibatch: bool


def trials_of(rollouts: int, validation: int, sections: int) -> Trials:
    """As many as the rollouts pay, by MIPROv2's rule: max(2 M log2 N, 1.5 N) trials for N candidates, M sections."""
    minibatch = validation > _WHOLE_VALIDATION

    def cost(trials: int) -> int:
        if not minibatch:
            return trials * validation
        return trials * MINIBATCH + validation * (trials // FULL_EVERY + (trials % FULL_EVERY != 0))

    def needed(candidates: int) -> int:
        return int(max(2 * sections * math.log2(candidates), 1.5 * candidates))

    paid = [n for n in range(_FEWEST_CANDIDATES, _MOST_CANDIDATES + 1) if cost(needed(n)) <= rollouts]
    candidates = max(paid, default=_FEWEST_CANDIDATES)
    trials = needed(candidates)
    while trials > 1 and cost(trials) > rollouts:
        trials -= 1
    return Trials(candidates, trials, minibatch)


def most_rollouts(plan: Plan, train: int, validation: int) -> int:
    """The most rollouts that the plan's method makes between the baseline and its gates, samples counted."""
    samples = plan.optimize.samples
    if plan.optimize.method == "one_shot":
        return min(plan.optimize.batch, train)
    rollouts = rollouts_of(plan, train, validation)
    if plan.optimize.method == "gepa":
        return (rollouts + _GEPA_ROUND + validation) * samples
    trials = trials_of(rollouts, validation, _sections(plan)).trials
    # The demonstrations that MIPROv2 shows itself come from the initial skill on training examples, each run once.
    return train + trials * validation * samples


def most_questions(plan: Plan, train: int, validation: int) -> int:
    """The most questions to the optimizer model, each asked again once at most."""
    if plan.optimize.method == "one_shot":
        return 1
    rollouts = rollouts_of(plan, train, validation)
    if plan.optimize.method == "gepa":
        return gepa_calls(rollouts, validation) // GEPA_MINIBATCH + 1
    sections = _sections(plan)
    return DESCRIPTIONS + trials_of(rollouts, validation, sections).candidates * sections


def candidates_of(plan: Plan, train: int, validation: int) -> int:
    """About how many skills the method chooses its result from on the validation split."""
    if plan.optimize.method == "one_shot":
        return 1
    rollouts = rollouts_of(plan, train, validation)
    if plan.optimize.method == "gepa":
        return max(1, rollouts // (validation + _GEPA_ROUND))
    return trials_of(rollouts, validation, _sections(plan)).trials


def _sections(plan: Plan) -> int:
    return sum(section.mode != "frozen" for section in sections_of(plan))


_REASKED = 2


def method_least(plan: Plan, sizes: Sizes, each: CallSizes) -> Least:
    """One proposal from the fewest rollouts that it can be made of, decided on validation, and the test."""
    rollout = each.rollout.least
    seen = {"one_shot": min(plan.optimize.batch, sizes.train), "gepa": min(GEPA_MINIBATCH, sizes.train)}
    gated = any(gate.stage == "validation" for gate in plan.gates if gate.for_ is None)
    return Least(
        baseline=rollout * _validation(plan, sizes),
        once=Spend(),
        decisions=1,
        rollouts=rollout * seen.get(plan.optimize.method, 0),
        reflections=each.propose.least,
        on_batch=Spend(),
        validation=rollout * (_validation(plan, sizes) if gated else 0),
        test=rollout * (2 * sizes.test * plan.optimize.samples),
    )


def method_stages(plan: Plan, sizes: Sizes, each: CallSizes, least: Least) -> tuple[Stage, ...]:
    """All stages; the estimate takes the search for as large as it may be, since no method ends early by itself."""
    searched = most_rollouts(plan, sizes.train, sizes.validation)
    asked = most_questions(plan, sizes.train, sizes.validation)
    rollout, validation = each.rollout, _validation(plan, sizes)
    batch = min(plan.optimize.batch, sizes.train)
    on_batch = 2 * batch if any(gate.stage == "batch" for gate in plan.gates if gate.for_ is None) else 0
    test = 2 * sizes.test * plan.optimize.samples
    # A search has measured its result on validation before; the gates read that.
    decided = validation // 2 if plan.optimize.method == "one_shot" else 0
    proposed = each.propose.times(0, asked, asked * _REASKED)
    found = (
        Stage("baseline", "target", _from(each.first.times(*[validation] * 3), least.baseline)),
        Stage("search", "target", _from(rollout.times(0, searched, searched), least.rollouts)),
        Stage("propose", "optimizer", _from(proposed, least.reflections)),
        Stage("gate", "target", _from(rollout.times(0, on_batch + decided, on_batch + validation), least.validation)),
        Stage("final test", "target", _from(rollout.times(0, test, test), least.test)),
        Stage("no skill", "target", each.bare.times(0, *[validation + sizes.test * plan.optimize.samples] * 2)),
    )
    return tuple(stage for stage in found if stage.bound.most.calls)


def _validation(plan: Plan, sizes: Sizes) -> int:
    return sizes.validation * plan.optimize.samples


def _from(bound: SpendBound, least: Spend) -> SpendBound:
    return SpendBound(least, bound.estimate, bound.most)
