"""An edit tried alone: what it changes against the very text that it was added to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from skillc.data.examples import Example
from skillc.document.skill import Document
from skillc.optimize.engine import Engine
from skillc.optimize.judges import Judges
from skillc.optimize.proposals import Proposal


@dataclass(frozen=True, slots=True)
class Trial:
    """A proposal in the screen.

    Attributes:
        text: the incumbent with the proposed edit alone.
        judges: the examples on which it may be run; none if it stays unscreened.
        examples: the failures on which it was run so far.
    """

    proposal: Proposal
    text: Document
    judges: Judges
    examples: tuple[Example, ...] = ()

    @property
    def cured(self) -> tuple[str, ...]:
        """Ids of the failures that it cured."""
        return tuple(example for example, change in self.proposal.moved if change > 0)

    def with_run(self, engine: Engine, incumbent: Document, examples: Iterable[Example]) -> Trial:
        """The trial with what it changed on further failures; unscreened if it cured none and one stayed unmeasured."""
        every = tuple({example.id: example for example in (*self.examples, *examples)}.values())
        found = all_moved(engine, incumbent, self.text, every)
        if len(found) < len(every) and not any(change > 0 for _, change in found):
            found = ()
        return replace(self, proposal=replace(self.proposal, moved=found), examples=every)

    def with_right(self, engine: Engine, incumbent: Document) -> Trial:
        """The trial with what it changed on its near right cases."""
        return replace(
            self,
            proposal=replace(self.proposal, guarded=all_moved(engine, incumbent, self.text, self.judges.right)),
        )


def moved(engine: Engine, before: Document, after: Document, example: Example) -> int | None:
    """The change of the goal from one text to the other in millionths, None if either was not measured."""
    goal = engine.plan.goal.name
    old, new = engine.rollouts.score(before, example, goal), engine.rollouts.score(after, example, goal)
    return None if old is None or new is None else new - old


def all_moved(
    engine: Engine, before: Document, after: Document, examples: Sequence[Example]
) -> tuple[tuple[str, int], ...]:
    """(example, change) of each measured example."""
    changes = ((example.id, moved(engine, before, after, example)) for example in examples)
    return tuple((example, change) for example, change in changes if change is not None)
