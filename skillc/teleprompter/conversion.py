"""A DSPy module and its examples as a plan and a data set of skillc.

Predictors' instructions become sections of a skill. Gates, caps and mechanisms are written as a program and read by
skillc's checker.
"""

from __future__ import annotations

import hashlib
import json
import re
import types
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import JsonValue, TypeAdapter

from skillc.data.dataset import Dataset
from skillc.data.withdrawn import SESSION
from skillc.dataclass import dataclass
from skillc.diagnostics.diagnostic import Severity
from skillc.document.skill import Document
from skillc.errors import SkillcError
from skillc.frontend import check
from skillc.language.modules import Loader
from skillc.outcomes import Example
from skillc.plan.initial import initial_document
from skillc.plan.resolve import resolve
from skillc.plan.schema import FieldPlan, ModelPlan, Plan, SectionPlan, SkillPlan, TaskPlan, TypePlan
from skillc.syntax.source import Source
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
        SkillcError: the module has no predictor, everything is locked, or a lock is not closed.
    """
    taken: set[str] = set()
    found = tuple(
        Instruction(name, text, tuple(_parts(name, text, taken)))
        for name, predictor in student.named_predictors()
        for text in [str(predictor.signature.instructions)]
    )
    if not found:
        raise SkillcError("the module has no predictor whose instruction could be improved")
    if not any(part.mode == "trainable" for each in found for part in each.parts):
        raise SkillcError("all instructions of the module are locked", hint=f"leave some text outside `{LOCK}`")
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

    Sections that the loop added, such as reminders, are appended to every instruction.
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
    # DSPy's default description of a field is its name in braces.
    described = about if about and about != f"${{{name}}}" else None
    return FieldPlan(name=name, type=_type_plan(field.annotation), column=name, about=described)


def _type_plan(annotation: Any) -> TypePlan:
    """Convert a Python type to a type of the language, by default text."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal and all(isinstance(label, str) for label in arguments):
        return TypePlan(kind="labels", labels=arguments)
    if origin in (Union, types.UnionType):
        wrapped = [argument for argument in arguments if argument is not type(None)]
        if len(wrapped) == 1 and len(arguments) == 2:
            return _type_plan(wrapped[0]).model_copy(update={"optional": True})
        return _TEXT
    if origin is list or annotation is list:
        return TypePlan(kind="list", item=_type_plan(arguments[0]) if arguments else _TEXT)
    return _KINDS.get(origin or annotation, _TEXT)


# ---- examples -------------------------------------------------------------------------------------

_JSON: TypeAdapter[Any] = TypeAdapter(Any)
# Without a validation set, one in so many training examples is used for it.
_VALIDATION = 3


@dataclass(frozen=True, slots=True)
class ExampleSet:
    """The examples of a run, and the user's example objects by id."""

    dataset: Dataset
    originals: Mapping[str, Any]


