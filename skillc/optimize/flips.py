"""On which validation examples a candidate scored otherwise than the incumbent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skillc.data.examples import Example
from skillc.document.skill import Document
from skillc.metrics.cells import Scored
from skillc.optimize.engine import Engine


@dataclass(frozen=True, slots=True)
class Flips:
    """What changed, as far as both skills were measured on the same samples.

    Attributes:
        gained: ids of the examples on which the candidate's goal is above the incumbent's, in the order of the split.
        lost: those on which it is below.
        known: examples with a sample that was measured under both.
    """

    gained: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    known: int = 0


def flips(engine: Engine, candidate: Document, incumbent: Document) -> Flips:
    """What a candidate changed on the validation split."""
    gained, lost, known = [], [], 0
    for example in engine.dataset.validation:
        moved = _moved(engine, candidate, incumbent, example)
        if moved is None:
            continue
        known += 1
        if moved > 0:
            gained.append(example.id)
        elif moved < 0:
            lost.append(example.id)
    return Flips(tuple(gained), tuple(lost), known)


def _moved(engine: Engine, candidate: Document, incumbent: Document, example: Example) -> int | None:
    """The difference of the goal over the samples that were measured under both skills."""
    goal, moved, known = engine.plan.goal.name, 0, False
    for sample in range(engine.plan.optimize.samples):
        after = engine.rollouts.known(candidate, example, sample)
        before = engine.rollouts.known(incumbent, example, sample)
        if after is None or before is None:
            continue
        new, old = after.cells.get(goal), before.cells.get(goal)
        if isinstance(new, Scored) and isinstance(old, Scored):
            moved, known = moved + new.value - old.value, True
    return moved if known else None


def counted(before: Mapping[str, int], found: Sequence[Flips]) -> Mapping[str, int]:
    """How often each example flipped, with further candidates counted in."""
    counts = dict(before)
    for each in found:
        for name in (*each.gained, *each.lost):
            counts[name] = counts.get(name, 0) + 1
    return counts
