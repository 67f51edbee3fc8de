"""How often each part of a run occurs: steps, decisions, waves, merges, screens, and the calls of other methods."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from skillc.budget.spend import CallSizes, Least, Sizes, SpendBound, Stage
from skillc.dataclass import dataclass
from skillc.language.loop import OptimizePlan
from skillc.plan.initial import sections_of
from skillc.plan.schema import Plan

# Without a cap on epochs or steps other caps end the run.
OPEN_ENDED_EPOCHS = 1_000
# Epochs over which an edit schedule runs where neither epochs nor steps are capped.
SCHEDULED_EPOCHS = 4
_SMALLEST_WAVE, _LARGEST_WAVE = 8, 32
_SHORTEST_PATIENCE = 8
# A slow update searches this many times its examples for pairs that changed, or did not.
SCAN = 4


def step_size(plan: Plan) -> int:
    """Training examples of one step, all batches included."""
    return plan.optimize.batch * plan.optimize.accumulate


def steps_per_epoch(plan: Plan, train: int) -> int:
    """Steps of one epoch over `train` training examples."""
    return -(-train // step_size(plan))


def open_ended(plan: Plan) -> bool:
    """Whether neither epochs nor steps are capped."""
    return plan.budget.epochs is None and plan.budget.steps is None


def epochs_of(plan: Plan) -> int:
    """The most epochs of the run."""
    if plan.budget.epochs is not None:
        return plan.budget.epochs
    return plan.budget.steps if plan.budget.steps is not None else OPEN_ENDED_EPOCHS


def steps_of(plan: Plan, train: int) -> int:
    """The most steps of the run with `train` training examples."""
    possible = epochs_of(plan) * steps_per_epoch(plan, train)
    return possible if plan.budget.steps is None else min(possible, plan.budget.steps)


def scheduled_steps(plan: Plan, train: int) -> int:
    """Steps over which the edit schedule goes from its start to its end.

    These are the steps that `epochs` and `steps` allow. Caps on calls, tokens, cost and time do not count: they may be
    raised for a stopped run, which must not change earlier decisions. If only such caps end the run, the schedule takes
    the steps of 4 epochs.
    """
    return SCHEDULED_EPOCHS * steps_per_epoch(plan, train) if open_ended(plan) else steps_of(plan, train)


def decisions_of(plan: Plan, train: int) -> int:
    """The most decisions of the run with `train` training examples, each candidate of a pool counted.

    Every step decides on its candidates and up to `retries` smaller patches, and every epoch on each slow section.
    """
    optimize = plan.optimize
    slow = sum(section.mode == "slow" for section in plan.skill.sections) if optimize.slow_update else 0
    ends = steps_of(plan, train) // steps_per_epoch(plan, train)
    return steps_of(plan, train) * (optimize.candidates + optimize.retries) + ends * slow


def wave_size(plan: Plan, validation_size: int) -> int:
    """Rollouts of one wave: as declared, else a tenth of the validation split, between 8 and 32."""
    if plan.optimize.wave is not None:
        return plan.optimize.wave
    return min(max(-(-validation_size // 10), _SMALLEST_WAVE), _LARGEST_WAVE)


def patience_of(plan: Plan, train: int) -> int | None:
    """Steps without an accept before the run ends: as declared, else those of an epoch, at least 8; None for no limit.

    It is None too where it cannot end the run: other methods make one decision, and a short run has fewer steps.
    """
    declared = plan.budget.patience
    if declared is not None:
        return declared or None
    default = max(steps_per_epoch(plan, train), _SHORTEST_PATIENCE)
    return default if plan.optimize.method == "skillc" and default < steps_of(plan, train) else None


def slow_update_examples(plan: Plan, train: int) -> int:
    """The most training examples of one slow update, each run under both skills."""
    wanted = plan.optimize.slow_update_samples
    return min(wanted if plan.optimize.pairs == "mixed" else SCAN * wanted, train)


FAN_IN = 8


def merge_calls(failures: int, successes: int) -> int:
    """Calls that merge lists of failures and of successes: each kind separately, then the rest in one call."""
    calls = 0
    while failures + successes > FAN_IN:
        calls += _calls(failures) + _calls(successes)
        failures, successes = -(-failures // FAN_IN), -(-successes // FAN_IN)
    return calls + (failures + successes > 1)


def most_merge_calls(lists: int) -> int:
    """The most calls that merge up to `lists` lists of two kinds.

    One round takes at most (k + 6) // 8 calls for k lists of a kind and leaves (k + 7) // 8 of them.
    """
    calls = 0
    while lists > FAN_IN:
        calls += (lists + 2 * (FAN_IN - 2)) // FAN_IN
        lists = (lists + 2 * (FAN_IN - 1)) // FAN_IN
    return calls + (lists > 1)


def _calls(lists: int) -> int:
    """Calls of one round over lists of one kind."""
    whole, rest = divmod(lists, FAN_IN)
    return whole + (rest > 1)


# Failures and right cases of the batch in the prompt of a draft.
MOST_FAILURES = 24
MOST_RIGHT = 12
# Cited cases in the prompt of a merge.
MOST_CITED = 16
# Unseen failures on which a draft is tried, with half as many unseen right cases.
JUDGES = 12
# Tokens of further training examples with their right answers.
FURTHER_LIMIT = 6_000
# One in this many of the failures on which an edit is tried was in its author's prompt.
_OWN = 3
# The most edits kept for the next step, where each is screened again.
SHELF = 8


def own_cases(screen: int) -> int:
    """Cases of its author on which an edit is tried first: a third of `screen`, at least one."""
    return max(1, screen // _OWN)


def right_cases(screen: int) -> int:
    """Similar right cases on which an edit that cures is tried: `screen` less the own cases, at least one."""
    return max(1, screen - own_cases(screen))


def most_screened(optimize: OptimizePlan, edits: int, batch: int) -> int:
    """The most rollouts that screen `edits` edits on a batch of `batch` examples.

    Each edit is tried on `screen` failures and its right cases. With `control`, each cured failure and each broken
    right case is tried again. With `together`, each failure may have a group; an edit is tried alone for at most
    `screen` groups, left out of one, and tried in the rest of that one.
    """
    size = optimize.screen
    if not size:
        return 0
    right = right_cases(size)
    most = edits * (size + right)
    if optimize.control:
        most += min(edits * 2 * size, batch) + edits * right
    if optimize.together:
        most += min(edits * optimize.minibatch, batch) + edits * size + edits + edits // 2
    return most


# ---- methods of peers -----------------------------------------------------------------------------

# The most rollouts of a search without a cap on epochs, steps or calls.
OPEN_ENDED_ROLLOUTS = 10_000
# Numbers of instructions that MIPROv2 chooses from (its `auto` settings end at 18).
_FEWEST_CANDIDATES, _MOST_CANDIDATES = 2, 18
# MIPROv2 tries candidates on minibatches of larger validation splits, as its `auto` does.
_WHOLE_VALIDATION = 50
MINIBATCH = 35
FULL_EVERY = 5
# GEPA checks its budget before each round: 3 examples before and after, then validation.
GEPA_MINIBATCH = 3
_GEPA_ROUND = 2 * GEPA_MINIBATCH
# MIPROv2 describes the data ten examples at a time, in at most ten calls, and summarises that in one.
DESCRIBED, DESCRIPTIONS = 10, 11


def rollouts_of(plan: Plan, train: int, validation: int) -> int:
    """Rollouts of the search: one batch and one validation for each step that the plan admits."""
    whole = min(plan.optimize.batch, train) + validation
    if open_ended(plan):
        return min(plan.budget.calls or OPEN_ENDED_ROLLOUTS, OPEN_ENDED_ROLLOUTS)
    return min(steps_of(plan, train) * whole, OPEN_ENDED_ROLLOUTS)


def gepa_calls(rollouts: int, validation: int) -> int:
    """The metric calls that GEPA may make: it counts the baseline too, which skillc has measured before."""
    return rollouts + validation


@dataclass(frozen=True, slots=True)
class Trials:
    """MIPROv2's search: instructions for each section, and combinations to try."""

    candidates: int
    trials: int
    minibatch: bool


