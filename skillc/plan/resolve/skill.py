"""The skill: its sections, and its name and description by the rules of Agent Skills."""

from __future__ import annotations

from typing import Literal, cast

from skillc.document.markdown import heading
from skillc.document.yaml_scalar import further_keys
from skillc.language.checked import Entity
from skillc.plan.resolve.values import Findings, count_of, text_of, word_of
from skillc.plan.schema import SectionPlan, SkillPlan

NAME_CHARACTERS = 64
ABOUT_CHARACTERS = 1024

Mode = Literal["frozen", "trainable", "slow"]
_MODES: tuple[Mode, ...] = ("frozen", "trainable", "slow")


def resolve_skill(findings: Findings, skill: Entity) -> SkillPlan:
    """The skill of the program, with the name that its artifact will bear."""
    name = skill.name or ""
    about = _about(skill)
    _check_names(findings, skill, about)
    load, present = word_of(skill, "load"), word_of(skill, "present")
    return SkillPlan(
        name=name,
        artifact=artifact_name(name),
        about=about,
        about_trainable=_about_is_trainable(skill),
        sections=tuple(_section(child) for child in skill.children if child.kind == "section"),
        title=_title(skill),
        frontmatter=_frontmatter(findings, skill),
        load=cast('Literal["always", "on_demand"]', load or "always"),
        present=cast('Literal["advice", "rules"]', present or "rules"),
    )


def artifact_name(name: str) -> str:
    """The name by Agent Skills rules: `route_tickets` becomes `route-tickets`, no hyphen doubled or at an end."""
    return "-".join(part for part in name.lower().replace("-", "_").split("_") if part)


def _check_names(findings: Findings, skill: Entity, about: str) -> None:
    name = artifact_name(skill.name or "")
    if not (name and name.isascii() and name.replace("-", "").isalnum()):
        hint = "use the letters a to z, digits and `_`"
        findings.error("SK563", f"an agent can't load a skill named `{skill.name}`", skill.source, skill.span, hint)
    elif len(name) > NAME_CHARACTERS:
        message = f"the name `{name}` has {len(name)} characters, an agent loads at most {NAME_CHARACTERS}"
        findings.error("SK563", message, skill.source, skill.span, "choose a shorter name")
    setting = skill.settings.get("about")
    if setting is not None and len(about) > ABOUT_CHARACTERS:
        message = f"`about` has {len(about)} characters, an agent reads at most {ABOUT_CHARACTERS}"
        findings.error("SK564", message, setting.source, setting.span, "say what it is for and when to use it, no more")


def _about(skill: Entity) -> str:
    """The description on one line, as the frontmatter of the artifact holds it."""
    return " ".join((text_of(skill, "about") or "").split())


def _about_is_trainable(skill: Entity) -> bool:
    setting = skill.settings.get("about")
    children = (word for child in skill.children if child.kind == "about" for word in child.words)
    words = (*(setting.words if setting is not None else ()), *children, *skill.words)
    return any("trainable" in word.split() for word in words)


def _section(section: Entity) -> SectionPlan:
    mode: Mode = next((mode for mode in _MODES if mode in section.words), "frozen")
    text = section.value if isinstance(section.value, str) else ""
    name, limit = section.name or "", count_of(section, "limit")
    return SectionPlan(name=name, mode=mode, text=text, limit=limit, title=_title(section))


def _title(entity: Entity) -> str | None:
    """A heading on one line, as markdown reads it back; None where the name makes it."""
    title = text_of(entity, "title")
    if title is None:
        return None
    found = heading(f"## {' '.join(title.split())}")
    return found.title if found else None


def _frontmatter(findings: Findings, skill: Entity) -> str:
    text, setting = text_of(skill, "frontmatter"), skill.settings.get("frontmatter")
    if text is None or setting is None or not text.strip():
        return ""
    keys = further_keys(text)
    if keys is None:
        hint = "write one key a line: `license: MIT`"
        message = "an agent can't load this `frontmatter`: it is not YAML"
        findings.error("SK563", message, setting.source, setting.span, hint)
    elif keys & {"name", "description"}:
        hint = "the skill's name and its `about` make `name` and `description`"
        message = "`frontmatter` repeats a key that the skill has already"
        findings.error("SK563", message, setting.source, setting.span, hint)
    return text.strip("\n")
