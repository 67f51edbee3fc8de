"""The document that a run starts from, as the program declares it."""

from __future__ import annotations

from skillc.document.skill import Document, document_of
from skillc.plan.schema import SkillPlan


def initial_document(skill: SkillPlan) -> Document:
    """The initial skill; the text of a trainable section becomes rules."""
    parts = ((section.name, section.mode, section.text, section.limit) for section in skill.sections)
    return document_of(skill.artifact, skill.about, parts)