def trials_of(rollouts: int, validation: int, sections: int) -> Trials:
    """The largest search within the rollouts: max(2 M log2 N, 1.5 N) trials for N candidates and M sections."""
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


class MethodCounts(NamedTuple):
    """Bounds of a search: the most rollouts, samples counted; the most questions; the candidates, about."""

    rollouts: int
    questions: int
    candidates: int


def method_counts(plan: Plan, train: int, validation: int) -> MethodCounts:
    """Count what the plan's method does between the baseline and its gates; a question may be repeated once."""
    samples, method = plan.optimize.samples, plan.optimize.method
    if method == "one_shot":
        return MethodCounts(min(plan.optimize.batch, train), 1, 1)
    rollouts = rollouts_of(plan, train, validation)
    if method == "gepa":
        questions = gepa_calls(rollouts, validation) // GEPA_MINIBATCH + 1
        candidates = max(1, rollouts // (validation + _GEPA_ROUND))
        return MethodCounts((rollouts + _GEPA_ROUND + validation) * samples, questions, candidates)
    sections = sum(section.mode != "frozen" for section in sections_of(plan))
    found = trials_of(rollouts, validation, sections)
    # The demonstrations of MIPROv2 come from the initial skill on training examples, each run once.
    most = train + found.trials * validation * samples
    return MethodCounts(most, DESCRIPTIONS + found.candidates * sections, found.trials)


_REASKED = 2


def method_least(plan: Plan, sizes: Sizes, each: CallSizes) -> Least:
    """One proposal from the fewest rollouts, decided on validation, and the test."""
    rollout = each.rollout.least
    seen = {"one_shot": min(plan.optimize.batch, sizes.train), "gepa": min(GEPA_MINIBATCH, sizes.train)}
    gated = any(gate.stage == "validation" for gate in plan.gates if gate.for_ is None)
    return Least(
        baseline=rollout * _validation(plan, sizes),
        decisions=1,
        rollouts=rollout * seen.get(plan.optimize.method, 0),
        reflections=each.propose.least,
        validation=rollout * (_validation(plan, sizes) if gated else 0),
        test=rollout * (2 * sizes.test * plan.optimize.samples),
    )


def method_stages(plan: Plan, sizes: Sizes, each: CallSizes, least: Least) -> tuple[Stage, ...]:
    """All stages; the estimate assumes the largest search, as no method ends early."""
    searched, asked, _ = method_counts(plan, sizes.train, sizes.validation)
    rollout, validation = each.rollout, _validation(plan, sizes)
    batch = min(plan.optimize.batch, sizes.train)
    on_batch = 2 * batch if any(gate.stage == "batch" for gate in plan.gates if gate.for_ is None) else 0
    test = 2 * sizes.test * plan.optimize.samples
    # The gates read the measurements of a search on validation.
    decided = validation // 2 if plan.optimize.method == "one_shot" else 0
    gated = rollout.times(0, on_batch + decided, on_batch + validation)
    proposed = each.propose.times(0, asked, asked * _REASKED)
    found = (
        Stage("baseline", "target", replace(each.first.times(*[validation] * 3), least=least.baseline)),
        Stage("search", "target", replace(rollout.times(0, searched, searched), least=least.rollouts)),
        Stage("propose", "optimizer", replace(proposed, least=least.reflections)),
        Stage("gate", "target", replace(gated, least=least.validation)),
        Stage("final test", "target", replace(rollout.times(0, test, test), least=least.test)),
        Stage("no skill", "target", each.bare.times(0, *[validation + sizes.test * plan.optimize.samples] * 2)),
        Stage("always read", "target", _always_read(plan, each, validation + sizes.test * plan.optimize.samples)),
    )
    return tuple(stage for stage in found if stage.bound.most.calls)


def _always_read(plan: Plan, each: CallSizes, examples: int) -> SpendBound:
    if plan.skill.load == "always":
        return SpendBound()
    return each.always_read.times(0, examples, examples)


def _validation(plan: Plan, sizes: Sizes) -> int:
    return sizes.validation * plan.optimize.samples
