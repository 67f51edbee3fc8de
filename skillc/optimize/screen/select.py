"""Choose the edits of each candidate within the edit budget."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from skillc.document.edits import START, Add, Move, apply_edits
from skillc.document.skill import Document, digest
from skillc.optimize.engine import Engine, Place, State
from skillc.optimize.propose.cases import briefing
from skillc.optimize.propose.prompting import budget_messages
from skillc.optimize.propose.proposals import Proposal, edit_view
from skillc.optimize.propose.replies import BudgetReply

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
    reports = apply_edits(incumbent, [p.edit for p in together]).results
    return all(report.applied for report in reports[len(chosen) :])


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
    reports = apply_edits(incumbent, [proposal.edit for proposal in ordered]).results
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


async def choose_budget(engine: Engine, state: State, proposals: Sequence[Proposal], budget: int, place: Place) -> int:
    """How many edits this step may make; the scheduled number unless the schedule is `model` and the model answers."""
    if engine.plan.optimize.edits.kind != "model" or not proposals:
        return budget
    engine.observer.stage("edit budget", 1)
    messages = budget_messages(
        briefing(engine, state), edits=[edit_view(proposal) for proposal in proposals], most=budget
    )
    reply = await engine.optimizer.ask(BudgetReply, messages, stage="select", sample=(place.epoch, place.step, 0))
    return budget if reply is None else max(0, min(budget, reply.edits))
