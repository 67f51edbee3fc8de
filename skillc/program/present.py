"""The instructions that the target receives. Needs no dspy."""

from __future__ import annotations

from skillc.errors import SkillcError
from skillc.plan.initial import task_text
from skillc.plan.schema import TaskPlan
from skillc.text import listed

KINDS = ("predict", "chain_of_thought")


def kind_of(task: TaskPlan) -> str:
    """The kind of the rollout.

    Raises:
        SkillcError: this version does not compile it.
    """
    kind = task.rollout.kind
    if kind not in KINDS:
        known = listed(KINDS, "and")
        raise SkillcError(f"`rollout = {kind}` comes with a later version", hint=f"this one compiles {known}")
    return kind


def instructions(task: TaskPlan, text: str | None) -> str:
    """The instructions of the target: the body of SKILL.md as it is, or the task text alone without a skill.

    What all examples share comes first, so that a server's prefix cache hits.
    """
    return task_text(task) if text is None else text.strip()
