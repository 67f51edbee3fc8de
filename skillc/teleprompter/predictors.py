"""A module's predictors: their fields, and their instructions as sections of a skill."""

from __future__ import annotations

import re
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin

from skillc.document.skill import Document
from skillc.errors import SkillcError
from skillc.plan.initial import initial_document
from skillc.plan.schema import FieldPlan, Plan, SectionPlan, SkillPlan, TypePlan
from skillc.text import free_name

LOCK, UNLOCK = "<!-- locked -->", "<!-- /locked -->"
_MARK = re.compile(r"^[ \t]*<!--[ \t]*(/?)locked[ \t]*-->[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class InstructionPart:
    """A part of an instruction, and the section that contains it."""

    section: str
    mode: Literal["frozen", "trainable"]
    text: str


@dataclass(frozen=True, slots=True)
class Instruction:
    """A predictor's instruction as the user wrote it, and its parts in order."""

    predictor: str
    text: str
    parts: tuple[InstructionPart, ...]


def instructions_of(student: Any) -> tuple[Instruction, ...]:
    """Return the instructions of all predictors that DSPy would optimize.

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


def _parts(predictor: str, text: str, taken: set[str]) -> Iterator[InstructionPart]:
    base = re.sub(r"\W+", "_", predictor).strip("_").lower() or "predictor"
    locked, at = False, 0
    for mark in [*_MARK.finditer(text), None]:
        piece = text[at : mark.start() if mark else len(text)].strip()
        if piece:
            name = free_name(f"{base}_locked" if locked else base, taken)
            taken.add(name)
            yield InstructionPart(name, "frozen" if locked else "trainable", piece)
        if mark is None:
            break
        if locked != bool(mark[1]):
            raise SkillcError(f"in the instruction of `{predictor}`, `{mark[0].strip()}` has no counterpart")
        locked, at = not mark[1], mark.end()
    if locked:
        raise SkillcError(f"in the instruction of `{predictor}`, `{LOCK}` is not closed", hint=f"add `{UNLOCK}`")


def skill_plan(instructions: Sequence[Instruction], name: str, limit: int | None) -> SkillPlan:
    """Return the skill with all parts; `limit` is in tokens, for each trainable section."""
    sections = tuple(
        SectionPlan(name=p.section, mode=p.mode, text=p.text, limit=limit if p.mode == "trainable" else None)
        for instruction in instructions
        for p in instruction.parts
    )
    about = f"Instructions of {name}."
    return SkillPlan(name=name, artifact=name.replace("_", "-"), about=about, sections=sections, present=None)


def texts_for(document: Document, plan: Plan, instructions: Sequence[Instruction]) -> Mapping[str, str]:
    """Return each predictor's instruction under a document; an unchanged one keeps its exact text.

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


def _joined(document: Document, parts: Sequence[InstructionPart]) -> str:
    blocks = []
    for part in parts:
        frozen = part.mode == "frozen"
        blocks.append(f"{LOCK}\n{part.text}\n{UNLOCK}" if frozen else _body(document, part.section))
    return "\n\n".join(block for block in blocks if block)


def _body(document: Document, name: str) -> str:
    section = document.section(name)
    return section.body if section else ""


def with_instructions(student: Any, texts: Mapping[str, str]) -> Any:
    """Return a deep copy of a module with other instructions."""
    copy = student.deepcopy()
    for name, predictor in copy.named_predictors():
        predictor.signature = predictor.signature.with_instructions(texts[name])
    return copy


_KINDS: dict[Any, TypePlan] = {
    bool: TypePlan(kind="bool"),
    int: TypePlan(kind="integer"),
    float: TypePlan(kind="number"),
    dict: TypePlan(kind="json"),
}
_TEXT = TypePlan(kind="text")


def field_plans(student: Any, names: Iterable[str]) -> tuple[FieldPlan, ...]:
    """Return a field for each name, with type and description from the predictors' field of that name; else text."""
    known: dict[str, Any] = {}
    for _, predictor in student.named_predictors():
        for name, field in predictor.signature.fields.items():
            known.setdefault(name, field)
    return tuple(_plan(name, known.get(name)) for name in names)


def _plan(name: str, field: Any) -> FieldPlan:
    if field is None:
        return FieldPlan(name=name, type=_TEXT, column=name)
    about = (field.json_schema_extra or {}).get("desc") or ""
    # DSPy describes a field that nobody described by its name in braces.
    told = about if about and about != f"${{{name}}}" else None
    return FieldPlan(name=name, type=type_plan(field.annotation), column=name, about=told)


def type_plan(annotation: Any) -> TypePlan:
    """Convert a Python type to the language's; one that it lacks becomes text."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal and all(isinstance(label, str) for label in arguments):
        return TypePlan(kind="labels", labels=arguments)
    if origin in (Union, types.UnionType):
        given = [argument for argument in arguments if argument is not type(None)]
        if len(given) == 1 and len(arguments) == 2:
            return type_plan(given[0]).model_copy(update={"optional": True})
        return _TEXT
    if origin is list or annotation is list:
        return TypePlan(kind="list", item=type_plan(arguments[0]) if arguments else _TEXT)
    return _KINDS.get(origin or annotation, _TEXT)
