"""Learn from a whole epoch: rewrite the slow sections, and update the memory of the optimizer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from pydantic import JsonValue

from skillc.budget.call_sizes import DECISIONS_LIMIT, MEMORY_LIMIT
from skillc.budget.steps import SCAN, epochs_of
from skillc.dataclass import dataclass
from skillc.document.edits import rewrite
from skillc.document.skill import Document, Section, digest
from skillc.gates.stages import gates_for
from skillc.json_values import objects_in
from skillc.optimize.engine import Engine, Position, SearchState, goal_change
from skillc.optimize.from_sessions import refusal
from skillc.optimize.gate.decide import Patch, settle
from skillc.optimize.gate.gate import goal_of, mean_json
from skillc.optimize.propose.cases import (
    briefing,
    rendered_calls,
    shorten,
    take_fitting,
    visible_answer,
    visible_feedback,
    visible_gold,
    visible_inputs,
)
from skillc.optimize.propose.prompting import DecisionView, PairView, meta_skill_messages, slow_update_messages
from skillc.optimize.propose.replies import MalformedReply, MetaSkillReply, SlowUpdateReply
from skillc.optimize.schedule import seed_for, shuffled
from skillc.optimize.strategies.mechanism import Epoch, Mechanism, notify_mechanisms
from skillc.outcomes import MICRO, Example
from skillc.plan.schema import Plan
from skillc.tokens import count_tokens, trim

Change = Literal["regressed", "still_failing", "improved", "still_right"]

# Regressions first, because guidance should undo them.
ORDER: tuple[Change, ...] = ("regressed", "still_failing", "improved", "still_right")
CHANGED = ("regressed", "improved")


@dataclass(frozen=True, slots=True)
class EpochComparison:
    """Changes of training examples between an epoch's first and its last skill, regressions first."""

    first: Document
    last: Document
    pairs: tuple[tuple[Example, Change], ...]


async def compare_epoch(engine: Engine, first: Document, last: Document, epoch: int) -> EpochComparison:
    """Compare training examples under the epoch's first and its last skill.

    `slow_update_samples` of them are drawn by the seed: the first ones for `mixed`; for `changed` and `unchanged`
    matching ones among the first `SCAN` times as many, measured in waves until there are enough. Examples unmeasured
    under either skill are excluded.
    """
    wanted, policy = engine.plan.optimize.slow_update_samples, engine.plan.optimize.pairs
    order = shuffled(engine.dataset.train, seed_for(engine.plan.data.seed, "slow update", epoch=epoch))
    order = order[: wanted if policy == "mixed" else SCAN * wanted]
    pairs: list[tuple[Example, Change]] = []
    for start in range(0, len(order), max(1, wanted)):
        examples = order[start : start + wanted]
        engine.observer.stage("slow update", 2 * len(examples))
        await engine.rollouts.measure(first, examples, stage="slow update")
        await engine.rollouts.measure(last, examples, stage="slow update")
        found = [(example, change) for example in examples if (change := _change(engine, first, last, example))]
        pairs += [pair for pair in found if policy == "mixed" or (pair[1] in CHANGED) == (policy == "changed")]
        if len(pairs) >= wanted:
            break
    ordered = sorted(pairs[:wanted], key=lambda pair: ORDER.index(pair[1]))
    return EpochComparison(first, last, tuple(ordered))


def _change(engine: Engine, first: Document, last: Document, example: Example) -> Change | None:
    change, goal = goal_change(engine, first, last, example), engine.plan.goal
    if change is None:
        return None
    if change:
        return "improved" if change > 0 else "regressed"
    is_right = engine.rollouts.score(last, example, goal.name) == goal.high * MICRO
    return "still_right" if is_right else "still_failing"


class SlowUpdate(Mechanism):
    """Rewrite each slow section at an epoch's end, from the same examples before and after the epoch."""

    name = "slow_update"

    @classmethod
    def from_plan(cls, plan: Plan) -> SlowUpdate | None:
        """Return the mechanism if `slow_update` is on."""
        return cls() if plan.optimize.slow_update else None

    async def epoch_end(self, engine: Engine, state: SearchState, epoch: Epoch) -> AsyncIterator[SearchState]:
        """Yield the state after each slow section, if the epoch has changed the skill."""
        accepted = any(record["result"] == "accept" for record in epoch.decisions)
        if not (slow_sections(state) and accepted and digest(epoch.first) != digest(state.incumbent)):
            return
        position = replace(epoch.position, kind="slow update")
        engine.observer.step(position, mean_json(goal_of(engine, state.incumbent)))
        compared = await compare_epoch(engine, epoch.first, state.incumbent, position.epoch)
        for ordinal, section in enumerate(slow_sections(state)):
            state = await slow_update(engine, state, section, compared, position, ordinal)
            yield (state := notify_mechanisms(engine, state, epoch.position))


def slow_sections(state: SearchState) -> list[Section]:
    """Return the sections that a slow update rewrites, in order."""
    return [section for section in state.incumbent.sections if section.mode == "slow"]


async def slow_update(
    engine: Engine, state: SearchState, section: Section, compared: EpochComparison, position: Position, ordinal: int
) -> SearchState:
    """Rewrite one slow section under the gates, if there are examples to compare. It never counts for patience.

    Raises:
        BudgetReached: a cap does not admit a call.
    """
    if not compared.pairs:
        return state
    engine.observer.stage("slow update", 1)
    messages = slow_update_messages(
        briefing(engine, state), section=section.name, limit=section.limit, pairs=comparison_views(engine, compared)
    )
    sample = (position.epoch, position.step, ordinal)

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
    record: dict[str, JsonValue] = {"guidance": reply.guidance, "section": section.name}
    batch = [example for example, _ in compared.pairs]
    text, read = f"guidance of {section.name}: {reply.guidance.strip()}", frozenset(each.id for each in batch)
    patch = Patch((), written.document, record, text, read=read)
    return await settle(engine, state, [patch], batch, position, gates=gates_for(engine.plan.gates, slow=True))


