"""Stage 4: each edit is tried alone on the failures that it was written for; what cures none is put aside.

Waves over all edits of the step at once: each edit alone; then a control for each cure, and groups of edits that cured
nothing alone; then the groups taken apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from skillc.data.example import Example
from skillc.document.edits import Edit, apply_edits
from skillc.document.skill import Document, digest
from skillc.optimize.control import by_chance, controls
from skillc.optimize.engine import Engine, State
from skillc.optimize.failures import failing
from skillc.optimize.proposals import Proposal, wording
from skillc.optimize.rollouts import gather
from skillc.optimize.together import Group, credited, groups, needed, parts
from skillc.optimize.trials import Trial, all_moved

TIMES_A_TEXT_IS_SCREENED = 3


@dataclass(frozen=True, slots=True)
class Screened:
    """Proposals with what they cured, and how often each text has been screened in this run."""

    proposals: tuple[Proposal, ...]
    counts: Mapping[str, int]


async def screen(engine: Engine, state: State, proposals: Sequence[Proposal], batch: Sequence[Example]) -> Screened:
    """Tries each proposal; one that names no failure, or was tried often enough, stays unscreened.

    Raises:
        PermanentFailure, BudgetReached: from the models.
    """
    optimize, incumbent = engine.plan.optimize, state.incumbent
    if optimize.screen == 0:
        return Screened(tuple(proposals), state.screened)
    failures = failing(engine, incumbent, batch)
    counts = dict(state.screened)
    trials = [_trial(incumbent, proposal, failures, optimize.screen, counts) for proposal in proposals]
    await _run(engine, [(trial.text, trial.examples) for trial in trials])
    trials = [_seen(engine, incumbent, trial) for trial in trials]
    made = controls(incumbent, trials) if optimize.control else []
    tried = groups(incumbent, trials, failures) if optimize.together else []
    tried = [group for group in tried if _admitted(counts, [member.edit for member in group.members])]
    await _run(engine, [*((one.text, (one.example,)) for one in made), *((one.text, (one.example,)) for one in tried)])
    chance = by_chance(engine, incumbent, made)
    joined = await _taken_apart(engine, incumbent, tried)
    screened = [joined.get(trial.proposal, trial.proposal) for trial in trials]
    return Screened(tuple(replace(p, chance=chance & set(p.cures)) for p in screened), counts)


def _trial(
    incumbent: Document, proposal: Proposal, failures: Sequence[Example], size: int, counts: dict[str, int]
) -> Trial:
    alone = apply_edits(incumbent, (proposal.edit,)).document
    cited = [example for example in failures if example.id in proposal.cures][:size]
    if not cited or digest(alone) == digest(incumbent) or not _admitted(counts, [proposal.edit]):
        cited = []
    return Trial(proposal, alone, tuple(cited))


def _admitted(counts: dict[str, int], edits: Sequence[Edit]) -> bool:
    """Whether a text may be screened once more; if so, it is counted."""
    key = hashlib.sha256("; ".join(wording(edit) for edit in edits).encode()).hexdigest()[:16]
    if counts.get(key, 0) >= TIMES_A_TEXT_IS_SCREENED:
        return False
    counts[key] = counts.get(key, 0) + 1
    return True


async def _run(engine: Engine, cells: Sequence[tuple[Document, Sequence[Example]]]) -> None:
    engine.observer.stage("screen", sum(len(examples) for _, examples in cells))
    await gather([engine.rollouts.measure(text, examples, stage="screen") for text, examples in cells])


def _seen(engine: Engine, incumbent: Document, trial: Trial) -> Trial:
    """The trial with what it moved. One that cured none so far may cure what stayed unmeasured: it is unscreened."""
    found = all_moved(engine, incumbent, trial.text, trial.examples)
    if len(found) < len(trial.examples) and not any(change > 0 for _, change in found):
        found = ()
    return replace(trial, moved=found, proposal=replace(trial.proposal, moved=found))


async def _taken_apart(engine: Engine, incumbent: Document, tried: Sequence[Group]) -> dict[Proposal, Proposal]:
    """Members of the groups that cured, with the cure that they need each other for."""
    without = [parts(engine, incumbent, group) for group in tried]
    await _run(engine, [(part.text, (part.example,)) for each in without for part in each])
    pairs = [(group, each) for group, each in zip(tried, without, strict=True) if each]
    found = [joint for group, each in pairs if (joint := needed(engine, incumbent, group, each)) is not None]
    await _run(engine, [(group.text, (group.example,)) for group in found])
    shared: dict[Proposal, Proposal] = {}
    for group in found:
        shared |= credited(engine, incumbent, group)
    return shared
