"""The text of a rubric: a question, or levels with what each of them means; and the checks of rubrics and judges."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillc.diagnostics.diagnostic import Label, Reporter
from skillc.language.checked import Amount, Entity
from skillc.language.types import add_error
from skillc.text import listed

if TYPE_CHECKING:
    from skillc.language.expressions import Lowering
    from skillc.syntax import nodes

MALFORMED = "SK427"
_LEVEL = re.compile(r"(?P<level>\d{1,4})(?:\s*[.:)=–—-]\s+|\s+)(?P<meaning>\S.*)")
_BARE_LEVEL = re.compile(r"(\d{1,4})\s*[.:)=–—-]?")


@dataclass(frozen=True, slots=True)
class RubricText:
    """A rubric, or one of its criteria, as text.

    Attributes:
        question: what is asked; with levels, the text before the first one.
        levels: each number with its meaning, the best first; empty for a question that is answered by yes or no.
    """

    question: str
    levels: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RubricProblem:
    """Why a text is no rubric, and how to fix it."""

    message: str
    hint: str


def read_rubric(text: str) -> RubricText | RubricProblem:
    """Read a text: lines that begin with a number are levels, deeper lines below one continue it."""
    before: list[str] = []
    levels: list[tuple[int, list[str], int]] = []
    for written in text.splitlines():
        line = written.strip()
        indent = len(written) - len(written.lstrip())
        found = _LEVEL.fullmatch(line)
        if not line:
            continue
        if _BARE_LEVEL.fullmatch(line):
            return RubricProblem(f"level {_BARE_LEVEL.fullmatch(line)[1]} has no meaning", _HINT)  # type: ignore[index]
        if found is not None and not (levels and indent > levels[-1][2]):
            levels.append((int(found["level"]), [found["meaning"]], indent))
        elif not levels:
            before.append(line)
        elif indent > levels[-1][2]:
            levels[-1][1].append(line)
        else:
            shown = line if len(line) <= 40 else line[:40] + "…"
            return RubricProblem(f"`{shown}` is between levels and begins with no number", _HINT_BETWEEN)
    return _checked(" ".join(before), [(level, " ".join(meaning)) for level, meaning, _ in levels])


_HINT = "write `5  the customer need not write again`, one line for each level"
_HINT_BETWEEN = "indent it to continue the level above, or move it before the first level"


def _checked(question: str, levels: list[tuple[int, str]]) -> RubricText | RubricProblem:
    if not levels:
        return (
            RubricText(question) if question else RubricProblem("the text is empty", "ask a question, or write levels")
        )
    if len(levels) == 1:
        hint = "write two or more; or a question, whose text begins with no number"
        return RubricProblem(f"level {levels[0][0]} is the only one", hint)
    numbers = [level for level, _ in levels]
    twice = next((number for number in numbers if numbers.count(number) > 1), None)
    if twice is not None:
        return RubricProblem(f"two levels have the number {twice}", "give each level its own number")
    if numbers not in (sorted(numbers), sorted(numbers, reverse=True)):
        order = ", ".join(map(str, numbers))
        return RubricProblem(f"the levels are not in order: {order}", "sort them, the best or the worst first")
    return RubricText(question, tuple(sorted(levels, reverse=True)))


def check_rubric(report: Reporter, rubric: Entity) -> None:
    """Check that a rubric is a text or criteria, and that each text is a question or levels in order."""
    name = rubric.name or ""
    criteria = [child for child in rubric.children if child.kind == "criterion"]
    if isinstance(rubric.value, str) and criteria:
        hint = "move the text into a criterion"
        add_error(report, MALFORMED, rubric, f"the rubric `{name}` has both a text and criteria", hint)
    elif rubric.value is None and not criteria:
        hint = 'add `= "..."`, or `criterion name = "..."` in its block'
        add_error(report, MALFORMED, rubric, f"the rubric `{name}` has neither a text nor criteria", hint)
    elif isinstance(rubric.value, str):
        _check_text(report, rubric, f"the rubric `{name}`")
    seen: dict[str, Entity] = {}
    for each in criteria:
        first = seen.setdefault(each.name or "", each)
        if first is not each:
            label = Label(first.source, first.span, "first declared here")
            message = f"two criteria are named `{each.name}`"
            add_error(report, "SK203", each, message, "rename one of them", (label,))
        _check_text(report, each, f"the criterion `{each.name}`")
        weight = each.settings.get("weight")
        if weight is not None and isinstance(weight.value, Amount) and weight.value.value <= 0:
            hint = "write a number above 0, or remove the criterion"
            add_error(report, MALFORMED, weight, f"the criterion `{each.name}` has no weight", hint)


def _check_text(report: Reporter, entity: Entity, what: str) -> None:
    if not isinstance(entity.value, str):
        return
    starts = report.offsets("SK006", entity.source)
    if any(
        entity.span.end <= start and not entity.source.text[entity.span.end : start].strip(" =") for start in starts
    ):
        return  # A text that is not closed is reported already.
    found = read_rubric(entity.value)
    if isinstance(found, RubricProblem):
        add_error(report, MALFORMED, entity, f"{what}: {found.message}", found.hint)


def check_judge(low: Lowering, node: nodes.Call, options: frozenset[str], roles: tuple[str, ...]) -> None:
    """Check that a call of `judge` names one model or a panel of several.

    Args:
        low: the expression.
        node: the call.
        options: names of the options that it has.
        roles: the models of its panel, as far as they are known.
    """
    scope = low.scope
    if not {"model", "panel"} & options:
        hint = "write `judge(output, rubric, model = role)`"
        raise scope.fail("SK310", node.span, "`judge` needs `model = ...`", hint)
    if {"model", "panel"} <= options:
        raise scope.fail("SK310", node.span, "`judge` has both `model` and `panel`", "keep one of them")
    if "panel" in options and not scope.generic:
        twice = [role for role in dict.fromkeys(roles) if roles.count(role) > 1]
        if twice:
            hint = "name each model once: equal models give equal answers"
            raise scope.fail("SK310", node.span, f"the panel names {listed(twice)} twice", hint)
        if len(roles) < 2:
            hint = "name two or more, three for a majority; or write `model = role`"
            raise scope.fail("SK310", node.span, "a panel of one model is no panel", hint)
