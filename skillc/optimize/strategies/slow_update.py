"""At an epoch's end: the same examples under the epoch's first and last skill, and guidance for the slow section."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import JsonValue

from skillc.budget.steps import SCAN
from skillc.document.edits import rewrite
from skillc.document.skill import Document, Section, digest
from skillc.gates.stages import gates_for
from skillc.optimize.engine import Engine, Place, State
from skillc.optimize.gate.decide import Patch, settle
from skillc.optimize.gate.gate import goal_of, shown
from skillc.optimize.propose.cases import briefing, shown_answer, shown_feedback, shown_gold, shown_inputs
from skillc.optimize.propose.prompting import PairView, slow_update_messages
from skillc.optimize.propose.replies import MalformedReply, SlowUpdateReply
from skillc.optimize.schedule import seed_for, shuffled
from skillc.optimize.strategies.mechanism import Epoch, Mechanism, after_decision
from skillc.outcomes import MICRO, Example
from skillc.plan.schema import Plan

Change = Literal["regressed", "still_failing", "improved", "still_right"]

# Regressions first: guidance is there to undo them.
ORDER: tuple[Change, ...] = ("regressed", "still_failing", "improved", "still_right")
CHANGED = ("regressed", "improved")


@dataclass(frozen=True, slots=True)
class Pair:
    """One training example under two skills."""

    example: Example
    change: Change


@dataclass(frozen=True, slots=True)
class Longitudinal:
    """What became of some training examples between an epoch's first and its last skill, regressions first."""

    first: Document
    last: Document
    pairs: tuple[Pair, ...]


async def longitudinal(engine: Engine, first: Document, last: Document, epoch: int) -> Longitudinal:
    """Examples of the training split under the epoch's first and its last skill, regressions first.

    Drawn by the seed, `slow_update_samples` of them: the first ones for `mixed`; for `changed` and `unchanged` those
    that fit among the first `SCAN` times as many, sent in waves until there are enough. What was not measured under
    both skills is left out.
    """
    wanted, policy = engine.plan.optimize.slow_update_samples, engine.plan.optimize.pairs
    order = shuffled(engine.dataset.train, seed_for(engine.plan.data.seed, "slow update", epoch=epoch))
    order = order[: wanted if policy == "mixed" else SCAN * wanted]
    pairs: list[Pair] = []
    for start in range(0, len(order), max(1, wanted)):
        examples = order[start : start + wanted]
        engine.observer.stage("slow update", 2 * len(examples))
        await engine.rollouts.measure(first, examples, stage="slow update")
        await engine.rollouts.measure(last, examples, stage="slow update")
        found = [Pair(example, change) for example in examples if (change := _change(engine, first, last, example))]
        pairs += [pair for pair in found if policy == "mixed" or (pair.change in CHANGED) == (policy == "changed")]
        if len(pairs) >= wanted:
            break
    ordered = sorted(pairs[:wanted], key=lambda pair: ORDER.index(pair.change))
    return Longitudinal(first, last, tuple(ordered))


def _change(engine: Engine, first: Document, last: Document, example: Example) -> Change | None:
    goal = engine.plan.goal
    before = engine.rollouts.score(first, example, goal.name)
    after = engine.rollouts.score(last, example, goal.name)
    if before is None or after is None:
        return None
    if after != before:
        return "improved" if after > before else "regressed"
    return "still_right" if after == goal.high * MICRO else "still_failing"


class SlowUpdate(Mechanism):
    """Rewrite each slow section at an epoch's end, from the same examples before and after the epoch."""

    name = "slow_update"

    @classmethod
    def of(cls, plan: Plan) -> SlowUpdate | None:
        """Return the mechanism if `slow_update` is on."""
        return cls() if plan.optimize.slow_update else None

    async def epoch_end(self, engine: Engine, state: State, epoch: Epoch) -> AsyncIterator[State]:
        """Yield the state after each slow section, if the epoch has changed the skill."""
        accepted = any(record["result"] == "accept" for record in epoch.decisions)
        if not (slow_sections(state) and accepted and digest(epoch.first) != digest(state.incumbent)):
            return
        place = replace(epoch.place, kind="slow update")
        engine.observer.step(place, shown(goal_of(engine, state.incumbent)))
        compared = await longitudinal(engine, epoch.first, state.incumbent, place.epoch)
        for ordinal, section in enumerate(slow_sections(state)):
            state = await slow_update(engine, state, section, compared, place, ordinal)
            yield (state := after_decision(engine, state, epoch.place))


def slow_sections(state: State) -> list[Section]:
    """The sections that a slow update rewrites, one after the other."""
    return [section for section in state.incumbent.sections if section.mode == "slow"]


async def slow_update(
    engine: Engine, state: State, section: Section, compared: Longitudinal, place: Place, ordinal: int
) -> State:
    """Guidance for one slow section, through the gates like any edit; it never counts for patience.

    Without a pair there is nothing to learn from, and nothing is asked.

    Raises:
        BudgetReached: a cap does not admit a call.
    """
    if not compared.pairs:
        return state
    engine.observer.stage("slow update", 1)
    messages = slow_update_messages(
        briefing(engine, state), section=section.name, limit=section.limit, pairs=pair_views(engine, compared)
    )
    sample = (place.epoch, place.step, ordinal)

    def check(reply: SlowUpdateReply) -> None:
        (report,) = rewrite(state.incumbent, section.name, reply.guidance).results
        if not report.applied and not report.repeats:
            raise MalformedReply(report.message)

    reply = await engine.optimizer.ask(SlowUpdateReply, messages, stage="slow update", sample=sample, check=check)
    if reply is None or not reply.guidance.strip() or reply.guidance.strip() == section.text.strip():
        return state
    written = rewrite(state.incumbent, section.name, reply.guidance)
    if not written.results[-1].applied:
        engine.observer.note(f"slow update: {written.results[-1].message}")
        return state
    told: dict[str, JsonValue] = {"guidance": reply.guidance, "section": section.name}
    patch = Patch((), written.document, told, f"guidance of {section.name}: {reply.guidance.strip()}")
    return await settle(
        engine,
        state,
        patch,
        [pair.example for pair in compared.pairs],
        place,
        gates=gates_for(engine.plan.gates, slow=True),
    )


def pair_views(engine: Engine, compared: Longitudinal) -> list[PairView]:
    """The pairs as the optimizer sees them: what changed, and the answers under the first and the last skill."""
    plan, views = engine.plan, []
    limit = plan.optimize.trajectory_limit
    for i, pair in enumerate(compared.pairs, 1):
        before = engine.rollouts.known(compared.first, pair.example)
        after = engine.rollouts.known(compared.last, pair.example)
        if before is None or after is None:
            continue
        views.append(
            PairView(
                tag=f"t{i}",
                kind=pair.change,
                inputs=shown_inputs(pair.example, limit),
                before=shown_answer(plan, before, limit),
                after=shown_answer(plan, after, limit),
                gold=shown_gold(plan, pair.example),
                feedback=shown_feedback(plan, after),
            )
        )
    return views
