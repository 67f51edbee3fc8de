"""On how many examples the screen tries an edit (`screen`), and the most rollouts that one step of it takes."""

from __future__ import annotations

from skillc.plan.schema import OptimizePlan

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
