"""Stage 5: which edits make up the candidate: ranked by what they cured, clipped to the edit budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from skillc.document.edits import Add, apply_edits
from skillc.document.skill import Document
from skillc.optimize.proposals import Proposal

# Proposals that are taken together or not at all.
_Unit = tuple[Proposal, ...]


def select(incumbent: Document, proposals: Sequence[Proposal], budget: int) -> list[Proposal]:
    """At most `budget` proposals that fit together; those that need each other come together or not at all.

    Next is always what is worth most beyond what is chosen before it, less what it broke; then what has more support,
    then the optimizer's own order. An author's own case is worth a quarter of an unseen failure, so a memorised edit
    comes behind a general one. What is worth nothing more is left out. What could not be screened makes up a candidate
    only where nothing is known to cure, by support. Of two proposals on one rule the better stays; one that the
    document refuses beside those before it takes no place.
    """
    left = _units([proposal for proposal in proposals if proposal.verdict == "cures"])
    chosen: list[Proposal] = []
    reached: dict[str, int] = {}
    while left:
        unit = max(left, key=lambda unit: (_more(unit, reached), max(p.support for p in unit)))
        left.remove(unit)
        if _more(unit, reached) <= 0:
            break
        if _fits(incumbent, chosen, unit, budget):
            chosen += unit
            reached |= {example: max(gain, reached.get(example, 0)) for example, gain in _gains(unit).items()}
    if chosen:
        return chosen
    unscreened = (proposal for proposal in proposals if proposal.verdict == "unscreened")
    for proposal in sorted(unscreened, key=lambda p: -p.support):
        if _fits(incumbent, chosen, (proposal,), budget):
            chosen.append(proposal)
    return chosen


def _units(proposals: Sequence[Proposal]) -> list[_Unit]:
    """Each proposal with those that it needs; one that needs what is not there is left out."""
    by_edit = {proposal.edit: proposal for proposal in proposals}
    units: dict[frozenset[Proposal], _Unit] = {}
    for proposal in proposals:
        if all(edit in by_edit for edit in proposal.needs):
            unit = (proposal, *(by_edit[edit] for edit in proposal.needs))
            units.setdefault(frozenset(unit), unit)
    return list(units.values())


def _gains(unit: Iterable[Proposal]) -> dict[str, int]:
    """By example what the unit is worth: the most that one of its proposals was credited with."""
    gains: dict[str, int] = {}
    for proposal in unit:
        for example, gain in proposal.worth.items():
            gains[example] = max(gain, gains.get(example, 0))
    return gains


def _more(unit: _Unit, reached: Mapping[str, int]) -> int:
    """What the unit adds to what is reached already, less what it broke, in millionths."""
    added = sum(max(0, gain - reached.get(example, 0)) for example, gain in _gains(unit).items())
    return added - max(proposal.harm for proposal in unit)


def _fits(incumbent: Document, chosen: Sequence[Proposal], unit: _Unit, budget: int) -> bool:
    if len(chosen) + len(unit) > budget:
        return False
    together = (*chosen, *unit)
    touched = [p.edit.rule for p in together if not isinstance(p.edit, Add)]
    if len(set(touched)) < len(touched):
        return False
    reports = apply_edits(incumbent, [p.edit for p in together]).reports
    return all(report.applied for report in reports[len(chosen) :])
