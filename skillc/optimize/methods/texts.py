"""The skill as a method sees it: one text for each section that may change, and the way back into the document."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass

from skillc.document.edits import rewrite
from skillc.document.skill import Document, Section
from skillc.optimize.prompting import type_text
from skillc.plan.schema import FieldPlan, TaskPlan

# DSPy puts a sentence of its own in the place of an empty instruction.
EMPTY = "(this section is empty so far)"


@dataclass(frozen=True, slots=True)
class Written:
    """A document with new texts. `problem` says which text a section cannot take, and then nothing was changed."""

    document: Document
    problem: str | None = None


def open_sections(document: Document) -> tuple[Section, ...]:
    """The sections that a method may write: trainable and slow ones. Frozen text is never shown as changeable."""
    return tuple(section for section in document.sections if section.mode != "frozen")


def texts_of(document: Document) -> dict[str, str]:
    """The text of each open section by name."""
    return {section.name: section.body.strip() or EMPTY for section in open_sections(document)}


def document_with(initial: Document, texts: Mapping[str, str]) -> Written:
    """The initial document with other texts; a text that did not change leaves its section as it is.

    Nothing is cut: a text over its section's limit, or one that no section can hold, is a problem in words.
    """
    document, before = initial, texts_of(initial)
    for name, text in texts.items():
        plain = text.strip()
        # DSPy keeps an instruction as a docstring, without the indent that its further lines share.
        if inspect.cleandoc(plain) == inspect.cleandoc(before[name]):
            continue
        applied = rewrite(document, name, "" if plain == EMPTY else plain)
        report = applied.reports[-1]
        if not report.applied and not report.repeats:
            return Written(initial, report.message)
        document = applied.document
    return Written(document)


def guidance(task: TaskPlan, document: Document, section: Section) -> str:
    """What a method's optimizer model is told about a section beside its text: task, frozen parts, limit, form."""
    lines = ["The instruction is one section of a longer skill text for this task:"]
    lines += [_field("input", field) for field in task.inputs]
    lines += [_field("output", field) for field in task.outputs]
    frozen = [("task", document.task), *((s.name, s.text) for s in document.sections if s.mode == "frozen")]
    if any(text for _, text in frozen):
        lines += ["These parts of the skill are fixed. Do not repeat them:"]
        lines += [f"- {name}: {' '.join(text.split())}" for name, text in frozen if text]
    lines.append(f"Write the text of the section `{section.name}` alone, as a list with one rule a line.")
    lines.append("Do not describe the format of the answer: the task does that.")
    if section.limit is not None:
        lines.append(f"The section may have at most {section.limit} tokens; a longer one is refused.")
    return "\n".join(lines)


def _field(kind: str, field: FieldPlan) -> str:
    about = f" ({field.about})" if field.about else ""
    return f"{kind} {field.name}: {type_text(field.type)}{about}"
