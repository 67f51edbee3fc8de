"""One step of the loop: roll out a batch, make candidates, decide them by the gates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from functools import partial
from typing import Literal, TypeAlias

from pydantic import JsonValue

from skillc.budget.steps import scheduled_steps
from skillc.dataclass import dataclass
from skillc.document.edits import apply_edits
from skillc.document.skill import digest
from skillc.optimize.engine import (
    Engine,
    Position,
    RejectedEdit,
    SearchState,
    decision_record,
    failing_examples,
    mean_score,
)
from skillc.optimize.from_sessions import refused as refused_edits
from skillc.optimize.gate.decide import Patch, settle, with_rejected
from skillc.optimize.loop.baseline import first_failure
from skillc.optimize.memory import Fate, fate, shelve, shelve_unchosen, unmerged, unshelve, with_batch
from skillc.optimize.propose.cases import Measured, abandoned_examples, failures_to_replay, remember_failures
from skillc.optimize.propose.draft import draft
from skillc.optimize.propose.proposals import Proposal, wording
from skillc.optimize.propose.reflect import Reflection, aggregate, reflect
from skillc.optimize.rollouts import Outcome, is_failure
from skillc.optimize.schedule import edit_budget, filled
from skillc.optimize.screen.candidates import bundles, choose_budget, edits_patch, writable_sections, write_patches
from skillc.optimize.screen.screen import screen
from skillc.optimize.scripts import PASSED, ScriptVerdict, changes_script
from skillc.outcomes import Example
from skillc.plan.models import rulebook_limits


async def step(engine: Engine, state: SearchState, batch: Sequence[Example], position: Position) -> SearchState:
    """Return the state after one step.

    Raises:
        BudgetReached: a cap does not admit a call; the open step is dropped.
    """
    again = failures_to_replay(engine, state, batch)
    rolled = await roll_out(engine, state, batch, again=again)
    batch = (*batch, *again)
    state = with_batch(engine, state, batch)
    maker = maker_of(engine, state, [pair for part in rolled for pair in part])
    skipped = abandoned_examples(state)
    rolled = [[pair for pair in part if pair[0].id not in skipped] for part in rolled]
    made = await _MAKERS[maker](engine, remember_failures(engine, state, batch), batch, rolled, position)
    if not made.patches:
        after = _empty(engine, made, batch, position)
    else:
        first_wave = partial(_expect_rejection, engine, made.state, len(made.patches))
        after = await settle(engine, made.state, made.patches, batch, position, first_wave=first_wave)
    won = digest(state.incumbent) != digest(after.incumbent)
    lost = 0 if won else state.counters.lost.get(maker, 0) + 1
    return after.with_counters(lost={**after.counters.lost, maker: lost})


async def roll_out(
    engine: Engine, state: SearchState, examples: Sequence[Example], *, again: Sequence[Example] = ()
) -> list[list[Measured]]:
    """Run the `accumulate` batches of a step with the incumbent in sequence, then replay earlier failures.

    With `samples > 1` a failure is rerun until it succeeds or the samples are used up.
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


async def _retried(engine: Engine, state: SearchState, batch: Sequence[Example], outcomes: Sequence[Outcome]) -> None:
    failed = [example for example, outcome in zip(batch, outcomes, strict=True) if is_failure(engine.plan, outcome)]
    for sample in range(1, engine.plan.optimize.samples):
        if not failed:
            return
        engine.observer.stage("rollout", len(failed))
        again = await engine.rollouts.measure(state.incumbent, failed, stage="rollout", sample=sample)
        pairs = zip(failed, again, strict=True)
        failed = [example for example, outcome in pairs if is_failure(engine.plan, outcome) is not False]


def _expect_rejection(engine: Engine, state: SearchState, candidates: int) -> None:
    """Prefetch the next batch for the incumbent if the last step accepted nothing, unless a rejection ends the run."""
    if state.patience.waited and state.patience.after("reject", state.patience.reference).reason is None:
        cells = len(engine.dataset.validation) * engine.plan.optimize.samples
        engine.ahead.send(state.incumbent, beside=candidates * cells)


