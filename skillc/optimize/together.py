"""Edits that only work together: what cures nothing alone is tried in a group, and the group is taken apart.

A failure that no edit cured alone is run under all edits at once that were written for it and cured nothing. Where that
cures it, each edit is left out in turn: those that the cure needs are credited with it together, and no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from skillc.data.example import Example
from skillc.document.edits import apply_edits
from skillc.document.skill import Document
from skillc.optimize.engine import Engine
from skillc.optimize.proposals import Proposal
from skillc.optimize.trials import Trial, moved


@dataclass(frozen=True, slots=True)
class Group:
    """Edits that cite one failure, and the incumbent with all of them."""

    members: tuple[Proposal, ...]
    example: Example
    text: Document


def groups(incumbent: Document, trials: Sequence[Trial], failures: Sequence[Example]) -> list[Group]:
    """Groups of two or more, disjoint, in the order of the failures."""
    cured = {example for trial in trials for example in trial.cured}
    free = [trial.proposal for trial in trials if trial.examples and not trial.cured]
    found = []
    for example in failures:
        if example.id in cured:
            continue
        group = joint(incumbent, [proposal for proposal in free if example.id in proposal.cures], example)
        if len(group.members) > 1:
            found.append(group)
            free = [proposal for proposal in free if proposal not in group.members]
    return found


def joint(incumbent: Document, proposals: Sequence[Proposal], example: Example) -> Group:
    """The group of those proposals that the document takes beside each other."""
    reports = apply_edits(incumbent, [proposal.edit for proposal in proposals]).reports
    members = tuple(p for p, report in zip(proposals, reports, strict=True) if report.applied)
    return Group(members, example, apply_edits(incumbent, [p.edit for p in members]).document)


def parts(engine: Engine, incumbent: Document, group: Group) -> list[Group]:
    """The group without each of its members in turn; none where it cured nothing."""
    if (moved(engine, incumbent, group.text, group.example) or 0) <= 0:
        return []
    return [joint(incumbent, [p for p in group.members if p is not out], group.example) for out in group.members]


def needed(engine: Engine, incumbent: Document, group: Group, without: Sequence[Group]) -> Group | None:
    """The group of those members without which the cure is smaller, or unknown; None where they are fewer than two."""
    whole = moved(engine, incumbent, group.text, group.example) or 0
    left = [moved(engine, incumbent, part.text, part.example) for part in without]
    stay = [p for p, change in zip(group.members, left, strict=True) if change is None or change < whole]
    found = joint(incumbent, stay, group.example)
    return found if len(found.members) > 1 else None


def credited(engine: Engine, incumbent: Document, group: Group) -> dict[Proposal, Proposal]:
    """The members with the cure that they share; none where the group by itself does not cure."""
    change = moved(engine, incumbent, group.text, group.example) or 0
    if change <= 0:
        return {}
    return {
        member: replace(
            member,
            moved=tuple({**dict(member.moved), group.example.id: change}.items()),
            needs=tuple(other.edit for other in group.members if other is not member),
        )
        for member in group.members
    }
