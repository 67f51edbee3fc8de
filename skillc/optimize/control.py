"""The control of the screen: a failure that an unrelated edit cures too comes right by chance, and proves nothing.

The control is the text with another edit of the step rather than the same prompt once more: a target at temperature 0
would only repeat itself, while any other text draws its slips anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skillc.data.example import Example
from skillc.document.skill import Document, digest
from skillc.optimize.engine import Engine
from skillc.optimize.trials import Trial, moved


@dataclass(frozen=True, slots=True)
class Control:
    """A cured example, and the text with an edit that was not meant to cure it."""

    example: Example
    text: Document


def controls(incumbent: Document, trials: Sequence[Trial]) -> list[Control]:
    """One for each example that an edit cured alone; those edits come first that cured nothing themselves."""
    cured = {example.id: example for trial in trials for example in trial.examples if example.id in trial.cured}
    changed = [trial for trial in trials if digest(trial.text) != digest(incumbent)]
    unrelated = sorted(changed, key=lambda trial: len(trial.cured))
    found = []
    for example in cured.values():
        other = next((trial for trial in unrelated if example.id not in trial.proposal.cures), None)
        if other is not None:
            found.append(Control(example, other.text))
    return found


def by_chance(engine: Engine, incumbent: Document, made: Sequence[Control]) -> frozenset[str]:
    """Ids of the examples that their controls cured; a control that was not measured says nothing."""
    changes = ((control.example.id, moved(engine, incumbent, control.text, control.example)) for control in made)
    return frozenset(example for example, change in changes if change is not None and change > 0)
