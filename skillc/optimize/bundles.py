"""The candidates of a step: the best bundle of edits, then others that differ from it a little."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from skillc.document.edits import apply_edits
from skillc.document.skill import Document, digest
from skillc.optimize.proposals import Proposal
from skillc.optimize.select import select

Bundle = list[Proposal]


def bundles(
    incumbent: Document, proposals: Sequence[Proposal], budget: int, count: int, known: Collection[str] = ()
) -> list[Bundle]:
    """At most `count` bundles whose texts all differ, the best first; none where no proposal is fit to be tried.

    After the selection itself come those without one of its edits, the weakest first: once with the next edit in its
    place, once with none. A bundle whose text was rejected before is left out, unless it is the only one.

    Args:
        incumbent: the skill that is changed.
        proposals: with what the screen found.
        budget: the most edits of a bundle.
        count: the most bundles.
        known: digests of the skills that were rejected against this incumbent.
    """
    best = select(incumbent, proposals, budget)
    return _distinct(incumbent, proposals, budget, count, known) or ([best] if best else [])


def _distinct(
    incumbent: Document, proposals: Sequence[Proposal], budget: int, count: int, known: Collection[str]
) -> list[Bundle]:
    found: list[Bundle] = []
    seen = {digest(incumbent)}
    for bundle in _candidates(incumbent, proposals, budget):
        text = digest(apply_edits(incumbent, [proposal.edit for proposal in bundle]).document)
        # The selection itself is tried even where it changes nothing that the target sees: the gates say so.
        if bundle and text not in known and (not found or text not in seen):
            found.append(bundle)
            seen.add(text)
        if len(found) >= count:
            break
    return found


def _candidates(incumbent: Document, proposals: Sequence[Proposal], budget: int) -> Iterator[Bundle]:
    best = select(incumbent, proposals, budget)
    yield best
    for out in reversed(best):
        yield select(incumbent, [proposal for proposal in proposals if proposal is not out], budget)
        yield [proposal for proposal in best if proposal is not out and out.edit not in proposal.needs]