def comparison_views(engine: Engine, compared: EpochComparison) -> list[PairView]:
    """Return the compared examples for a prompt."""
    plan, views = engine.plan, []
    limit = plan.optimize.trajectory_limit
    for i, (example, change) in enumerate(compared.pairs, 1):
        before = engine.rollouts.known(compared.first, example)
        after = engine.rollouts.known(compared.last, example)
        if before is None or after is None:
            continue
        views.append(
            PairView(
                tag=f"t{i}",
                kind=change,
                inputs=visible_inputs(example, limit),
                before=visible_answer(plan, before, limit),
                after=visible_answer(plan, after, limit),
                gold=visible_gold(plan, example),
                feedback=visible_feedback(plan, after),
                calls=rendered_calls(plan, after, limit),
            )
        )
    return views


# Characters of an edit: its first words show which kind it is.
_EDIT = 160


class MetaSkill(Mechanism):
    """Let the optimizer keep a memory of what helped, across epochs."""

    name = "meta_skill"

    @classmethod
    def from_plan(cls, plan: Plan) -> MetaSkill | None:
        """Return the mechanism if `meta_skill` is on."""
        return cls() if plan.optimize.meta_skill else None

    async def epoch_end(self, engine: Engine, state: SearchState, epoch: Epoch) -> AsyncIterator[SearchState]:
        """Yield the state with a new memory, except after the last epoch."""
        if epoch.decisions and epoch.position.epoch < epochs_of(engine.plan):
            yield await meta_skill(engine, state, epoch.decisions, epoch.position)


async def meta_skill(
    engine: Engine, state: SearchState, decisions: Sequence[Mapping[str, JsonValue]], position: Position
) -> SearchState:
    """Update the memory of the optimizer, if the epoch had proposals."""
    views = [view(record, engine.plan.goal.name) for record in decisions]
    if not any(each.edits for each in views):
        return state
    engine.observer.stage("meta skill", 1)
    newest = take_fitting(views[::-1], _tokens, DECISIONS_LIMIT)[::-1]
    messages = meta_skill_messages(
        briefing(engine, state), decisions=newest, in_vain=not any(each.accepted for each in views)
    )
    reply = await engine.optimizer.ask(
        MetaSkillReply, messages, stage="meta skill", sample=(position.epoch, position.step)
    )
    if reply is None:
        return state
    if why := refusal(engine, reply.memory):
        engine.observer.note(f"the memory of the optimizer was not changed: {why.replace('the rule', 'it')}")
        return state
    return state.with_memory(meta=trim(reply.memory.strip(), MEMORY_LIMIT))


def view(record: Mapping[str, JsonValue], goal: str) -> DecisionView:
    """Return a decision for a prompt: each proposed edit with its fate, or the draft; and the goal before and after."""
    number = record["decision"]
    return DecisionView(
        step=number if isinstance(number, int) else 0,
        accepted=record["result"] == "accept",
        edits=_edits(record),
        outcome=f"{record.get('reason', record['result'])}{_scores(record, goal)}",
    )


def _scores(record: Mapping[str, JsonValue], goal: str) -> str:
    """Describe the goal before and after, if both were measured on the same validation examples."""
    found, known = record.get("goal"), record.get("evaluated")
    if not (isinstance(found, Mapping) and known):
        return ""
    before, after = found.get("incumbent"), found.get("candidate")
    if not (isinstance(before, str) and isinstance(after, str)):
        return ""
    return f"; {goal} was {float(before):.3g}, is {float(after):.3g} with it, on {known} validation examples"


def _edits(record: Mapping[str, JsonValue]) -> list[tuple[str, str]]:
    drafts = [each for each in objects_in(record.get("drafts")) if each.get("chosen")]
    if drafts:
        return [(_draft(each, revised=bool(record.get("revised"))), "") for each in drafts]
    if record.get("guidance"):
        return [(shorten(f"rewrite of {record.get('section')}: {record['guidance']}", _EDIT), "")]
    fates = objects_in(record.get("fates"))
    if fates:
        return [
            (shorten(str(each["edit"]), _EDIT), ": ".join(str(each[key]) for key in ("fate", "why") if key in each))
            for each in fates
        ]
    rows = objects_in(record.get("suggestions") or record.get("edits"))
    return [(shorten(f"{each.get('op')}: {each.get('text') or each.get('rule')}", _EDIT), "") for each in rows]


def _draft(trial: Mapping[str, JsonValue], *, revised: bool) -> str:
    """Describe a draft with its trial on training cases, if it had one."""
    counts = [("cured", "of_failures", "failures"), ("broke", "of_rights", "right cases")]
    parts = [f"{verb} {trial[verb]} of {trial[of]} {what}" for verb, of, what in counts if trial[of]]
    text = f"a draft of {trial['tokens']} tokens"
    if not parts:
        return text
    return f"{text}; tried on cases that its author had not seen, it {' and '.join(parts)}{_BEFORE * revised}"


_BEFORE = ", and was then revised"


def _tokens(decision: DecisionView) -> int:
    return count_tokens(" ".join([decision.outcome, *(text for edit in decision.edits for text in edit)]))
