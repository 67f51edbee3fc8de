"""An edit tried alone: what it moves against the very text that it was added to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skillc.data.example import Example
from skillc.document.skill import Document
from skillc.optimize.engine import Engine
from skillc.optimize.proposals import Proposal


@dataclass(frozen=True, slots=True)
class Trial:
    """A proposal on its screen.

    Attributes:
        text: the incumbent with the proposed edit alone.
        examples: failures of the incumbent on which it is run; none where it stays unscreened.
        moved: what came of it, once it ran: (example, change of the goal in millionths), measured ones only.
    """

    proposal: Proposal
    text: Document
    examples: tuple[Example, ...]
    moved: tuple[tuple[str, int], ...] = ()

    @property
    def cured(self) -> tuple[str, ...]:
        """Ids of the examples that came out better."""
        return tuple(example for example, change in self.moved if change > 0)


def moved(engine: Engine, before: Document, after: Document, example: Example) -> int | None:
    """The change of the goal from one text to the other in millionths, None where either was not measured."""
    goal = engine.plan.goal.name
    old, new = engine.rollouts.score(before, example, goal), engine.rollouts.score(after, example, goal)
    return None if old is None or new is None else new - old


def all_moved(
    engine: Engine, before: Document, after: Document, examples: Sequence[Example]
) -> tuple[tuple[str, int], ...]:
    """(example, change) of each measured example."""
    changes = ((example.id, moved(engine, before, after, example)) for example in examples)
    return tuple((example, change) for example, change in changes if change is not None)
