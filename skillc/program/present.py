"""How the target is told of its task and of its skill. Needs no dspy."""

from __future__ import annotations

from skillc.errors import SkillcError
from skillc.plan.schema import SkillPlan, TaskPlan
from skillc.program.names import field_names

KINDS = ("predict", "chain_of_thought")

_PRESENT = {
    "rules": "Follow the rules of this skill; they come before your own judgement.",
    "advice": "This skill is advice: use it where it helps.",
}


def kind_of(task: TaskPlan) -> str:
    """The kind of the rollout.

    Raises:
        SkillcError: this version does not compile it.
    """
    kind = task.rollout.kind
    if kind not in KINDS:
        known = " and ".join(f"`{known}`" for known in KINDS)
        raise SkillcError(f"`rollout = {kind}` comes with a later version", hint=f"this one compiles {known}")
    return kind


def told(task: TaskPlan, skill: SkillPlan) -> tuple[str, ...]:
    """The lines before the skill's own text."""
    return (_task_line(task), _PRESENT[skill.present])


def instructions(task: TaskPlan, skill: SkillPlan, text: str | None) -> str:
    """What the target is told: the task, how to take the skill, and the skill as it reads it; None for no skill.

    What all examples share stands first, so that a server's prefix cache holds it.
    """
    if text is None:
        return _task_line(task)
    return "\n".join((*told(task, skill), "", text.strip()))


def _task_line(task: TaskPlan) -> str:
    names = field_names(task)
    inputs = ", ".join(f"`{names[field.name]}`" for field in task.inputs)
    outputs = ", ".join(f"`{names[field.name]}`" for field in task.outputs)
    return f"Given the fields {inputs}, produce the fields {outputs}."
