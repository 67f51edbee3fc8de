"""Statements about the output of one example, from a column of the data: checked by code, or asked of a judge.

A statement of a fixed form is checked by code, without a call and without an error:

    The output contains "refund"                The output does not contain "sorry"
    The output is exactly "billing"             The output starts with "Dear", ends with "Regards"
    The output is valid JSON                    The output has at most 80 words (lines, characters, tokens)

Case and white space do not count, except in `is exactly`. Every other statement is a question that a judge answers by
yes or no.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from pydantic import JsonValue

from skillc.dataclass import dataclass
from skillc.gates.terms import CallTerm
from skillc.metrics.judging.combine import Judged, Marked
from skillc.metrics.judging.verdict import JudgeFailed
from skillc.metrics.primitives import COUNTS, canonical_text, read_json, same
from skillc.outcomes import MICRO, Example
from skillc.plan.judges import JudgePlan
from skillc.plan.schema import CriterionPlan, RubricPlan
from skillc.text import cut

_QUESTION = "Is this statement true: {statement}"
_LONGEST_NAME = 120
_QUOTED = r"[\"“”`](?P<{name}>[^\"“”`]+)[\"“”`]"
_SUBJECT = r"(?:the )?(?:output|answer|reply|response|text)"


@dataclass(frozen=True, slots=True)
class Finding:
    """What code found of a statement, and its evidence."""

    holds: bool
    evidence: str


_Check = Callable[[str, re.Match[str]], bool]


def _folded(text: str) -> str:
    return canonical_text(" ".join(text.casefold().split()))


def _json(text: str, found: re.Match[str]) -> bool:
    try:
        return isinstance(read_json(text), dict | list)
    except ValueError:
        return False


def _counted(text: str, found: re.Match[str]) -> bool:
    unit = found["unit"].rstrip("s")
    count = len(text) if unit == "character" else COUNTS[f"{unit}s"](text)
    limit = int(found["number"].replace(",", ""))
    return {
        "at most": count <= limit,
        "no more than": count <= limit,
        "fewer than": count < limit,
        "less than": count < limit,
        "at least": count >= limit,
        "more than": count > limit,
        "exactly": count == limit,
    }[" ".join(found["bound"].lower().split())]


_FORMS: tuple[tuple[re.Pattern[str], _Check], ...] = tuple(
    (re.compile(rf"{_SUBJECT} {form}\.?", re.IGNORECASE), check)
    for form, check in (
        (
            rf"(?:contains|includes|mentions) {_QUOTED.format(name='part')}",
            lambda text, found: _folded(found["part"]) in _folded(text),
        ),
        (
            rf"(?:does not|doesn't) (?:contain|include|mention) {_QUOTED.format(name='part')}",
            lambda text, found: _folded(found["part"]) not in _folded(text),
        ),
        (
            rf"(?:is exactly|is equal to|equals) {_QUOTED.format(name='whole')}",
            lambda text, found: same(text, found["whole"]),
        ),
        (
            rf"(?:starts|begins) with {_QUOTED.format(name='part')}",
            lambda text, found: _folded(text).startswith(_folded(found["part"])),
        ),
        (
            rf"ends with {_QUOTED.format(name='part')}",
            lambda text, found: _folded(text).endswith(_folded(found["part"])),
        ),
        (r"is valid json", _json),
        (
            r"has (?P<bound>at most|no more than|fewer than|less than|at least|more than|exactly) "
            r"(?P<number>\d{1,3}(?:,\d{3})+|\d{1,9}) (?P<unit>words?|lines?|characters?|tokens?)",
            _counted,
        ),
    )
)


def check_by_code(statement: str, output: str) -> Finding | None:
    """Return what code finds of a statement, None if only a judge can tell."""
    for pattern, check in _FORMS:
        found = pattern.fullmatch(" ".join(statement.split()))
        if found is not None:
            holds = check(output, found)
            return Finding(holds, f"checked by code: {'holds' if holds else 'does not hold'}")
    return None


def checked_by_code(statement: str) -> bool:
    """Return whether a statement has a form that code checks."""
    return any(pattern.fullmatch(" ".join(statement.split())) for pattern, _ in _FORMS)


def statements_of(rubric: RubricPlan, example: Example) -> tuple[str, ...]:
    """Return the statements about an example, in order; empty if its column has none."""
    value: JsonValue = {**example.inputs, **example.fields}.get(rubric.each or "")
    items = value if isinstance(value, list) else [value]
    return tuple(text for text in (" ".join(str(item).split()) for item in items if item is not None) if text)


def rubric_of(rubric: RubricPlan, statements: Mapping[int, str]) -> RubricPlan:
    """Return the rubric that asks about each statement, under its number."""
    criteria = tuple(
        CriterionPlan(name=str(number), question=_QUESTION.format(statement=text))
        for number, text in statements.items()
    )
    return RubricPlan(criteria=criteria, sees=rubric.sees)


def asked(judge: JudgePlan, statements: Sequence[str], output: str) -> tuple[JudgePlan | None, dict[int, Finding]]:
    """Return the judge with the statements that it has to answer, None for none, and what code finds of the others.

    Statements are numbered from 1. A comparison is all the judge's.
    """
    found: dict[int, Finding] = {}
    for number, statement in enumerate(statements, 1) if judge.against is None else ():
        finding = check_by_code(statement, output)
        if finding is not None:
            found[number] = finding
    left = {number: text for number, text in enumerate(statements, 1) if number not in found}
    return (replace(judge, rubric=rubric_of(judge.rubric, left)) if left else None), found


def combine_statements(
    statements: Sequence[str], judged: Judged | None, found: Mapping[int, Finding], *, reveal: bool
) -> Judged:
    """Return the share of statements that hold, with a line and a mark for each.

    `reveal` is whether the feedback may quote the statements, which can contain the right answer.
    """
    marks = {int(mark.criterion): mark for mark in judged.marks} if judged is not None else {}
    told = {int(name): line for name, line in judged.lines} if judged is not None else {}
    for number, finding in found.items():
        marks[number] = Marked(str(number), Fraction(finding.holds), finding.evidence)
        told[number] = "yes" if finding.holds else "no"
    lines = []
    for number, statement in enumerate(statements, 1):
        lines.append((f"`{cut(statement, _LONGEST_NAME)}`" if reveal else f"statement {number}", told[number]))
    ordered = tuple(marks[number] for number in range(1, len(statements) + 1))
    share = sum((mark.score for mark in ordered), Fraction(0)) / len(ordered)
    whole = judged or Judged(share)
    return replace(whole, score=share, lines=tuple(lines), marks=ordered)


def statement_marks(
    judges: Sequence[JudgePlan], verdicts: Mapping[CallTerm, Judged | JudgeFailed]
) -> tuple[tuple[tuple[int, str], ...], ...]:
    """Return score in millionths and evidence of each statement, for each judge of statements; none of one that failed.

    Empty for judges that are asked about none.
    """
    found = (verdicts.get(judge.term) for judge in judges if judge.rubric.each is not None)
    return tuple(
        tuple((round(mark.score * MICRO), mark.reason) for mark in judged.marks) if isinstance(judged, Judged) else ()
        for judged in found
    )