def example_set(
    train: Sequence[Any], validation: Sequence[Any] | None, test: Sequence[Any] | None, *, group: str | None, seed: int
) -> ExampleSet:
    """Convert examples; their ids come from their content, so that they stay when rows are added or moved.

    Args:
        train: examples with their inputs set.
        validation: decide the gates; None for a third of the training set, chosen by hash of seed and example.
        test: scored once, at the end.
        group: a key whose equal values count as one in the final test.
        seed: of the split.

    Raises:
        SkillcError: a set is empty, an example has no inputs, or the test set shares an example.
    """
    if not train:
        raise SkillcError("the training set is empty")
    seen: Counter[str] = Counter()
    sides = [[(_id(example, seen), example) for example in side or ()] for side in (train, validation, test)]
    if validation is None:
        order = sorted(sides[0], key=lambda pair: hashlib.sha256(f"{seed}\0{pair[0]}".encode()).digest())
        kept = max(1, len(order) // _VALIDATION)
        sides[1], sides[0] = order[:kept], order[kept:]
    if not sides[0] or not sides[1]:
        raise SkillcError("training and validation sets need at least one example each")
    _check_test_apart(sides)
    made = [tuple(_example(id_, original, group) for id_, original in side) for side in sides]
    digest = hashlib.sha256(json.dumps([[e.id for e in side] for side in made]).encode()).hexdigest()
    dataset = Dataset(made[0], made[1], made[2], digest)
    return ExampleSet(dataset, {id_: original for side in sides for id_, original in side})


def _id(example: Any, seen: Counter[str]) -> str:
    """Return a digest of an example's content; repeated rows are numbered."""
    content = json.dumps(as_json(example.toDict()), sort_keys=True)
    digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    seen[digest] += 1
    return digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"


def _check_test_apart(sides: Iterable[Sequence[tuple[str, Any]]]) -> None:
    train, validation, test = ({id_.partition("-")[0] for id_, _ in side} for side in sides)
    shared = test & (train | validation)
    if shared:
        raise SkillcError(
            f"{len(shared)} examples of the test set are also in the training or validation set",
            hint="keep each on one side: the verdict needs test examples that the run has not seen",
        )


def _example(id_: str, original: Any, group: str | None) -> Example:
    try:
        inputs = original.inputs().toDict()
    except ValueError:
        raise SkillcError("an example has no inputs", hint="set them with `example.with_inputs(...)`") from None
    gold = {name: value for name, value in original.toDict().items() if name not in inputs}
    # The key of a recorded session is no answer.
    session = {SESSION: gold.pop(SESSION)} if isinstance(gold.get(SESSION), str) else {}
    return Example(
        id=id_,
        inputs={name: as_json(value) for name, value in inputs.items()},
        gold={name: as_json(value) for name, value in gold.items()},
        fields=session,
        group=str(original[group]) if group is not None else id_,
    )


def as_json(value: Any) -> JsonValue:
    """Convert a value to JSON; other types become text."""
    plain: JsonValue = _JSON.dump_python(value, mode="json", fallback=str)
    return plain


# ---- the plan -------------------------------------------------------------------------------------

_NAME = re.compile(r"[a-z][a-z0-9_]*")

_PROGRAM = """language 1
use std.gates
task {{
{fields}
}}
skill {name} {{
  about = "Instructions of a module."
  trainable section instructions
}}
model target    = "rulebook/v1"
model optimizer = "rulebook/v1"
data {{ source = "examples.jsonl"; seed = {seed} }}
goal score = python("skillc.teleprompter.rollouts:score_of", low = {low}, high = {high})
optimize {{
{optimize}
}}
budget {{
{budget}
}}
{gates}
"""


def plan_for(
    *,
    skill: SkillPlan,
    inputs: Sequence[FieldPlan],
    outputs: Sequence[FieldPlan],
    models: Mapping[str, ModelPlan],
    gates: Mapping[str, str],
    budget: Mapping[str, object],
    optimize: Mapping[str, object],
    low: float,
    high: float,
    seed: int,
) -> Plan:
    """Return the plan of a module.

    Args:
        skill: its instructions as sections.
        inputs: of the examples.
        outputs: gold fields of the examples.
        models: by role.
        gates: conditions by name, in the language: `candidate.score > incumbent.score`.
        budget: settings of a program's `budget` block.
        optimize: settings of its `optimize` block.
        low: the worst score of the metric.
        high: the best score.
        seed: of all random draws.

    Raises:
        SkillcError: a gate or setting is invalid, with the checker's message.
    """
    text = _PROGRAM.format(
        fields="\n".join([*_fields("input", inputs), *(_fields("output", outputs) or ["  output answer: text"])]),
        name=skill.name,
        seed=seed,
        low=_number(low),
        high=_number(high),
        optimize=_settings(optimize),
        budget=_settings(budget),
        gates="\n".join(f"gate {name} = {condition}" for name, condition in gates.items()),
    )
    plan = _resolved(text)
    task = TaskPlan(inputs=tuple(inputs), outputs=tuple(outputs))
    return plan.model_copy(update={"skill": skill, "task": task, "models": dict(models)})


def _resolved(text: str) -> Plan:
    checked = check(Source("SkillOptimizer", text), Loader(Path.cwd()))
    resolved = resolve(checked)
    for found in (*checked.diagnostics, *resolved.diagnostics):
        if found.severity is Severity.ERROR:
            line = text[: found.primary.span.start].count("\n")
            raise SkillcError(f"{found.message}, in `{text.splitlines()[line].strip()}`", hint=found.hint)
    assert resolved.plan is not None
    return resolved.plan


def _fields(kind: str, fields: Sequence[FieldPlan]) -> list[str]:
    """Declare the fields whose names the language accepts, for gates to read."""
    return [f"  {kind} {field.name}: text" for field in fields if _NAME.fullmatch(field.name)]


def _settings(settings: Mapping[str, object]) -> str:
    return "\n".join(f"  {name} = {_value(value)}" for name, value in settings.items())


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int | float):
        return _number(value)
    return str(value)


def _number(value: float) -> str:
    return f"{value:f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
