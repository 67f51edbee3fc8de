"""The document that a run starts from, as the program declares it."""

from __future__ import annotations

from dataclasses import replace

from skillc.document.skill import Document, document_of
from skillc.errors import SkillcError
from skillc.plan.schema import Plan, SectionPlan
from skillc.plan.task_text import lead_text, task_text, without_task_text

REMINDERS = "reminders"
REMINDERS_LIMIT = 200


def initial_document(plan: Plan) -> Document:
    """The initial skill; the text of a trainable section becomes rules.

    Raises:
        SkillcError: as `sections_of`.
    """
    skill, task = plan.skill, plan.task
    told = skill.present is not None
    parts = ((s.name, s.mode, without_task_text(s.text, task) if told else s.text, s.limit) for s in sections_of(plan))
    text = task_text(task) if told else ""
    document = document_of(skill.artifact, skill.about, parts, task=text, lead=lead_text(skill, task))
    titles = {section.name: section.title for section in skill.sections}
    sections = tuple(replace(section, title=titles.get(section.name)) for section in document.sections)
    return replace(document, sections=sections, title=skill.title, frontmatter=skill.frontmatter)


def sections_of(plan: Plan) -> tuple[SectionPlan, ...]:
    """The declared sections; with `lapses = on` also `reminders`, the last, where the program declares none itself.

    Raises:
        SkillcError: the program has a section `reminders` that is not trainable, and `lapses = on`.
    """
    declared = plan.skill.sections
    own = next((section for section in declared if section.name == REMINDERS), None)
    if not plan.optimize.lapses:
        return declared
    if own is None:
        return (*declared, SectionPlan(name=REMINDERS, mode="trainable", limit=REMINDERS_LIMIT))
    if own.mode != "trainable":
        raise SkillcError(
            f"`lapses = on` writes to the section `{REMINDERS}`, which is {own.mode}",
            hint=f"write `trainable section {REMINDERS}`, or give your section another name",
        )
    return declared
