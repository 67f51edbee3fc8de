"""The candidates of a step: the best bundle of edits, then others that differ from it a little."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from skillc.document.edits import START, Add, Move, apply_edits
from skillc.document.skill import Document, digest
from skillc.optimize.proposals import Proposal
from skillc.optimize.select import select

Bundle = list[Proposal]


def bundles(
    incumbent: Document, proposals: Sequence[Proposal], budget: int, count: int, known: Collection[str] = ()
) -> list[Bundle]:
    """At most `count` bundles whose texts all differ, the best first; none where no proposal is fit to be tried.

    A bundle is in the order of the proposals: the screen says what an edit is worth, not where its rule belongs.

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
    found = _distinct(incumbent, proposals, budget, count, known)
    return found or ([_in_order(incumbent, proposals, best)] if best else [])


def _in_order(incumbent: Document, proposals: Sequence[Proposal], bundle: Bundle) -> Bundle:
    """A bundle as its edits are to be made; as it is where the document refuses one of them in that order.

    What goes to the start is put there from the last to the first, so that the first is on top.
    """
    ordered = [proposal for proposal in proposals if proposal in bundle]
    start = [p for p in ordered if isinstance(p.edit, Add | Move) and p.edit.after == START]
    ordered = [*start[::-1], *(p for p in ordered if p not in start)]
    reports = apply_edits(incumbent, [proposal.edit for proposal in ordered]).reports
    return ordered if all(report.applied for report in reports) else bundle


def _distinct(
    incumbent: Document, proposals: Sequence[Proposal], budget: int, count: int, known: Collection[str]
) -> list[Bundle]:
    found: list[Bundle] = []
    seen = {digest(incumbent)}
    for chosen in _candidates(incumbent, proposals, budget):
        bundle = _in_order(incumbent, proposals, chosen)
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
