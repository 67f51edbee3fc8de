"""The document as text: what the target reads, and what the optimizer reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from skillc.document.markdown import block, tidy
from skillc.tokens import count_tokens

if TYPE_CHECKING:
    from skillc.document.skill import Document, Rule, Section


def for_target(document: Document) -> str:
    """The markdown that the target reads: no ids, no rationales, empty sections left out, one newline at the end."""
    title = title_of(document.name) if document.title is None else document.title
    blocks = [f"# {title}"] if title else []
    blocks += [text for text in _told(document) if text]
    for section in document.sections:
        text = body(section)
        if not text.strip():
            continue
        heading = section_title(section)
        blocks += [f"## {heading}", text] if heading else [text]
    return tidy("\n\n".join(blocks))


def for_optimizer(document: Document, notes: Mapping[str, str] | None = None) -> str:
    """The same with rule ids, rationales, each section's mode, its limit and the tokens it uses.

    Args:
        document: the skill.
        notes: a line more below a rule, by its id.
    """
    blocks = [f"# {document.name}", f"about: {document.about}" if document.about else ""]
    told = "\n\n".join(text for text in _told(document) if text)
    blocks += [f"below the title (frozen, {count_tokens(told)} tokens):", told] if told else []
    for section in document.sections:
        heading = f"## {section.name} ({section.mode}, {_used(section)})"
        text = _with_ids(section, notes or {}) if section.mode == "trainable" else section.text
        blocks += [heading, text or "(empty)"]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _told(document: Document) -> tuple[str, str]:
    """What the target reads before the sections: the task, and how to take the rules where there are any."""
    return document.task, document.lead if document.rules else ""


def title_of(name: str) -> str:
    """A heading from a name: `route-tickets` becomes `Route tickets`."""
    words = name.replace("_", " ").replace("-", " ").strip()
    return words[:1].upper() + words[1:]


def section_title(section: Section) -> str:
    """The heading of a section, "" for none."""
    return title_of(section.name) if section.title is None else section.title


def body(section: Section) -> str:
    """What the target reads below a section's heading, without a newline at its end."""
    if section.mode != "trainable":
        return section.text
    return _grouped(section, lambda rule, number: block(rule.text, _marker(rule, number)))


def _used(section: Section) -> str:
    used = count_tokens(body(section))
    return f"{used} tokens" if section.limit is None else f"{used} of {section.limit} tokens"


def _with_ids(section: Section, notes: Mapping[str, str]) -> str:
    def line(rule: Rule, number: int) -> str:
        step = f"{number}. " if number else ""
        text = f"[{rule.id}] {step}" + rule.text.replace("\n", "\n    ")
        why = f"why: {' '.join(rule.rationale.split())}" if rule.rationale else ""
        return "\n    ".join(part for part in (text, why, notes.get(rule.id, "")) if part)

    return _grouped(section, line)


def _marker(rule: Rule, number: int) -> str:
    return f"{number}. " if number else "- " if rule.mark else ""


def _grouped(section: Section, line: Callable[[Rule, int], str]) -> str:
    """The rules under their topics; the section keeps them in that order.

    `line` is given the rule and its number in its list, counted anew in each, 0 where it is no step. A blank line parts
    paragraphs, and lists of different kinds.
    """
    blocks: list[str] = []
    before: Rule | None = None
    number = 0
    for rule in section.rules:
        same = before is not None and (before.topic, before.mark) == (rule.topic, rule.mark)
        number = (number if same else 0) + 1 if rule.mark == "1." else 0
        if rule.topic != (before.topic if before else None):
            blocks += ["", f"### {rule.topic}", ""] if blocks else [f"### {rule.topic}", ""]
        elif blocks and not (same and rule.mark):
            blocks.append("")
        blocks.append(line(rule, number))
        before = rule
    return "\n".join(blocks)
