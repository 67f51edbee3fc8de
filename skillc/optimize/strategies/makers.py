"""Makers of candidates: drafts of whole sections, or screened edits. A step is spent on one of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from pydantic import JsonValue

from skillc.budget.steps import scheduled_steps
from skillc.document.skill import digest
from skillc.optimize.engine import Engine, Place, Rejected, State
from skillc.optimize.gate.decide import Patch, with_rejected
from skillc.optimize.memory import left_out, unshelved, waiting
from skillc.optimize.propose.aggregate import aggregate
from skillc.optimize.propose.contrast import Measured
from skillc.optimize.propose.draft import draft
from skillc.optimize.propose.proposals import Proposal, wording
from skillc.optimize.propose.reflect import Reflection, reflect
from skillc.optimize.rollouts import is_failure
from skillc.optimize.schedule import edit_budget, filled
from skillc.optimize.screen.rewrite import write_patches, written_sections
from skillc.optimize.screen.screen import screen
from skillc.optimize.screen.select import bundles, choose_budget
from skillc.outcomes import Example

# From this share of failures on, a skill is far enough from its ceiling for a draft.
FAR = Fraction(1, 4)


@dataclass(frozen=True, slots=True)
class Made:
    """What a maker made of a batch.

    Attributes:
        state: with what it learned.
        patches: the candidates, or none.
        shown: what the history records if there are none.
        missing: why there are none for want of an answer; empty if there was nothing to try.
    """

    state: State
    patches: Sequence[Patch] = ()
    shown: Mapping[str, JsonValue] = field(default_factory=dict)
    missing: str = ""


Make: TypeAlias = Callable[[Engine, State, Sequence[Example], Sequence[Sequence[Measured]], Place], Awaitable[Made]]


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes the candidates of a step.

    Attributes:
        name: its key in `Counters.lost`.
        make: takes the run, the state, the step's training examples, its batches under the incumbent as far as an
            author may learn from them, and the place in the run. Raises `BudgetReached` if a cap does not admit a call.
    """

    name: str
    make: Make


async def _make_draft(
    engine: Engine,
    state: State,
    batch: Sequence[Example],
    rolled: Sequence[Sequence[Measured]],
    place: Place,
) -> Made:
    """One candidate: write drafts of whole sections from the cases, and revise the best one."""
    failed = engine.optimizer.failed
    drafted = await draft(engine, state, [pair for part in rolled for pair in part], place)
    state = _with_unexplained(state, drafted.unexplained)
    if drafted.patch is not None:
        return Made(state, (drafted.patch,))
    missing = "" if engine.optimizer.failed == failed else "the optimizer gave no reply"
    return Made(state, shown={"maker": DRAFTS.name, "proposed": 0, "screened_out": []}, missing=missing)


async def _make_edits(
    engine: Engine,
    state: State,
    batch: Sequence[Example],
    rolled: Sequence[Sequence[Measured]],
    place: Place,
) -> Made:
    """Candidates of edits: reflect, aggregate, screen, select."""
    failed = engine.optimizer.failed
    steps = scheduled_steps(engine.plan, len(engine.dataset.train))
    budget = edit_budget(engine.plan.optimize.edits, place.step - 1, steps, filled(state.incumbent))
    reflections = await learn(engine, state, rolled, place, budget)
    state = _with_unexplained(state, [name for reflection in reflections for name in reflection.unexplained])
    merged = await aggregate(engine, state, reflections, place, budget)
    aside, told = left_out([p for reflection in reflections for p in reflection.proposals], merged)
    further: list[Proposal] = []
    for mechanism in engine.mechanisms:
        state = mechanism.learned(state, reflections)
        further += mechanism.proposals(state, merged, budget)
    state, merged, back = unshelved(state, [*merged, *further])
    screened = await screen(engine, state, merged, batch)
    state = state.counting(screened=screened.counts)
    dropped = [p for p in screened.proposals if p.verdict in ("cures none", "breaks")]
    # An edit from the shelf may have none of its cases in this batch; then it is dropped, and not forbidden.
    bad = [p for p in dropped if not p.returned or p.broke]
    state = with_rejected(state, [Rejected(wording(p.edit), p.reason) for p in bad])
    budget = await choose_budget(engine, state, screened.proposals, budget, place)
    known = {candidate for met, candidate in state.decided if met == digest(state.incumbent)}
    pool = bundles(state.incumbent, screened.proposals, budget, engine.plan.optimize.candidates, known)
    state, waits = waiting(state, screened.proposals, [p for chosen in pool for p in chosen], aside)
    shown: dict[str, JsonValue] = {"proposed": len(merged), "screened_out": [p.to_json() for p in dropped]}
    shown["fates"] = [*told, *back, *waits]
    for mechanism in engine.mechanisms:
        shown |= mechanism.told(state, reflections)
    if pool:
        return Made(state, await write_patches(engine, state, pool, place, shown))
    missing = "" if merged or engine.optimizer.failed == failed else "the optimizer gave no reply"
    return Made(state, shown=shown, missing=missing)


DRAFTS, EDITS = Maker("draft", _make_draft), Maker("edits", _make_edits)


def maker_of(engine: Engine, state: State, measured: Sequence[Measured]) -> Maker:
    """Return the maker that lost fewer steps since it last won one.

    Of equals it is the drafts if the open sections hold no rule, or if at least a quarter of the batch fails: there is
    much to write at once then. Else it is the edits. It is always the edits with `drafts = 0`, and if no section is
    trainable.

    Args:
        engine: the run.
        state: the loop's.
        measured: the step's batch under the incumbent.
    """
    sections = written_sections(engine, state.incumbent)
    if not (engine.plan.optimize.drafts and sections):
        return EDITS
    drafts, edits = state.counters.lost.get(DRAFTS.name, 0), state.counters.lost.get(EDITS.name, 0)
    if drafts != edits:
        return DRAFTS if drafts < edits else EDITS
    if not any(section.rules for section in state.incumbent.sections if section.name in sections):
        return DRAFTS
    failed = [is_failure(engine.plan, outcome) for _, outcome in measured]
    return DRAFTS if failed.count(True) >= FAR * max(1, len(failed)) else EDITS


async def learn(
    engine: Engine, state: State, rolled: Sequence[Sequence[Measured]], place: Place, edits: int
) -> list[Reflection]:
    """All reflections of a step over its batches, those on failures first; `edits` is the most that one may propose."""
    reflections: list[Reflection] = []
    for measured in rolled:
        reflections += await reflect(engine, state, measured, place, edits, first=len(reflections))
    return sorted(reflections, key=lambda reflection: reflection.kind != "failures")


def _with_unexplained(state: State, names: Sequence[str]) -> State:
    return state.counting(unexplained=dict(Counter(state.counters.unexplained) + Counter(names)))
