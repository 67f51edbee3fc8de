"""What every question to the optimizer starts with: skill, task, sections, its memory, and what failed before."""

from __future__ import annotations

from typing import TypedDict

from skillc.document.render import for_optimizer
from skillc.optimize.engine import Engine, State
from skillc.optimize.prompting import SectionView
from skillc.plan.schema import TaskPlan


class Briefing(TypedDict):
    """The arguments that all prompts share."""

    skill: str
    task: TaskPlan
    sections: list[SectionView]
    meta: str
    rejected: list[str]


def briefing(engine: Engine, state: State) -> Briefing:
    """The shared part of a prompt: the same for all questions between two decisions, so that a prefix cache hits."""
    sections = [
        SectionView(section.name, section.mode, section.limit, section.tokens)
        for section in state.incumbent.sections
        if section.mode != "frozen"
    ]
    shown = engine.plan.optimize.rejected_buffer
    return Briefing(
        skill=for_optimizer(state.incumbent),
        task=engine.plan.task,
        sections=sections,
        meta=state.meta,
        rejected=[f"{entry.text} ({entry.reason})" for entry in state.rejected] if shown else [],
    )
