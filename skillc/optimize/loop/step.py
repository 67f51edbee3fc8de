"""One step of the loop: rollout, propose, aggregate, screen, select, edit, gate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Literal

from pydantic import JsonValue

from skillc.budget.steps import scheduled_steps
from skillc.data.examples import Example
from skillc.document.skill import digest
from skillc.optimize.engine import Engine, Place, Rejected, State, entry, failing, mean
from skillc.optimize.gate.decide import settle_pool, with_rejected
from skillc.optimize.memory import left_out, unshelved, waiting, with_batch
from skillc.optimize.propose.aggregate import aggregate
from skillc.optimize.propose.contrast import Measured, remembering, replayed, retired
from skillc.optimize.propose.draft import draft
from skillc.optimize.propose.proposals import wording
from skillc.optimize.propose.reflect import Reflection, reflect
from skillc.optimize.rollouts import Outcome, gather, is_failure
from skillc.optimize.schedule import edit_budget, filled
from skillc.optimize.screen.rewrite import write_patch, written_sections
from skillc.optimize.screen.screen import screen
from skillc.optimize.screen.select import bundles, choose_budget
from skillc.optimize.strategies.rule_counts import counted, harmful, to_json
from skillc.plan.models import rulebook_limits


async def step(engine: Engine, state: State, batch: Sequence[Example], place: Place) -> State:
    """The state after one step; a decision for each of its candidates is told to the observer.

    Raises:
        BudgetReached: a cap does not admit a call; the open step is dropped.
    """
    again = replayed(engine, state, batch)
    rolled = await roll_out(engine, state, batch, again=again)
    batch = (*batch, *again)
    state = with_batch(engine, state, batch)
    maker = maker_of(engine, state, [pair for part in rolled for pair in part])
    left_out = retired(state)
    rolled = [[pair for pair in part if pair[0].id not in left_out] for part in rolled]
    make = _by_drafts if maker == "draft" else _by_edits
    return with_maker(state, await make(engine, remembering(engine, state, batch), batch, rolled, place), maker)


async def _by_drafts(
    engine: Engine, state: State, batch: Sequence[Example], rolled: Sequence[Sequence[Measured]], place: Place
) -> State:
    """The state after a step whose candidate is a whole-section draft."""
    failed = engine.optimizer.failed
    drafted = await draft(engine, state, [pair for part in rolled for pair in part], place)
    state = _with_unexplained(state, drafted.unexplained)
    if drafted.patch is None:
        missing = "" if engine.optimizer.failed == failed else "the optimizer gave no reply"
        shown: dict[str, JsonValue] = {"maker": "draft", "proposed": 0, "screened_out": []}
        return _empty(engine, state, batch, place, shown, missing=missing)
    first_wave = partial(_expect_a_reject, engine, state, 1)
    return await settle_pool(engine, state, (drafted.patch,), batch, place, first_wave=first_wave)


async def _by_edits(
    engine: Engine, state: State, batch: Sequence[Example], rolled: Sequence[Sequence[Measured]], place: Place
) -> State:
    """The state after a step whose candidates are made of screened edits."""
    failed = engine.optimizer.failed
    steps = scheduled_steps(engine.plan, len(engine.dataset.train))
    budget = edit_budget(engine.plan.optimize.edits, place.step - 1, steps, filled(state.incumbent))
    reflections = await learn(engine, state, rolled, place, budget)
    state = _with_unexplained(state, [name for reflection in reflections for name in reflection.unexplained])
    merged = await aggregate(engine, state, reflections, place, budget)
    state = counted(state, [mark for reflection in reflections for mark in reflection.marks])
    aside, told = left_out([p for reflection in reflections for p in reflection.proposals], merged)
    state, merged, back = unshelved(state, [*merged, *harmful(state, merged, budget)])
    screened = await screen(engine, state, merged, batch)
    state = replace(state, screened=screened.counts)
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
    shown |= _learnt(engine, state, reflections)
    if not pool:
        missing = "" if merged or engine.optimizer.failed == failed else "the optimizer gave no reply"
        return _empty(engine, state, batch, place, shown, missing=missing)
    if engine.plan.optimize.update != "edits":
        engine.observer.stage("rewrite", len(pool))
    patches = await gather(
        [write_patch(engine, state, chosen, place, shown, ordinal=i) for i, chosen in enumerate(pool)]
    )
    return await settle_pool(
        engine, state, patches, batch, place, first_wave=partial(_expect_a_reject, engine, state, len(patches))
    )


def _with_unexplained(state: State, names: Sequence[str]) -> State:
    return replace(state, unexplained=dict(Counter(state.unexplained) + Counter(names)))


def _expect_a_reject(engine: Engine, state: State, candidates: int) -> None:
    """Where the last step had no accept, the next batch is sent for the incumbent, unless a reject ends the run."""
    if state.patience.waited and state.patience.after("reject", state.patience.reference).reason is None:
        cells = len(engine.dataset.validation) * engine.plan.optimize.samples
        engine.ahead.send(state.incumbent, beside=candidates * cells)


def _learnt(engine: Engine, state: State, reflections: Sequence[Reflection]) -> dict[str, JsonValue]:
    """What the history tells of the mechanisms that are on."""
    optimize = engine.plan.optimize
    told: dict[str, JsonValue] = {}
    if optimize.lapses:
        told["lapses"] = sum(reflection.lapses for reflection in reflections)
    if optimize.rule_counts:
        told["rule_counts"] = to_json(state)
    return told


def _empty(
    engine: Engine,
    state: State,
    batch: Sequence[Example],
    place: Place,
    shown: Mapping[str, JsonValue],
    *,
    missing: str = "",
) -> State:
    """A step that proposed nothing fit to be tried counts for patience and is told like any other.

    Where that is for want of answers, of the target or of the optimizer, the step is undecided.
    """
    goal = engine.plan.goal
    scores = [engine.rollouts.score(state.incumbent, example, goal.name) for example in batch]
    if all(score is None for score in scores):
        engine.observer.note(f"{place}: {_why_unmeasured(engine, state, batch)}")
        missing = "no example of the batch could be measured"
    result: Literal["undecided", "empty"] = "undecided" if missing else "empty"
    why = missing or ("no edit to try" if failing(engine, state.incumbent, batch) else "no failure in the batch")
    if result == "empty" and state.decisions == 0:
        for limit in rulebook_limits(engine.plan):
            engine.observer.note(f"nothing was proposed: {limit}")
    engine.observer.decided({**entry(state, place, result=result, reason=why), **shown})
    mean_goal = mean(engine, state.incumbent, goal.name)
    patience = state.patience.after(result, mean_goal if mean_goal is not None else state.patience.reference)
    return replace(state, decisions=state.decisions + 1, patience=patience)


def _why_unmeasured(engine: Engine, state: State, batch: Sequence[Example]) -> str:
    """Whose fault it is that a batch could not be measured, with the first error."""
    outcomes = [engine.rollouts.known(state.incumbent, example) for example in batch]
    first = next((outcome for outcome in outcomes if outcome is not None and not outcome.measured), None)
    kind, _, detail = first.feedback.partition(": ") if first is not None else ("", "", "")
    target = engine.plan.models["target"]
    who = "a judge" if kind == "judge" else f"model `target` (`{target.model}`)"
    return f"no example of the batch could be measured: {who} failed{f', the first time: {detail}' if detail else ''}"


async def roll_out(
    engine: Engine, state: State, examples: Sequence[Example], *, again: Sequence[Example] = ()
) -> list[list[Measured]]:
    """The `accumulate` batches of a step under the incumbent, one after the other.

    With `samples > 1` a failure is tried again until it comes out right, or the samples are used up.

    Args:
        engine: the surroundings.
        state: its incumbent is what all batches are run with.
        examples: of the whole step; the last batch may be smaller.
        again: earlier failures, a batch of their own.
    """
    size = engine.plan.optimize.batch
    parts = [examples[start : start + size] for start in range(0, len(examples), size)]
    rolled: list[list[Measured]] = []
    for batch in [*parts, again] if again else parts:
        engine.observer.stage("rollout", len(batch))
        outcomes = await engine.rollouts.measure(state.incumbent, batch, stage="rollout")
        await _retried(engine, state, batch, outcomes)
        rolled.append(list(zip(batch, outcomes, strict=True)))
    return rolled


async def _retried(engine: Engine, state: State, batch: Sequence[Example], outcomes: Sequence[Outcome]) -> None:
    failed = [example for example, outcome in zip(batch, outcomes, strict=True) if is_failure(engine.plan, outcome)]
    for sample in range(1, engine.plan.optimize.samples):
        if not failed:
            return
        engine.observer.stage("rollout", len(failed))
        again = await engine.rollouts.measure(state.incumbent, failed, stage="rollout", sample=sample)
        pairs = zip(failed, again, strict=True)
        failed = [example for example, outcome in pairs if is_failure(engine.plan, outcome) is not False]


async def learn(
    engine: Engine, state: State, rolled: Sequence[Sequence[Measured]], place: Place, edits: int
) -> list[Reflection]:
    """All reflections of a step over its batches, those on failures first; `edits` is the most that one may propose."""
    reflections: list[Reflection] = []
    for measured in rolled:
        reflections += await reflect(engine, state, measured, place, edits, first=len(reflections))
    return sorted(reflections, key=lambda reflection: reflection.kind != "failures")


Maker = Literal["draft", "edits"]

# From this share of failures on, a skill is far enough from its ceiling for a draft.
FAR = Fraction(1, 4)


def maker_of(engine: Engine, state: State, measured: Sequence[Measured]) -> Maker:
    """The maker that lost fewer steps since it last won one.

    Of equals it is `draft` where the open sections hold no rule, or where at least a quarter of the batch fails; there
    is much to write at once then. Else it is `edits`. It is always `edits` with `drafts = 0`, and where no section is
    trainable.

    Args:
        engine: the surroundings.
        state: the loop's.
        measured: the step's batch under the incumbent.
    """
    sections = written_sections(engine, state.incumbent)
    if not (engine.plan.optimize.drafts and sections):
        return "edits"
    drafts, edits = state.lost.get("draft", 0), state.lost.get("edits", 0)
    if drafts != edits:
        return "draft" if drafts < edits else "edits"
    if not any(section.rules for section in state.incumbent.sections if section.name in sections):
        return "draft"
    failed = [is_failure(engine.plan, outcome) for _, outcome in measured]
    return "draft" if failed.count(True) >= FAR * max(1, len(failed)) else "edits"


def with_maker(before: State, after: State, maker: Maker) -> State:
    """The state with what a step was for its maker: won where it changed the incumbent, else lost."""
    won = digest(before.incumbent) != digest(after.incumbent)
    return replace(after, lost={**after.lost, maker: 0 if won else before.lost.get(maker, 0) + 1})
