"""The memory of a run: fates of edits, the shelf, and what the last candidates changed on training cases.

An edit is rejected for good only if there is evidence against that edit itself. An edit that was cut by the edit
budget, or that failed in a bundle without breaking anything, waits on the shelf and is proposed again without an
optimizer call.

Effects come from the cases of the screen, of a draft's trial, and of batches that an earlier incumbent was also run on.
Prefetched rollouts do not count, because they depend on the caps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import JsonValue

from skillc.budget.steps import SHELF
from skillc.document.edits import Delete, Edit, apply_edits
from skillc.document.skill import Document
from skillc.optimize.engine import CandidateEffect, EditEffect, Engine, RejectedEdit, SearchState, goal_change
from skillc.optimize.gate.credit import Flips
from skillc.optimize.propose.cases import calls_on, shorten, visible_answer, visible_gold, visible_inputs
from skillc.optimize.propose.proposals import Proposal, unite, wording
from skillc.optimize.scripts import changes_script
from skillc.outcomes import Example

if TYPE_CHECKING:
    from skillc.optimize.gate.decide import Patch


# The most returns of an edit from the shelf.
RETURNS = 2
# This many unchanged validation examples are evidence against an edit that cured only its author's cases.
ENOUGH = 8

Fate = dict[str, JsonValue]


def fate(proposal: Proposal, what: str, why: str = "") -> Fate:
    """Return an entry of `fates` in the history."""
    return {"edit": wording(proposal.edit), "fate": what, **({"why": why} if why else {})}


def shelve(state: SearchState, proposals: Iterable[Proposal], why: str) -> tuple[SearchState, list[Fate]]:
    """Put proposals on the shelf in order; drop those that returned too often or exceed its capacity."""
    shelf, fates = list(state.memory.shelf), []
    known = {wording(proposal.edit) for proposal in shelf}
    for proposal in proposals:
        if wording(proposal.edit) in known:
            continue
        if proposal.returned >= RETURNS:
            fates.append(fate(proposal, "dropped", f"came back {RETURNS} times"))
        elif len(shelf) >= SHELF:
            fates.append(fate(proposal, "dropped", "the shelf is full"))
        else:
            known.add(wording(proposal.edit))
            shelf.append(proposal)
            fates.append(fate(proposal, "waiting", why))
    return state.with_memory(shelf=tuple(shelf)), fates


def unshelve(state: SearchState, proposals: Sequence[Proposal]) -> tuple[SearchState, list[Proposal], list[Fate]]:
    """Empty the shelf: append its proposals to those of a step, without their earlier screening.

    Edits that no longer apply to the incumbent are dropped.
    """
    back, fates = [], []
    for proposal in state.memory.shelf:
        (report,) = apply_edits(state.incumbent, [proposal.edit]).results
        if report.applied:
            fresh = Proposal(proposal.edit, proposal.cures, proposal.support, seen=proposal.seen)
            back.append(replace(fresh, returned=proposal.returned + 1))
        else:
            fates.append(fate(proposal, "dropped", report.message))
    return state.with_memory(shelf=()), unite([*proposals, *back]), fates


def unmerged(proposals: Sequence[Proposal], merged: Sequence[Proposal]) -> tuple[list[Proposal], list[Fate]]:
    """Return the proposals whose cases no merged edit cites, and the fates of those merged into another."""
    there = {wording(proposal.edit) for proposal in merged}
    lost, fates = [], []
    for proposal in unite(proposals):
        if wording(proposal.edit) in there:
            continue
        into = max(merged, key=lambda other: len(set(proposal.cures) & set(other.cures)), default=None)
        if into is not None and (set(proposal.cures) & set(into.cures) or not proposal.cures):
            fates.append(fate(proposal, "merged into another", wording(into.edit)))
        else:
            lost.append(proposal)
    return lost, fates


def shelve_unchosen(
    state: SearchState, proposals: Sequence[Proposal], chosen: Iterable[Proposal], aside: Sequence[Proposal]
) -> tuple[SearchState, list[Fate]]:
    """Put screened proposals that no candidate uses on the shelf, then those the aggregator left out (`aside`)."""
    gated = {wording(proposal.edit) for proposal in chosen}
    fates, cut = [], []
    for proposal in proposals:
        (report,) = apply_edits(state.incumbent, [proposal.edit]).results
        if wording(proposal.edit) in gated:
            continue
        if not report.applied:
            fates.append(fate(proposal, "refused", report.message))
        elif proposal.verdict in ("cures none", "breaks"):
            fates.append(fate(proposal, "screened out", proposal.reason))
        else:
            cut.append(proposal)
    cut.sort(key=lambda proposal: proposal.harm - sum(proposal.worth.values()))
    state, more = shelve(state, cut, "cut by the edit budget")
    state, others = shelve(state, aside, "left out by the aggregator")
    return state, [*fates, *more, *others]


def evidence_against(proposal: Proposal, part: Flips, *, alone: bool, known: int) -> str:
    """Describe the evidence against one edit of a rejected bundle; empty if there is none.

    An edit that broke more than it cured is too wide. An edit that cured neither an unseen failure in the screen nor
    anything on validation is too narrow. If the edit is `alone` in its bundle, the verdict of the gates is evidence
    too. `part` contains the flips associated with the edit, of `known` measured validation examples.
    """
    cured, broke = len(part.cured), len(part.broke)
    counts = f"cured {cured} and broke {broke} of {known} validation examples"
    seen = f"; in the screen it {proposal.reason}" if proposal.screened else ""
    if broke > cured:
        return f"{counts}{seen}: narrow it"
    if not cured and proposal.screened and known >= ENOUGH and not set(proposal.gains) - proposal.seen:
        return f"{counts}{seen}: widen it"
    return f"{counts}{seen}" if alone else ""


def after_rejection(
    state: SearchState, proposals: Sequence[Proposal], parts: Sequence[Flips], known: int
) -> tuple[SearchState, list[RejectedEdit], list[Fate]]:
    """Return the state with the new shelf, the entries of the rejected-edit buffer, and fates after a rejection."""
    entries, free, fates = [], [], []
    alone = len(parts) == 1
    reasons = [evidence_against(p, part, alone=alone, known=known) for p, part in zip(proposals, parts, strict=True)]
    for proposal, why in zip(proposals, reasons, strict=True):
        if why:
            entries.append(RejectedEdit(wording(proposal.edit), why))
            fates.append(fate(proposal, "rejected", why))
        else:
            free.append(proposal)
    state, more = shelve(state, free, "its bundle was rejected, with no evidence against it")
    return state, entries, [*fates, *more]


def pruned_fates(edits: Iterable[Edit]) -> list[Fate]:
    """Return the fates of the rules that an accepted tidying removed."""
    return [
        {"edit": wording(edit), "fate": "pruned", "why": edit.rationale} for edit in edits if isinstance(edit, Delete)
    ]


def accepted_fates(proposals: Sequence[Proposal], parts: Sequence[Flips]) -> list[Fate]:
    """Return the fates of an accepted bundle.

    A free rider cured nothing on validation and no unseen failure in the screen.
    """
    found = []
    for proposal, part in zip(proposals, parts, strict=True):
        counts = f"cured {len(part.cured)} and broke {len(part.broke)} on validation"
        rider = not part.cured and (part.broke or not set(proposal.gains) - proposal.seen)
        found.append(fate(proposal, "free rider" if rider else "accepted", counts))
    return found


# Remembered candidates, and the cases of each kind for one edit.
_CANDIDATES = 3
_CASES = 3
# Characters of a case and of an answer.
_INPUT, _ANSWER = 160, 60


def with_effect(
    engine: Engine,
    state: SearchState,
    before: Document,
    patch: Patch,
    outcome: str,
    fates: Sequence[Mapping[str, JsonValue]],
) -> SearchState:
    """Remember what a candidate made from `before` changed on training cases, and how it was decided."""
    if patch.trial:
        after = patch.tried or patch.candidate
        parts = [_part(engine, before, after, shorten(patch.text, _INPUT), "", patch.trial)]
    else:
        fate_of = {str(each["edit"]): each for each in fates}
        listed = engine.plan.optimize.rejected_buffer
        parts = []
        for proposal in patch.proposals:
            alone = apply_edits(before, (proposal.edit,)).document
            changes = {n: c for n, c in (*proposal.moved, *proposal.guarded) if n not in proposal.chance}
            text = wording(proposal.edit)
            row = fate_of.get(text, {})
            fate = str(row.get("fate", ""))
            if (listed and fate == "rejected") or changes_script(before, proposal.edit):
                # The rejected-edit buffer contains the whole text and the counts.
                text = shorten(text, _INPUT)
            elif "why" in row:
                fate += f": {row['why']}"
            parts.append(_part(engine, before, alone, text, fate, changes))
    if not parts:
        return state
    texts = {part.text for part in parts}
    earlier = [
        replace(each, parts=tuple(p for p in each.parts if p.text not in texts)) for each in state.memory.effects
    ]
    effects = [CandidateEffect(outcome, tuple(parts)), *(each for each in earlier if each.parts)]
    return state.with_memory(effects=tuple(effects[:_CANDIDATES]))


def with_batch(engine: Engine, state: SearchState, batch: Sequence[Example]) -> SearchState:
    """Remember changes on the cases of a measured batch since an earlier incumbent was run on them."""
    now, met = state.incumbent, state.memory.met
    better: list[str] = []
    worse: list[str] = []
    for example in batch:
        old = met.get(example.id)
        if old is not None and (change := goal_change(engine, old, now, example)):
            (better if change > 0 else worse).append(_line(engine, old, now, example))
    again = EditEffect("cases of this step that an earlier skill met too", "", _cut(better), _cut(worse))
    return state.with_memory(
        met={**met, **dict.fromkeys((example.id for example in batch), now)},
        again=CandidateEffect("the skill as it is now", (again,)) if better or worse else None,
    )


def _part(
    engine: Engine, before: Document, after: Document, text: str, fate: str, changes: Mapping[str, int]
) -> EditEffect:
    lines: dict[bool, list[str]] = {True: [], False: []}
    for example in engine.dataset.train:
        if changes.get(example.id):
            lines[changes[example.id] > 0].append(_line(engine, before, after, example))
    return EditEffect(text, fate, _cut(lines[True]), _cut(lines[False]))


def _line(engine: Engine, before: Document, after: Document, example: Example) -> str:
    """Describe a case briefly, with its answers under both skills and the right one."""
    plan = engine.plan
    inputs = " | ".join(visible_inputs(example, plan.optimize.trajectory_limit).values())
    if calls := calls_on(engine, (after, before), example):
        inputs = f"{shorten(inputs, _INPUT // 2)} {calls}"
    outcomes = [engine.rollouts.known(skill, example) for skill in (before, after)]
    old, new = (None if each is None else shorten(visible_answer(plan, each, _ANSWER), _ANSWER) for each in outcomes)
    gold = visible_gold(plan, example)
    answers = [f"was {old}"] if old else []
    answers += [f"now {new}"] if new else []
    answers += [f"right is {shorten(gold, _ANSWER)}"] if gold is not None and new != shorten(gold, _ANSWER) else []
    return f"{shorten(inputs, 2 * _INPUT if calls else _INPUT)}: {', '.join(answers)}"


def _cut(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the first lines, and the number of others."""
    more = len(lines) - _CASES
    return (*lines[:_CASES], f"and {more} more") if more > 0 else tuple(lines)
