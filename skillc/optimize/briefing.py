"""What every question to the optimizer starts with: skill, task, sections, its memory, and what failed before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from skillc.document.render import for_optimizer
from skillc.document.skill import Document
from skillc.optimize.engine import Engine, Rejected, State
from skillc.optimize.prompting import Knowledge, SectionView
from skillc.optimize.rule_counts import notes
from skillc.optimize.sight import trimmed
from skillc.plan.call_sizes import REJECTED_LIMIT
from skillc.plan.schema import TaskPlan
from skillc.plan.task_text import first_decides
from skillc.tokens import count_tokens

# Tokens of one entry of the rejected-edit buffer as a prompt shows it.
_ENTRY = 120


class Briefing(TypedDict):
    """The arguments that all prompts share."""

    skill: str
    task: TaskPlan
    sections: list[SectionView]
    meta: str
    rejected: list[str]
    knowledge: Knowledge
    first_decides: bool


def briefing(engine: Engine, state: State) -> Briefing:
    """The shared part of a prompt: the same for all reflections of a step, so that a prefix cache hits."""
    sections = [
        SectionView(section.name, section.mode, section.limit, section.tokens)
        for section in state.incumbent.sections
        if section.mode != "frozen"
    ]
    return Briefing(
        skill=for_optimizer(state.incumbent, notes(state)),
        task=engine.plan.task,
        sections=sections,
        meta=state.meta,
        rejected=shown_rejected(state.incumbent, state.rejected) if engine.plan.optimize.rejected_buffer else [],
        knowledge=engine.plan.optimize.knowledge,
        first_decides=first_decides(engine.plan.skill, engine.plan.task),
    )


def shown_rejected(skill: Document, entries: Sequence[Rejected]) -> list[str]:
    """The rejected-edit buffer as a prompt shows it, oldest first. It lasts the run; the newest entries are shown.

    What was put aside once and stands in the skill now is left out.
    """
    present = {f"add to {section.name}: {rule.text}" for section in skill.sections for rule in section.rules}
    lines: list[str] = []
    left = REJECTED_LIMIT
    for entry in reversed([entry for entry in entries if entry.text not in present]):
        line = f"{trimmed(' '.join(entry.text.split()), _ENTRY)} ({entry.reason})"
        left -= count_tokens(line)
        if left < 0:
            break
        lines.append(line)
    return lines[::-1]
