"""Stage 4: try each edit alone, mostly on failures unseen by its author; drop edits that cure nothing or break more.

All edits of the step are tried in waves. First, each edit runs on one or two cases of its author. Then edits that cure
nothing alone run in groups. Edits that cure run on unseen failures and near successes, with a placebo control for each
cure and each breakage.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TypeAlias

from skillc.budget.steps import own_cases, right_cases
from skillc.dataclass import dataclass
from skillc.document.edits import Edit, apply_edits
from skillc.document.skill import Document, digest
from skillc.models.concurrency import gather
from skillc.optimize.engine import Engine, SearchState, goal_change
from skillc.optimize.propose.proposals import Proposal, wording
from skillc.optimize.screen.judges import Judges, Panel, Trial, panel_of
from skillc.outcomes import Example

TIMES_A_TEXT_IS_SCREENED = 3


async def screen(
    engine: Engine, state: SearchState, proposals: Sequence[Proposal], batch: Sequence[Example]
) -> tuple[tuple[Proposal, ...], Mapping[str, int]]:
    """Screen each proposal, and return how often each text has been screened in this run.

    A proposal without a failure to try, or with enough trials, stays unscreened.

    Raises:
        PermanentFailure, BudgetReached: from the models.
    """
    if engine.plan.optimize.screen == 0:
        return tuple(proposals), state.counters.screened
    found = _Screen(engine, state.incumbent, panel_of(engine, state, batch), state.counters.screened)
    return await found.screen(proposals), found.counts


class _Screen:
    """The screen of one step."""

    def __init__(self, engine: Engine, incumbent: Document, panel: Panel, counts: Mapping[str, int]) -> None:
        self._engine, self._incumbent, self._panel = engine, incumbent, panel
        self._optimize = engine.plan.optimize
        self._size, self._own = self._optimize.screen, own_cases(self._optimize.screen)
        self.counts = dict(counts)

    async def screen(self, proposals: Sequence[Proposal]) -> tuple[Proposal, ...]:
        """Return the screened proposals."""
        trials = [self._trial(proposal) for proposal in proposals]
        trials = await self._alone(trials, [self._first(trial) for trial in trials])
        joint: list[EditGroup] = []
        if self._optimize.together:
            trials, joint = await self._grouped(trials)
        else:
            own = [() if trial.cured else trial.judges.own[: self._size] for trial in trials]
            trials = await self._alone(trials, own)
        trials = await self._judged(trials)
        chance = frozenset[str]()
        if self._optimize.control:
            trials, chance = await self._controlled(trials)
        shared = await self._needed(joint)
        screened = [shared.get(trial.proposal, trial.proposal) for trial in trials]
        return tuple(replace(p, chance=chance & {name for name, _ in p.moved}) for p in screened)

    def _trial(self, proposal: Proposal) -> Trial:
        alone = apply_edits(self._incumbent, (proposal.edit,)).document
        judges = self._panel.judges(proposal, self._size, right_cases(self._size))
        changed = digest(alone) != digest(self._incumbent)
        tried = changed and bool(judges.own or judges.unseen) and self._admitted([proposal.edit])
        return Trial(proposal, alone, judges if tried else Judges())

    def _first(self, trial: Trial) -> Sequence[Example]:
        """Return the failures of the first wave: own ones, else unseen ones."""
        return trial.judges.own[: self._own] or trial.judges.unseen[: self._size]

    def _rest(self, trial: Trial) -> Sequence[Example]:
        """Return further unseen and own failures, in turns, for an edit that cures."""
        own = [case for case in trial.judges.own if case not in trial.examples]
        unseen = [case for case in trial.judges.unseen if case not in trial.examples]
        more = [case for pair in zip_longest(unseen, own) for case in pair if case is not None]
        return more[: max(1, self._size - len(trial.examples))] if trial.cured else ()

    async def _alone(self, trials: Sequence[Trial], examples: Sequence[Sequence[Example]]) -> list[Trial]:
        await self._run([(trial.text, cases) for trial, cases in zip(trials, examples, strict=True)])
        return [t.with_run(self._engine, self._incumbent, cases) for t, cases in zip(trials, examples, strict=True)]

    async def _judged(self, trials: Sequence[Trial]) -> list[Trial]:
        """Try the edits that cure on unseen failures and near successes."""
        await self._run([(trial.text, (*self._rest(trial), *trial.judges.right)) for trial in trials if trial.cured])
        after = [trial.with_run(self._engine, self._incumbent, self._rest(trial)) for trial in trials]
        return [trial.with_right(self._engine, self._incumbent) if trial.cured else trial for trial in after]

    async def _controlled(self, trials: Sequence[Trial]) -> tuple[list[Trial], frozenset[str]]:
        """Run the placebo controls; return the trials without chance breakages, and the failures cured by chance."""
        made = controls(self._engine, self._incumbent, trials)
        again = [breakages(self._incumbent, trial, trials) for trial in trials]
        cells = [(text, (example,)) for text, example in made]
        await self._run([*cells, *((each.text, each.examples) for each in again if each is not None)])
        left = [
            trial if each is None else discount_chance(self._engine, self._incumbent, trial, each)
            for trial, each in zip(trials, again, strict=True)
        ]
        return left, by_chance(self._engine, self._incumbent, made)

    async def _grouped(self, trials: Sequence[Trial]) -> tuple[list[Trial], list[EditGroup]]:
        """Try edits in groups, then the members of curing groups alone; return the groups that no member explains."""
        tried = groups(self._incumbent, trials, self._panel.failures, self._optimize.minibatch)
        sets = dict.fromkeys(group.members for group in tried if len(group.members) > 1)
        admitted = {members: self._admitted([member.edit for member in members]) for members in sets}
        tried = [group for group in tried if admitted.get(group.members, True)]
        await self._run([(group.text, (group.example,)) for group in tried])
        tried = curing(self._engine, self._incumbent, tried, self._size)
        places = [[group for group in tried if trial.proposal in group.members] for trial in trials]
        after = await self._alone(trials, [[group.example for group in each] for each in places])
        names = {trial.proposal: now.proposal for trial, now in zip(trials, after, strict=True)}
        now = [replace(group, members=tuple(names[member] for member in group.members)) for group in tried]
        return after, only_together(now, after)

    async def _needed(self, joint: Sequence[EditGroup]) -> dict[Proposal, Proposal]:
        """Credit the members of groups with the cure that they need each other for."""
        without = [[group.without(self._incumbent, out) for out in group.members] for group in joint]
        await self._run([(part.text, (part.example,)) for each in without for part in each])
        pairs = zip(joint, without, strict=True)
        left = [needed(self._engine, self._incumbent, group, each) for group, each in pairs]
        found = [group for group in left if group is not None]
        await self._run([(group.text, (group.example,)) for group in found])
        shared: dict[Proposal, Proposal] = {}
        for group in found:
            shared |= credited(self._engine, self._incumbent, group)
        return shared

    async def _run(self, cells: Sequence[tuple[Document, Sequence[Example]]]) -> None:
        # Edits of one script can pass their tests alone and fail them together.
        cells = [cell for cell in cells if (await self._engine.scripts.check(cell[0])).passed]
        self._engine.observer.stage("screen", sum(len(examples) for _, examples in cells))
        rollouts = self._engine.rollouts
        await gather([rollouts.measure(text, examples, stage="screen") for text, examples in cells if examples])

    def _admitted(self, edits: Sequence[Edit]) -> bool:
        """Count a further screening of a text, and return whether it is allowed."""
        key = hashlib.sha256("; ".join(wording(edit) for edit in edits).encode()).hexdigest()[:16]
        if self.counts.get(key, 0) >= TIMES_A_TEXT_IS_SCREENED:
            return False
        self.counts[key] = self.counts.get(key, 0) + 1
        return True


# A placebo control: an example that some edits cured, and the skill with an unrelated edit.
Control: TypeAlias = tuple[Document, Example]


def controls(engine: Engine, incumbent: Document, trials: Sequence[Trial]) -> list[Control]:
    """Choose a placebo control for each failure that an edit cured alone.

    Preferred are edits that share no cure with the curing edits, then edits that cured nothing, then an edit already
    tried on the failure, which costs no call.
    """
    cured = {example.id: example for trial in trials for example in trial.examples if example.id in trial.cured}
    changed = [trial for trial in trials if digest(trial.text) != digest(incumbent)]
    found = []
    for example in cured.values():
        shared = {name for trial in trials if example.id in trial.cured for name in trial.cured}

        def related(
            trial: Trial, shared: Collection[str] = shared, example: Example = example
        ) -> tuple[int, int, bool]:
            return len(set(shared) & set(trial.cured)), len(trial.cured), example not in trial.examples

        other = min((t for t in changed if example.id not in t.proposal.cures), key=related, default=None)
        if other is not None:
            found.append((other.text, example))
    return found


def by_chance(engine: Engine, incumbent: Document, made: Sequence[Control]) -> frozenset[str]:
    """Return the ids of the examples that their controls cured."""
    changes = ((example.id, goal_change(engine, incumbent, text, example)) for text, example in made)
    return frozenset(example for example, change in changes if change is not None and change > 0)


@dataclass(frozen=True, slots=True)
class Recheck:
    """Successes that an edit broke, and the skill with that edit and an unrelated one."""

    examples: tuple[Example, ...]
    text: Document


def breakages(incumbent: Document, trial: Trial, trials: Sequence[Trial]) -> Recheck | None:
    """Return the broken successes to recheck; None if there are none, or no unrelated edit."""
    lost = {name for name, change in trial.proposal.guarded if change < 0}
    others = [each for each in trials if each is not trial and not lost & {name for name, _ in each.proposal.guarded}]
    for other in sorted(others, key=lambda each: len(each.cured)) if lost else ():
        applied = apply_edits(incumbent, [trial.proposal.edit, other.proposal.edit])
        if all(report.applied for report in applied.results):
            return Recheck(tuple(case for case in trial.judges.right if case.id in lost), applied.document)
    return None


def discount_chance(engine: Engine, incumbent: Document, trial: Trial, again: Recheck) -> Trial:
    """Drop breakages that do not recur; unmeasured ones still count."""
    found = {case.id: goal_change(engine, incumbent, again.text, case) for case in again.examples}
    chance = {name for name, change in found.items() if change is not None and change >= 0}
    kept = tuple((name, 0 if name in chance else change) for name, change in trial.proposal.guarded)
    return replace(trial, proposal=replace(trial.proposal, guarded=kept))


@dataclass(frozen=True, slots=True)
class EditGroup:
    """Edits that may cure one failure together, and the incumbent with all of them."""

    members: tuple[Proposal, ...]
    example: Example
    text: Document

    def without(self, incumbent: Document, out: Proposal) -> EditGroup:
        """Return the group without one of its members."""
        return group_of(incumbent, [member for member in self.members if member is not out], self.example)


def groups(incumbent: Document, trials: Sequence[Trial], failures: Sequence[Example], most: int) -> list[EditGroup]:
    """Return a group for each failure that no edit cured, in order.

    An edit is in the groups of its first `most` failures. A failure on which its only edit was tried has no group.
    """
    cured = {example for trial in trials for example in trial.cured}
    free = [trial for trial in trials if trial.examples and not trial.cured]
    found = []
    for example in failures:
        if example.id in cured:
            continue
        may = [trial for trial in free if example in reach(trial)[:most]]
        group = group_of(incumbent, [trial.proposal for trial in may], example)
        tried = [trial for trial in may if example in trial.examples]
        if len(group.members) > 1 or (group.members and not tried):
            found.append(group)
    return found


def reach(trial: Trial) -> list[Example]:
    """Return the failures that an edit may target: its own, and those that other edits cite for it."""
    return [*trial.judges.own, *(case for case in trial.judges.unseen if case.id in trial.proposal.cures)]


def group_of(incumbent: Document, proposals: Sequence[Proposal], example: Example) -> EditGroup:
    """Return the group of the proposals that the skill accepts together."""
    reports = apply_edits(incumbent, [proposal.edit for proposal in proposals]).results
    members = tuple(p for p, report in zip(proposals, reports, strict=True) if report.applied)
    return EditGroup(members, example, apply_edits(incumbent, [p.edit for p in members]).document)


def curing(engine: Engine, incumbent: Document, tried: Sequence[EditGroup], most: int) -> list[EditGroup]:
    """Return the groups that cure, each edit in at most `most` of them."""
    found, counts = [], dict[Proposal, int]()
    for group in tried:
        free = all(counts.get(member, 0) < most for member in group.members)
        if free and (goal_change(engine, incumbent, group.text, group.example) or 0) > 0:
            found.append(group)
            counts |= {member: counts.get(member, 0) + 1 for member in group.members}
    return found


def only_together(tried: Sequence[EditGroup], trials: Sequence[Trial]) -> list[EditGroup]:
    """Return disjoint curing groups of edits that cure nothing alone."""
    known = {name for trial in trials for name in trial.cured}
    taken = {trial.proposal for trial in trials if trial.cured}
    found = []
    for group in tried:
        if group.example.id not in known and len(group.members) > 1 and not taken & set(group.members):
            found.append(group)
            taken |= set(group.members)
    return found


def needed(engine: Engine, incumbent: Document, group: EditGroup, without: Sequence[EditGroup]) -> EditGroup | None:
    """Return the group of the members whose absence reduces the cure or leaves it unknown; None for fewer than two."""
    whole = goal_change(engine, incumbent, group.text, group.example) or 0
    left = [goal_change(engine, incumbent, part.text, part.example) for part in without]
    stay = [p for p, change in zip(group.members, left, strict=True) if change is None or change < whole]
    found = group_of(incumbent, stay, group.example)
    return found if len(found.members) > 1 else None


def credited(engine: Engine, incumbent: Document, group: EditGroup) -> dict[Proposal, Proposal]:
    """Return the members credited with the shared cure; none if the group does not cure."""
    change = goal_change(engine, incumbent, group.text, group.example) or 0
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
