"""How often the loop goes round, and how it sends what a gate needs: constants of the plan."""

from __future__ import annotations

from skillc.plan.schema import Plan

# Without a cap on epochs or steps other caps end the run.
OPEN_ENDED_EPOCHS = 1_000
# Epochs over which an edit schedule runs where neither epochs nor steps are capped.
SCHEDULED_EPOCHS = 4
_SMALLEST_WAVE, _LARGEST_WAVE = 8, 32
# How many times the examples of a slow update are looked through for pairs that changed, or did not.
SCAN = 4


def step_size(plan: Plan) -> int:
    """Training examples of one step: its batches together."""
    return plan.optimize.batch * plan.optimize.accumulate


def steps_per_epoch(plan: Plan, train: int) -> int:
    """Steps that go once through `train` training examples."""
    return -(-train // step_size(plan))


def open_ended(plan: Plan) -> bool:
    """Whether neither epochs nor steps are capped."""
    return plan.budget.epochs is None and plan.budget.steps is None


def epochs_of(plan: Plan) -> int:
    """Epochs that the run may take."""
    if plan.budget.epochs is not None:
        return plan.budget.epochs
    return plan.budget.steps if plan.budget.steps is not None else OPEN_ENDED_EPOCHS


def steps_of(plan: Plan, train: int) -> int:
    """Steps that the run may take with `train` training examples."""
    possible = epochs_of(plan) * steps_per_epoch(plan, train)
    return possible if plan.budget.steps is None else min(possible, plan.budget.steps)


def scheduled_steps(plan: Plan, train: int) -> int:
    """Steps over which the edit schedule goes from its start to its end; from then on it stays at the end.

    These are the steps that `epochs` and `steps` allow, so the schedule follows the share of the budget that is used.
    Caps on calls, tokens, cost and time do not count: they may be raised for a stopped run, and a raised cap must not
    change decisions that were made. Where only such caps end the run, the schedule takes the steps of 4 epochs.
    """
    return SCHEDULED_EPOCHS * steps_per_epoch(plan, train) if open_ended(plan) else steps_of(plan, train)


def decisions_of(plan: Plan, train: int) -> int:
    """Decisions that the run may take with `train` training examples, each candidate of a pool counted.

    Every step decides its candidates and up to `retries` smaller patches; at an epoch's end each slow section may be
    rewritten, and two parents may be merged.
    """
    optimize = plan.optimize
    slow = sum(section.mode == "slow" for section in plan.skill.sections) if optimize.slow_update else 0
    ends = steps_of(plan, train) // steps_per_epoch(plan, train)
    return steps_of(plan, train) * (optimize.candidates + optimize.retries) + ends * (slow + merges_parents(plan))


def wave_size(plan: Plan, validation_size: int) -> int:
    """Rollouts of one wave: as declared, else a tenth of the validation split, between 8 and 32."""
    if plan.optimize.wave is not None:
        return plan.optimize.wave
    return min(max(-(-validation_size // 10), _SMALLEST_WAVE), _LARGEST_WAVE)


def merges_parents(plan: Plan) -> bool:
    """Whether two parents are merged at epoch ends: a line of incumbents has no two that differ from a common one."""
    return plan.optimize.merge and plan.optimize.parents == "pareto"


def compared(plan: Plan, train: int) -> int:
    """The most training examples that one slow update runs under both skills."""
    wanted = plan.optimize.slow_update_samples
    return min(wanted if plan.optimize.pairs == "mixed" else SCAN * wanted, train)