def _empty(engine: Engine, made: StepCandidates, batch: Sequence[Example], position: Position) -> SearchState:
    """Record a step without candidates. It counts for patience, unless replies are missing: then it is undecided."""
    state, missing, goal = made.state, made.missing, engine.plan.goal
    scores = [engine.rollouts.score(state.incumbent, example, goal.name) for example in batch]
    if all(score is None for score in scores):
        missing = "no example of the batch could be measured"
        who, _, detail = first_failure(engine, state.incumbent, batch)
        engine.observer.note(f"{position}: {missing}: {who} failed{f', first with: {detail}' if detail else ''}")
    result: Literal["undecided", "empty"] = "undecided" if missing else "empty"
    why = missing or (
        "no edit to try" if failing_examples(engine, state.incumbent, batch) else "no failure in the batch"
    )
    if result == "empty" and state.decisions == 0:
        for limit in rulebook_limits(engine.plan):
            engine.observer.note(f"nothing was proposed: {limit}")
    engine.observer.decided({**decision_record(state, position, result=result, reason=why), **made.record})
    mean_goal = mean_score(engine, state.incumbent, goal.name)
    patience = state.patience.after(result, mean_goal if mean_goal is not None else state.patience.reference)
    return replace(state, decisions=state.decisions + 1, patience=patience)


# At or above this share of failures, a skill is far enough from its ceiling for a draft.
FAR = Fraction(1, 4)


@dataclass(frozen=True, slots=True)
class StepCandidates:
    """The candidates that a maker made of a batch.

    Attributes:
        record: values for the history if there are no candidates.
        missing: name of the model whose replies are missing, if that is why there are no candidates.
    """

    state: SearchState
    patches: Sequence[Patch] = ()
    record: Mapping[str, JsonValue] = field(default_factory=dict)
    missing: str = ""


# Parameters: the run, the state, the step's training examples, and its rollouts with the incumbent without abandoned
# examples. Raises `BudgetReached` if a cap does not admit a call.
Make: TypeAlias = Callable[
    [Engine, SearchState, Sequence[Example], Sequence[Sequence[Measured]], Position], Awaitable[StepCandidates]
]
Maker = Literal["draft", "edits"]


async def _make_draft(
    engine: Engine,
    state: SearchState,
    batch: Sequence[Example],
    rolled: Sequence[Sequence[Measured]],
    position: Position,
) -> StepCandidates:
    """Make one candidate: write drafts of whole sections from the cases, and revise the best one."""
    failed = engine.optimizer.failed
    patch, unexplained, scripts = await draft(engine, state, [pair for part in rolled for pair in part], position)
    state = with_rejected(_with_unexplained(state, unexplained), scripts)
    if patch is not None:
        return StepCandidates(state, (patch,))
    missing = "" if engine.optimizer.failed == failed else "the optimizer gave no reply"
    return StepCandidates(state, record={"maker": "draft", "proposed": 0, "screened_out": []}, missing=missing)


async def _make_edits(
    engine: Engine,
    state: SearchState,
    batch: Sequence[Example],
    rolled: Sequence[Sequence[Measured]],
    position: Position,
) -> StepCandidates:
    """Make candidates from edits: reflect, aggregate, screen, select."""
    failed = engine.optimizer.failed
    steps = scheduled_steps(engine.plan, len(engine.dataset.train))
    budget = edit_budget(engine.plan.optimize.edits, position.step - 1, steps, filled(state.incumbent))
    reflections: list[Reflection] = []
    for measured in rolled:
        reflections += await reflect(engine, state, measured, position, budget, first=len(reflections))
    reflections.sort(key=lambda reflection: reflection.kind != "failures")
    state = _with_unexplained(state, [name for reflection in reflections for name in reflection.unexplained])
    merged = await aggregate(engine, state, reflections, position, budget)
    aside, fates = unmerged([p for reflection in reflections for p in reflection.proposals], merged)
    further: list[Proposal] = []
    for mechanism in engine.mechanisms:
        state = mechanism.after_reflections(state, reflections)
        further += mechanism.proposals(state, merged, budget)
    merged, poisoned = _without_poison(engine, state, [*merged, *further])
    state = with_rejected(state, [RejectedEdit(wording(p.edit), why) for p, why in poisoned])
    state, merged, back = unshelve(state, merged)
    merged, held = await _tested(engine, state, merged)
    screened, counts = await screen(engine, state, merged, batch)
    state = state.with_counters(screened=counts)
    dropped = [p for p in screened if p.verdict in ("cures none", "breaks")]
    # An edit from the shelf may have no case in this batch. Then it is dropped but not added to the rejected edits.
    bad = [p for p in dropped if not p.returned or p.broke]
    state = with_rejected(state, [RejectedEdit(wording(p.edit), p.reason) for p in bad])
    budget = await choose_budget(engine, state, screened, budget, position)
    known = {candidate for met, candidate in state.decided if met == digest(state.incumbent)}
    pool = bundles(state.incumbent, screened, budget, engine.plan.optimize.candidates, known)
    state, waits = shelve_unchosen(state, screened, [p for chosen in pool for p in chosen], aside)
    # If nothing else remains, the gates record the rejected edits, so that the step counts as one with candidates.
    last = [] if pool else held[: engine.plan.optimize.candidates]
    state, refused = _refuse(state, held[len(last) :])
    record: dict[str, JsonValue] = {"proposed": len(merged), "screened_out": [p.to_json() for p in dropped]}
    record["fates"] = [*fates, *back, *refused, *waits, *(fate(p, "refused", why) for p, why in poisoned)]
    for mechanism in engine.mechanisms:
        record |= mechanism.step_record(state, reflections)
    if pool:
        return StepCandidates(state, await write_patches(engine, state, pool, position, record))
    if last:
        return StepCandidates(state, [edits_patch(engine, state, [proposal], record) for proposal, _ in last])
    missing = "" if merged or engine.optimizer.failed == failed else "the optimizer gave no reply"
    return StepCandidates(state, record=record, missing=missing)


