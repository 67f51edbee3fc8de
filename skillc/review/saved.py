"""What a run did not have to pay for: gates decided early, and steps that patience left out."""

from __future__ import annotations

import re
from collections.abc import Iterator

from skillc.dataclass import dataclass
from skillc.review.run_view import RunView
from skillc.review.stored import AROUND
from skillc.text import counted

_PLACE = re.compile(r"step (\d+)/(\d+)")


@dataclass(frozen=True, slots=True)
class Saved:
    """What was left out.

    Attributes:
        early: rollouts on validation that decided gates did not need, of `whole`.
        decided_early: candidates that were decided before all of validation was measured.
        steps: steps of the plan that were not run, of `planned`.
        calls: about so many calls those steps would have made, at the rate of the others; None without a record.
    """

    early: int
    whole: int
    decided_early: int
    steps: int
    planned: int
    calls: int | None


def saved_by(view: RunView) -> Saved:
    """Return what early decisions and an early end saved."""
    samples = view.plan.optimize.samples
    tried = [each for each in view.decisions if each.candidate and each.of]
    left = [each for each in tried if not each.accepted and each.evaluated < each.of]
    run, planned = 0, 0
    for decision in view.decisions:
        found = _PLACE.match(decision.place)
        if found is not None:
            run, planned = max(run, int(found[1])), max(planned, int(found[2]))
    calls = None
    if view.spent is not None and run:
        inside = sum(each.calls for each in view.spent if each.stage not in AROUND)
        calls = inside * (planned - run) // run
    return Saved(
        early=sum(each.of - each.evaluated for each in left) * samples,
        whole=sum(each.of for each in tried) * samples,
        decided_early=len(left),
        steps=planned - run,
        planned=planned,
        calls=calls,
    )


def saved_words(view: RunView) -> Iterator[str]:
    """Yield what early decisions and an early end saved, a line each."""
    found = saved_by(view)
    if found.decided_early:
        yield (
            f"{counted(found.decided_early, 'candidate')} decided before the whole of validation was measured: "
            f"{found.early:,} of {found.whole:,} rollouts were not needed"
        )
    if found.steps:
        calls = (
            f", about {found.calls:,} calls at the rate of the steps that were run" if found.calls is not None else ""
        )
        why = f" ({view.lock.stopped})" if view.lock is not None else ""
        yield f"{found.steps} of {found.planned} planned steps were not run{why}{calls}"
    if not found.decided_early and not found.steps:
        yield "nothing: every candidate was measured on all of validation, and every step was run"
