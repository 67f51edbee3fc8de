"""`method = one_shot`: the optimizer model rewrites all open sections once, after one batch of rollouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from skillc.document.skill import Document, for_optimizer
from skillc.models.client import Client
from skillc.models.failures import BudgetReached
from skillc.optimize.engine import Engine
from skillc.optimize.methods.bridge import PROPOSE, SEARCH, first_batch, section_texts, with_section_texts
from skillc.optimize.methods.run import MethodResult
from skillc.optimize.propose.cases import section_views, trajectory_views
from skillc.optimize.propose.prompting import (
    Messages,
    TrajectoryView,
    field_views,
    prompt_template,
    rollout_text,
)
from skillc.optimize.propose.replies import OneShotReply
from skillc.plan.initial import first_decides
from skillc.plan.schema import TaskPlan
from skillc.tools.tool import text_lines, with_texts

_PROMPTS = Path(__file__).parent / "prompts"


async def one_shot(engine: Engine, initial: Document, client: Client) -> MethodResult:
    """Rewrite the sections once from the first batch of the run, with each rollout as far as `sees` allows.

    Raises:
        SkillcError: the run cannot continue.
    """
    plan = engine.plan
    batch = first_batch(engine)
    engine.observer.stage("one_shot", len(batch) + 1)
    try:
        outcomes = await engine.rollouts.measure(initial, batch, stage=SEARCH)
        measured = [pair for pair in zip(batch, outcomes, strict=True) if pair[1].measured]
        messages = one_shot_messages(
            task=plan.task,
            document=initial,
            trajectories=trajectory_views(plan, measured, limit=plan.optimize.trajectory_limit),
            best=f"{float(plan.goal.high):g}",
            first_decides=first_decides(plan.skill, plan.task),
            tools=text_lines(with_texts(engine.tools, initial, renames=plan.skill.renames_tools)),
        )
        reply = await engine.optimizer.ask(OneShotReply, messages, stage=PROPOSE, sample=(1, 1, 0))
    except BudgetReached as cap:
        return MethodResult(initial, cap.cap)
    made = MethodResult(initial, rollouts=len(batch), questions=1)
    if reply is None:
        return replace(made, stopped="failed", problem="the optimizer gave no rewrite that can be read")
    stray = sorted(set(reply.sections) - set(section_texts(initial)))
    if stray:
        return replace(made, problem=f"the optimizer wrote `{stray[0]}`, which is no section that may change")
    written = with_section_texts(initial, reply.sections)
    return replace(made, document=written.document, problem=written.problem, tried=1)


def one_shot_messages(
    *,
    task: TaskPlan,
    document: Document,
    trajectories: Sequence[TrajectoryView],
    best: str,
    first_decides: bool = False,
    tools: Sequence[str] = (),
) -> Messages:
    """Ask for new texts of all open sections.

    `best` is the goal's best score, `first_decides` and `tools` as in `Briefing`.
    """
    prompt = prompt_template(_PROMPTS, "one_shot").render(
        inputs=field_views(task.inputs),
        outputs=field_views(task.outputs),
        rollout=rollout_text(task.rollout),
        tools=tools,
        skill=for_optimizer(document),
        sections=section_views(document),
        trajectories=trajectories,
        best=best,
        renames_tools=any(section.renames is not None for section in document.sections),
    )
    system = prompt_template(_PROMPTS, "one_shot_system").render(
        first_decides=first_decides, one_turn=task.rollout.one_turn
    )
    return ({"role": "system", "content": system.strip()}, {"role": "user", "content": prompt.strip()})
