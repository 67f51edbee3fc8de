"""Stage 5: which edits make up the candidate: ranked by what they cured, clipped to the edit budget."""

from __future__ import annotations

from collections.abc import Sequence

from skillc.document.edits import Add, apply_edits
from skillc.document.skill import Document
from skillc.optimize.proposals import Proposal


def select(incumbent: Document, proposals: Sequence[Proposal], budget: int) -> list[Proposal]:
    """At most `budget` proposals that fit together.

    Order: examples cured, then support, then the optimizer's own order; what could not be screened ranks last, and
    what cured none is left out. Of two proposals on one rule the better stays; one that the document refuses beside
    those before it takes no place.
    """
    order = sorted(
        (proposal for proposal in proposals if proposal.verdict != "cures none"),
        key=lambda p: (p.verdict == "unscreened", -p.cured, -p.support),
    )
    chosen: list[Proposal] = []
    touched: set[str] = set()
    for proposal in order:
        if len(chosen) >= budget:
            break
        rule = None if isinstance(proposal.edit, Add) else proposal.edit.rule
        if rule in touched:
            continue
        applied = apply_edits(incumbent, [p.edit for p in (*chosen, proposal)])
        if not applied.reports[-1].applied:
            continue
        chosen.append(proposal)
        if rule is not None:
            touched.add(rule)
    return chosen
