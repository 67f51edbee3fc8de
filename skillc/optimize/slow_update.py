"""At an epoch's end: the same examples under the epoch's first and last skill, and guidance for the slow section."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from skillc.data.example import Example
from skillc.document.edits import rewrite
from skillc.document.skill import Document, Section
from skillc.metrics.cells import MICRO
from skillc.optimize.briefing import briefing
from skillc.optimize.decide import Patch, settle, standing
from skillc.optimize.engine import Engine, Place, State
from skillc.optimize.prompting import PairView, slow_update_messages
from skillc.optimize.replies import MalformedReply, SlowUpdateReply
from skillc.optimize.seeds import seed_for, shuffled
from skillc.optimize.sight import shown_answer, shown_feedback, shown_gold, shown_inputs

Change = Literal["regressed", "still_failing", "improved", "still_right"]

# Regressions first: guidance is there to undo them.
ORDER: tuple[Change, ...] = ("regressed", "still_failing", "improved", "still_right")


@dataclass(frozen=True, slots=True)
class Pair:
    """One training example under two skills."""

    example: Example
    change: Change


async def longitudinal(engine: Engine, state: State, first: Document, epoch: int) -> list[Pair]:
    """Examples of the training split under the epoch's first and its last skill, regressions first.

    The examples are the same number for each epoch, drawn by the seed; those not measured under both are left out.
    """
    order = shuffled(engine.dataset.train, seed_for(engine.plan.data.seed, "slow update", epoch=epoch))
    examples = order[: engine.plan.optimize.slow_update_samples]
    engine.observer.stage("slow update", 2 * len(examples))
    await engine.rollouts.measure(first, examples, stage="slow update")
    await engine.rollouts.measure(state.incumbent, examples, stage="slow update")
    pairs = [Pair(example, change) for example in examples if (change := _change(engine, first, state, example))]
    return sorted(pairs, key=lambda pair: ORDER.index(pair.change))


def _change(engine: Engine, first: Document, state: State, example: Example) -> Change | None:
    goal = engine.plan.goal
    before = engine.rollouts.score(first, example, goal.name)
    after = engine.rollouts.score(state.incumbent, example, goal.name)
    if before is None or after is None:
        return None
    if after != before:
        return "improved" if after > before else "regressed"
    return "still_right" if after == goal.high * MICRO else "still_failing"


async def slow_update(engine: Engine, state: State, first: Document, pairs: Sequence[Pair], place: Place) -> State:
    """Guidance for each slow section, through the gates like any edit; it never counts for patience."""
    for ordinal, section in enumerate(s for s in state.incumbent.sections if s.mode == "slow"):
        with standing(engine, state):
            state = await _rewrite(engine, state, section, first, pairs, place, ordinal)
    return state


async def _rewrite(
    engine: Engine,
    state: State,
    section: Section,
    first: Document,
    pairs: Sequence[Pair],
    place: Place,
    ordinal: int,
) -> State:
    engine.observer.stage("slow update", 1)
    messages = slow_update_messages(
        section=section.name,
        limit=section.limit,
        pairs=pair_views(engine, state, first, pairs),
        **briefing(engine, state),
    )
    sample = (place.epoch, place.step, ordinal)

    def check(reply: SlowUpdateReply) -> None:
        (report,) = rewrite(state.incumbent, section.name, reply.guidance).reports
        if not report.applied and not report.repeats:
            raise MalformedReply(report.message)

    reply = await engine.optimizer.ask(SlowUpdateReply, messages, stage="slow update", sample=sample, check=check)
    if reply is None or not reply.guidance.strip() or reply.guidance.strip() == section.text.strip():
        return state
    written = rewrite(state.incumbent, section.name, reply.guidance)
    if not written.reports[-1].applied:
        engine.observer.note(f"slow update: {written.reports[-1].message}")
        return state
    shown: dict[str, JsonValue] = {"guidance": reply.guidance, "section": section.name}
    patch = Patch((), written.document, shown, f"guidance of {section.name}: {reply.guidance.strip()}")
    return await settle(engine, state, patch, [pair.example for pair in pairs], place, slow=True)


def pair_views(engine: Engine, state: State, first: Document, pairs: Sequence[Pair]) -> list[PairView]:
    """The pairs as the optimizer sees them: what changed, and the answers under the first and the last skill."""
    plan, views = engine.plan, []
    limit = plan.optimize.trajectory_limit
    for i, pair in enumerate(pairs, 1):
        before = engine.rollouts.known(first, pair.example)
        after = engine.rollouts.known(state.incumbent, pair.example)
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
