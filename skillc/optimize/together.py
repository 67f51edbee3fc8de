"""Edits that cured nothing alone so far, tried together on all cases that they were written for.

A failure that no edit cured alone is run under all edits at once that may cure it. Where that cures it, each is tried
on it alone: so an edit finds its case however many its author cited, at one call for a failure rather than one for each
edit. Where no edit cures it alone, each is left out in turn: those that the cure needs are credited with it together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from skillc.data.examples import Example
from skillc.document.edits import apply_edits
from skillc.document.skill import Document
from skillc.optimize.engine import Engine
from skillc.optimize.proposals import Proposal
from skillc.optimize.trials import Trial, moved


@dataclass(frozen=True, slots=True)
class Group:
    """Edits that may cure one failure, and the incumbent with all of them."""

    members: tuple[Proposal, ...]
    example: Example
    text: Document


def groups(incumbent: Document, trials: Sequence[Trial], failures: Sequence[Example], most: int) -> list[Group]:
    """One group for each failure that no edit cured, in the order of the failures.

    An edit is in the groups of its first `most` failures. A failure on which its only edit was tried has no group.
    """
    cured = {example for trial in trials for example in trial.cured}
    free = [trial for trial in trials if trial.examples and not trial.cured]
    found = []
    for example in failures:
        if example.id in cured:
            continue
        may = [trial for trial in free if example in reach(trial)[:most]]
        group = joint(incumbent, [trial.proposal for trial in may], example)
        tried = [trial for trial in may if example in trial.examples]
        if len(group.members) > 1 or (group.members and not tried):
            found.append(group)
    return found


def reach(trial: Trial) -> list[Example]:
    """The failures that an edit may have been written for: its own, and those that others cite for it."""
    return [*trial.judges.own, *(case for case in trial.judges.unseen if case.id in trial.proposal.cures)]


def joint(incumbent: Document, proposals: Sequence[Proposal], example: Example) -> Group:
    """The group of those proposals that the document takes beside each other."""
    reports = apply_edits(incumbent, [proposal.edit for proposal in proposals]).reports
    members = tuple(p for p, report in zip(proposals, reports, strict=True) if report.applied)
    return Group(members, example, apply_edits(incumbent, [p.edit for p in members]).document)


def curing(engine: Engine, incumbent: Document, tried: Sequence[Group], most: int) -> list[Group]:
    """The groups that cure, each edit in at most `most` of them."""
    found, counts = [], dict[Proposal, int]()
    for group in tried:
        free = all(counts.get(member, 0) < most for member in group.members)
        if free and (moved(engine, incumbent, group.text, group.example) or 0) > 0:
            found.append(group)
            counts |= {member: counts.get(member, 0) + 1 for member in group.members}
    return found


def only_together(tried: Sequence[Group], trials: Sequence[Trial]) -> list[Group]:
    """Of the groups that cure, disjoint ones of edits none of which cures anything alone."""
    known = {name for trial in trials for name in trial.cured}
    taken = {trial.proposal for trial in trials if trial.cured}
    found = []
    for group in tried:
        if group.example.id not in known and len(group.members) > 1 and not taken & set(group.members):
            found.append(group)
            taken |= set(group.members)
    return found


def parts(incumbent: Document, group: Group) -> list[Group]:
    """The group without each of its members in turn."""
    return [joint(incumbent, [p for p in group.members if p is not out], group.example) for out in group.members]


def needed(engine: Engine, incumbent: Document, group: Group, without: Sequence[Group]) -> Group | None:
    """The group of those members without which the cure is smaller, or unknown; None if they are fewer than two."""
    whole = moved(engine, incumbent, group.text, group.example) or 0
    left = [moved(engine, incumbent, part.text, part.example) for part in without]
    stay = [p for p, change in zip(group.members, left, strict=True) if change is None or change < whole]
    found = joint(incumbent, stay, group.example)
    return found if len(found.members) > 1 else None


def credited(engine: Engine, incumbent: Document, group: Group) -> dict[Proposal, Proposal]:
    """The members with the cure that they share; none if the group by itself does not cure."""
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
