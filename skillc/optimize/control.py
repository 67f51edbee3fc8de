"""The control of the screen: a failure that an unrelated edit cures too comes right by chance, and proves nothing.

The control is the text with another edit of the step rather than the same prompt once more: a target at temperature 0
would only repeat itself, while any other text draws its slips anew.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from skillc.data.examples import Example
from skillc.document.edits import apply_edits
from skillc.document.skill import Document, digest
from skillc.optimize.engine import Engine
from skillc.optimize.trials import Trial, moved


@dataclass(frozen=True, slots=True)
class Control:
    """A cured example, and the text with an edit that was not meant to cure it."""

    example: Example
    text: Document


def controls(engine: Engine, incumbent: Document, trials: Sequence[Trial]) -> list[Control]:
    """One for each failure that an edit cured alone.

    Edits that share no cure with those that cured the failure come first, then those that cured nothing, then one that
    was tried on the failure already, which costs no call.
    """
    cured = {example.id: example for trial in trials for example in trial.examples if example.id in trial.cured}
    changed = [trial for trial in trials if digest(trial.text) != digest(incumbent)]
    found = []
    for example in cured.values():
        shared = {name for trial in trials if example.id in trial.cured for name in trial.cured}

        def related(
            trial: Trial, shared: Collection[str] = shared, example: Example = example
        ) -> tuple[int, int, bool]:
            return len(set(shared) & set(trial.cured)), len(trial.cured), example not in trial.examples

        other = min((t for t in changed if example.id not in t.proposal.cures), key=related, default=None)
        if other is not None:
            found.append(Control(example, other.text))
    return found


def by_chance(engine: Engine, incumbent: Document, made: Sequence[Control]) -> frozenset[str]:
    """Ids of the examples that their controls cured; a control that was not measured says nothing."""
    changes = ((control.example.id, moved(engine, incumbent, control.text, control.example)) for control in made)
    return frozenset(example for example, change in changes if change is not None and change > 0)


@dataclass(frozen=True, slots=True)
class Again:
    """Right cases that an edit broke, and the text with that edit and an unrelated one."""

    examples: tuple[Example, ...]
    text: Document


def breakages(incumbent: Document, trial: Trial, trials: Sequence[Trial]) -> Again | None:
    """The right cases to be tried once more; None if the edit broke none or has no edit beside it."""
    lost = {name for name, change in trial.proposal.guarded if change < 0}
    others = [each for each in trials if each is not trial and not lost & {name for name, _ in each.proposal.guarded}]
    for other in sorted(others, key=lambda each: len(each.cured)) if lost else ():
        applied = apply_edits(incumbent, [trial.proposal.edit, other.proposal.edit])
        if all(report.applied for report in applied.reports):
            return Again(tuple(case for case in trial.judges.right if case.id in lost), applied.document)
    return None


def held(engine: Engine, incumbent: Document, trial: Trial, again: Again) -> Trial:
    """The trial whose broken right cases count only where they are broken again; unmeasured ones count."""
    found = {case.id: moved(engine, incumbent, again.text, case) for case in again.examples}
    chance = {name for name, change in found.items() if change is not None and change >= 0}
    kept = tuple((name, 0 if name in chance else change) for name, change in trial.proposal.guarded)
    return replace(trial, proposal=replace(trial.proposal, guarded=kept))
