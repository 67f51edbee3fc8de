"""How many examples try drafts and edits, what a draft is shown, and the most rollouts of one step's screen."""

from __future__ import annotations

from skillc.plan.schema import OptimizePlan

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
