"""Choose the examples that judge an edit, and record the effect of a trial on them.

An author sees its own cases while it writes an edit, so curing them is weak evidence. Judges are chosen among the
measured examples of the step by answer and text, without a model call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, zip_longest

from pydantic import JsonValue

from skillc.dataclass import dataclass
from skillc.document.edits import Add, Replace
from skillc.document.skill import Document
from skillc.optimize.engine import Engine, SearchState, goal_change
from skillc.optimize.propose.proposals import Proposal
from skillc.optimize.rollouts import is_failure
from skillc.outcomes import Example


@dataclass(frozen=True, slots=True)
class Judges:
    """The examples that may judge one edit, each kind in descending weight.

    Attributes:
        own: failures that the author saw: those it cites, or all of them if it cites none.
        unseen: failures that it did not see.
        right: successes near the edit.
    """

    own: tuple[Example, ...] = ()
    unseen: tuple[Example, ...] = ()
    right: tuple[Example, ...] = ()


@dataclass(frozen=True, slots=True)
class Panel:
    """The incumbent's failures and successes in a step's batch, and its answers by id, None if unreadable."""

    engine: Engine
    failures: tuple[Example, ...]
    right: tuple[Example, ...]
    given: Mapping[str, Mapping[str, JsonValue] | None]

    def judges(self, proposal: Proposal, unseen: int, right: int) -> Judges:
        """Choose the judges of one proposal: at most `unseen` unseen failures and `right` successes.

        Unseen failures that another reflection cites come first, then those with the same right or wrong answer as a
        cited case, then the nearest by text. Successes whose answer is the wrong answer of a cited case come first,
        because a rule that is too wide breaks these.
        """
        cited = [case for case in self.failures if case.id in proposal.cures]
        anchors = cited or [Example("", {"edit": _words(proposal)}, {}, {}, "")]
        shown = [case for case in self.failures if case.id in proposal.seen]
        own = [case for case in shown if case.id in proposal.cures] if cited else self._near(anchors, shown)
        hidden = [case for case in self.failures if case.id not in proposal.seen]
        others = self._near(anchors, [case for case in hidden if case.id not in proposal.cures])
        others = sorted(others, key=lambda case: -self._alike(case, cited))
        hidden = [*(case for case in hidden if case.id in proposal.cures), *others]
        kept = sorted(self._near(anchors, self.right), key=lambda case: -self._at_risk(case, cited))
        return Judges(tuple(own), tuple(hidden[:unseen]), tuple(kept[:right]))

    def _near(self, anchors: Sequence[Example], among: Sequence[Example]) -> list[Example]:
        """Sort examples by distance, each anchor's nearest ones in turns."""
        ids = {case.id for case in among}
        rows = [self.engine.near.to(anchor, len(ids), among=ids) for anchor in anchors]
        found = dict.fromkeys(case.id for case in chain(*zip_longest(*rows)) if case is not None)
        by_id = {case.id: case for case in among}
        return [by_id[name] for name in found]

    def _alike(self, case: Example, cited: Iterable[Example]) -> int:
        """Return how many of its right and its wrong answer a failure shares with the most similar cited case."""
        given = self.given[case.id]
        same = ((case.gold == other.gold) + (given is not None and given == self.given[other.id]) for other in cited)
        return max(same, default=0)

    def _at_risk(self, case: Example, cited: Collection[Example]) -> int:
        """Return 2 for a success with the wrong answer of a cited case, 1 for one with its right answer, else 0."""
        if any(self.given[other.id] == case.gold for other in cited):
            return 2
        return int(any(other.gold == case.gold for other in cited))


def panel_of(engine: Engine, state: SearchState, batch: Sequence[Example]) -> Panel:
    """Return the panel of a batch, without unmeasured examples."""
    known = [(case, engine.rollouts.known(state.incumbent, case)) for case in batch]
    judged = [(case, is_failure(engine.plan, outcome)) for case, outcome in known if outcome is not None]
    given = {case.id: outcome.answer for case, outcome in known if outcome is not None}
    failures = tuple(case for case, failed in judged if failed is True)
    return Panel(engine, failures, tuple(case for case, failed in judged if failed is False), given)


def _words(proposal: Proposal) -> str:
    """Return the text of an edit, or its rationale if it has none."""
    edit = proposal.edit
    return edit.text if isinstance(edit, Add | Replace) else edit.rationale


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
        """Ids of the cured failures."""
        return tuple(example for example, change in self.proposal.moved if change > 0)

    def with_run(self, engine: Engine, incumbent: Document, examples: Iterable[Example]) -> Trial:
        """Add its effect on further failures. It stays unscreened if it cured none and one is unmeasured."""
        every = tuple({example.id: example for example in (*self.examples, *examples)}.values())
        found = goal_changes(engine, incumbent, self.text, every)
        if len(found) < len(every) and not any(change > 0 for _, change in found):
            found = ()
        return replace(self, proposal=replace(self.proposal, moved=found), examples=every)

    def with_right(self, engine: Engine, incumbent: Document) -> Trial:
        """Add its effect on its near successes."""
        guarded = goal_changes(engine, incumbent, self.text, self.judges.right)
        return replace(self, proposal=replace(self.proposal, guarded=guarded))


def goal_changes(
    engine: Engine, before: Document, after: Document, examples: Sequence[Example]
) -> tuple[tuple[str, int], ...]:
    """Return (example, change) of each measured example."""
    changes = ((example.id, goal_change(engine, before, after, example)) for example in examples)
    return tuple((example, change) for example, change in changes if change is not None)
