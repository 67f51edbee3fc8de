"""Human labels for answers: read a label file, and write a sheet of answers to fill in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from pathlib import Path

from pydantic import JsonValue

from skillc.data.problems import Problems
from skillc.data.read import read_rows
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.metrics.judging.check.questions import Item
from skillc.metrics.judging.prompt import shown_text
from skillc.outcomes import Example
from skillc.plan.judges import JudgePlan
from skillc.plan.schema import CriterionPlan
from skillc.text import listed

LABEL = "label"
_WORDS = {"yes": 1, "true": 1, "no": 0, "false": 0}
_SIDES = {"better": Fraction(1), "worse": Fraction(0), "tie": Fraction(1, 2), "equal": Fraction(1, 2)}


@dataclass(frozen=True, slots=True)
class Label:
    """A human label of one answer.

    Attributes:
        example: id.
        value: the answer, as in the file.
        answer: the answer as a judge reads it.
        score: from 0 to 1.
        marks: likewise by criterion.
    """

    example: str
    value: JsonValue
    answer: str
    score: Fraction
    marks: Mapping[str, Fraction] = field(default_factory=dict)


def read_labels(path: Path, judge: JudgePlan, examples: Mapping[str, Example]) -> tuple[Label, ...]:
    """Read the labels of one judge; rows without a label are skipped.

    Args:
        path: a data file: `id` of the example, the judged output, and `label`, or a column for each criterion.
        judge: whose criteria the columns are.
        examples: those that may be labelled, by id.

    Raises:
        SkillcError: the file cannot be read, a row names no example, or a label is no level of the rubric.
    """
    problems, found = Problems(), list[Label]()
    for row in read_rows(path, str(path), problems):
        label = _label(row.values, row.line, path, judge, examples, problems)
        if label is not None:
            found.append(label)
    problems.check()
    if not found:
        raise SkillcError(f"`{path}` has no labels", hint=f"fill in {_columns(judge)}")
    return tuple(found)


def _label(
    values: Mapping[str, JsonValue],
    line: int,
    path: Path,
    judge: JudgePlan,
    examples: Mapping[str, Example],
    problems: Problems,
) -> Label | None:
    criteria = judge.rubric.criteria
    given = {each.name: values.get(each.name or LABEL) for each in criteria}
    if len(criteria) == 1 and given[criteria[0].name] in (None, ""):
        given = {criteria[0].name: values.get(LABEL)}
    if all(value in (None, "") for value in given.values()):
        return None
    name = str(values.get("id", ""))
    if name not in examples:
        hint = "`id` is that of an example of train or validation; `--sheet` writes a file with ids"
        problems.add(str(path), line, f"no example has the id `{name}`", hint, kind="no example has the row's `id`")
        return None
    if judge.output not in values:
        hint = f"a label is for one answer: add the column `{judge.output}`, as `--sheet` does"
        problems.add(str(path), line, f"`{judge.output}` is missing", hint)
        return None
    marks = {}
    for criterion in criteria:
        said = given[criterion.name]
        mark = _side(said) if judge.against is not None else _mark(said, criterion)
        if mark is None:
            column = criterion.name or LABEL
            problems.add(str(path), line, f"`{column}` is {said!r}", f"it has to be {_wanted(judge, criterion)}")
            return None
        marks[criterion.name] = mark
    whole = sum((each.weight for each in criteria), Fraction(0))
    score = sum((each.weight * marks[each.name] for each in criteria), Fraction(0)) / whole
    return Label(name, values[judge.output], shown_text(values[judge.output]), score, marks)


def _columns(judge: JudgePlan) -> str:
    names = [each.name for each in judge.rubric.criteria if each.name]
    return f"the columns {listed(names, 'and')}" if len(names) > 1 else f"the column `{LABEL}`"


def _wanted(judge: JudgePlan, criterion: CriterionPlan) -> str:
    if judge.against is not None:
        return listed(["better", "worse", "tie"], "or")
    return listed([level for level, _ in criterion.levels], "or") if criterion.levels else "`yes` or `no`"


def _mark(value: JsonValue, criterion: CriterionPlan) -> Fraction | None:
    """Return the score of a level, or of yes and no; a data file may have it as text."""
    if isinstance(value, str):
        word = value.strip().casefold()
        if not criterion.levels and word in _WORDS:
            return Fraction(_WORDS[word])
        value = int(word) if word.removeprefix("-").isdecimal() else None
    if isinstance(value, bool):
        return Fraction(value) if not criterion.levels else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    levels = {level for level, _ in criterion.levels} or {0, 1}
    return criterion.score(value) if isinstance(value, int) and value in levels else None


def _side(value: JsonValue) -> Fraction | None:
    return _SIDES.get(value.strip().casefold()) if isinstance(value, str) else None


def write_sheet(path: Path, judge: JudgePlan, items: Sequence[Item], values: Sequence[JsonValue], seed: int) -> int:
    """Write each distinct answer of the rollouts with empty labels, in random order; return the number of rows.

    The order is random so that the first rows are a random part of all: that is what a correction by labels needs.

    Raises:
        SkillcError: the file exists, or cannot be written.
    """
    if path.exists():
        raise SkillcError(f"`{path}` exists", hint="name another file: it may have labels")
    rows: dict[tuple[str, str], dict[str, JsonValue]] = {}
    for item, value in zip(items, values, strict=True):
        row: dict[str, JsonValue] = {"id": item.example, **dict(item.case.inputs)}
        if item.case.reference is not None:
            row["reference"] = item.case.reference
        row[judge.output] = value
        row |= {each.name or LABEL: None for each in judge.rubric.criteria}
        rows.setdefault((item.example, item.case.answer), row)

    def place(key: tuple[str, str]) -> str:
        return hashlib.sha256(repr((seed, key)).encode(errors="surrogatepass")).hexdigest()

    lines = [json.dumps(rows[key], ensure_ascii=False) for key in sorted(rows, key=place)]
    try:
        write_atomically(path, "".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
    except OSError as problem:
        raise SkillcError(f"`{path}` cannot be written: {problem.strerror}") from problem
    return len(lines)
