"""A module's predictors as sections of a skill, and back.

What stands in an instruction between the lines `<!-- locked -->` and `<!-- /locked -->` is frozen, the rest trainable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from skillc.document.skill import Document
from skillc.errors import SkillcError
from skillc.plan.initial import initial_document
from skillc.plan.schema import Plan, SectionPlan, SkillPlan

LOCK, UNLOCK = "<!-- locked -->", "<!-- /locked -->"
_MARK = re.compile(r"^[ \t]*<!--[ \t]*(/?)locked[ \t]*-->[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of an instruction, and the section that holds it."""

    section: str
    mode: Literal["frozen", "trainable"]
    text: str


@dataclass(frozen=True, slots=True)
class Instruction:
    """A predictor's instruction as the user wrote it, and its parts in order."""

    predictor: str
    text: str
    parts: tuple[Part, ...]


def instructions_of(student: Any) -> tuple[Instruction, ...]:
    """The instructions of all predictors that DSPy would optimize.

    Raises:
        SkillcError: there is none, nothing is left to train, or a lock is not closed.
    """
    taken: set[str] = set()
    found = tuple(
        Instruction(name, text, tuple(_parts(name, text, taken)))
        for name, predictor in student.named_predictors()
        for text in [str(predictor.signature.instructions)]
    )
    if not found:
        raise SkillcError("the module has no predictor, so there is no instruction to improve")
    if not any(part.mode == "trainable" for each in found for part in each.parts):
        raise SkillcError("all instructions of the module are locked", hint=f"leave some text outside of `{LOCK}`")
    return found


def _parts(predictor: str, text: str, taken: set[str]) -> Iterator[Part]:
    base = re.sub(r"\W+", "_", predictor).strip("_").lower() or "predictor"
    locked, at = False, 0
    for mark in [*_MARK.finditer(text), None]:
        piece = text[at : mark.start() if mark else len(text)].strip()
        if piece:
            yield Part(_unused(f"{base}_locked" if locked else base, taken), "frozen" if locked else "trainable", piece)
        if mark is None:
            break
        if locked != bool(mark[1]):
            raise SkillcError(f"in the instruction of `{predictor}`, `{mark[0].strip()}` has no counterpart")
        locked, at = not mark[1], mark.end()
    if locked:
        raise SkillcError(f"in the instruction of `{predictor}`, `{LOCK}` is not closed", hint=f"add `{UNLOCK}`")


def _unused(name: str, taken: set[str]) -> str:
    number, unused = 1, name
    while unused in taken:
        number += 1
        unused = f"{name}_{number}"
    taken.add(unused)
    return unused


def skill_plan(instructions: Sequence[Instruction], name: str, limit: int | None) -> SkillPlan:
    """The skill that holds all parts; `limit` is in tokens, for each trainable section."""
    sections = tuple(
        SectionPlan(name=p.section, mode=p.mode, text=p.text, limit=limit if p.mode == "trainable" else None)
        for instruction in instructions
        for p in instruction.parts
    )
    about = f"Instructions of {name}."
    return SkillPlan(name=name, artifact=name.replace("_", "-"), about=about, sections=sections, present=None)


def texts_for(document: Document, plan: Plan, instructions: Sequence[Instruction]) -> Mapping[str, str]:
    """Each predictor's instruction under a document; where no part of it changed, the very text it had.

    What the loop wrote to a section of its own, as reminders are, stands at the end of every instruction.
    """
    initial = initial_document(plan)
    own = {part.section for instruction in instructions for part in instruction.parts}
    common = [section.body for section in document.sections if section.name not in own and section.body.strip()]
    texts = {}
    for instruction in instructions:
        names = [part.section for part in instruction.parts]
        changed = any(_body(document, name) != _body(initial, name) for name in names)
        text = _joined(document, instruction.parts) if changed else instruction.text
        texts[instruction.predictor] = "\n\n".join([text, *common])
    return texts


def _joined(document: Document, parts: Sequence[Part]) -> str:
    blocks = []
    for part in parts:
        frozen = part.mode == "frozen"
        blocks.append(f"{LOCK}\n{part.text}\n{UNLOCK}" if frozen else _body(document, part.section))
    return "\n\n".join(block for block in blocks if block)


def _body(document: Document, name: str) -> str:
    section = document.section(name)
    return section.body if section else ""


def put_in(student: Any, texts: Mapping[str, str]) -> Any:
    """A deep copy of a module with other instructions."""
    copy = student.deepcopy()
    for name, predictor in copy.named_predictors():
        predictor.signature = predictor.signature.with_instructions(texts[name])
    return copy
