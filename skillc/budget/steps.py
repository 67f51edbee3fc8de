"""How often each part of the loop runs: steps, decisions, waves, merges of proposals, screens."""

from __future__ import annotations

from skillc.language.loop import OptimizePlan
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
    rewritten.
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


def slow_update_examples(plan: Plan, train: int) -> int:
    """The most training examples that one slow update runs under both skills."""
    wanted = plan.optimize.slow_update_samples
    return min(wanted if plan.optimize.pairs == "mixed" else SCAN * wanted, train)


FAN_IN = 8


def merge_calls(failures: int, successes: int) -> int:
    """Calls that merge so many lists: each kind by itself, then all that are left in one; a lone list passes."""
    calls = 0
    while failures + successes > FAN_IN:
        calls += _calls(failures) + _calls(successes)
        failures, successes = -(-failures // FAN_IN), -(-successes // FAN_IN)
    return calls + (failures + successes > 1)


def most_merge_calls(lists: int) -> int:
    """The most calls that up to so many lists can take, however they fall into two kinds.

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


# Failures and right cases of the batch that one draft is written from.
MOST_FAILURES = 24
MOST_RIGHT = 12
# Cases that a merge of proposals is shown, of those that they cite.
MOST_CITED = 16
# Unseen failures on which a draft is tried; half as many unseen right cases come with them.
JUDGES = 12
# Tokens of further training examples with their right answers.
FURTHER_LIMIT = 6_000
# Of the failures on which an edit is tried, the part that its author was shown: enough to see that it does anything.
_OWN = 3
# The most edits that wait for the next step; each is screened anew.
SHELF = 8


def own_cases(screen: int) -> int:
    """The cases of its author on which an edit is tried first: a third of `screen`, at least one."""
    return max(1, screen // _OWN)


def right_cases(screen: int) -> int:
    """Near right cases on which an edit that cures is tried: `screen` less the first own cases, at least one."""
    return max(1, screen - own_cases(screen))


def most_screened(optimize: OptimizePlan, edits: int, batch: int) -> int:
    """The most rollouts that the screen of `edits` edits on a batch of `batch` examples takes.

    Each edit meets `screen` failures and its right cases. With `control`, each cured failure and each broken right case
    is tried once more. With `together`, each failure may have a group; an edit is tried alone for at most `screen`
    groups, left out of one, and tried in what is left of that one.
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
