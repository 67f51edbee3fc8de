"""The initial document of a run: the declared sections, and the task in words."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from skillc.artifact_paths import SKILL_FILE, is_script
from skillc.document.skill import Document, Section, document_of, script_rules
from skillc.errors import SkillcError
from skillc.plan.schema import FieldPlan, Plan, SectionPlan, SkillPlan, TaskPlan, TypePlan
from skillc.skill_files import check_distinct, decoded, read_folder
from skillc.text import joined

_LEAD = {
    "rules": "Follow the rules below; they come before your own judgement.",
    "advice": "The rules below are advice: use them where they help.",
    None: "",
}
_FIRST = "If several rules fit and none says which, the first one decides."
_FIRST_OF_FIELD = "If several rules for one field fit and none says which, the first one decides."
_CLOSED = frozenset({"labels", "bool"})
_REASON = "Reason step by step before you answer."
_PLAIN = {
    "bool": ("true or false", "true or false"),
    "number": ("a number", "numbers"),
    "integer": ("a whole number", "whole numbers"),
    "json": ("a JSON object", "JSON objects"),
    "file": ("a file", "files"),
    "image": ("an image", "images"),
    "text": ("text", "texts"),
}
# Longer descriptions, and more inputs, are easier to read as a list.
_SENTENCE_CHARACTERS, _SENTENCE_INPUTS = 80, 3
_QUOTES = (('"', '"'), ("`", "`"), ("“", "”"), ("«", "»"))


def task_text(task: TaskPlan) -> str:
    """Describe the inputs and the answer in markdown without headings: a sentence, or lists for longer descriptions.

    Labels appear exactly as an answer must contain them. The `about` of a field appears once.
    """
    if not task.outputs:
        return ""
    inline = len(task.inputs) <= _SENTENCE_INPUTS and all(map(_short, task.inputs))
    if task.inputs and not inline:
        given = "\n".join(["You are given:", "", *(_item(field, answer=False) for field in task.inputs), "", ""])
        asked = _asked(task.outputs, first=True)
    elif task.inputs:
        given = f"Given {joined([_phrase(field, answer=False) for field in task.inputs], 'and')}, "
        asked = _asked(task.outputs, first=False)
    else:
        given, asked = "", _asked(task.outputs, first=True)
    reason = ""
    if task.rollout.kind == "chain_of_thought":
        reason = f" {_REASON}" if _inline_outputs(task.outputs) else f"\n\n{_REASON}"
    return given + asked + reason


def lead_text(skill: SkillPlan, task: TaskPlan) -> str:
    """Describe how to apply the rules of a skill; shown only if the skill has rules."""
    lead = _LEAD[skill.present]
    if not first_decides(skill, task):
        return lead
    return f"{lead} {_FIRST if len(task.outputs) == 1 else _FIRST_OF_FIELD}"


def first_decides(skill: SkillPlan, task: TaskPlan) -> bool:
    """Whether the first matching rule decides, as SKILL.md then states; for open answers all matching rules apply."""
    closed = all(output.type.kind in _CLOSED for output in task.outputs)
    return skill.present == "rules" and bool(task.outputs) and closed


def without_task_text(text: str, task: TaskPlan) -> str:
    """Remove a copy of the task text and of the lead from the start of a section.

    The preamble of a compiled SKILL.md contains both; a program that reuses it would repeat them.
    """
    rest = text.strip()
    leads = [
        f"{lead} {more}".strip() for lead in filter(None, _LEAD.values()) for more in ("", _FIRST, _FIRST_OF_FIELD)
    ]
    for known in (task_text(task), *leads):
        if known and (rest == known or rest.startswith(f"{known}\n\n")):
            rest = rest[len(known) :].strip()
    return rest if rest != text.strip() else text


def _asked(outputs: Sequence[FieldPlan], *, first: bool) -> str:
    verb = "give" if len(outputs) == 1 and outputs[0].name.lower().startswith("answer") else "answer with"
    verb = verb[0].upper() + verb[1:] if first else verb
    if _inline_outputs(outputs):
        return f"{verb} {_phrase(outputs[0], answer=True)}."
    return "\n".join([f"{verb}:", "", *(_item(field, answer=True) for field in outputs)])


def _inline_outputs(fields: Sequence[FieldPlan]) -> bool:
    return len(fields) == 1 and _short(fields[0])


def _short(field: FieldPlan) -> bool:
    about = _about(field)
    return len(about) <= _SENTENCE_CHARACTERS and not any(f"{stop} " in about for stop in ".!?")


def _phrase(field: FieldPlan, *, answer: bool) -> str:
    """`the team (who resolves it): one of "billing" or "shipping"`; an input has its type within the parentheses."""
    type_, about = "" if _is_text(field.type) else _type(field.type, answer=answer), _about(field)
    if answer:
        return "".join([f"the {_words(field.name)}", f" ({about})" if about else "", f": {type_}" if type_ else ""])
    details = ": ".join(part for part in (type_, about) if part)
    return f"the {_words(field.name)} ({details})" if details else f"the {_words(field.name)}"


def _item(field: FieldPlan, *, answer: bool) -> str:
    """A list item with the exact name of the field: with several values, an answer must name each."""
    about = _about(field)
    parts = [] if about and _is_text(field.type) else [_type(field.type, answer=answer)]
    return f"- `{field.name}`: {'; '.join([*parts, about] if about else parts)}"


def _words(name: str) -> str:
    """A name as words: `order_id` is `order id`; a name not in lower case is quoted."""
    words = name.replace("_", " ")
    return words if words == words.lower().strip() else f"`{name}`"


def _about(field: FieldPlan) -> str:
    return " ".join((field.about or "").split()).removesuffix(".")


def _is_text(type_: TypePlan) -> bool:
    return type_.kind == "text" and not type_.optional


def _type(type_: TypePlan, *, answer: bool) -> str:
    if type_.kind == "labels":
        text = quoted(type_.labels, "or")
        text = f"one of {text}" if len(type_.labels) > 1 else text
    elif type_.kind == "list":
        text = _list(type_, "a JSON list" if answer else "a list")
    else:
        text = _PLAIN[type_.kind][0]
    return f"{text}, or null if there is none" if type_.optional else text


def _list(type_: TypePlan, start: str) -> str:
    item = type_.item or TypePlan(kind="text")
    if item.kind == "labels":
        return f"{start} whose items are among {quoted(item.labels, 'and')}"
    inner = _list(item, "lists") if item.kind == "list" else _PLAIN[item.kind][1]
    return f"{start} of {inner}{' or null' if item.optional else ''}"


def quoted(labels: Sequence[str], word: str) -> str:
    """Labels in quotation marks that none of them contains; as JSON strings if no such marks exist."""
    marks = next((pair for pair in _QUOTES if not any(mark in label for mark in pair for label in labels)), None)
    if marks is None or any(not label.isprintable() for label in labels):
        return f"{joined([json.dumps(label, ensure_ascii=False) for label in labels], word)} (as JSON strings)"
    return joined([f"{marks[0]}{label}{marks[1]}" for label in labels], word)


REMINDERS = "reminders"
REMINDERS_LIMIT = 200


def initial_document(plan: Plan) -> Document:
    """The initial skill; the text of a trainable section becomes rules.

    Raises:
        SkillcError: as `sections_of`.
    """
    skill, task = plan.skill, plan.task
    shown = skill.present is not None

    def text_of(section: SectionPlan) -> str:
        text = "" if is_script(section.file) else section.text
        return without_task_text(text, task) if shown else text

    parts = ((section.name, section.mode, text_of(section), section.limit) for section in sections_of(plan))
    text = task_text(task) if shown else ""
    document = document_of(skill.artifact, skill.about, parts, task=text, lead=lead_text(skill, task))
    plans = {section.name: section for section in skill.sections}
    sections = tuple(_as_planned(section, plans.get(section.name), document.ids) for section in document.sections)
    return replace(document, sections=sections, title=skill.title, frontmatter=skill.frontmatter)


def _as_planned(section: Section, plan: SectionPlan | None, taken: Collection[str]) -> Section:
    if plan is None:
        return section
    renames, rules = () if plan.rename else None, section.rules
    if is_script(plan.file):
        # A text of a program has no newline at its end.
        rules = script_rules(f"{plan.text}\n" if plan.text.strip() else "", section.name, taken)
    return replace(section, rules=rules, title=plan.title, file=plan.file, about=plan.about or "", renames=renames)


def initial_skill(plan: Plan, root: Path) -> Document:
    """The initial skill of a run, with the kept files of its folder if a rollout has a folder to open.

    Raises:
        SkillcError: as `initial_document` and `with_files`.
    """
    initial = initial_document(plan)
    return initial if plan.task.rollout.one_turn else with_files(initial, plan, root)


def with_files(document: Document, plan: Plan, root: Path) -> Document:
    """Return a skill with the files that its folder keeps; `root` is the program's folder.

    A script without a text gets that of its file, which is no kept file then.

    Raises:
        SkillcError: they cannot be read, are too large, or one has the path of a section; or a script is not UTF-8.
    """
    if plan.skill.files is None:
        return document
    files = {name: each for name, each in read_folder(root / plan.skill.files).items() if name != SKILL_FILE}
    for section in plan.skill.sections:
        content = files.pop(section.file or "", None) if is_script(section.file) and not section.text.strip() else None
        own = document.section(section.name)
        if content is not None and own is not None and not own.rules:
            rules = script_rules(decoded(f"{plan.skill.files}/{section.file}", content), own.name, document.ids)
            document = document.with_section(replace(own, rules=rules))
    check_distinct([SKILL_FILE, *(each.file for each in plan.skill.sections if each.file is not None), *files])
    return replace(document, files=tuple(sorted(files.items())))


def sections_of(plan: Plan) -> tuple[SectionPlan, ...]:
    """The declared sections; with `lapses = on` also `reminders`, the last, unless declared.

    Raises:
        SkillcError: `lapses = on`, and the section `reminders` is not trainable.
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
