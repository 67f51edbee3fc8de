"""What every question to the optimizer starts with: skill, task, sections, its memory, and what failed before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TypeVar

from skillc.budget.call_sizes import EFFECTS_LIMIT, REJECTED_LIMIT
from skillc.document.skill import Document, for_optimizer
from skillc.optimize.engine import Effect, Engine, Rejected, State
from skillc.optimize.prompting import Briefing, SectionView
from skillc.optimize.rule_counts import notes
from skillc.plan.initial import first_decides
from skillc.tokens import count_tokens

T = TypeVar("T")


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
        last=shown_effects(state),
        first_decides=first_decides(engine.plan.skill, engine.plan.task),
    )


def shown_rejected(skill: Document, entries: Sequence[Rejected]) -> list[str]:
    """The rejected-edit buffer as a prompt shows it, oldest first: the newest entries that fit, each whole.

    What was put aside once and is in the skill now is left out.
    """
    present = {f"add to {section.name}: {rule.text}" for section in skill.sections for rule in section.rules}
    lines = [f"{' '.join(entry.text.split())} ({entry.reason})" for entry in entries if entry.text not in present]
    return fitting(lines[::-1], count_tokens, REJECTED_LIMIT)[::-1]


def shown_effects(state: State) -> list[Effect]:
    """What the last candidates did, as a prompt shows it: the newest that fit, each whole."""
    every = [*([state.again] if state.again else []), *state.effects]
    return fitting(every, lambda effect: effect.tokens, EFFECTS_LIMIT)


def fitting(entries: Sequence[T], size: Callable[[T], int], limit: int) -> list[T]:
    """The first entries that fit into so many tokens together."""
    sums = accumulate(map(size, entries))
    return [entry for entry, used in zip(entries, sums, strict=True) if used <= limit]
