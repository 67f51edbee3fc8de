"""Stage 2: what the optimizer learns from the batch, failures and successes apart, all minibatches at once."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic import JsonValue

from skillc.data.example import Example
from skillc.metrics.cells import MICRO, Scored
from skillc.optimize.briefing import briefing
from skillc.optimize.engine import Engine, Place, State
from skillc.optimize.prompting import TrajectoryView, reflect_messages
from skillc.optimize.proposals import Proposal, read_proposals
from skillc.optimize.replies import ReflectReply
from skillc.optimize.rollouts import Outcome, gather
from skillc.plan.schema import Plan
from skillc.tokens import count_tokens

Measured = tuple[Example, Outcome]


async def reflect(
    engine: Engine, state: State, measured: Sequence[Measured], place: Place, edits: int
) -> list[list[Proposal]]:
    """Proposals of each minibatch, in minibatch order: failures first, then successes.

    Rollouts that were not measured are left out: nobody knows whether they failed.
    """
    failures = [pair for pair in measured if _is_failure(engine.plan, pair[1]) is True]
    successes = [pair for pair in measured if _is_failure(engine.plan, pair[1]) is False]
    size = engine.plan.optimize.minibatch
    jobs = [("failures", part) for part in _parts(failures, size)]
    if engine.plan.optimize.successes and failures:
        jobs += [("successes", part) for part in _parts(successes, size)]
    engine.observer.stage("reflect", len(jobs))
    return await gather([_one(engine, state, kind, part, place, i, edits) for i, (kind, part) in enumerate(jobs)])


async def _one(
    engine: Engine, state: State, kind: str, part: Sequence[Measured], place: Place, ordinal: int, edits: int
) -> list[Proposal]:
    plan = engine.plan
    views = [trajectory_view(plan, f"t{i}", *pair) for i, pair in enumerate(part, 1)]
    messages = reflect_messages(
        kind="failures" if kind == "failures" else "successes",
        trajectories=views,
        edit_budget=edits,
        **briefing(engine, state),
    )
    reply = await engine.optimizer.ask(
        ReflectReply, messages, stage="reflect", sample=(place.epoch, place.step, ordinal)
    )
    if reply is None:
        return []
    ids = {view.tag: example.id for view, (example, _) in zip(views, part, strict=True)}
    return read_proposals(reply.edits, ids)


def trajectory_view(plan: Plan, tag: str, example: Example, outcome: Outcome) -> TrajectoryView:
    """What the program lets the optimizer see of one rollout, trimmed to the declared limit."""
    sees = plan.optimize.sees
    goal = outcome.cells[plan.goal.name]
    score = f"{goal.value / MICRO:g}" if isinstance(goal, Scored) else "not measured"
    limit = plan.optimize.trajectory_limit
    return TrajectoryView(
        tag=tag,
        inputs=shown_inputs(plan, example),
        answer=shown_answer(plan, outcome),
        gold=shown_gold(plan, example),
        feedback=outcome.feedback if "feedback" in sees else None,
        trajectory=trimmed(outcome.reply, limit) if "trajectory" in sees else None,
        score=score,
    )


def shown_inputs(plan: Plan, example: Example) -> dict[str, str]:
    """The example's inputs as texts, each trimmed."""
    limit = plan.optimize.trajectory_limit
    return {name: trimmed(_shown(value), limit) for name, value in example.inputs.items()}


def shown_answer(plan: Plan, outcome: Outcome) -> str:
    """What the target answered, or its reply where no answer could be read from it."""
    if outcome.answer is not None:
        return _shown(outcome.answer)
    return trimmed(outcome.reply, plan.optimize.trajectory_limit)


def shown_gold(plan: Plan, example: Example) -> str | None:
    """The right answer, None where the program withholds it."""
    return _shown(example.gold) if "gold" in plan.optimize.sees else None


def _shown(value: object) -> str:
    """A value as a reader wants it: the bare text of a single answer, JSON of anything larger."""
    if isinstance(value, str):
        return value
    if hasattr(value, "items"):
        entries: dict[str, JsonValue] = dict(value.items())
        if len(entries) == 1:
            return _shown(next(iter(entries.values())))
        return json.dumps(entries, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False)


def trimmed(text: str, limit: int) -> str:
    """A text of at most about `limit` tokens: its beginning and its end, with a note of what is left out."""
    tokens = count_tokens(text)
    if tokens <= limit:
        return text
    half = max(1, len(text) * limit // tokens // 2)
    return f"{text[:half]}\n[{tokens - limit} tokens left out]\n{text[-half:]}"


def _is_failure(plan: Plan, outcome: Outcome) -> bool | None:
    goal = outcome.cells[plan.goal.name]
    if not isinstance(goal, Scored):
        return None
    return goal.value < plan.goal.high * MICRO


def _parts(pairs: Sequence[Measured], size: int) -> list[Sequence[Measured]]:
    return [pairs[i : i + size] for i in range(0, len(pairs), size)]
