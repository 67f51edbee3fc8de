"""Stage 4: each edit is tried alone on the failures that it was written for; what cures none is put aside."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from skillc.data.example import Example
from skillc.document.edits import apply_edits
from skillc.document.skill import Document, digest
from skillc.optimize.engine import Engine, State
from skillc.optimize.proposals import Proposal, wording
from skillc.optimize.rollouts import gather

TIMES_A_TEXT_IS_SCREENED = 3


@dataclass(frozen=True, slots=True)
class Screened:
    """Proposals with what they cured, and how often each text has been screened in this run."""

    proposals: tuple[Proposal, ...]
    counts: Mapping[str, int]


async def screen(engine: Engine, state: State, proposals: Sequence[Proposal], batch: Sequence[Example]) -> Screened:
    """Tries each proposal alone; one that names no failure, or was tried often enough, stays unscreened."""
    if engine.plan.optimize.screen == 0:
        return Screened(tuple(proposals), state.screened)
    by_id = {example.id: example for example in batch}
    counts = dict(state.screened)
    tries: list[tuple[Document, list[Example]]] = []
    for proposal in proposals:
        key = _key(proposal)
        alone = apply_edits(state.incumbent, (proposal.edit,)).document
        cited = [by_id[i] for i in proposal.cures if i in by_id][: engine.plan.optimize.screen]
        if counts.get(key, 0) >= TIMES_A_TEXT_IS_SCREENED or digest(alone) == digest(state.incumbent):
            cited = []
        if cited:
            counts[key] = counts.get(key, 0) + 1
        tries.append((alone, cited))
    engine.observer.stage("screen", sum(len(cited) for _, cited in tries))
    await gather([engine.rollouts.measure(alone, cited, stage="screen") for alone, cited in tries])
    screened = tuple(
        _credited(engine, state, proposal, alone, cited)
        for proposal, (alone, cited) in zip(proposals, tries, strict=True)
    )
    return Screened(screened, counts)


def _credited(engine: Engine, state: State, proposal: Proposal, alone: Document, cited: Sequence[Example]) -> Proposal:
    """An example counts as cured where the text with the edit does better than the very text it was added to.

    An edit that cured none so far may still cure what stayed unmeasured, so it is unscreened.
    """
    goal = engine.plan.goal.name
    cured = measured = 0
    for example in cited:
        before = engine.rollouts.score(state.incumbent, example, goal)
        after = engine.rollouts.score(alone, example, goal)
        if before is not None and after is not None:
            measured += 1
            cured += after > before
    known = measured if cured or measured == len(cited) else 0
    return replace(proposal, cured=cured, screened=known)


def _key(proposal: Proposal) -> str:
    return hashlib.sha256(wording(proposal.edit).encode()).hexdigest()[:16]
