"""The document that a run starts from, as the program declares it."""

from __future__ import annotations

from skillc.document.skill import Document, document_of
from skillc.errors import SkillcError
from skillc.plan.schema import Plan, SectionPlan

REMINDERS = "reminders"
REMINDERS_LIMIT = 200


def initial_document(plan: Plan) -> Document:
    """The initial skill; the text of a trainable section becomes rules.

    Raises:
        SkillcError: as `sections_of`.
    """
    parts = ((section.name, section.mode, section.text, section.limit) for section in sections_of(plan))
    return document_of(plan.skill.artifact, plan.skill.about, parts)


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