def _without_poison(
    engine: Engine, state: SearchState, proposals: Sequence[Proposal]
) -> tuple[list[Proposal], list[tuple[Proposal, str]]]:
    """Split off the proposals with a text from a session that must not become a rule, each with the reason."""
    bad = refused_edits(engine, [proposal.edit for proposal in proposals], state.incumbent)
    left = [proposal for proposal in proposals if proposal.edit not in bad]
    return left, [(each, bad[each.edit]) for each in proposals if each.edit in bad]


async def _tested(
    engine: Engine, state: SearchState, proposals: Sequence[Proposal]
) -> tuple[list[Proposal], list[tuple[Proposal, ScriptVerdict]]]:
    """Split off the proposals whose scripts, applied alone, fail their tests, each with the failure."""
    left, held = list[Proposal](), list[tuple[Proposal, ScriptVerdict]]()
    for proposal in proposals:
        alone = apply_edits(state.incumbent, [proposal.edit]).document
        verdict = await engine.scripts.check(alone) if changes_script(state.incumbent, proposal.edit) else PASSED
        if verdict.passed:
            left.append(proposal)
        else:
            held.append((proposal, verdict))
    return left, held


def _refuse(state: SearchState, held: Sequence[tuple[Proposal, ScriptVerdict]]) -> tuple[SearchState, list[Fate]]:
    """Reject the edits of scripts that failed their tests; those whose tests could not be run wait."""
    fates, failed = list[Fate](), list[RejectedEdit]()
    for proposal, verdict in held:
        if verdict.unmeasured:
            state, waits = shelve(state, [proposal], verdict.problem)
            fates += waits
        else:
            failed.append(RejectedEdit(wording(proposal.edit), verdict.problem))
            fates.append(fate(proposal, "refused", verdict.problem))
    return with_rejected(state, failed), fates


_MAKERS: Mapping[Maker, Make] = {"draft": _make_draft, "edits": _make_edits}


def maker_of(engine: Engine, state: SearchState, measured: Sequence[Measured]) -> Maker:
    """Choose between drafts and edits: return the maker with fewer steps since its last accept.

    Ties go to drafts if the open sections contain no rule or at least a quarter of the batch fails, because then there
    is much to write at once; else to edits. With `drafts = 0`, or without a trainable section, it is always edits.
    """
    sections = writable_sections(engine, state.incumbent)
    if not (engine.plan.optimize.drafts and sections):
        return "edits"
    drafts, edits = state.counters.lost.get("draft", 0), state.counters.lost.get("edits", 0)
    if drafts != edits:
        return "draft" if drafts < edits else "edits"
    texts = [each for each in state.incumbent.sections if each.name in sections and not each.is_script]
    if texts and not any(section.rules for section in texts):
        return "draft"
    failed = [is_failure(engine.plan, outcome) for _, outcome in measured]
    return "draft" if failed.count(True) >= FAR * max(1, len(failed)) else "edits"


def _with_unexplained(state: SearchState, names: Sequence[str]) -> SearchState:
    return state.with_counters(unexplained=dict(Counter(state.counters.unexplained) + Counter(names)))
